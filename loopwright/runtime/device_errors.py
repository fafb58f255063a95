"""What keeps a device from being used: no runtime for it, no driver, a driver too old, or no such device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from loopwright.runtime.call_errors import SEPARATOR
from loopwright.runtime.errors import LoopwrightError

CPU_WORKS: Final = (
    "cpu(0) works: build for target 'llvm' and keep the tensors on cpu(0), or run kernels there with "
    "LOOPWRIGHT_CUDA=emulated"
)


class DeviceUnavailable(LoopwrightError):
    """The device cannot be used here: it is missing, or this version of Loopwright has no runtime for it.

    The message lists what was looked for. The CPU always works: build for target "llvm" and put tensors on cpu(0).

    For example:

        import loopwright
        loopwright.nd.empty((4,), device=loopwright.device("vulkan"))
    """

    code = "LW0103"
    advice = ""  # what helps before the CPU does

    def __init__(self, message: str, fields: Mapping[str, object] | None = None) -> None:
        """`message`: the problem, the reason and a hint, as compiled code gives them (`call_errors.py`)."""
        problem, why, hint = (message.split(SEPARATOR) + ["", ""])[:3]
        hints = [text for text in (hint or self.advice, CPU_WORKS) if text]
        super().__init__(problem, why=why or None, hint="; ".join(hints), fields=fields)


class NoCudaDriver(DeviceUnavailable):
    """There is no CUDA driver, or it does not start: the library `libcuda.so.1`, which comes with NVIDIA's driver.

    In a container the driver of the host has to be let in (for Docker: `--gpus all`). Building for CUDA needs no
    driver, running does.

    For example:

        # needs a process of its own
        import os
        os.environ["LOOPWRIGHT_CUDA_DRIVER"] = "libcuda-that-is-not-there.so"
        import loopwright

        loopwright.cuda(0).sync()
    """

    code = "LW0160"
    advice = "install NVIDIA's driver, or start the container with the GPU"


class CudaDriverTooOld(DeviceUnavailable):
    """The CUDA driver is older than CUDA 11.2, or lacks what a kernel needs, such as clusters of blocks (CUDA 11.8).

    For example:

        from loopwright.runtime.device_errors import CudaDriverTooOld

        raise CudaDriverTooOld("the driver is for CUDA 10.2, and CUDA 11.2 is needed")
    """

    code = "LW0161"
    advice = "install a newer NVIDIA driver"


class NoSuchGpu(DeviceUnavailable):
    """The driver is there, but not the device: there is no GPU, or the index is too high.

    `CUDA_VISIBLE_DEVICES` hides devices from a process and numbers the others anew.

    For example:

        from loopwright.runtime.device_errors import NoSuchGpu

        raise NoSuchGpu("there is no cuda(3): the driver has 2 devices")
    """

    code = "LW0162"
    advice = "look at `nvidia-smi -L` and at CUDA_VISIBLE_DEVICES"


KINDS: Final[dict[str, type[DeviceUnavailable]]] = {
    kind.__name__: kind for kind in (NoCudaDriver, CudaDriverTooOld, NoSuchGpu)
}
