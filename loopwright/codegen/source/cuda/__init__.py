"""CUDA C++: kernels as text that a person can read, which NVRTC or nvcc compiles without any header.

Open `emit_cuda.py` first; `kernel_writer.py` writes one kernel, `kernels.py` is what the host is told of each.
`make_module.py` makes runtime modules. With `-model=emulated` the kernels run on this machine's CPU: `emulate.py`
compiles the same text with a C++ compiler and the files of `emulation/`, where a thread is a fiber.
"""

from loopwright.codegen.source.cuda.emit_cuda import emit_cuda
from loopwright.codegen.source.cuda.kernels import CudaKernel, CudaKernels, KernelParameter
from loopwright.codegen.source.cuda.make_module import make_cuda_module

__all__ = ["CudaKernel", "CudaKernels", "KernelParameter", "emit_cuda", "make_cuda_module"]
