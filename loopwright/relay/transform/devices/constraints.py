"""constraints: what a program says of the places of its values.

Some of it must hold: what `on_device` and `device_copy` name, devices of parameters and results, and that a value is
where its name, its tuple, its branch or the function it is given to has it. Some of it is wished: the inputs of an
operator are where it computes; an input that cannot be there is copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule
from loopwright.relay.adt import Constructor, Match
from loopwright.relay.errors import DevicesDisagree
from loopwright.relay.expr import (
    Call,
    Expr,
    Function,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
)
from loopwright.relay.op.registry import Op
from loopwright.relay.transform.devices.places import Place, join, together
from loopwright.relay.transform.typed_rewrite import is_call
from loopwright.relay.visitor import parts, post_order
from loopwright.target import CompilationConfig, VirtualDevice


def is_closed(function: Function) -> bool:
    """Whether what a function is made of is decided elsewhere: kernels, and what other compilers take over."""
    return bool(function.attrs.get("Primitive")) or "Compiler" in function.attrs


def open_parts(expression: Expr) -> Sequence[Expr]:
    """The parts of an expression that are planned with it."""
    if isinstance(expression, Function) and is_closed(expression):
        return expression.params
    return parts(expression)


def open_expressions(function: Function) -> Iterator[Expr]:
    """Every expression that is planned with the function, once, after what it is made of."""
    return post_order(function, open_parts)


class Constraints:
    """The places of all values of a module. `joined` reads them from the program, once, for all its functions."""

    def __init__(self, mod: IRModule, config: CompilationConfig) -> None:
        self.mod = mod
        self.config = config
        self.places: dict[Expr, Place] = {}
        self.functions: dict[str, Place] = {}
        self.wishes: list[tuple[Place, Place]] = []
        for var, function in mod.functions.items():
            if isinstance(function, Function):
                self.functions[var.name] = self.place(function)

    def place(self, expression: Expr) -> Place:
        """Where an expression is."""
        result = self.places.get(expression)
        if result is None:
            if isinstance(expression, GlobalVar):
                result = self.functions.get(expression.name) or Place()
            elif isinstance(expression, Constructor):
                return Place()  # each use of it is another function
            else:
                result = Place.of_type(expression.checked_type_)
            self.places[expression] = result
        return result

    def device(self, expression: Expr) -> VirtualDevice:
        """What is known of the device of an expression."""
        return self.place(expression).device

    def read(self, function: Function) -> None:
        """What must hold of a function of the module."""
        expressions = list(open_expressions(function))
        for expression in expressions:
            self._must(expression)
        for expression in expressions:
            if isinstance(expression, Call) and isinstance(expression.op, Op):
                self._wish(expression)
            elif isinstance(expression, Function) and is_closed(expression):
                place = self.place(expression)
                result = place.root.result
                self.wishes += [(param, result) for param in place.root.params if result is not None]

    def grant_wishes(self) -> None:
        """Join what is wished to be together, in the order of the program, where that is possible."""
        for one, other in self.wishes:
            join(one, other)

    # -- what must hold -----------------------------------------------------------------------------------------------

    def _must(self, expression: Expr) -> None:
        device = getattr(expression, "virtual_device_", None)  # which functions of the module by name have not
        if isinstance(device, VirtualDevice):
            self._on(expression, device)
        if isinstance(expression, Call):
            if isinstance(expression.op, Op):
                self._operator(expression)
            else:
                self._call(expression)
        elif isinstance(expression, Function):
            self._function(expression)
        elif isinstance(expression, Let):
            self._same(expression.var, expression.value)
            self._same(expression, expression.body)
        elif isinstance(expression, If):
            self._same(expression, expression.true_branch)
            self._same(expression, expression.false_branch)
            self._together(expression, expression.cond)
        elif isinstance(expression, Match):
            for clause in expression.clauses:
                self._same(expression, clause.rhs)
                for var in clause.lhs.variables():
                    self._together(expression.data, var)
            self._together(expression, expression.data)
        elif isinstance(expression, (Tuple, TupleGetItem, RefCreate, RefRead, RefWrite)):
            for part in parts(expression):
                self._together(expression, part)

    def _operator(self, call: Call) -> None:
        if is_call(call, "on_device"):
            (body,) = call.args
            if call.attrs.constrain_body:
                self._on(body, call.attrs.virtual_device)
            if call.attrs.constrain_result:
                self._on(call, call.attrs.virtual_device)
            if self.place(body).root.result is not None:  # a function is not copied
                self._same(call, body)
        elif is_call(call, "device_copy"):
            self._on(call.args[0], call.attrs.src_virtual_device)
            self._on(call, call.attrs.dst_virtual_device)
        elif is_call(call, "memory.alloc_storage"):
            self._on(call, call.attrs.virtual_device)
        elif call.attrs.host_result:
            self._on(call, self.config.host_virtual_device)

    def _call(self, call: Call) -> None:
        if isinstance(call.op, Constructor):
            for arg in call.args:
                self._together(call, arg)
            return
        wanted = Place(tuple(self.place(arg) for arg in call.args), self.place(call))
        if not join(self.place(call.op), wanted):
            raise DevicesDisagree(call, self._told(call.op), self._given(call))

    def _told(self, callee: Expr) -> str:
        root = self.place(callee).root
        if root.result is None:
            return str(root.device)
        return f"a function of {', '.join([str(param.device) for param in root.params])} → {root.result.device}"

    def _given(self, call: Call) -> str:
        args = ", ".join([str(self.device(arg)) for arg in call.args])
        return f"a call with {args} → {self.device(call)}"

    def _function(self, function: Function) -> None:
        place = self.place(function).root
        if place.result is None:
            return
        for param, wanted in zip(function.params, place.params, strict=True):
            self._joined(param, self.place(param), wanted)
        if not is_closed(function):
            self._joined(function.body, self.place(function.body), place.result)

    def _on(self, expression: Expr, device: VirtualDevice) -> None:
        wanted = self.config.canonical(device)
        if not self.place(expression).constrain(wanted):
            raise DevicesDisagree(expression, str(self.device(expression)), str(wanted))

    def _same(self, one: Expr, other: Expr) -> None:
        self._joined(other, self.place(one), self.place(other))

    def _together(self, one: Expr, other: Expr) -> None:
        before = self.device(one), self.device(other)
        if not together(self.place(one), self.place(other)):
            raise DevicesDisagree(other, *map(str, before))

    def _joined(self, expression: Expr, one: Place, other: Place) -> None:
        if not join(one, other):
            raise DevicesDisagree(expression, str(one.device), str(other.device))

    def _on_host(self) -> Place:
        result = Place()
        result.constrain(self.config.host_virtual_device)
        return result

    # -- what is wished -----------------------------------------------------------------------------------------------

    def _wish(self, call: Call) -> None:
        if is_call(call, "on_device"):
            if not call.attrs.constrain_body and not call.attrs.constrain_result:
                self.wishes.append((self.place(call.args[0]), self.place(call)))
        elif not is_call(call, "device_copy"):
            wanted = zip(call.args, self.inputs_of(call), strict=True)
            self.wishes += [(self.place(arg), place) for arg, place in wanted if place is not None]

    def inputs_of(self, call: Call) -> list[Place | None]:
        """Where an operator wants its inputs; None where it takes them anywhere."""
        on_host = call.attrs.host_inputs
        usual = None if call.attrs.host_result else self.place(call)
        names = call.attrs.inputs if on_host else ()
        return [self._on_host() if k < len(names) and names[k] in on_host else usual for k in range(len(call.args))]
