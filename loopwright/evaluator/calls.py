"""Calls: intrinsics that need more than the values of their arguments, and functions of the module."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from loopwright.evaluator.arithmetic import from_bytes, to_bytes
from loopwright.evaluator.errors import FailedCheck
from loopwright.evaluator.expressions import Lane
from loopwright.evaluator.foreign_calls import FOREIGN_CALLS
from loopwright.evaluator.functions import FUNCTIONS
from loopwright.evaluator.handoffs import HandoffCompiler
from loopwright.evaluator.locations import Run
from loopwright.evaluator.memory import Pointer
from loopwright.evaluator.values import Value
from loopwright.ir import BufferLoad, Call, Expr, GlobalVar
from loopwright.ir.intrinsic_rules import apply_rules
from loopwright.ir.machine_intrinsics import HANDOFFS
from loopwright.runtime.errors import LoopwrightError, NotBuilt

# Hints to the hardware: they change no value.
_ASKS_INDICES: Final = ("in_bounds",)  # of the numbers themselves, not of values of their types
_NO_EFFECT: Final = ("prefetch", "start_profile_intrinsic", "end_profile_intrinsic", "compute_now")


class Returned(Exception):
    """The program left the function with a value."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value


class CallCompiler(HandoffCompiler):
    """Compiles calls."""

    _calls: ClassVar[dict[str, Callable[[CallCompiler, Call], Run]]] = {}

    # Compiles the call of a function of the module; set by whoever holds the module.
    call_function: Callable[[GlobalVar, list[Run]], Run] | None = None

    def foreign_term(self, call: Call, name: str) -> Run:
        """A call out of the program, where values are terms."""
        raise NotBuilt(f"evaluation on terms of a call of {name!r}", "evaluate on numbers")

    def visit_Call(self, call: Call) -> Run:
        if isinstance(call.op, GlobalVar):
            if self.call_function is None:
                raise NotBuilt(f"the call of {call.op.name} outside a module")
            return self.call_function(call.op, [self.value(argument) for argument in call.args])
        name = call.op.name.removeprefix("tir.")
        special = self._calls.get(name)
        if special is not None:
            return special(self, call)
        if name in _NO_EFFECT:
            return lambda: 0
        if name not in FUNCTIONS or not call.args:
            meant = apply_rules(call, ("default", "llvm"))  # an operator of the user's own
            if meant is not None:
                return self.visit(meant)
            raise NotBuilt(f"evaluation of a call to {call.op.name}", hint="evaluate the function at an earlier stage")
        function = self._function(name, call)
        if call.dtype.lanes > 1:
            lanes, lane = range(call.dtype.lanes), self._call_lane(function, call)
            return lambda: [lane(k) for k in lanes]
        of = self.visit if name in _ASKS_INDICES else self.value
        arguments = [of(argument) for argument in call.args]
        if len(arguments) == 1:
            (x,) = arguments
            return lambda: function(x())
        if len(arguments) == 2:
            x, y = arguments
            return lambda: function(x(), y())
        return lambda: function(*[argument() for argument in arguments])

    def _function(self, name: str, call: Call) -> Callable[..., Value]:
        dtype = call.dtype.element if name == "large_uint_imm" else call.args[0].dtype.element
        if name == "likely":
            return lambda x: x
        return self.lift(name, FUNCTIONS[name](dtype), call.args, call.dtype.element)

    def _call_lane(self, function: Callable[..., Value], call: Call) -> Lane:
        of = self.lane if call.op.name.removeprefix("tir.") in _ASKS_INDICES else self.lane_value
        arguments = [of(argument) for argument in call.args]
        return lambda k: function(*[argument(k) for argument in arguments])

    def lane_of_other(self, expr: Expr) -> Lane:
        if isinstance(expr, Call) and not isinstance(expr.op, GlobalVar):
            name = expr.op.name.removeprefix("tir.")
            if name == "if_then_else":
                of = self.lane if self.numbers.is_index(expr) else self.lane_value
                condition, true, false = self.lane(expr.args[0]), of(expr.args[1]), of(expr.args[2])
                choose = self._choice(expr)
                return lambda k: choose(condition(k), lambda: true(k), lambda: false(k))
            if name in FUNCTIONS:
                return self._call_lane(self._function(name, expr), expr)
        return super().lane_of_other(expr)

    def _if_then_else(self, call: Call) -> Run:
        """Only the chosen side is evaluated."""
        is_index = self.numbers.is_index(call)
        of = self.visit if is_index else self.value
        condition, true, false = self.visit(call.args[0]), of(call.args[1]), of(call.args[2])
        choose = self._choice(call)
        if call.args[0].dtype.lanes > 1:
            lane_of = self.lane if is_index else self.lane_value
            lane_true, lane_false = lane_of(call.args[1]), lane_of(call.args[2])
            return lambda: [
                choose(c, lambda k=k: lane_true(k), lambda k=k: lane_false(k))  # type: ignore[misc]
                for k, c in enumerate(condition())
            ]
        if self.numeric:
            return lambda: true() if condition() else false()
        return lambda: choose(condition(), true, false)

    def _choice(self, call: Call) -> Callable[[Value, Run, Run], Value]:
        """A condition and closures for both sides: the chosen side, or both as a term where the condition is one."""
        function = self.lift("if_then_else", lambda c, x, y: x if c else y, call.args, call.dtype.element)

        def choose(condition: object, true: Run, false: Run) -> Value:
            if condition is True:
                return true()
            return false() if condition is False else function(condition, true(), false())

        return choose

    def _reinterpret(self, call: Call) -> Run:
        (argument,) = call.args
        value = self.value(argument)
        source, target = argument.dtype, call.dtype
        if source.lanes == target.lanes:
            function = self.lift(
                "reinterpret", lambda x: from_bytes(to_bytes(x, source), target), (argument,), target.element
            )
            if target.lanes == 1:
                return lambda: function(value())
            return lambda: [function(x) for x in value()]
        if not self.numeric:
            raise NotBuilt("evaluation on terms of a reinterpret that changes the lane count")
        if min(source.bits, target.bits) < 8 and not (source.is_bool or target.is_bool):
            raise NotBuilt(f"evaluation of a reinterpret of {source} as {target}, which share bytes")

        def run() -> Value:
            lanes = value() if source.lanes > 1 else [value()]
            data = b"".join([to_bytes(x, source) for x in lanes])
            size = target.nbytes
            result = [from_bytes(data[k : k + size], target) for k in range(0, len(data), size)]
            return result if target.lanes > 1 else result[0]

        return run

    def _address_of(self, call: Call) -> Run:
        (load,) = call.args
        if not isinstance(load, BufferLoad):
            raise LoopwrightError("address_of takes an element of a buffer, such as A[0]", at=call)
        location = self.place(load.buffer, load.indices, load, writes=False).run
        pointer, dtype = self.visit(load.buffer.data), load.buffer.dtype

        def run() -> Pointer:
            where = location()
            moved: Pointer = pointer().moved(where if isinstance(where, int) else where[0], dtype)
            return moved

        return run

    def _access_ptr(self, call: Call) -> Run:
        kind, data, offset = call.args[:3]
        lanes, element = kind.dtype.lanes, kind.dtype.element
        pointer, count = self.visit(data), self.visit(offset)
        return lambda: pointer().moved(count() * lanes, element)

    def _ret(self, call: Call) -> Run:
        value = self.value(call.args[0])

        def leave() -> Value:
            raise Returned(value())

        return leave

    def _assume(self, call: Call) -> Run:
        condition = self.concrete(call.args[0], self.visit(call.args[0]))
        scope = self.scope

        def check() -> int:
            if not condition():
                raise FailedCheck("what the program assumes does not hold", self.loops(scope), call)
            return 0

        return check

    def _isnullptr(self, call: Call) -> Run:
        pointer = self.visit(call.args[0])
        return lambda: pointer() is None

    def _vector_part(self, call: Call) -> Run:
        vector, half = self.value(call.args[0]), call.dtype.lanes
        low = call.op.name == "tir.vectorlow"

        def part() -> Value:
            result = vector()[:half] if low else vector()[half : 2 * half]
            return result if half > 1 else result[0]

        return part

    def _vectorcombine(self, call: Call) -> Run:
        parts = [self.value(argument) for argument in call.args]
        scalars = call.args[0].dtype.lanes == 1
        if scalars:
            return lambda: [part() for part in parts]
        return lambda: [lane for part in parts for lane in part()]

    def _undef(self, call: Call) -> Run:
        """No value: storing it makes an element uninitialised again; nothing else can be done with it."""
        return (lambda: None) if call.dtype.lanes == 1 else (lambda: [None] * call.dtype.lanes)


CallCompiler._calls.update(
    {
        "if_then_else": CallCompiler._if_then_else,
        "reinterpret": CallCompiler._reinterpret,
        "address_of": CallCompiler._address_of,
        "tvm_access_ptr": CallCompiler._access_ptr,
        "ret": CallCompiler._ret,
        "assume": CallCompiler._assume,
        "isnullptr": CallCompiler._isnullptr,
        "vectorlow": CallCompiler._vector_part,
        "vectorhigh": CallCompiler._vector_part,
        "vectorcombine": CallCompiler._vectorcombine,
        "undef": CallCompiler._undef,
        **{name.removeprefix("tir."): CallCompiler.hand_off for name in HANDOFFS},
        **FOREIGN_CALLS,
    }
)
