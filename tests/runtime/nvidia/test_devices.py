"""Devices, streams and memory of a GPU, on a driver of the tests' own."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from fake_gpu import FakeGpu, fake_driver, needs_compiler

import loopwright as lw
from loopwright import nd
from loopwright.runtime.device_errors import CudaDriverTooOld, NoCudaDriver, NoSuchGpu
from loopwright.runtime.nvidia import driver
from loopwright.runtime.nvidia.errors import CudaError, DeviceOutOfMemory, KernelFailed
from loopwright.runtime.nvidia.memory import BadStream, current_stream

pytestmark = needs_compiler


def test_a_device_tells_what_it_is(gpu: FakeGpu):
    dev = lw.cuda(1)
    assert dev.exist
    assert dev.device_name == "Fake GPU 1"
    assert dev.compute_version == "9.0"
    assert dev.max_threads_per_block == 1024
    assert dev.max_thread_dimensions == (1024, 1024, 64)
    assert (dev.max_shared_memory_per_block, dev.max_dynamic_shared_memory_per_block) == (49152, 232448)
    assert (dev.warp_size, dev.multi_processor_count, dev.max_registers_per_block) == (32, 132, 65536)
    assert (dev.l2_cache_size_bytes, dev.max_clock_rate, dev.api_version) == (50 << 20, 1980000, 13000)
    assert (dev.total_global_memory, dev.available_global_memory) == (1 << 26, 1 << 26)
    assert dev.driver_version is None or dev.driver_version[0].isdigit()
    dev.sync()
    assert "cuCtxSynchronize" in gpu.calls()
    assert lw.runtime.enabled("cuda")


def test_an_index_too_high_is_named(gpu: FakeGpu):
    assert not lw.cuda(2).exist
    with pytest.raises(NoSuchGpu, match=r"sync: the device cuda\(2\) cannot be used here") as caught:
        lw.cuda(2).sync()
    assert "the driver has 2 devices" in str(caught.value)
    assert "CUDA_VISIBLE_DEVICES" in caught.value.hint


def started_with(**settings: str) -> str:
    """What `cuda(0).sync()` prints in a process of its own."""
    program = (
        "import loopwright as lw\n"
        "try: lw.cuda(0).sync()\n"
        "except lw.LoopwrightError as error: print(type(error).__name__, error)\n"
    )
    environment = {**os.environ, "LOOPWRIGHT_CUDA_DRIVER": fake_driver(), **settings}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("settings", "kind", "text"),
    [
        ({"LOOPWRIGHT_CUDA_DRIVER": "/nowhere/libcuda.so"}, NoCudaDriver, "the driver library /nowhere/libcuda.so"),
        ({"LOOPWRIGHT_CUDA_DRIVER": "libc.so.6"}, CudaDriverTooOld, "the CUDA driver has no cuInit"),
        ({"FAKE_CUDA_VERSION": "10020"}, CudaDriverTooOld, "the driver is for CUDA 10.2, and CUDA 11.2 is needed"),
        ({"FAKE_CUDA_DEVICES": "0"}, NoSuchGpu, "the driver (CUDA 13.0) finds no device"),
        ({"FAKE_CUDA_INIT": "100"}, NoSuchGpu, "the driver (CUDA 13.0) finds no device"),
        ({"FAKE_CUDA_INIT": "803"}, NoCudaDriver, "cuInit gives CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
    ],
)
def test_a_driver_that_cannot_be_used_is_named(settings: dict[str, str], kind: type, text: str):
    message = started_with(**settings)
    assert message.startswith(kind.__name__)
    assert text in message
    assert "cpu(0) works" in message


def test_tensors_go_there_and_come_back(gpu: FakeGpu):
    data = np.arange(12, dtype="float32").reshape(3, 4)
    a = nd.array(data, lw.cuda(1))
    assert (a.device, a.shape, a.dtype, gpu.used()) == (lw.cuda(1), (3, 4), "float32", 48)
    assert np.array_equal(a.numpy(), data)
    assert np.array_equal(np.asarray(a), data)
    assert "NDArray shape=(3, 4), dtype=float32, cuda(1)" in repr(a)
    b = a.copyto(lw.cpu())
    assert b.device == lw.cpu() and np.array_equal(b.numpy(), data)
    c = b.copyto(lw.cuda(0))
    a[:] = 0
    assert np.array_equal(c.numpy(), data) and not a.numpy().any()
    c.copyto(a)
    assert np.array_equal(a.numpy(), data)
    restored = pickle.loads(pickle.dumps(a))
    assert restored.device == lw.cuda(1) and np.array_equal(restored.numpy(), data)
    del a, c, restored
    gc.collect()
    assert gpu.used() == 0


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "bfloat16", "float64", "float32x4"])
def test_every_element_type_survives(gpu: FakeGpu, dtype: str):
    host = nd.empty((5,), dtype)
    host.copyfrom(np.arange(host.numpy().size).reshape(host.numpy().shape) % 2)
    there = host.copyto(lw.cuda(0))
    assert there.dtype == dtype
    assert np.array_equal(there.numpy(), host.numpy())
    assert there.numpy().dtype == host.numpy().dtype


def test_types_are_converted_and_shapes_are_not(gpu: FakeGpu):
    a = nd.empty((3,), "int32", lw.cuda(0)).copyfrom([1.7, 2, 3])
    assert a.numpy().tolist() == [1, 2, 3]
    assert nd.empty((3,), "float64", lw.cuda(0)).copyfrom(a).numpy().tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match=r"the tensor has shape \(3,\), the data has shape \(4,\)"):
        a.copyfrom([1, 2, 3, 4])
    with pytest.raises(ValueError, match=r"cuda\(0\) cannot be read as a numpy array without a copy"):
        a.__array__(copy=False)


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2), ()])
def test_tensors_without_elements_and_without_axes(gpu: FakeGpu, shape: tuple[int, ...]):
    a = nd.array(np.ones(shape, "float32"), lw.cuda(0))
    assert np.array_equal(a.numpy(), np.ones(shape, "float32"))
    assert gpu.used() == (0 if 0 in shape else 4)


def test_views_share_their_memory_and_keep_it(gpu: FakeGpu):
    a = nd.array(np.arange(6, dtype="int32"), lw.cuda(0))
    view = a._create_view((2, 3))
    assert view.device == lw.cuda(0)
    del a
    gc.collect()
    assert view.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    del view
    gc.collect()
    assert gpu.used() == 0


def test_a_foreign_strided_tensor_is_read_and_not_written(gpu: FakeGpu):
    a = nd.array(np.arange(12, dtype="int32").reshape(3, 4), lw.cuda(0))
    taken = nd.from_dlpack(Transposed(a))
    assert taken.numpy().tolist() == np.arange(12).reshape(3, 4).T.tolist()
    with pytest.raises(ValueError, match="do not lie next to each other"):
        taken.copyfrom(np.zeros((4, 3)))
    assert nd.array(taken, lw.cuda(1)).numpy().tolist() == taken.numpy().tolist()


class Transposed:
    """A tensor of another library, whose axes go the other way."""

    def __init__(self, tensor: nd.NDArray) -> None:
        self.tensor, self.streams = tensor, []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, stream: int | None = None, **options: object) -> object:
        from loopwright.runtime.dlpack import _capsule_pointer, _DLTensor

        self.streams.append(stream)
        capsule = self.tensor.__dlpack__(stream=stream)
        held = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
        for pair in (held.shape, held.strides):
            pair[0], pair[1] = pair[1], pair[0]
        return capsule


def test_memory_of_others_is_taken_behind_their_work(gpu: FakeGpu):
    dev = lw.cuda(0)
    other = Transposed(nd.array(np.zeros((2, 2), "float32"), dev))
    nd.from_dlpack(other)
    stream = dev.create_raw_stream()
    dev.set_raw_stream(stream)
    try:
        nd.from_dlpack(other)
        assert other.streams == [1, stream]
    finally:
        dev.free_raw_stream(stream)
    assert current_stream(0) == 0


def test_memory_is_handed_over_behind_our_work(gpu: FakeGpu):
    dev = lw.cuda(0)
    a = nd.empty((4,), device=dev)
    consumer = dev.create_raw_stream()
    gpu.calls()
    a.__dlpack__(stream=-1)
    a.__dlpack__(stream=1)  # the default stream, which is ours
    assert "cuStreamWaitEvent" not in gpu.calls()
    a.__dlpack__(stream=consumer)
    events = [call for call in gpu.calls() if "Event" in call]
    assert events[:3] == ["cuEventCreate", "cuEventRecord", "cuStreamWaitEvent"]
    with pytest.raises(BadStream, match="stream 0 may mean two streams"):
        a.__dlpack__(stream=0)
    # Freed only behind what the consumer has been doing with it.
    del a
    gc.collect()
    freeing = gpu.calls()
    assert freeing.index("cuStreamWaitEvent") < freeing.index("cuMemFreeAsync")
    dev.free_raw_stream(consumer)


def test_streams(gpu: FakeGpu):
    dev = lw.cuda(0)
    stream = dev.create_raw_stream()
    assert stream and gpu.library.fake_streams() == 1
    dev.set_raw_stream(stream)
    assert current_stream(0) == stream
    a = nd.array(np.ones(3, "float32"), dev)
    dev.sync(stream)
    dev.set_raw_stream(None)
    dev.free_raw_stream(stream)
    assert gpu.library.fake_streams() == 0
    del a  # its stream is gone
    gc.collect()
    assert gpu.used() == 0 and gpu.library.fake_events() == 0
    with pytest.raises(BadStream, match="'second' is no stream"):
        dev.set_raw_stream("second")


def test_memory_that_is_only_kept_is_given_up_before_there_is_none(gpu: FakeGpu):
    dev = lw.cuda(0)
    dev.trim()
    gpu.library.fake_set_memory(1 << 20)
    kept = nd.empty((1 << 18,), "uint8", dev)
    drop = nd.empty((1 << 19,), "uint8", dev)
    del drop
    gc.collect()
    assert gpu.library.fake_reserved() > gpu.used() == 1 << 18
    big = nd.empty((700 << 10,), "uint8", dev)
    assert "cuMemPoolTrimTo" in gpu.calls()
    with pytest.raises(DeviceOutOfMemory, match=r"cuda\(0\) has no 0.5 MiB") as caught:
        nd.empty((1 << 19,), "uint8", dev)
    assert "tensors of this process hold 0.9" in caught.value.why
    assert isinstance(caught.value, MemoryError)
    kept.copyfrom(np.ones(1 << 18, "uint8"))  # and everything goes on
    del big
    gc.collect()
    assert nd.empty((1 << 19,), "uint8", dev).shape == (1 << 19,)


def test_failures_name_the_call(gpu: FakeGpu):
    a = nd.empty((4,), device=lw.cuda(0))
    gpu.fail("cuMemcpyAsync", 1)
    with pytest.raises(CudaError, match=r"cuMemcpyAsync on cuda\(0\): CUDA_ERROR_INVALID_VALUE \(as the test wanted\)"):
        a.numpy()
    gpu.fail("cuStreamSynchronize", 700)
    with pytest.raises(KernelFailed, match=r"cuStreamSynchronize after a copy.*ILLEGAL_ADDRESS") as caught:
        a.numpy()
    assert "LOOPWRIGHT_CUDA_CHECK=1" in caught.value.hint
    gpu.fail("cuStreamCreate", 987)
    with pytest.raises(CudaError, match=r"cuStreamCreate on cuda.0.: error unknown to the driver"):
        lw.cuda(0).create_raw_stream()


def test_a_forked_child_is_told_so(gpu: FakeGpu):
    a = nd.array(np.ones(3, "float32"), lw.cuda(0))
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            a.numpy()
            message = "it worked"
        except BaseException as error:
            message = str(error)
        os.write(write, message.encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert "cuda(0) in a forked process" in os.read(read, 4096).decode()
    assert a.numpy().tolist() == [1, 1, 1]


def test_without_pools_memory_is_plain():
    program = (
        "import loopwright as lw, numpy as np\n"
        "a = lw.nd.array(np.arange(3), lw.cuda(0)); print(a.numpy().sum()); del a\n"
        "lw.cuda(0).trim()\n"
    )
    environment = {**os.environ, "LOOPWRIGHT_CUDA_DRIVER": fake_driver(), "FAKE_CUDA_POOLS": "0"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("3\n", "")


def test_the_addresses_for_compiled_code(gpu: FakeGpu):
    assert driver.symbols()["lw_cuda_launch"]


def test_the_target_of_a_device(gpu: FakeGpu):
    from loopwright.target import Target, describe_gpu
    from loopwright.target import gpu as description

    target = Target.from_device(lw.cuda(1))
    assert (target.arch, target.max_shared_memory_per_block, target.l2_cache_size_bytes) == ("sm_90", 49152, 50 << 20)
    description._describe.cache_clear()
    description._gpu_of_this_machine.cache_clear()
    try:
        found = describe_gpu("cuda")
        assert (found.name, found.arch, found.is_host, found.multiprocessors) == ("Fake GPU 0", "sm_90a", True, 132)
        assert (found.max_shared_memory_per_block, found.memory_bytes) == (232448, 1 << 26)
    finally:
        description._describe.cache_clear()
        description._gpu_of_this_machine.cache_clear()


def test_more_streams_than_are_kept_track_of(gpu: FakeGpu):
    dev = lw.cuda(1)
    streams = [dev.create_raw_stream() for _ in range(40)]
    tensors = []
    for stream in streams:
        dev.set_raw_stream(stream)
        tensors.append(nd.array(np.ones(2, "float32"), dev))
    dev.set_raw_stream(None)
    gc.collect()  # what errors of earlier tests hold
    gpu.calls()
    tensors.clear()
    gc.collect()
    freeing = gpu.calls()  # the whole device is waited for instead
    assert freeing.count("cuCtxSynchronize") == freeing.count("cuMemFreeAsync") == 40
    for stream in streams:
        dev.free_raw_stream(stream)
    assert gpu.used() == 0 and gpu.library.fake_streams() == 0
