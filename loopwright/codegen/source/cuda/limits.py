"""check_kernel: whether a kernel fits the GPU that it is for, with the figures where it does not.

What all GPUs of an architecture have is in the tables of the CUDA programming guide ("Compute Capabilities"); a target
may say less or more itself (`-max_threads_per_block`, `-max_shared_memory_per_block`).
"""

from __future__ import annotations

import re
from typing import Final

from loopwright import ir
from loopwright.codegen.source.cuda.errors import KernelTooLarge
from loopwright.codegen.source.cuda.kernels import CudaKernel
from loopwright.target import Target

_THREADS: Final = 1024
_ALONG: Final = (1024, 1024, 64)  # threads along x, y and z
_STATIC: Final = 48 << 10  # bytes that a text may declare; a launch may ask for more
# The most that a launch may ask for, in KiB, by compute capability; what is not here has the 48 of all.
_DYNAMIC_KIB: Final = {
    **dict.fromkeys(("70", "72"), 96),
    "75": 64,
    "80": 163,
    "86": 99,
    "87": 163,
    "89": 99,
    "90": 227,
    "100": 227,
    "103": 227,
    "120": 99,
}


def shared_limits(target: Target) -> tuple[int, int]:
    """Bytes of shared memory that a block may have: declared in the text, and altogether."""
    match = re.match(r"sm_(\d+)", target.arch)
    whole = _DYNAMIC_KIB.get(match[1], 48) << 10 if match else _STATIC
    return _STATIC, max(whole, target.max_shared_memory_per_block)


def check_kernel(kernel: CudaKernel, function: ir.PrimFunc, target: Target) -> None:
    """Raise KernelTooLarge where the target does not have what the kernel needs."""
    said = target.attrs.get("max_threads_per_block", target.max_num_threads)
    most = said if isinstance(said, int) else _THREADS
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
    static, whole = shared_limits(target)
    if kernel.static_shared > static:
        hint = 'use smaller tiles, or the scope "shared.dyn", of which newer GPUs have more'
        need = f"needs {kernel.static_shared:,} bytes of shared memory"
        raise KernelTooLarge(function, kernel.name, need, f"{static:,} bytes of scope shared", hint)
    if kernel.static_shared + kernel.dynamic_shared > whole:
        need = f"needs {kernel.static_shared + kernel.dynamic_shared:,} bytes of shared memory"
        hint = "use smaller tiles" if target.arch else "use smaller tiles, or name the GPU, as in -arch=sm_90"
        raise KernelTooLarge(function, kernel.name, need, f"{whole:,} bytes", hint)


_SPLIT: Final = "split the bound loops: more blocks of fewer threads"
