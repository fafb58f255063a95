"""require_cpu: a program whose devices are all CPUs, without the marks that say so; any other is refused.

All CPUs of one process share their memory, so what `on_device` says needs nothing, and `device_copy` is a copy.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopwright.ir.function import IRModule
from loopwright.relay.errors import NeedsOtherDevice
from loopwright.relay.expr import Call, Expr, Function, Var
from loopwright.relay.graph_functions import graph_functions
from loopwright.relay.op.registry import Op
from loopwright.relay.visitor import ExprMutator, post_order
from loopwright.target import VirtualDevice

_NAMED = ("on_device", "device_copy")
_CPU = (-1, 1)
_MEMORY = ("", "global")


def _named(expression: Expr) -> Iterator[VirtualDevice]:
    """The devices that an expression names."""
    if isinstance(expression, (Function, Var)) and isinstance(expression.virtual_device_, VirtualDevice):
        yield expression.virtual_device_
    elif isinstance(expression, Call) and isinstance(expression.op, Op) and expression.op.name in _NAMED:
        yield from (value for value in expression.attrs.values() if isinstance(value, VirtualDevice))


class _Unmarked(ExprMutator):
    def visit_call(self, call: Call) -> Expr:
        if isinstance(call.op, Op) and call.op.name == "on_device":
            return self.visit(call.args[0])
        return super().visit_call(call)


def require_cpu(mod: IRModule) -> IRModule:
    """The module without `on_device`; NeedsOtherDevice where a device is no CPU, or a memory not the usual one."""
    marked = False
    for function in graph_functions(mod).values():
        for expression in post_order(function):
            for device in _named(expression):
                marked = True
                if device.device_type not in _CPU or device.memory_scope not in _MEMORY:
                    raise NeedsOtherDevice(str(device))
    if not marked:
        return mod
    return mod.map_functions(lambda one: _Unmarked().visit(one) if isinstance(one, Function) else one)
