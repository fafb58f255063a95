"""The CUDA toolkit: where it is, what it makes of a kernel, and what a compute version can do. No GPU needed."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from loopwright.contrib import utils
from loopwright.contrib.compilers import run
from loopwright.runtime import cuda
from loopwright.runtime.errors import LoopwrightError
from loopwright.target import Target

_FORMATS = ("cubin", "ptx", "fatbin")
USUAL_PLACE = "/usr/local/cuda"


class NoCudaToolkit(LoopwrightError, FileNotFoundError):
    """The CUDA toolkit was needed, and neither `CUDA_PATH`, nor `nvcc` on PATH, nor `/usr/local/cuda` leads to one.

    For example:

        # needs a process of its own
        import os
        from loopwright.contrib import nvcc

        os.environ["PATH"] = os.environ["CUDA_PATH"] = os.environ["CUDA_HOME"] = ""
        nvcc.USUAL_PLACE = "/nowhere"
        nvcc.find_cuda_path()
    """

    code = "LW0035"

    def __init__(self) -> None:
        super().__init__(
            "there is no CUDA toolkit here",
            why=f"looked for CUDA_PATH in the environment, nvcc on PATH, and {USUAL_PLACE}",
            hint="install the toolkit, or set CUDA_PATH to its folder",
        )


class BadCudaFormat(LoopwrightError, ValueError):
    """A kernel can be compiled to `ptx`, `cubin` or `fatbin`, and to nothing else.

    For example:

        from loopwright.contrib import nvcc

        nvcc.compile_cuda("__global__ void f() {}", target_format="obj")
    """

    code = "LW0036"

    def __init__(self, given: object) -> None:
        super().__init__(f"compile_cuda: {given!r} is no format", hint=f"use one of {', '.join(_FORMATS)}")


class BadComputeVersion(LoopwrightError, ValueError):
    """A compute version is written `8.0`, and an architecture `sm_80`; or there is none where one is needed.

    For example:

        from loopwright.contrib import nvcc

        nvcc.parse_compute_version("eight")
    """

    code = "LW0037"


def find_cuda_path() -> str:
    """The folder of the toolkit."""
    for variable in ("CUDA_PATH", "CUDA_HOME"):
        if os.environ.get(variable):
            return os.environ[variable]
    compiler = utils.which("nvcc")
    if compiler is not None:
        folder = os.path.dirname(os.path.dirname(os.path.realpath(compiler)))
        if os.path.exists(os.path.join(folder, "include", "cuda.h")):
            return folder  # a wrapper script of the same name lies somewhere else
    if os.path.exists(os.path.join(USUAL_PLACE, "bin", "nvcc")):
        return USUAL_PLACE
    raise NoCudaToolkit


def get_cuda_version(cuda_path: str | None = None) -> float:
    """The version of the toolkit, as 12.4."""
    said = run([os.path.join(cuda_path or find_cuda_path(), "bin", "nvcc"), "--version"])
    result = re.search(r"release (\d+\.\d+)", said)
    if result is None:
        raise NoCudaToolkit
    return float(result[1])


def compile_cuda(
    code: str,
    target_format: str = "ptx",
    arch: str | Sequence[str] | None = None,
    options: str | Sequence[str] | None = None,
    path_target: str | None = None,
) -> bytearray:
    """What nvcc makes of CUDA C++ source: PTX text, or a binary; also written to `path_target`."""
    if target_format not in _FORMATS:
        raise BadCudaFormat(target_format)
    folder = utils.tempdir()
    source, built = folder / "kernel.cu", path_target or folder / f"kernel.{target_format}"
    with open(source, "w", encoding="utf-8") as file:
        file.write(code)
    if arch is None:
        architecture = [f"-arch={get_arch()}"]
    else:
        architecture = [f"-arch={arch}"] if isinstance(arch, str) else list(arch)
    further = [options] if isinstance(options, str) else list(options or [])
    compiler = os.path.join(find_cuda_path(), "bin", "nvcc")
    run([compiler, f"--{target_format}", "-O3", *architecture, *further, "-o", built, source])
    with open(built, "rb") as result:
        return bytearray(result.read())


def get_arch(target: Target | str | None = None) -> str:
    """The architecture to compile for, as `sm_80`."""
    major, minor = parse_compute_version(get_target_compute_version(target))
    return f"sm_{major}{minor}"


def get_target_compute_version(target: Target | str | None = None) -> str:
    """The compute version, as `8.0`, of the target, else of the current target, else of the first GPU."""
    chosen = Target(target) if target is not None else Target.current(allow_none=True)
    architecture = None if chosen is None else chosen.attrs.get("arch")
    if architecture:
        digits = re.fullmatch(r"sm_(\d+)(\d)[a-z]?", str(architecture))
        if digits is None:
            raise BadComputeVersion(f"{architecture!r} is no CUDA architecture", hint="write it as sm_80")
        return f"{digits[1]}.{digits[2]}"
    if cuda(0).exist:
        return str(cuda(0).compute_version)
    raise BadComputeVersion(
        "there is no compute version: no target with -arch is given or current, and there is no GPU",
        hint='give one, such as Target("cuda -arch=sm_80")',
    )


def parse_compute_version(compute_version: str) -> tuple[int, int]:
    """`"8.6"` as `(8, 6)`."""
    result = re.fullmatch(r"(\d+)\.(\d+)", str(compute_version))
    if result is None:
        raise BadComputeVersion(f"{compute_version!r} is no compute version", hint="write it as 8.0")
    return int(result[1]), int(result[2])


def have_fp16(compute_version: str) -> bool:
    """Whether half precision is computed natively."""
    return parse_compute_version(compute_version) >= (5, 3)


def have_int8(compute_version: str) -> bool:
    """Whether there is the dot product of four bytes."""
    return parse_compute_version(compute_version) >= (6, 1)


def have_tensorcore(compute_version: str | None = None, target: Target | str | None = None) -> bool:
    """Whether there are tensor cores; of the target or the GPU here where no version is given, False without either."""
    if compute_version is None:
        try:
            compute_version = get_target_compute_version(target)
        except BadComputeVersion:
            return False
    return parse_compute_version(compute_version) >= (7, 0)


def have_cudagraph() -> bool:
    """Whether the toolkit has graphs."""
    try:
        return get_cuda_version() >= 10.0
    except NoCudaToolkit:
        return False


def have_bf16(compute_version: str) -> bool:
    """Whether bfloat16 is computed natively."""
    return parse_compute_version(compute_version) >= (8, 0)


def have_fp8(compute_version: str) -> bool:
    """Whether there are 8-bit floats."""
    return parse_compute_version(compute_version) >= (8, 9)
