"""check_kernel: whether a kernel fits the GPU that it is for, with the figures where it does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from loopwright import ir
from loopwright.analysis.thread_axes import tag_of
from loopwright.codegen.source.cuda.errors import KernelTooLarge, NeedsNewerGpu
from loopwright.codegen.source.cuda.kernels import TENSOR_MAP_ALIGNMENT, TENSOR_MAP_BYTES, CudaKernel
from loopwright.runtime.dtype import DataType
from loopwright.target import Target, describe_gpu

MOST_BLOCKS: Final = {"blockIdx.x": (1 << 31) - 1, "blockIdx.y": 65535, "blockIdx.z": 65535}  # on every GPU
_ALONG: Final = (1024, 1024, 64)  # threads along x, y and z, on every GPU
_PARAMETER_BYTES: Final = 32764  # CUDA 12.1 and later
_OLD_PARAMETER_BYTES: Final = 4096


def check_kernel(kernel: CudaKernel, function: ir.PrimFunc, target: Target) -> None:
    """Raise KernelTooLarge where the target does not have what the kernel needs."""
    gpu = describe_gpu(target)
    most = gpu.max_threads_per_block
    if kernel.threads > most:
        shape = " × ".join(map(str, kernel.block))
        raise KernelTooLarge(
            function, kernel.name, f"has {kernel.threads} threads a block ({shape})", f"{most} threads", _SPLIT
        )
    for axis, count, limit in zip("xyz", kernel.block, _ALONG):
        if count > limit:
            raise KernelTooLarge(
                function, kernel.name, f"has {count} threads along {axis}", f"{limit} along {axis}", _SPLIT
            )
    for extent in ir.collect(function.body, ir.AttrStmt):
        blocks, most_blocks = extent.value, MOST_BLOCKS.get(tag_of(extent))
        if most_blocks is not None and isinstance(blocks, ir.IntImm) and blocks.value > most_blocks:
            axis = tag_of(extent)[-1]
            need = f"is launched with {blocks.value:,} blocks along {axis}"
            hint = "bind the longest loop to blockIdx.x" if axis != "x" else "split the loop: each thread does several"
            raise KernelTooLarge(function, kernel.name, need, f"at most {most_blocks:,} along {axis}", hint)
    taken, room = _parameter_bytes(kernel), _PARAMETER_BYTES if gpu.number >= 70 else _OLD_PARAMETER_BYTES
    if taken > room:
        need = f"takes {taken:,} bytes of arguments ({len(kernel.parameters):,} of them)"
        hint = "put tensors into one, or launch several kernels"
        raise KernelTooLarge(function, kernel.name, need, f"{room:,} bytes", hint)
    static, whole = gpu.static_shared_memory_per_block, gpu.max_shared_memory_per_block
    if kernel.static_shared > static:
        hint = 'use smaller tiles, or the scope "shared.dyn", of which newer GPUs have more'
        need = f"needs {kernel.static_shared:,} bytes of shared memory"
        raise KernelTooLarge(function, kernel.name, need, f"{static:,} bytes of scope shared", hint)
    if kernel.static_shared + kernel.dynamic_shared > whole:
        need = f"needs {kernel.static_shared + kernel.dynamic_shared:,} bytes of shared memory"
        hint = "use smaller tiles" if target.arch else "use smaller tiles, or name the GPU, as in -arch=sm_90"
        raise KernelTooLarge(function, kernel.name, need, f"{whole:,} bytes", hint)


def check_architecture(calls: Mapping[str, tuple[ir.Call, int | str]], target: Target) -> None:
    """Raise NeedsNewerGpu for a call that the target does not have.

    `calls`: by name, with the first architecture that has it (90), or the only one ("sm_90a").
    """
    gpu = describe_gpu(target)
    for name, (call, needed) in calls.items():
        if isinstance(needed, int) and gpu.number < needed:
            raise NeedsNewerGpu(call, name, f"sm_{needed}", gpu.arch)
        if isinstance(needed, str) and gpu.arch != needed:
            raise NeedsNewerGpu(call, name, needed, gpu.arch)


def _parameter_bytes(kernel: CudaKernel) -> int:
    """Bytes of the arguments, each aligned to its size."""
    result = 0
    for parameter in kernel.parameters:
        if parameter.is_tensor_map:
            result = -(-result // TENSOR_MAP_ALIGNMENT) * TENSOR_MAP_ALIGNMENT + TENSOR_MAP_BYTES
            continue
        size = 8 if parameter.is_pointer else DataType(parameter.dtype).nbytes
        result = -(-result // size) * size + size
    return result


_SPLIT: Final = "split the bound loops: more blocks of fewer threads"
