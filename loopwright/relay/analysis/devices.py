"""virtual_devices: the device of each expression of a program that `PlanDevices` planned."""

from __future__ import annotations

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule
from loopwright.relay.expr import Call, Expr, Function, Let, Var
from loopwright.relay.op.registry import Op
from loopwright.relay.visitor import parts
from loopwright.target import VirtualDevice

_OPEN = VirtualDevice()


def virtual_devices(mod: IRModule | None, expression: Expr) -> dict[Expr, VirtualDevice]:
    """The device of `expression` and of all that it is made of; operators and functions of the module are left out.

    What lies in no function that has a device, and in no `on_device`, has none (`is_unconstrained`).
    """
    found: dict[Expr, VirtualDevice] = {}
    stack: list[tuple[Expr, VirtualDevice]] = [(expression, _OPEN)]
    while stack:
        current, around = stack.pop()
        if current in found or isinstance(current, (GlobalVar, Op)):
            continue
        here, inside = _of(current, around)
        if isinstance(current, Let):
            found.setdefault(current.var, _of(current.value, around)[0])
        found[current] = here
        stack += [(part, inside) for part in reversed(parts(current))]
    return found


def _of(expression: Expr, around: VirtualDevice) -> tuple[VirtualDevice, VirtualDevice]:
    """The device of an expression, and that of what it is made of."""
    if isinstance(expression, (Function, Var)):
        own = expression.virtual_device_
        device = own if isinstance(own, VirtualDevice) else around
        return device, device
    if isinstance(expression, Call) and isinstance(expression.op, Op):
        attrs = expression.attrs
        if expression.op.name == "on_device":
            return (
                attrs.virtual_device if attrs.constrain_result else around,
                attrs.virtual_device if attrs.constrain_body else around,
            )
        if expression.op.name == "device_copy":
            return attrs.dst_virtual_device, attrs.src_virtual_device
    return around, around
