from __future__ import annotations

import pickle

import pytest

import loopwright
from loopwright import nd, runtime
from loopwright.runtime.devices import Device, DeviceUnavailable, UnknownDevice
from loopwright.runtime.registry import convert


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        (("cpu",), "cpu(0)"),
        (("llvm", 0), "cpu(0)"),
        (("c",), "cpu(0)"),
        (("stackvm",), "cpu(0)"),
        (("cuda", 1), "cuda(1)"),
        (("cuda:1",), "cuda(1)"),
        (("cuda -arch=sm_80",), "cuda(0)"),
        (("gpu",), "cuda(0)"),
        (("cl",), "opencl(0)"),
        (("mtl",), "metal(0)"),
        ((2, 3), "cuda(3)"),
        ((3,), "cuda_host(0)"),
    ],
)
def test_names(asked: tuple, shown: str):
    assert str(runtime.device(*asked)) == shown


@pytest.mark.parametrize("name", "cpu cuda gpu opencl cl vulkan metal mtl rocm vpi ext_dev hexagon webgpu".split())
def test_every_kind_has_a_function(name: str):
    assert getattr(nd, name)(1) == runtime.device(name, 1)


@pytest.mark.parametrize("asked", ["toaster", "", "cuda:x", "cuda:", "cuda:-1", 99])
def test_unknown_devices_are_named(asked: object):
    with pytest.raises(ValueError, match="unknown device") as caught:
        loopwright.device(asked)
    assert isinstance(caught.value, UnknownDevice)
    assert repr(asked) in str(caught.value)
    assert "cpu, llvm" in str(caught.value)


def test_the_cpu_exists_and_has_no_thread_blocks():
    dev = nd.cpu()
    assert dev.exist
    assert dev.warp_size is None
    assert dev.max_threads_per_block is None
    assert dev.multi_processor_count >= 1
    dev.sync()


def test_missing_cuda_says_what_was_looked_for_and_what_works():
    dev = nd.cuda(0)
    assert not dev.exist
    with pytest.raises(DeviceUnavailable, match=r"making a tensor: the device cuda\(0\) cannot be used here") as caught:
        nd.empty((2,), device=dev)
    text = str(caught.value)
    assert "libcuda.so.1" in text
    assert "/dev/nvidia*" in text
    assert "cpu(0) works: build for target 'llvm'" in text
    assert caught.value.fields["looked_for"] == ["libcuda.so.1", "/dev/nvidia*"]
    for use in (dev.sync, lambda: dev.warp_size, lambda: nd.array([1.0]).copyto(dev)):
        with pytest.raises(DeviceUnavailable):
            use()


def test_other_kinds_say_that_there_is_no_runtime():
    with pytest.raises(DeviceUnavailable, match="no runtime for vulkan devices"):
        nd.vulkan(0).sync()


def test_devices_compare_hash_pickle_and_pass_through_functions():
    assert nd.cpu(0) == runtime.device("llvm")
    assert nd.cpu(0) != nd.cuda(0)
    assert len({nd.cpu(0), runtime.device("cpu"), nd.cuda(1)}) == 2
    assert pickle.loads(pickle.dumps(nd.cuda(1))) == nd.cuda(1)
    returned = convert(lambda dev: dev)(nd.cuda(1))
    assert type(returned) is Device
    assert returned == nd.cuda(1)
