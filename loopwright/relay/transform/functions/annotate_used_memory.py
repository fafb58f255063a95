"""AnnotateUsedMemory: how many bytes are in use while each primitive function runs.

    let %a = %f(%x);                   %f: used_memory=[bytes of %x and %a]
    let %b = %f(%a); (%a, %b)          %f: used_memory=[…, bytes of %a and %b]

In use are the arguments and results of the call, and what was computed before and is needed after it. Every function
that is not primitive gets `io_used_memory`: the bytes of its parameters and of what it returns. Calls are looked at in
the order of their lets: run ToANormalForm first. Shapes must be known.
"""

from __future__ import annotations

from math import prod
from typing import Final

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.types import TupleType, Type
from loopwright.relay.errors import CannotCompile
from loopwright.relay.expr import Call, Expr, Function, Let, Tuple, TupleGetItem, Var
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.types import FuncType, TensorType
from loopwright.relay.visitor import ExprMutator

USED: Final = "used_memory"
IO_USED: Final = "io_used_memory"


def type_bytes(of: Type) -> int:
    """The bytes of all tensors of a type; functions take none."""
    if isinstance(of, TupleType):
        return sum(type_bytes(field) for field in of.fields)
    if not isinstance(of, TensorType):
        return 0
    sizes = [size for size in of.shape if isinstance(size, int)]
    if len(sizes) != len(of.shape):
        raise CannotCompile(f"AnnotateUsedMemory does not support dynamic shapes: {of}")
    return prod(sizes) * of.dtype.nbytes * of.dtype.lanes


class _Liveness:
    """One chain of lets, from its end to its beginning."""

    def __init__(self, function: Function) -> None:
        self.lets: list[tuple[Var, Expr]] = []
        body = function.body
        while isinstance(body, Let):
            self.lets.append((body.var, body.value))
            body = body.body
        self.bound = dict(self.lets)
        self.params = set(function.params)
        self.live = self._read(body)
        self.used: dict[Function, list[int]] = {}
        self._call(body)
        for var, value in reversed(self.lets):
            if isinstance(value, Call):
                self._call(value, var)
            self.live.discard(var)
            if not isinstance(value, (Tuple, TupleGetItem, Function)):  # these are other names of what they hold
                self.live |= self._read(value)

    def _call(self, value: Expr, var: Var | None = None) -> None:
        if not isinstance(value, Call):
            return
        op: Expr | None = self.bound.get(value.op, value.op) if isinstance(value.op, Var) else value.op
        if not isinstance(op, Function) or "Primitive" not in op.attrs:
            return
        result = 0 if var is not None and var in self.live else type_bytes(value.checked_type)
        own = {var} if var is not None and var in self.live else set()
        alive: set[Var] = {one for one in (*self.live, *self._read(value), *own) if one is not None}
        self.used.setdefault(op, []).append(result + sum(type_bytes(one.checked_type) for one in alive))

    def _read(self, value: Expr) -> set[Var]:
        """The variables whose memory an expression reads, tuples taken apart."""
        result: set[Var] = set()
        waiting = [value]
        while waiting:
            each = waiting.pop()
            held = self.bound.get(each) if isinstance(each, Var) else None
            if isinstance(held, (Tuple, TupleGetItem)):
                each = held
            if isinstance(each, Tuple):
                waiting.extend(each.fields)
            elif isinstance(each, TupleGetItem):
                of = self.bound.get(each.tuple_value) if isinstance(each.tuple_value, Var) else each.tuple_value
                waiting.append(of.fields[each.index] if isinstance(of, Tuple) else each.tuple_value)
            elif isinstance(each, Call):
                waiting.extend(each.args)
            elif isinstance(each, Var) and not isinstance(each.checked_type, FuncType):
                result.add(each)
        return result


class _Annotate(ExprMutator):
    def __init__(self, used: dict[Function, list[int]]) -> None:
        super().__init__()
        self.used = used

    def visit_function(self, function: Function) -> Expr:
        if function in self.used:
            return function.with_attr(USED, tuple(self.used[function][::-1]))  # they were counted backwards
        return function


def _change(function: Function, mod: IRModule, context: PassContext) -> Function:
    if "Primitive" in function.attrs:
        return function
    inputs = sum(type_bytes(param.checked_type) for param in function.params)
    body = _Annotate(_Liveness(function).used).visit(function.body)
    changed = function.rebuilt(function.params, body, function.declared_ret_type)
    return changed.with_attr(IO_USED, inputs + type_bytes(function.body.checked_type))


def AnnotateUsedMemory() -> GraphPass:
    """Say of each primitive function how much memory is in use while it runs."""
    return GraphPass(_change, PassInfo(0, "AnnotateUsedMemory"))
