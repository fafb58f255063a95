"""CudaKernels: the text of a module's kernels, and what the host has to know to launch them."""

from __future__ import annotations

from typing import Final, NamedTuple

# Of a tensor map among the parameters: `lw_tensor_map` of native/tensor_map.h.
TENSOR_MAP_BYTES: Final = 256
TENSOR_MAP_ALIGNMENT: Final = 64


class KernelParameter(NamedTuple):
    """A parameter of a kernel."""

    name: str
    dtype: str  # of the scalar, or of the elements behind the pointer
    is_pointer: bool
    is_written: bool  # memory that the kernel stores to
    is_tensor_map: bool = False  # the map of a tensor of that type, by value


class Alignment(NamedTuple):
    """What a kernel with wide accesses is given: a pointer, or a size, that is a multiple of a power of two."""

    position: int  # of the parameter
    multiple: int  # bytes where it is a pointer


class CudaKernel(NamedTuple):
    """A kernel; a call of it passes its parameters, then the extents of the axes in `launch`."""

    name: str  # in the text
    parameters: tuple[KernelParameter, ...]
    launch: tuple[str, ...]  # "blockIdx.x", "threadIdx.x", …: an axis that is not there has the extent 1
    block: tuple[int, int, int]  # threads along x, y and z
    static_shared: int  # bytes that the text declares
    dynamic_shared: int  # bytes that the launch asks for
    stack: int  # bytes of local arrays
    has_barriers: bool
    alignments: tuple[Alignment, ...] = ()  # what `name` needs; where one does not hold, `unaligned` is launched
    unaligned: str = ""  # in the text: the same kernel, whose accesses of what it is given are not wide

    @property
    def threads(self) -> int:
        """The threads of a block."""
        x, y, z = self.block
        return x * y * z


class CudaKernels(NamedTuple):
    """All kernels of a module in one text."""

    text: str
    kernels: dict[str, CudaKernel]  # by the name that functions of the host call
    architecture: str  # "sm_90a", or the empty text where the target does not say
