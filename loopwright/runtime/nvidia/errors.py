"""What can go wrong on a GPU; the texts, of `runtime/native/cuda_errors.c`, name the call, the kernel and why."""

from __future__ import annotations

from typing import Final

from loopwright.runtime.call_errors import CallError


class CudaError(CallError):
    """A call of the CUDA driver failed; the message names the call, the driver's error and the kernel, if there is one.

    The subclasses are the failures that have a remedy of their own.

    For example:

        from loopwright.runtime.nvidia.errors import CudaError

        raise CudaError("cuMemcpyAsync on cuda(0): CUDA_ERROR_INVALID_VALUE (invalid argument)")
    """

    code = "LW0163"


class DeviceOutOfMemory(CudaError, MemoryError):
    """The GPU has no memory left for a tensor or a temporary buffer; everything that exists goes on to work.

    Memory that freed tensors left in the pool is given up before this is raised. `cuda(0).trim()` gives it to other
    processes at any time.

    For example:

        from loopwright.runtime.nvidia.errors import DeviceOutOfMemory

        raise DeviceOutOfMemory("cuda(0) has no 90000.0 MiB")
    """

    code = "LW0164"


class KernelImageRefused(CudaError):
    """The driver does not load a kernel: it was built for another GPU, by a newer CUDA, or the image is damaged.

    A cubin runs on devices of its own major compute capability; one for `sm_90a` on 9.0 alone. PTX runs on every later
    device, where the driver is not older than the NVRTC it came from.

    For example:

        from loopwright.runtime.nvidia.errors import KernelImageRefused

        raise KernelImageRefused("the kernels were built for sm_80, and cuda(0) is sm_75")
    """

    code = "LW0165"


class KernelLaunchRefused(CudaError, ValueError):
    """A kernel cannot be launched as asked: too many threads or registers, too much shared memory, too large a grid.

    For example:

        from loopwright.runtime.nvidia.errors import KernelLaunchRefused

        raise KernelLaunchRefused("kernel add cannot be launched on cuda(0)")
    """

    code = "LW0166"


class KernelFailed(CudaError):
    """A kernel that was running failed, mostly by an access outside of memory; the device is lost for this process.

    Kernels run in the background, so a later call reports it and names those that may be meant. With
    `LOOPWRIGHT_CUDA_CHECK=1` every launch is waited for, and the error names the kernel.

    For example:

        from loopwright.runtime.nvidia.errors import KernelFailed

        raise KernelFailed("cuCtxSynchronize on cuda(0): CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access)")
    """

    code = "LW0167"


KINDS: Final[dict[str, type[CudaError]]] = {
    kind.__name__: kind
    for kind in (CudaError, DeviceOutOfMemory, KernelImageRefused, KernelLaunchRefused, KernelFailed)
}
