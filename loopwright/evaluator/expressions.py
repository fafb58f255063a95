"""Expressions as Python closures: each node is compiled once to a function without arguments that gives its value.

All closures of a function share one `frame`, a list with a slot for each variable; a vector is a list of its lanes.
The evaluation on terms (`terms.py`) overrides the hooks `lift`, `concrete`, `load` and `store`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from loopwright.arith.index_arithmetic import IndexArithmetic
from loopwright.evaluator.arithmetic import binary, cast, exact, rounding, wrapping
from loopwright.evaluator.errors import (
    IndexTooLarge,
    IntegerDivisionByZero,
    OutOfBounds,
    UnboundVariable,
    UninitialisedRead,
)
from loopwright.evaluator.locations import Place, Run
from loopwright.evaluator.memory import Pointer, decoder, encoder
from loopwright.evaluator.values import Value
from loopwright.ir import (
    Add,
    And,
    BinaryExpr,
    Broadcast,
    Buffer,
    BufferLoad,
    Cast,
    Div,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Mod,
    Mul,
    Node,
    Not,
    Or,
    Ramp,
    Select,
    Shuffle,
    StringImm,
    Sub,
    Var,
    Visitor,
)
from loopwright.runtime.call_errors import ReadOnlyArgument
from loopwright.runtime.dtype import INT64, DataType
from loopwright.runtime.errors import NotBuilt

Lane = Callable[[int], Value]


class Scope(NamedTuple):
    """The iteration variables around a place in the program, innermost first."""

    var: Var
    slot: int
    outer: Scope | None


class Store(NamedTuple):
    """One compiled store in two halves, so that lanes in lockstep can all load before one stores."""

    prepare: Run  # → what to store
    commit: Callable[[Value], None]


class ExpressionCompiler(Visitor):
    """Compiles expressions; `StatementCompiler` adds statements."""

    def __init__(self, check: bool) -> None:
        self.check = check
        self.frame: list[Value] = []
        self.slots: dict[Var, int] = {}
        self.scope: Scope | None = None
        self.in_lockstep = False
        self.in_threads = False
        self.numbers = IndexArithmetic()  # which integers are exact, and which need no look at their limits
        # The typed views of each pointer variable: (element type, slot of the view, slot of its flags).
        self.views: dict[Var, list[tuple[DataType, int, int]]] = {}

    # --- variables ------------------------------------------------------------------------------------------------

    def slot(self, var: Var) -> int:
        """The slot of a variable that is bound here."""
        result = self.slots.get(var)
        # Lanes and threads keep what is bound inside their loop in slots of its own.
        if result is None or self.in_lockstep or self.in_threads:
            result = self.slots[var] = self.new_slot()
        return result

    def new_slot(self) -> int:
        self.frame.append(None)
        return len(self.frame) - 1

    def pointer(self, var: Var) -> Callable[[Pointer | None], None]:
        """What sets a pointer variable, together with every view that the program takes of it."""
        frame, slot = self.frame, self.slot(var)
        if self.in_lockstep or self.in_threads or var not in self.views:
            self.views[var] = []
        views = self.views[var]

        def bind(pointer: Pointer | None) -> None:
            frame[slot] = pointer
            for dtype, view, flags in views:
                if pointer is not None:
                    frame[view] = pointer.view(dtype)
                    frame[flags] = pointer.flags(dtype)

        return bind

    def binder(self, var: Var) -> Callable[[Value], None]:
        """What sets a variable of any type."""
        if var.dtype.kind == "handle":
            return self.pointer(var)
        frame, slot = self.frame, self.slot(var)

        def bind(value: object) -> None:
            frame[slot] = value

        return bind

    def view_of(self, buffer: Buffer) -> tuple[int, int]:
        """The slots of the view and of the flags that accesses to `buffer` use."""
        var, element = buffer.data, buffer.dtype.element
        if var not in self.views:
            raise UnboundVariable(var)
        for dtype, view, flags in self.views[var]:
            if dtype is element:
                return view, flags
        view, flags = self.new_slot(), self.new_slot()
        self.views[var].append((element, view, flags))
        return view, flags

    def loops(self, scope: Scope | None) -> dict[str, Value]:
        """The iteration variables and their values now, outermost first."""
        result = []
        while scope is not None:
            result.append((scope.var.name, self.frame[scope.slot]))
            scope = scope.outer
        return dict(reversed(result))

    # --- hooks ----------------------------------------------------------------------------------------------------

    numeric = True

    def lift(
        self, name: str, function: Callable[..., Value], operands: Sequence[Expr], result: DataType
    ) -> Callable[..., Value]:
        """The function on values, one lane each."""
        return function

    def concrete(self, expr: Expr, run: Run) -> Run:
        """A value that steers the program: a condition, bound or index."""
        return run

    # --- leaves ---------------------------------------------------------------------------------------------------

    def visit_children(self, node: Node) -> Value:
        raise NotBuilt(f"evaluation of {type(node).__name__} nodes", hint="te expressions become a function first")

    def visit_Var(self, var: Var) -> Run:
        slot = self.slots.get(var)
        if slot is None:
            raise UnboundVariable(var)
        frame = self.frame
        return lambda: frame[slot]

    def visit_IntImm(self, imm: IntImm) -> Run:
        value = bool(imm.value) if imm.dtype.is_bool else imm.value
        return lambda: value

    def visit_FloatImm(self, imm: FloatImm) -> Run:
        value = imm.value
        return lambda: value

    def visit_StringImm(self, imm: StringImm) -> Run:
        value = imm.value
        return lambda: value

    # --- arithmetic -----------------------------------------------------------------------------------------------

    def value(self, expr: Expr) -> Run:
        """The closure of an expression as a value of its type: index arithmetic, which is exact, by its low bits."""
        run: Run = self.visit(expr)
        if not self.numbers.is_index(expr) or self.numbers.fits(expr):
            return run
        wrap = self._low_bits(expr.dtype.element)
        if expr.dtype.lanes == 1:
            return lambda: wrap(run())
        return lambda: [wrap(x) for x in run()]

    def lane_value(self, expr: Expr) -> Lane:
        """`value`, one lane of it."""
        run = self.lane(expr)
        if not self.numbers.is_index(expr) or self.numbers.fits(expr):
            return run
        wrap = self._low_bits(expr.dtype.element)
        return lambda k: wrap(run(k))

    def _low_bits(self, dtype: DataType) -> Callable[[Value], Value]:
        wrap = wrapping(dtype)
        return wrap if self.numeric else lambda x: wrap(x) if isinstance(x, int) else x

    def _operands(self, expr: BinaryExpr) -> tuple[Run, Run]:
        """The closures of both operands: exact in index arithmetic, values of their type where data takes part."""
        if self.numbers.is_index(expr.a) and self.numbers.is_index(expr.b):
            return self.visit(expr.a), self.visit(expr.b)
        return self.value(expr.a), self.value(expr.b)

    def visit_BinaryExpr(self, expr: BinaryExpr) -> Run:
        operand = expr.a.dtype
        if self.numeric and operand.lanes == 1:
            fast = self._fast(expr, operand)
            if fast is not None:
                return fast
        function = self._binary(expr)
        a, b = self._operands(expr)
        if operand.lanes == 1:
            return lambda: function(a(), b())
        return lambda: [function(x, y) for x, y in zip(a(), b(), strict=True)]

    def _binary(self, expr: BinaryExpr) -> Callable[[Value, Value], Value]:
        """The operator on two lanes; an integer division without result says where it happened."""
        cls, dtype = type(expr), expr.a.dtype.element
        is_small = True
        if self.numbers.is_index(expr.a) and self.numbers.is_index(expr.b):
            is_small = self._is_small(expr.a) and self._is_small(expr.b)
            operation = exact(cls, is_small)
        else:
            operation = binary(cls, dtype)
        function = self.lift(cls.__name__, operation, (expr.a, expr.b), expr.dtype.element)
        if is_small and (not dtype.is_int or cls not in (Div, Mod, FloorDiv, FloorMod)):
            return function
        scope = self.scope

        def tells_where(a: Value, b: Value) -> Value:
            try:
                return function(a, b)
            except IntegerDivisionByZero:
                raise IntegerDivisionByZero(a, b, dtype, self.loops(scope), expr) from None
            except IndexTooLarge:
                raise IndexTooLarge(cls.__name__, a, b, self.loops(scope), expr) from None

        return tells_where

    def _is_small(self, expr: Expr) -> bool:
        """Whether index arithmetic stays within 64 bits for sure."""
        low, high = self.numbers.interval(expr)
        return INT64.lowest <= low and high <= INT64.highest

    def _fast(self, expr: BinaryExpr, dtype: DataType) -> Run | None:
        """The operations that programs spend their time in, without a call for the operation itself."""
        cls = type(expr)
        if dtype.is_int and cls in (Add, Sub, Mul):
            return self._exact_int(expr) if self.numbers.is_index(expr) else self._fast_int(expr, dtype)
        if cls in (Add, Sub, Mul) and dtype.kind == "float" and dtype.bits >= 32:
            a, b = self.visit(expr.a), self.visit(expr.b)
            if dtype.bits == 64:
                return {Add: lambda: a() + b(), Sub: lambda: a() - b(), Mul: lambda: a() * b()}[cls]
            r = rounding(dtype)
            return {Add: lambda: r(a() + b()), Sub: lambda: r(a() - b()), Mul: lambda: r(a() * b())}[cls]
        if cls.__name__ in ("LT", "GE") and self._is_small(expr.a) and self._is_small(expr.b):
            a, b = self._operands(expr)
            return (lambda: a() < b()) if cls.__name__ == "LT" else (lambda: a() >= b())
        return None

    def _exact_int(self, expr: BinaryExpr) -> Run:
        """Sums and products of index arithmetic."""
        cls, a, b = type(expr), self.visit(expr.a), self.visit(expr.b)
        if isinstance(expr.b, IntImm):
            literal = -expr.b.value if cls is Sub else expr.b.value
            return (lambda: a() * literal) if cls is Mul else (lambda: a() + literal)
        if cls is Add:
            return lambda: a() + b()
        return (lambda: a() - b()) if cls is Sub else (lambda: a() * b())

    def _fast_int(self, expr: BinaryExpr, dtype: DataType) -> Run:
        low, high = int(dtype.min_value()), int(dtype.max_value())
        mask, bias = (1 << dtype.bits) - 1, -low
        cls, right = type(expr), expr.b
        a, b = self._operands(expr)
        literal = right.value if isinstance(right, IntImm) else 0

        def wrap(value: int) -> int:
            return ((value + bias) & mask) - bias

        def add() -> int:
            value = a() + b()
            return value if low <= value <= high else wrap(value)

        def add_literal() -> int:
            value = a() + literal
            return value if low <= value <= high else wrap(value)

        def sub() -> int:
            value = a() - b()
            return value if low <= value <= high else wrap(value)

        def mul() -> int:
            value = a() * b()
            return value if low <= value <= high else wrap(value)

        def mul_literal() -> int:
            value = a() * literal
            return value if low <= value <= high else wrap(value)

        if isinstance(right, IntImm) and cls is not Sub:
            return add_literal if cls is Add else mul_literal
        return add if cls is Add else sub if cls is Sub else mul

    def visit_And(self, expr: And) -> Run:
        return self._logic(expr, True)

    def visit_Or(self, expr: Or) -> Run:
        return self._logic(expr, False)

    def _logic(self, expr: And | Or, goes_on: bool) -> Run:
        """The second operand is evaluated only where the first leaves the answer open."""
        a, b = self.visit(expr.a), self.visit(expr.b)
        if expr.dtype.lanes == 1:
            if self.numeric:
                return (lambda: a() and b()) if goes_on else (lambda: a() or b())
            join = self.joined(expr, goes_on)
            return lambda: join(a(), b)
        join, lane = self.joined(expr, goes_on), self.lane(expr.b)
        return lambda: [join(first, lambda k=k: lane(k)) for k, first in enumerate(a())]  # type: ignore[misc]

    def joined(self, expr: And | Or, goes_on: bool) -> Callable[[Value, Run], Value]:
        """An operand and a closure for the other, combined; goes on to the other where the first is `goes_on`."""
        function = self.lift(type(expr).__name__, lambda x, y: y, (expr.a, expr.b), expr.dtype.element)

        def join(first: object, second: Run) -> Value:
            if first is goes_on:
                return second()
            return first if first is (not goes_on) else function(first, second())

        return join

    def visit_Not(self, expr: Not) -> Run:
        a = self.visit(expr.a)
        function = self.lift("Not", lambda x: not x, (expr.a,), expr.dtype.element)
        if expr.dtype.lanes == 1:
            return lambda: function(a())
        return lambda: [function(x) for x in a()]

    def visit_Cast(self, expr: Cast) -> Run:
        value = self.value(expr.value)
        source, target = expr.value.dtype.element, expr.dtype.element
        function = self.lift("Cast", cast(source, target), (expr.value,), target)
        if expr.dtype.lanes == 1:
            return lambda: function(value())
        return lambda: [function(x) for x in value()]

    def visit_Select(self, expr: Select) -> Run:
        of = self.visit if self.numbers.is_index(expr) else self.value
        return self.select(expr, self.visit(expr.condition), of(expr.true_value), of(expr.false_value))

    def select(self, expr: Expr, condition: Run, true: Run, false: Run) -> Run:
        """Both sides are evaluated; then one is chosen, lane by lane when the condition is a vector."""
        operands = (expr.condition, expr.true_value, expr.false_value)  # type: ignore[attr-defined]
        function = self.lift("Select", lambda c, x, y: x if c else y, operands, expr.dtype.element)
        if expr.dtype.lanes == 1:
            return lambda: function(condition(), true(), false())
        if operands[0].dtype.lanes == 1:

            def broadcast() -> list[Value]:
                c = condition()
                return [function(c, x, y) for x, y in zip(true(), false(), strict=True)]

            return broadcast
        return lambda: [function(c, x, y) for c, x, y in zip(condition(), true(), false(), strict=True)]

    def visit_Let(self, expr: Let) -> Run:
        value, bind = self.visit(expr.value), self.binder(expr.var)
        self.numbers.let(expr.var, expr.value)
        body = self.visit(expr.body)

        def run() -> Value:
            bind(value())
            return body()

        return run

    # --- vectors --------------------------------------------------------------------------------------------------

    def visit_Ramp(self, expr: Ramp) -> Run:
        lane = self.lane(expr)
        lanes = range(expr.lanes)
        return lambda: [lane(k) for k in lanes]

    def visit_Broadcast(self, expr: Broadcast) -> Run:
        value, lanes = self.visit(expr.value), expr.lanes
        if expr.value.dtype.lanes > 1:
            return lambda: value() * lanes
        return lambda: [value()] * lanes

    def visit_Shuffle(self, expr: Shuffle) -> Run:
        vectors = [self.value(vector) for vector in expr.vectors]
        indices = [self.concrete(index, self.visit(index)) for index in expr.indices]
        scalars = [vector.dtype.lanes == 1 for vector in expr.vectors]

        def run() -> Value:
            joined: list[Value] = []
            for vector, scalar in zip(vectors, scalars, strict=True):
                value = vector()
                joined += [value] if scalar else value
            chosen = [joined[index()] for index in indices]
            return chosen if len(chosen) > 1 else chosen[0]

        return run

    def lane(self, expr: Expr) -> Lane:
        """One lane of a vector, evaluated alone: what a guard protects in other lanes stays untouched."""
        if expr.dtype.lanes == 1:
            scalar: Run = self.visit(expr)
            return lambda k: scalar()
        if isinstance(expr, Ramp):
            base = self.concrete(expr.base, self.visit(expr.base))
            stride = self.concrete(expr.stride, self.visit(expr.stride))
            if self.numbers.is_index(expr):
                return lambda k: base() + stride() * k
            element = expr.dtype.element
            add, mul = binary(Add, element), binary(Mul, element)
            return lambda k: add(base(), mul(stride(), k))
        if isinstance(expr, Broadcast) and expr.value.dtype.lanes == 1:
            value: Run = self.visit(expr.value)
            return lambda k: value()
        if isinstance(expr, BufferLoad) and expr.buffer.dtype.lanes == 1:
            return self._load_lane(expr)
        if isinstance(expr, (And, Or)):
            first, second, join = self.lane(expr.a), self.lane(expr.b), self.joined(expr, isinstance(expr, And))
            return lambda k: join(first(k), lambda: second(k))
        if isinstance(expr, BinaryExpr):
            is_index = self.numbers.is_index(expr.a) and self.numbers.is_index(expr.b)
            a, b = (self.lane(part) if is_index else self.lane_value(part) for part in (expr.a, expr.b))
            function = self._binary(expr)
            return lambda k: function(a(k), b(k))
        if isinstance(expr, Not):
            inner = self.lane(expr.a)
            invert = self.lift("Not", lambda x: not x, (expr.a,), expr.dtype.element)
            return lambda k: invert(inner(k))
        if isinstance(expr, Cast):
            inner = self.lane_value(expr.value)
            convert = self.lift(
                "Cast", cast(expr.value.dtype.element, expr.dtype.element), (expr.value,), expr.dtype.element
            )
            return lambda k: convert(inner(k))
        if isinstance(expr, Select):
            of = self.lane if self.numbers.is_index(expr) else self.lane_value
            condition, true, false = self.lane(expr.condition), of(expr.true_value), of(expr.false_value)
            operands = (expr.condition, expr.true_value, expr.false_value)
            pick = self.lift("Select", lambda c, x, y: x if c else y, operands, expr.dtype.element)
            return lambda k: pick(condition(k), true(k), false(k))
        return self.lane_of_other(expr)

    def lane_of_other(self, expr: Expr) -> Lane:
        """A lane of an expression that can only be evaluated whole."""
        whole: Run = self.visit(expr)
        return lambda k: whole()[k]

    # --- memory ---------------------------------------------------------------------------------------------------

    def place(self, buffer: Buffer, indices: Sequence[Expr], at: Node, writes: bool) -> Place:
        """Where an access to `buffer[indices]` goes."""
        runs = [self.concrete(index, self.visit(index)) for index in indices]
        layout = (
            [self.constant_or_run(size) for size in buffer.shape],
            [self.constant_or_run(stride) for stride in buffer.effective_strides()],
            self.constant_or_run(buffer.elem_offset),
        )
        vector = bool(indices) and indices[-1].dtype.lanes > 1
        scope = self.scope
        return Place(buffer, runs, layout, vector, self.check, lambda: self.loops(scope), writes, at)

    def constant_or_run(self, expr: Expr) -> Value:
        """An integer literal as a number; anything else as a closure."""
        return expr.value if isinstance(expr, IntImm) else self.concrete(expr, self.visit(expr))

    def visit_BufferLoad(self, load: BufferLoad) -> Run:
        location = self.place(load.buffer, load.indices, load, writes=False)
        one, where = self.read(load.buffer, location, load), location.run
        if load.dtype.lanes == 1:
            return lambda: one(where())
        return lambda: [one(index) for index in where()]

    def _load_lane(self, load: BufferLoad) -> Lane:
        """A lane of a vector load: the last index is replaced by that lane of it."""
        var = Var("lane", load.indices[-1].dtype.element)
        last, slot = self.lane(load.indices[-1]), self.slot(var)
        location = self.place(load.buffer, (*load.indices[:-1], var), load, writes=False)
        one, where = self.read(load.buffer, location, load), location.run
        frame = self.frame

        def run(k: int) -> Value:
            frame[slot] = last(k)
            return one(where())

        return run

    def read(self, buffer: Buffer, location: Place, at: Node) -> Callable[[int], Value]:
        """What reads the element at an offset."""
        frame, scope = self.frame, self.scope
        view, flags = self.view_of(buffer)
        table = decoder(buffer.dtype.element)
        if not self.check:
            return (lambda k: frame[view][k]) if table is None else (lambda k: table[frame[view][k]])

        def one(k: int) -> Value:
            written = frame[flags]
            try:
                if written is not None and k >= 0 and not written[k]:
                    raise UninitialisedRead(buffer, location.indices_of(k), self.loops(scope), at)
                if k < 0:
                    raise location.outside()
                value = frame[view][k]
            except IndexError as error:
                raise (error if isinstance(error, OutOfBounds) else location.outside()) from None
            return value if table is None else table[value]

        return one

    def write(self, buffer: Buffer, location: Place, at: Node) -> Callable[[int, Value], None]:
        """What writes the element at an offset; the value None takes its value away."""
        frame = self.frame
        view, flags = self.view_of(buffer)
        encode = encoder(buffer.dtype.element)

        def one(k: int, value: object) -> None:
            written = frame[flags]
            try:
                if k < 0:
                    raise location.outside()
                if value is not None:
                    frame[view][k] = value if encode is None else encode(value)
                if written is not None:
                    written[k] = value is not None
            except IndexError as error:
                raise (error if isinstance(error, OutOfBounds) else location.outside()) from None
            except TypeError:
                if frame[view].readonly:
                    raise ReadOnlyArgument(f"the program writes {buffer.name}, but its array is read-only") from None
                raise

        return one

    def store(self, buffer: Buffer, value: Run, location: Place, lanes: int, at: Node) -> Store:
        """A store to an element, or to one element a lane."""
        one, where = self.write(buffer, location, at), location.run

        def prepare() -> Value:
            return where(), value()

        if lanes == 1:
            return Store(prepare, lambda ready: one(*ready))

        def commit(ready: Value) -> None:
            for k, lane in zip(*ready, strict=True):
                one(k, lane)

        return Store(prepare, commit)
