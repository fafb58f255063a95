"""nvrtc: CUDA C++ to PTX or machine code, by NVIDIA's compiler library, which needs neither a GPU nor a driver."""

from __future__ import annotations

import ctypes
import os
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from loopwright.codegen.source.c.errors import CompilerFailed
from loopwright.codegen.source.cuda.errors import NoNvrtc

# What results rest on: no multiply-add but those of the text, and divisions and roots as IEEE 754 rounds them.
OPTIONS: Final = ("--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false", "--std=c++17")
_USUAL_ARCHITECTURE: Final = "sm_75"  # where a target names none
_NAMES: Final = ("libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12")


def compile_text(text: str, architecture: str, form: str = "ptx") -> bytes:
    """The text compiled for an architecture such as "sm_90a": its "ptx", or its machine code, the "cubin"."""
    library = _library(os.environ.get("LOOPWRIGHT_NVRTC", ""))
    program = ctypes.c_void_p()
    _check(library, library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernels.cu", 0, None, None))
    try:
        options = [f"--gpu-architecture={architecture or _USUAL_ARCHITECTURE}".encode(), *map(str.encode, OPTIONS)]
        status = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        if status != 0:
            log = _bytes(library, library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog, program)
            raise CompilerFailed("NVRTC", log.rstrip(b"\0").decode("utf-8", "replace"))
        if form == "ptx":
            return _bytes(library, library.nvrtcGetPTXSize, library.nvrtcGetPTX, program).rstrip(b"\0")
        return _bytes(library, library.nvrtcGetCUBINSize, library.nvrtcGetCUBIN, program)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def is_available() -> bool:
    """Whether there is an NVRTC to compile with."""
    try:
        _library(os.environ.get("LOOPWRIGHT_NVRTC", ""))
    except NoNvrtc:
        return False
    return True


@lru_cache(maxsize=4)
def _library(asked: str) -> ctypes.CDLL:
    candidates = [asked] if asked else [*_of_wheel(), *_NAMES]
    for candidate in candidates:
        try:
            for builtins in Path(candidate).parent.glob("libnvrtc-builtins.so.*") if "/" in candidate else ():
                ctypes.CDLL(str(builtins))  # NVRTC asks the loader for it by its name alone, which finds no wheel
            return ctypes.CDLL(candidate)
        except OSError:
            continue
    raise NoNvrtc(candidates if asked else ["the wheel nvidia-cuda-nvrtc", *_NAMES])


def _of_wheel() -> list[str]:
    """The library in the wheel `nvidia-cuda-nvrtc`, newest first."""
    spec = find_spec("nvidia")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    found = [path for folder in folders for path in Path(folder).glob("*/lib/libnvrtc.so.*")]
    return [str(path) for path in sorted(found, reverse=True)]


def _bytes(library: ctypes.CDLL, size_of, get, program: ctypes.c_void_p) -> bytes:  # type: ignore[no-untyped-def]
    size = ctypes.c_size_t()
    _check(library, size_of(program, ctypes.byref(size)))
    result = ctypes.create_string_buffer(size.value)
    _check(library, get(program, result))
    return result.raw


def _check(library: ctypes.CDLL, status: int) -> None:
    if status != 0:
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise CompilerFailed("NVRTC", library.nvrtcGetErrorString(status).decode())
