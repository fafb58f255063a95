"""check_kernel: whether a kernel fits the GPU that it is for, with the figures where it does not."""

from __future__ import annotations

from typing import Final

from loopwright import ir
from loopwright.codegen.source.cuda.errors import KernelTooLarge
from loopwright.codegen.source.cuda.kernels import CudaKernel
from loopwright.target import Target, describe_gpu

_ALONG: Final = (1024, 1024, 64)  # threads along x, y and z, on every GPU


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
    static, whole = gpu.static_shared_memory_per_block, gpu.max_shared_memory_per_block
    if kernel.static_shared > static:
        hint = 'use smaller tiles, or the scope "shared.dyn", of which newer GPUs have more'
        need = f"needs {kernel.static_shared:,} bytes of shared memory"
        raise KernelTooLarge(function, kernel.name, need, f"{static:,} bytes of scope shared", hint)
    if kernel.static_shared + kernel.dynamic_shared > whole:
        need = f"needs {kernel.static_shared + kernel.dynamic_shared:,} bytes of shared memory"
        hint = "use smaller tiles" if target.arch else "use smaller tiles, or name the GPU, as in -arch=sm_90"
        raise KernelTooLarge(function, kernel.name, need, f"{whole:,} bytes", hint)


_SPLIT: Final = "split the bound loops: more blocks of fewer threads"
