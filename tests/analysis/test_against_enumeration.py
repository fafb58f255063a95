"""Random affine programs: the checks report exactly what trying every iteration finds, and true witnesses."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from loopwright import ir
from loopwright.analysis import (
    OutOfBounds,
    ParallelRace,
    UninitialisedRead,
    check_bounds,
    check_initialised,
    check_races,
)
from loopwright.ir import (
    Block,
    BlockRealize,
    BufferStore,
    For,
    ForKind,
    IfThenElse,
    IterType,
    IterVar,
    PrimFunc,
    Range,
    Var,
    const,
    decl_buffer,
    seq,
)
from loopwright.ir.intrinsics import if_then_else
from tests.analysis.enumerate_program import Enumerate
from tests.campaign import programs

EXAMPLES = programs(125, 250)


class Maker:
    """Draws a program with an argument A, two allocated buffers, loops of a few iterations and affine indices."""

    def __init__(self, draw, symbolic: bool) -> None:
        self.draw = draw
        self.names = iter(f"i{k}" for k in range(1000))
        self.size = Var("n", "int32")
        extents = st.integers(1, 5)
        rows = self.size if symbolic else draw(extents)
        self.a = decl_buffer((rows, draw(extents)), name="A")
        self.private = [
            decl_buffer((draw(extents),), name="X"),
            decl_buffer((draw(extents), rows), name="Y"),
        ]
        self.symbolic = symbolic

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def index(self, scope: list[Var]) -> ir.Expr:
        """An affine expression, most often a loop with a little offset."""
        if not scope or self.integer(0, 9) == 0:
            return const(self.integer(0, 3))
        var = self.draw(st.sampled_from(scope))
        kind = self.integer(0, 9)
        if kind <= 4:
            return var
        if kind == 5:
            return var + self.integer(-1, 1)
        if kind == 6:
            return var * self.integer(-1, 2) + self.draw(st.sampled_from(scope)) + self.integer(-1, 1)
        if kind == 7:
            return (var + self.integer(-2, 2)) // 2
        if kind == 8:
            return (var * self.integer(1, 3) + self.integer(-2, 2)) % self.integer(1, 4)
        which = self.integer(0, 3)
        other = self.draw(st.sampled_from(scope))
        if which == 0:
            return ir.Div(var - 2, const(2))
        if which == 1:
            return ir.Mod(var - 2, const(3))
        return ir.Min(var, other + 1) if which == 2 else ir.Max(var - 1, other)

    def condition(self, scope: list[Var]) -> ir.Expr:
        a, b = self.index(scope), self.index(scope)
        kind = self.integer(0, 6)
        if kind == 0:
            return ir.logical_and(a < b, self.index(scope) >= 1)
        if kind == 1:
            return ir.logical_or(a < b, self.index(scope) >= 2)
        if kind == 2:
            return ir.logical_not(a < b)
        return [a < b, a >= 1, ir.EQ(a, b), ir.NE(a, b)][kind - 3]

    def load(self, scope: list[Var]) -> ir.Expr:
        buffer = self.draw(st.sampled_from([self.a, *self.private]))
        load = buffer[tuple(self.index(scope) for _ in buffer.shape)]
        if self.integer(0, 4) == 0:
            return if_then_else(self.condition(scope), load, const(0.0))
        return load

    def store(self, scope: list[Var]) -> ir.Stmt:
        buffer = self.draw(st.sampled_from([self.a, *self.private, *self.private]))
        value = self.load(scope) if self.integer(0, 2) else const(1.0)
        return BufferStore(buffer, value, tuple(self.index(scope) for _ in buffer.shape))

    def fill(self) -> ir.Stmt:
        """A nest that writes a whole buffer: otherwise nearly every program reads too early."""
        buffer = self.draw(st.sampled_from(self.private))
        loops = [Var(next(self.names), "int32") for _ in buffer.shape]
        body: ir.Stmt = BufferStore(buffer, const(0.0), tuple(loops))
        for var, extent in zip(loops, buffer.shape):
            body = For(var, const(0), extent, ForKind.SERIAL, body)
        return body

    def statement(self, scope: list[Var], depth: int) -> ir.Stmt:
        kind = self.integer(0, 9)
        if depth == 0 or kind <= 1:
            return self.store(scope)
        if kind == 2:
            return IfThenElse(self.condition(scope), self.statement(scope, depth - 1))
        if kind == 3:
            return seq([self.statement(scope, depth - 1), self.statement(scope, depth - 1)])
        if kind == 4:
            return self.fill()
        if kind == 5 and scope:
            return self.block(scope)
        var = Var(next(self.names), "int32")
        extent: ir.Expr = const(self.integer(0, 5))
        low: ir.Expr = const(self.integer(0, 1))
        if scope and self.integer(0, 4) == 0:
            extent = self.draw(st.sampled_from(scope)) + self.integer(0, 1)
        elif self.symbolic and self.integer(0, 2) == 0:
            extent, low = self.size + self.integer(0, 1), const(0)
        parallel = ForKind.PARALLEL if self.integer(0, 3) == 0 else ForKind.SERIAL
        return For(var, low, extent, parallel, self.statement([*scope, var], depth - 1))

    def block(self, scope: list[Var]) -> ir.Stmt:
        """A block with an axis, a predicate, and now and then memory of its own."""
        axis = Var(next(self.names), "int32")
        private = decl_buffer((3,), name="P")
        where = self.condition(scope) if self.integer(0, 2) == 0 else const(True)
        body = self.store([axis])
        if self.integer(0, 1):
            index = self.index([axis])
            value = private[self.index([axis])] if self.integer(0, 3) == 0 else private[index]
            body = seq([BufferStore(private, const(0.0), (index,)), BufferStore(self.a, value, (axis, const(0)))])
        iter_var = IterVar(Range(0, 100), axis, IterType.DataPar)
        made = Block((iter_var,), (), (), "inner", body, alloc_buffers=(private,))
        return BlockRealize((self.index(scope),), where, made)

    def function(self) -> PrimFunc:
        body = seq([self.statement([], 3) for _ in range(self.integer(1, 3))])
        root = Block((), (), (), "root", body, alloc_buffers=tuple(self.private))
        return PrimFunc([self.a], BlockRealize((), const(True), root))


@st.composite
def programs(draw, symbolic=False):
    maker = Maker(draw, symbolic)
    return maker.function(), maker.size


def outcome(check, function, kind):
    try:
        check(function)
    except kind as error:
        assert str(error)
        return error
    return None


def place(error) -> tuple:
    loops = tuple(sorted((k, v) for k, v in error.fields["iteration"].items() if k != "n"))
    return error.fields["buffer"], error.fields["indices"], loops


def sorted_places(found: set) -> set:
    return {(name, at, tuple(sorted(loops))) for name, at, loops in found}


def compare(function, found) -> None:
    """Each check raises exactly when enumeration finds a case, and names one of the cases."""
    error = outcome(check_bounds, function, OutOfBounds)
    assert (error is not None) == bool(found.outside)
    if error is not None:
        assert place(error) in sorted_places(found.outside)
    error = outcome(check_initialised, function, UninitialisedRead)
    assert (error is not None) == bool(found.early)
    if error is not None:
        assert place(error) in sorted_places(found.early)
    error = outcome(check_races, function, ParallelRace)
    assert (error is not None) == bool(found.races)
    if error is not None:
        assert (error.fields["loop"], error.fields["buffer"], error.fields["indices"]) in found.races


@settings(max_examples=EXAMPLES)
@given(programs())
def test_constant_sizes(made):
    function, _ = made
    compare(function, Enumerate(function).found)


@settings(max_examples=EXAMPLES)
@given(programs(symbolic=True))
def test_symbolic_sizes(made):
    """Small sizes stand for all: nothing found by enumeration is missed, and each witness is real at its size."""
    function, size = made
    found = {n: Enumerate(function, {size: n}).found for n in range(8)}
    carried = set().union(*[case.carried for case in found.values()])
    for case in found.values():
        case.carried = carried  # memory is that of each iteration at all sizes, or at none
    checks = (
        (check_bounds, OutOfBounds, "outside"),
        (check_initialised, UninitialisedRead, "early"),
        (check_races, ParallelRace, "races"),
    )
    for check, kind, name in checks:
        error = outcome(check, function, kind)
        bad = [n for n in found if getattr(found[n], name)]
        if error is None:
            assert not bad, (name, bad)
            continue
        fields = error.fields["iterations"][0] if kind is ParallelRace else error.fields["iteration"]
        n = fields.get("n", 7)  # where the size plays no part, any will do
        case = found.get(n) or Enumerate(function, {size: n}).found
        case.carried |= carried
        cases = getattr(case, name)
        if kind is ParallelRace:
            assert (error.fields["loop"], error.fields["buffer"], error.fields["indices"]) in cases
        else:
            assert place(error) in sorted_places(cases)


@st.composite
def fused(draw):
    """A parallel loop whose variable reaches the indices in digits, with a tile inside."""
    loop, tile = Var("f", "int32"), Var("t", "int32")
    numbers = st.integers(1, 5)

    def digit():
        a, b = draw(numbers), draw(numbers)
        kind = draw(st.integers(0, 4))
        return [loop, loop // a, loop % a, loop // a % b, (loop + 1) % a][kind]

    indices = tuple([digit() * draw(numbers) + tile * draw(st.integers(0, 1)) for _ in range(draw(st.integers(1, 3)))])
    buffer = decl_buffer((100,) * len(indices), name="C")
    body = For(tile, const(0), const(draw(numbers)), ForKind.SERIAL, BufferStore(buffer, buffer[indices], indices))
    low = const(draw(st.integers(0, 2)))
    return PrimFunc([buffer], For(loop, low, const(draw(st.integers(1, 16))), ForKind.PARALLEL, body))


@settings(max_examples=EXAMPLES)
@given(fused())
def test_fused_parallel_loops(function):
    compare(function, Enumerate(function).found)
