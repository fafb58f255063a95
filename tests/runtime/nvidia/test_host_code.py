"""A function of LLVM text that launches a kernel, as generated host code does: no Python before the launch."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys

import numpy as np
import pytest
from fake_gpu import FakeGpu, Launch, needs_compiler

import loopwright as lw
from loopwright import nd
from loopwright.codegen.llvm.engine import compile_text
from loopwright.codegen.llvm.load_object import load
from loopwright.runtime import ffi
from loopwright.runtime.device_errors import NoCudaDriver
from loopwright.runtime.nvidia import driver
from loopwright.runtime.nvidia.errors import DeviceOutOfMemory, KernelLaunchRefused
from loopwright.target import Target

pytestmark = needs_compiler

# host(data: handle, n: int): double(data, tmp, n), where tmp is n floats of the pool.
HOST = r"""
@image = private constant [13 x i8] c"cubin double\00"
@images = private constant [1 x {ptr, i64, i32, i32}] [{ptr, i64, i32, i32} {ptr @image, i64 12, i32 90, i32 0}]
@name = private constant [7 x i8] c"double\00"
@arguments = private constant [10 x i8] c"*A *tmp n\00"
@kernel = private global ptr null
declare ptr @lw_cuda_module(ptr, i32)
declare ptr @lw_cuda_kernel(ptr, ptr, ptr)
declare ptr @lw_cuda_stream(i32)
declare i32 @lw_cuda_alloc(i32, i64, ptr, ptr)
declare i32 @lw_cuda_free(i32, ptr, ptr)
declare i32 @lw_cuda_launch(ptr, i32, ptr, ptr, i64, ptr)

define i32 @host(ptr %handle, ptr %args, i32 %count, ptr %result) {
entry:
  %size = alloca [9 x i64]
  %pointers = alloca [3 x ptr]
  %tmp = alloca ptr
  %data = getelementptr i8, ptr %args, i64 8
  %n = getelementptr i8, ptr %args, i64 24
  %known = load ptr, ptr @kernel
  %is_known = icmp ne ptr %known, null
  br i1 %is_known, label %run, label %register
register:
  %module = call ptr @lw_cuda_module(ptr @images, i32 1)
  %no_module = icmp eq ptr %module, null
  br i1 %no_module, label %failed, label %name
name:
  %made = call ptr @lw_cuda_kernel(ptr %module, ptr @name, ptr @arguments)
  store ptr %made, ptr @kernel
  br label %run
run:
  %callee = phi ptr [%known, %entry], [%made, %name]
  %stream = call ptr @lw_cuda_stream(i32 0)
  %elements = load i64, ptr %n
  %bytes = mul i64 %elements, 4
  %no_memory = call i32 @lw_cuda_alloc(i32 0, i64 %bytes, ptr %stream, ptr %tmp)
  %is_full = icmp ne i32 %no_memory, 0
  br i1 %is_full, label %failed, label %launch
launch:
  store [9 x i64] [i64 4, i64 1, i64 1, i64 128, i64 1, i64 1, i64 0, i64 0, i64 0], ptr %size
  %second = getelementptr ptr, ptr %pointers, i64 1
  %third = getelementptr ptr, ptr %pointers, i64 2
  store ptr %data, ptr %pointers
  store ptr %tmp, ptr %second
  store ptr %n, ptr %third
  %status = call i32 @lw_cuda_launch(ptr %callee, i32 0, ptr %stream, ptr %size, i64 0, ptr %pointers)
  %memory = load ptr, ptr %tmp
  %freed = call i32 @lw_cuda_free(i32 0, ptr %memory, ptr %stream)
  %both = or i32 %status, %freed
  ret i32 %both
failed:
  ret i32 -1
}
"""


def host_function() -> ffi.PackedFunction:
    loaded = load(compile_text(HOST, Target("llvm")), driver.symbols())
    return ffi.function_from_address(loaded.address("host"), loaded)


def test_host_code_launches_a_kernel(gpu: FakeGpu):
    streams = []

    def double(launch: Launch) -> None:
        n = launch.argument(2, ctypes.c_int64)
        a, tmp = [(ctypes.c_float * n).from_address(launch.argument(k, ctypes.c_uint64)) for k in range(2)]
        tmp[:] = [2 * value for value in a]
        a[:] = tmp[:]
        streams.append((launch.stream, launch.size[0], launch.size[3]))

    gpu.kernel("double", double)
    dev = lw.cuda(0)
    a = nd.array(np.arange(5, dtype="float32"), dev)
    host = host_function()
    host(ctypes.c_void_p(a.data_ptr()), 5)
    host(ctypes.c_void_p(a.data_ptr()), 5)
    assert a.numpy().tolist() == [0, 4, 8, 12, 16]
    mine = dev.create_raw_stream()
    dev.set_raw_stream(mine)
    host(ctypes.c_void_p(a.data_ptr()), 5)
    dev.free_raw_stream(mine)
    assert streams == [(None, 4, 128), (None, 4, 128), (mine, 4, 128)]
    gc.collect()
    assert gpu.used() == 20


def test_its_errors_are_those_of_the_runtime(gpu: FakeGpu):
    gpu.kernel("double", lambda launch: None)
    host = host_function()
    with pytest.raises(DeviceOutOfMemory, match=r"cuda\(0\) has no 3814.7 MiB"):
        host(ctypes.c_void_p(0), 10**9)
    lw.cuda(0).trim()
    gpu.fail("cuLaunchKernel", 701)
    with pytest.raises(KernelLaunchRefused, match="kernel double cannot be launched"):
        host(ctypes.c_void_p(0), 4)
    host(ctypes.c_void_p(0), 4)  # and it goes on
    assert gpu.used() == 0


def test_without_a_driver_it_says_so():
    program = (
        "import ctypes, sys; sys.path[:0] = sys.argv[1:]\n"
        "from test_host_code import host_function\n"
        "try: host_function()(ctypes.c_void_p(0), 4)\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    here = os.path.dirname(__file__)
    environment = {**os.environ, "LOOPWRIGHT_CUDA_DRIVER": "libcuda-nowhere.so"}
    command = [sys.executable, "-c", program, here, os.path.dirname(here)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.stdout.startswith(f"{NoCudaDriver.__name__} libcuda-nowhere.so was not found [LW0160]"), done.stderr
