"""Targets and hosts as scripts pass them around."""

from __future__ import annotations

import pytest

import loopwright
from loopwright.target import Target, VirtualDevice


def test_pairs_lists_and_maps():
    target, host = Target.canon_target_and_host("cuda", "llvm")
    assert str(target.kind) == "cuda" and target.host == host == Target("llvm")
    assert Target.canon_target_and_host(None) == (None, None)
    with pytest.raises(AssertionError, match="host is not empty"):
        Target.canon_target_and_host(None, "llvm")
    with pytest.raises(AssertionError, match="no target is given"):
        Target.canon_multi_target_and_host(None)
    for given in ({1: "llvm", 2: "cuda"}, ["llvm", "cuda"]):
        assert [str(one.kind) for one in Target.canon_multi_target_and_host(given)] == ["llvm", "cuda"]
    assert Target.canon_multi_target_and_host({"kind": "llvm"}) == [Target("llvm")]
    by_target, host = Target.canon_target_map_and_host({"cuda": "program"}, "llvm")
    assert by_target == {Target("cuda", host="llvm"): "program"} and str(host.kind) == "llvm"


def test_devices_of_a_composite_are_targets_and_small_cores_have_operators_of_their_family():
    composite = Target("composite --host=llvm --devices=cuda,opencl")
    assert [str(one.kind) for one in composite.attrs["devices"]] == ["cuda", "opencl"]
    assert Target(composite.export()) == composite
    small = Target("c -mcpu=cortex-m55")
    assert small.keys == ("arm_cpu", "cpu") and small.features.has_mve


def test_a_virtual_device():
    device = VirtualDevice(loopwright.device("cuda", 1), Target("cuda"), "shared")
    assert (device.device_type, device.virtual_device_id, device.memory_scope) == (2, 1, "shared")
    assert VirtualDevice().is_unconstrained and not device.is_unconstrained
