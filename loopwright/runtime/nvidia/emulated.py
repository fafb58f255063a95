"""`LOOPWRIGHT_CUDA=emulated`: scripts written for GPUs run on this machine's CPU, untouched.

What is built for a cuda target then runs as with `-model=emulated` (`codegen/source/cuda/emulate.py`), and `cuda(0)` is
`cpu(0)`, as `device("llvm")` is: tensors "on the GPU" lie in the memory that emulated kernels use. The device answers
with the limits of an sm_80, which is what `cuda` without `-arch` means where there is no GPU.
"""

from __future__ import annotations

import os
from typing import Final

from loopwright.runtime.errors import LoopwrightError

VARIABLE: Final = "LOOPWRIGHT_CUDA"

# What the emulated device answers, by the driver's numbers (CUdevice_attribute).
FACTS: Final = {
    1: 1024,  # threads of a block, and along x, y and z
    2: 1024,
    3: 1024,
    4: 64,
    8: 49152,  # shared memory of a block
    10: 32,  # threads of a warp
    12: 65536,  # registers of a block
    38: 40 << 20,  # L2 cache
    75: 8,  # compute capability 8.0
    76: 0,
    97: 166912,  # shared memory of a block that asks for more
}


class UnknownCudaSetting(LoopwrightError, ValueError):
    """The environment variable `LOOPWRIGHT_CUDA` has a value that means nothing.

    `LOOPWRIGHT_CUDA=emulated` runs what is built for GPUs on the CPU, thread by thread; unset it to use the GPU.

    For example:

        # needs a process of its own
        import os

        os.environ["LOOPWRIGHT_CUDA"] = "emulate"

        import loopwright

        loopwright.cuda(0)
    """

    code = "LW0173"

    def __init__(self, value: str) -> None:
        super().__init__(
            f"{VARIABLE}={value!r} means nothing",
            hint=f"set {VARIABLE}=emulated to run kernels on the CPU, or unset it to use the GPU",
        )


def is_emulated() -> bool:
    """Whether this process runs what is built for GPUs on the CPU."""
    value = os.environ.get(VARIABLE, "")
    if value not in ("", "emulated"):
        raise UnknownCudaSetting(value)
    return value == "emulated"
