"""Kernels compiled: for the GPUs of this machine, or for every architecture of a target, in an object to be linked.

    exported_architectures("cuda -arch=sm_80,sm_90a")   sm_80, sm_90a, compute_90, compute_80: what a library holds
    image(kernels, "sm_90a", target)                    machine code; "compute_90" is PTX, which later GPUs compile
    images_here(kernels, target)                        what this process needs

NVRTC compiles, unless the user registered `tvm_callback_cuda_compile(text, target)`, which gives PTX or a cubin.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Final

from loopwright.codegen.llvm.constant_data import is_elf
from loopwright.codegen.llvm.engine import Compiled, compile_text
from loopwright.codegen.llvm.module_text import ModuleText
from loopwright.codegen.source.cuda.kernels import CudaKernels
from loopwright.runtime.errors import InternalError
from loopwright.runtime.nvidia import driver
from loopwright.runtime.nvidia.images import Image
from loopwright.runtime.nvidia.nvrtc import KernelDoesNotCompile, compile_cuda
from loopwright.runtime.registry import get_global_func
from loopwright.target import CpuDescription, Target, architectures_of, describe_gpu

# What results rest on: no multiply-add but those of the text, and divisions and roots as IEEE 754 rounds them.
OPTIONS: Final = ("--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false", "--std=c++17")
COMPILE_HOOK: Final = "tvm_callback_cuda_compile"
TEXT_HOOK: Final = "tvm_callback_cuda_postproc"
_MAJOR, _MINOR = 75, 76  # CUdevice_attribute
_UNDEFINED: Final = re.compile(r'identifier "\w+" is undefined')


def hook(name: str) -> Any:
    """The function that the user registered under a name of TVM's, or None."""
    return get_global_func(name, allow_missing=True)


def has_hooks() -> bool:
    """Whether the user takes part in compiling."""
    return hook(COMPILE_HOOK) is not None or hook(TEXT_HOOK) is not None


def exported_architectures(target: Target) -> list[str]:
    """What a library for `target` holds code for: the architectures it names, and PTX for later ones.

    PTX is that of the newest, and of the oldest too where GPUs between the two have another major version. A target
    that names PTX itself ("compute_90") gets that.
    """
    named = architectures_of(target) or [describe_gpu(target).arch]
    if any(one.startswith("compute") for one in named):
        return named
    numbers = sorted({_number(one) for one in named})
    ptx = [numbers[-1], *(numbers[:1] if numbers[0] // 10 != numbers[-1] // 10 else ())]
    return [*named, *[f"compute_{number}" for number in ptx]]


def image(kernels: CudaKernels, arch: str, target: Target) -> Image:
    """The kernels compiled for one architecture."""
    if hook(COMPILE_HOOK) is not None:
        return _by_hook(kernels, arch, target)
    is_ptx = arch.startswith("compute")
    try:
        code = compile_cuda(kernels.text, arch.replace("compute", "sm"), OPTIONS, is_ptx=is_ptx).code
    except KernelDoesNotCompile as error:
        if hook(TEXT_HOOK) is not None or _UNDEFINED.search(str(error.fields["log"])):
            raise  # text of the user's, or a call of a function that is nowhere
        raise InternalError(
            f"NVRTC refuses the generated text: {error.problem}", at=error.at, fields=error.fields
        ) from None
    return Image.of(code + b"\0" * is_ptx, arch)  # PTX is text, which ends with a 0


def _by_hook(kernels: CudaKernels, arch: str, target: Target) -> Image:
    made = hook(COMPILE_HOOK)(kernels.text, target)
    code = made.encode() if isinstance(made, str) else bytes(made)
    is_ptx = code.lstrip()[:2] in (b"//", b".v")
    return Image.of(code + b"\0" * is_ptx, arch.replace("compute", "sm"), is_ptx)


def ptx_of(kernels: CudaKernels, arch: str, target: Target) -> str:
    """The kernels as PTX for an architecture such as "sm_90"."""
    return image(kernels, arch.replace("sm", "compute"), target).content.rstrip(b"\0").decode()


def images_here(kernels: CudaKernels, target: Target) -> list[Image]:
    """The kernels for the GPUs of this machine: of what the target names, the best for each."""
    named = architectures_of(target)
    if not named:
        return [image(kernels, describe_gpu(target).arch, target)]
    found = driver.driver()
    capabilities = {
        10 * found.attribute(index, _MAJOR) + found.attribute(index, _MINOR) for index in range(found.device_count)
    }
    offered = exported_architectures(target)
    best = [max(offered, key=lambda arch: _rank(arch, capability)) for capability in sorted(capabilities)]
    return [image(kernels, arch, target) for arch in dict.fromkeys(best)]


def _rank(arch: str, capability: int) -> int:
    """How well code for `arch` suits a device, as `suits` of cuda_modules.c ranks images."""
    number, is_ptx, is_exact = _number(arch), arch.startswith("compute"), arch.endswith("a")
    if is_exact:
        return 0 if number != capability else 3000 if is_ptx else 6000
    if number > capability:
        return 0
    return 1000 + number if is_ptx else 4000 + number if number // 10 == capability // 10 else 0


def exported_images(kernels: CudaKernels, target: Target) -> list[Image]:
    """Images for all that `exported_architectures` names; PTX is left out where other GPUs would refuse it."""
    if hook(COMPILE_HOOK) is not None:
        return [image(kernels, _oldest(architectures_of(target) or [describe_gpu(target).arch]), target)]
    wanted = exported_architectures(target)
    exact = [arch for arch in wanted if arch[-1] in "af"]
    refused = [arch for arch in exact if not _is_general(kernels, arch, target)]
    if refused:
        needless = {f"compute_{_number(arch)}" for arch in refused}
        wanted = [arch for arch in wanted if arch not in needless]
        text = f"the kernels use instructions that only {', '.join(refused)} has: the library holds no PTX for others"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    return [image(kernels, arch, target) for arch in wanted]


def _is_general(kernels: CudaKernels, arch: str, target: Target) -> bool:
    """Whether text for "sm_90a" is text for "sm_90", too. NVRTC looks at inline PTX only when it makes machine code."""
    try:
        image(kernels, arch.rstrip("af").replace("compute", "sm"), target)
    except (InternalError, KernelDoesNotCompile):
        return False
    return True


def images_object(images: Sequence[Image], symbol: str, cpu: CpuDescription) -> Compiled:
    """An object for the host that holds the images, in a table under `symbol`; see `EmbeddedImages` of cuda.h."""
    data: dict[str, bytes] = {}
    module = ModuleText(cpu.triple, data=data if is_elf(cpu.triple) else None)
    rows = []
    for number, one in enumerate(images):
        content = module.constant_bytes(f"{symbol}.{number}", one.content, 64)
        rows.append(f"{_ROW} {{ptr {content}, i64 {len(one.content)}, i32 {one.arch}, i32 {one.flags}}}")
    table = module.constant(f"{symbol}.rows", f"[{len(rows)} x {_ROW}] [{', '.join(rows)}]", 8)
    fields = f"{{ptr {table}, i64 {len(rows)}, ptr null, ptr null}}"
    # Equal code has an equal name, so of two tables in one library either will do.
    text = f"{module.text()}@{symbol} = weak_odr global {{ptr, i64, ptr, ptr}} {fields}, align 8\n"
    return compile_text(text, cpu, data=data)


_ROW: Final = "{ptr, i64, i32, i32}"


def _number(arch: str) -> int:
    return int(arch.partition("_")[2].rstrip("af"))


def _oldest(archs: Iterable[str]) -> str:
    return min(archs, key=_number)
