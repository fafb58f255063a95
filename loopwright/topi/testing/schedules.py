"""Schedules for a target by name, and `compare_numpy_tvm`: build, run and compare in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from loopwright import te
from loopwright.runtime import Device
from loopwright.target import Target, describe
from loopwright.topi.rule_schedules import RuleSchedule

Schedule = Callable[..., RuleSchedule]
Implementation = tuple[Callable[..., te.Tensor], Schedule]
T = TypeVar("T")


def dispatch(target: str | Target, dispatch_map: Mapping[str, T]) -> T:
    """The entry of the first of the target's keys that has one, else that of "generic"."""
    for key in Target(target).keys:
        if key in dispatch_map:
            return dispatch_map[key]
    return dispatch_map["generic"]


def get_injective_schedule(target: str | Target) -> Schedule:
    """The schedule of injective operators for `target`."""
    return _schedule_for(target, "schedule_injective")


def get_elemwise_schedule(target: str | Target) -> Schedule:
    """The schedule of element-wise operators for `target`."""
    return _schedule_for(target, "schedule_elemwise")


def get_broadcast_schedule(target: str | Target) -> Schedule:
    """The schedule of broadcasts for `target`."""
    return _schedule_for(target, "schedule_broadcast")


def get_reduce_schedule(target: str | Target) -> Schedule:
    """The schedule of reductions for `target`."""
    return _schedule_for(target, "schedule_reduce")


def get_conv1d_ncw_implement(target: str | Target) -> Implementation:
    """The convolution NCW and its schedule for `target`."""
    return _implementation(target, "conv1d_ncw")


def get_conv2d_nchw_implement(target: str | Target) -> Implementation:
    """The convolution NCHW and its schedule for `target`."""
    return _implementation(target, "conv2d_nchw")


def get_conv2d_nhwc_implement(target: str | Target) -> Implementation:
    """The convolution NHWC and its schedule for `target`."""
    return _implementation(target, "conv2d_nhwc")


def get_conv2d_hwcn_implement(target: str | Target) -> Implementation:
    """The convolution HWCN and its schedule for `target`."""
    return _implementation(target, "conv2d_hwcn")


def get_conv2d_nchwc_implement(target: str | Target) -> Implementation:
    """The convolution NCHWc and its schedule for `target`."""
    return _implementation(target, "conv2d_NCHWc")


def _implementation(target: str | Target, operator: str) -> Implementation:
    from loopwright.topi import nn

    return getattr(nn, operator), _schedule_for(target, f"schedule_{operator}")


def _schedule_for(target: str | Target, name: str) -> Schedule:
    from loopwright.topi import arm_cpu, cuda, generic, x86

    package = dispatch(target, {"arm_cpu": arm_cpu, "cuda": cuda, "cpu": x86, "generic": generic})
    result: Schedule = getattr(package, name)
    return result


def compare_numpy_tvm(
    inputs: Sequence[np.ndarray],
    output: np.ndarray,
    target: str | Target,
    device: Device,
    compute: Callable[..., te.Tensor],
    schedule: Schedule,
) -> None:
    """Build `schedule([compute(…)])` for `target`, run it on `inputs`, and hold it against `output` (within 1e-4)."""
    # By hand, as `loopwright.build` is a facade over all layers.
    from loopwright.codegen.llvm import make_module
    from loopwright.runtime import array, empty
    from loopwright.te.schedule.to_module import schedule_to_module
    from loopwright.transform import lower

    chosen = Target(target)
    placeholders = [te.placeholder(x.shape, str(x.dtype), f"x{k}") for k, x in enumerate(inputs)]
    result = compute(*placeholders)
    with chosen:
        module = schedule_to_module(schedule([result]), [*placeholders, result])
        built = make_module(lower(module, chosen), describe(chosen), "main")
    arrays = [array(x, device) for x in inputs]
    out = empty(output.shape, str(result.dtype), device)
    built(*arrays, out)
    np.testing.assert_allclose(out.numpy(), output, rtol=1e-4, atol=1e-4)
