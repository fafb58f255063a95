"""nvidia: GPUs through the CUDA driver, and NVRTC, which compiles their kernels; neither is needed to import this.

Open `driver.py` first: it loads our C part (`runtime/native/cuda.c`), which loads `libcuda.so.1`, and gives the
addresses that compiled host code calls. `memory.py` makes tensors on a device and copies them, `kernels.py` launches
kernels from Python, `timing.py` measures with events, `nvrtc.py` turns CUDA C++ into a cubin or PTX. `errors.py` has
what can go wrong on a device; what keeps a device from being used at all is in `runtime/device_errors.py`.
"""
