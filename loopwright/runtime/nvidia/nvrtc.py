"""NVRTC: CUDA C++ to a cubin or PTX, without a GPU, a driver or a toolkit: the library is a wheel, the extra `[cuda]`.

    compiled = compile_cuda(text, "sm_90a")
    compiled.code, compiled.log

What was compiled is kept on disk by its content, like other compiled code. `LOOPWRIGHT_NVRTC` names the library where
it is not to be looked for.
"""

from __future__ import annotations

import ctypes
import functools
import glob
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from importlib import metadata
from importlib.util import find_spec
from typing import Final, NamedTuple

from loopwright.runtime.artifact_store import open_store
from loopwright.runtime.errors import LoopwrightError, SourceLine

KIND: Final = "cuda kernels"  # of the entries in the store
_ENVIRONMENT: Final = "LOOPWRIGHT_NVRTC"
_DISTRIBUTIONS: Final = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu13", "nvidia-cuda-nvrtc-cu12")
_SYSTEM: Final = ("libnvrtc.so.13", "libnvrtc.so.12")
_TOOLKITS: Final = ("/usr/local/cuda*/lib64/libnvrtc.so.1?", "/usr/local/cuda*/targets/*/lib/libnvrtc.so.1?")
_NAME: Final = re.compile(r"libnvrtc\.so\.\d+")
_FIRST_ERROR: Final = re.compile(
    r"^(?P<file>.+?)\((?P<line>\d+)\): (?:catastrophic )?error(?: #\S+)?: (?P<text>.+)$", re.MULTILINE
)


class NoNvrtc(LoopwrightError, ImportError):
    """Kernels cannot be compiled: the library NVRTC, which turns CUDA C++ into machine code, was not found.

    It is a Python package of some 90 MB. Neither the CUDA toolkit nor a GPU is needed to build for one.

    For example:

        # needs a process of its own
        import os
        os.environ["LOOPWRIGHT_NVRTC"] = "libnvrtc-that-is-not-there.so"
        from loopwright.runtime.nvidia.nvrtc import compile_cuda

        compile_cuda("", "sm_80")
    """

    code = "LW0168"

    def __init__(self, why: str) -> None:
        super().__init__(
            "NVRTC, which compiles CUDA kernels, cannot be loaded", why=why, hint='pip install "loopwright[cuda]"'
        )


class KernelDoesNotCompile(LoopwrightError, ValueError):
    """NVRTC refuses the text of a kernel; the message shows the line, `fields["log"]` has all that it says.

    Text that Loopwright generated should always compile: please report it.

    For example:

        from loopwright.runtime.nvidia.nvrtc import KernelDoesNotCompile

        raise KernelDoesNotCompile('extern "C" __global__ void f() { x = 1; }', "kernel.cu(1): error: x is undefined")
    """

    code = "LW0169"

    def __init__(self, source: str, log: str) -> None:
        found = _FIRST_ERROR.search(log)
        lines = source.splitlines()
        at = None
        if found is not None and 1 <= int(found["line"]) <= len(lines):
            at = SourceLine(found["file"], int(found["line"]), text=lines[int(found["line"]) - 1])
        problem = found["text"] if found is not None else log.strip() or "it says nothing about why"
        super().__init__(f"the kernel does not compile: {problem}", at=at, fields={"log": log})


class ArchitectureNotCompiled(LoopwrightError, ValueError):
    """The NVRTC that was found does not compile for the architecture of the target.

    Each release drops the oldest: that of CUDA 13 begins with sm_75, that of CUDA 12 with sm_50.

    For example:

        from loopwright.runtime.nvidia.nvrtc import ArchitectureNotCompiled

        raise ArchitectureNotCompiled("sm_70", (13, 0), ["sm_75", "sm_80"])
    """

    code = "LW0170"

    def __init__(self, arch: str, version: tuple[int, int], known: Sequence[str]) -> None:
        is_older = _number(arch) < _number(known[0])
        older = "pip install nvidia-cuda-nvrtc-cu12, and name its library by LOOPWRIGHT_NVRTC"
        newer = "pip install --upgrade nvidia-cuda-nvrtc, or use an architecture that it knows"
        super().__init__(
            f"NVRTC {version[0]}.{version[1]} does not compile for {arch}",
            why=f"it compiles for {', '.join(known)}",
            hint=older if is_older else newer,
            fields={"arch": arch, "known": list(known)},
        )


class Compiled(NamedTuple):
    """What came of a text."""

    code: bytes  # a cubin, or PTX
    log: str  # warnings, and what options such as --ptxas-options=-v ask for


class Nvrtc:
    """The library, loaded."""

    def __init__(self, library: ctypes.CDLL, path: str) -> None:
        self._library, self.path = library, path
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("Version", ctypes.byref(major), ctypes.byref(minor))
        self.version = major.value, minor.value

    def architectures(self) -> list[str]:
        """Those that it compiles for, oldest first, without the letters of exact ones."""
        count = ctypes.c_int()
        self._call("GetNumSupportedArchs", ctypes.byref(count))
        known = (ctypes.c_int * count.value)()
        self._call("GetSupportedArchs", known)
        return [f"sm_{number}" for number in sorted(known)]

    def compile(self, source: str, arch: str, options: Sequence[str], is_ptx: bool, name: str) -> Compiled:
        """Compile without looking at what is kept."""
        known = self.architectures()
        if arch.rstrip("af") not in known:
            raise ArchitectureNotCompiled(arch, self.version, known)
        given = [f"--gpu-architecture={arch.replace('sm', 'compute') if is_ptx else arch}", *options]
        program = ctypes.c_void_p()
        self._call("CreateProgram", ctypes.byref(program), source.encode(), name.encode(), 0, None, None)
        try:
            packed = (ctypes.c_char_p * len(given))(*[option.encode() for option in given])
            status = self._library.nvrtcCompileProgram(program, len(given), packed)
            log = self._bytes("ProgramLog", program).rstrip(b"\0").decode(errors="replace").strip()
            if status != 0:
                raise KernelDoesNotCompile(source, log or self._error_text(status))
            return Compiled(self._bytes("PTX" if is_ptx else "CUBIN", program), log)
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _bytes(self, what: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"Get{what}Size", program, ctypes.byref(size))
        result = ctypes.create_string_buffer(max(1, size.value))
        self._call(f"Get{what}", program, result)
        return result.raw[: size.value]

    def _call(self, name: str, *args: object) -> None:
        status = getattr(self._library, f"nvrtc{name}")(*args)
        if status != 0:
            raise NoNvrtc(f"nvrtc{name} of {self.path} gives {self._error_text(status)}")

    def _error_text(self, status: int) -> str:
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
        text: bytes = self._library.nvrtcGetErrorString(status)
        return text.decode(errors="replace")


def compile_cuda(
    source: str, arch: str, options: Sequence[str] = (), *, is_ptx: bool = False, name: str = "kernel.cu"
) -> Compiled:
    """The cubin (or PTX) of CUDA C++ text for an architecture such as "sm_90a"; from the cache where it is kept there.

    `options` are NVRTC's, such as "--ptxas-options=-v"; `name` is what messages call the text.
    """
    path = find_library()
    store = open_store()
    key = _key(path, source, arch, options, is_ptx, name)
    kept = store.read(key) if store is not None else None
    if kept is not None:
        return Compiled(kept.parts["code"], str(kept.header.get("log", "")))
    compiled = load_nvrtc().compile(source, arch, options, is_ptx, name)
    if store is not None:
        store.save(key, {"kind": KIND, "arch": arch, "log": compiled.log}, {"code": compiled.code})
    return compiled


@functools.cache
def load_nvrtc() -> Nvrtc:
    """The library; `NoNvrtc` where it is not there."""
    path = find_library()
    try:
        # It opens this by name when it compiles, and does not look beside itself: one that is loaded is found.
        for builtins in glob.glob(os.path.join(glob.escape(os.path.dirname(path)), "libnvrtc-builtins.so.*")):
            ctypes.CDLL(builtins)
        return Nvrtc(ctypes.CDLL(path), path)
    except (OSError, AttributeError) as error:
        raise NoNvrtc(f"{path}: {error}") from None


@functools.cache
def find_library() -> str:
    """Where the library is: in a wheel, in a toolkit, or on the loader's path; no package is imported for that."""
    given = os.environ.get(_ENVIRONMENT)
    if given:
        return given
    for path in (*_in_wheels(), *_in_toolkits(), *_beside_others()):
        return path
    for name in _SYSTEM:
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return name
    wheels = f"{_DISTRIBUTIONS[0]} and {_DISTRIBUTIONS[2]}"
    raise NoNvrtc(f"looked for the packages {wheels}, for {_SYSTEM[0]} and {_SYSTEM[1]}, and in /usr/local/cuda*")


def _in_wheels() -> Iterator[str]:
    for name in _DISTRIBUTIONS:
        try:
            files = metadata.distribution(name).files or ()
        except metadata.PackageNotFoundError:
            continue
        for file in files:
            if _NAME.fullmatch(file.name) and os.path.isfile(path := str(file.locate())):
                yield path


def _in_toolkits() -> Iterator[str]:
    for pattern in _TOOLKITS:
        yield from sorted(glob.glob(pattern), reverse=True)


def _beside_others() -> Iterator[str]:
    """In the folders that wheels of NVIDIA share, such as `nvidia/cu13/lib`, whichever wheel put it there."""
    spec = find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        found = glob.glob(os.path.join(glob.escape(folder), "*", "lib", "libnvrtc.so.1?"))
        yield from sorted(found, key=os.path.basename, reverse=True)  # newest first


def _key(path: str, source: str, arch: str, options: Sequence[str], is_ptx: bool, name: str) -> str:
    try:
        status = os.stat(path)
        library = f"{os.path.realpath(path)} {status.st_size} {status.st_mtime_ns}"
    except OSError:  # found by the loader: its version says what it is
        library = str(load_nvrtc().version)
    parts = (KIND, library, source, arch, *options, str(is_ptx), name)
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=20).hexdigest()


def _number(arch: str) -> int:
    return int(re.sub(r"\D", "", arch) or 0)
