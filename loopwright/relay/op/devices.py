"""Operators that say where values are: on which device they are computed, and where one is copied to another.

    relay.annotation.on_device(x, "cpu")                            x is computed there, and used there or elsewhere
    relay.annotation.on_device(x, "cpu", constrain_result=True)     and its result is used there
    relay.op.device_copy(x, "cpu:0", "cpu:1")                       x, computed on the one, as a value of the other

A device is a text, a `Device`, or a `VirtualDevice`, which also says a target and a memory. `PlanDevices` decides what
is left open, and puts copies where devices differ.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopwright.relay.expr import Expr, Function, Var
from loopwright.relay.op.annotation import Mark
from loopwright.relay.op.registry import Kind, calls, make, register
from loopwright.relay.visitor import bind
from loopwright.target import VirtualDevice


@register("on_device", Kind.OPAQUE)
class OnDevice(Mark):
    """The value; it is computed, or its result lies, on a device."""

    virtual_device: VirtualDevice = VirtualDevice()  # which never changes
    constrain_result: bool = False
    constrain_body: bool = True

    def expand(self, data: Expr) -> Expr:
        return data


@register("device_copy", Kind.OPAQUE)
class DeviceCopy(Mark):
    """The value of one device as a value of another: between two CPUs, a copy."""

    src_virtual_device: VirtualDevice = VirtualDevice()
    dst_virtual_device: VirtualDevice = VirtualDevice()

    def reference(self, data: np.ndarray) -> np.ndarray:
        return data.copy()


def virtual_device(device: object) -> VirtualDevice:
    """A device as a program names it: a VirtualDevice, a Device, or a text such as "cpu" or "cuda:1"."""
    if isinstance(device, VirtualDevice):
        return device
    from loopwright.runtime.devices import Device  # which loads tvm_ffi

    if isinstance(device, str):
        device = Device(device)
    if not isinstance(device, Device):
        raise TypeError(f"a device is a text, a Device or a VirtualDevice, not {type(device).__name__}: {device!r}")
    return VirtualDevice(device)


def on_device(body: Expr, device: object, constrain_result: bool = False, constrain_body: bool = True) -> Expr:
    """The value: computed on `device` unless `constrain_body` is False, its result there if `constrain_result`."""
    result: Expr = make(
        "on_device",
        body,
        virtual_device=virtual_device(device),
        constrain_result=bool(constrain_result),
        constrain_body=bool(constrain_body),
    )
    return result


calls("on_device")(on_device)
calls("annotation.on_device")(on_device)


@calls("device_copy")
def device_copy(data: Expr, src_device: object, dst_device: object) -> Expr:
    """`data`, a value of `src_device`, as a value of `dst_device`."""
    result: Expr = make(
        "device_copy",
        data,
        src_virtual_device=virtual_device(src_device),
        dst_virtual_device=virtual_device(dst_device),
    )
    return result


@calls("annotation.function_on_device")
def function_on_device(function: Function, param_devices: Sequence[object], result_device: object) -> Function:
    """The function with a device for each parameter and for its result."""
    if len(param_devices) != len(function.params):
        raise ValueError(f"{len(param_devices)} devices are given for {len(function.params)} parameters")
    params = [placed(param, virtual_device(one)) for param, one in zip(function.params, param_devices, strict=True)]
    body = bind(function.body, dict(zip(function.params, params, strict=True)))
    result = function.rebuilt(params, body, function.declared_ret_type)
    result.virtual_device_ = virtual_device(result_device)
    return result


def placed(var: Var, device: VirtualDevice) -> Var:
    """A new variable like this one, on a device."""
    result = Var(var.name_hint, var.type_annotation, var.span)
    result.checked_type_ = var.checked_type_
    result.virtual_device_ = device
    return result
