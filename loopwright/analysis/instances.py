"""Instances: which iterations of a statement run, and when.

A statement inside d loops runs once for every point of its *domain*: the loop bounds and the conditions around it, as
affine forms (block axes are replaced by what they are bound to). When it runs is a 2d+1 vector: its position among its
neighbours, the value of the outermost loop, its position in there, and so on; vectors compare like words in a
dictionary. Nothing is encoded as a large number, so symbolic bounds and endless loops fit as well.

A domain is *exact* when nothing had to be left out. A condition on data, a `while` or an early return leave only an
outer bound of what runs; checks then stay silent, since only certain errors are errors.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Final, NamedTuple, Protocol

from loopwright.analysis.thread_axes import LAUNCHES, is_barrier, is_shared_along, scope_of, tag_of
from loopwright.arith.affine import ALWAYS, Condition, Form, Part, constant
from loopwright.arith.affine_reader import Affine
from loopwright.arith.digits import Digit, digits_of
from loopwright.ir import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    Block,
    BlockRealize,
    Buffer,
    BufferRealize,
    BufferStore,
    Call,
    Evaluate,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    IterVar,
    LetStmt,
    Prefetch,
    SeqStmt,
    Stmt,
    Var,
    Visitor,
    While,
    is_return,
)


class Loop:
    """A variable that runs from `low` to `high`, both included; None where a bound is not affine.

    `of` is the variable that the program counts with: another one where this is a digit of it (`digits.py`). A
    `product` is no loop: its variable has one value in each iteration of a loop around (`products.py`).
    """

    __slots__ = ("high", "loose_high", "low", "node", "of", "product", "var")

    def __init__(
        self,
        var: Var,
        low: Form | None,
        high: Form | None,
        node: Stmt | Expr,
        of: Var | None = None,
        product: Part | None = None,
    ) -> None:
        self.var = var
        self.product = product
        self.of = of if of is not None else var
        self.low = low
        self.high = high
        self.loose_high = high  # also where the bound is known only as a loose form
        self.node = node

    @property
    def kind(self) -> ForKind | None:
        """Who runs the iterations; None for the lanes of a vector and for `while`."""
        return self.node.kind if isinstance(self.node, For) else None

    @property
    def thread_tag(self) -> str:
        """The thread axis that runs the iterations; "" for other loops."""
        return tag_of(self.node) if isinstance(self.node, Stmt) else ""


class Barrier(NamedTuple):
    """A barrier of threads: in which loops, at which position, under which conditions."""

    loops: tuple[Loop, ...]
    positions: tuple[int, ...]
    guards: tuple[Condition, ...]
    exact: bool


class Place:
    """Where a block stands: inside how many loops, and what its axes are there (None where that is not affine).

    `outer` are the variables from outside the block, beside its axes, that its body computes with; `indexed` those that
    it uses in indices: they tell which cells it touches, and are no part of what it computes. `around` is the place of
    the block around it.
    """

    __slots__ = ("around", "block", "depth", "has_blocks", "indexed", "outer", "values")

    def __init__(
        self, block: Block | None, depth: int, values: tuple[Form | None, ...], around: Place | None = None
    ) -> None:
        self.block = block
        self.around = around
        self.depth = depth
        self.values = values
        self.outer: dict[Var, None] = {}
        self.indexed: dict[Var, None] = {}
        self.has_blocks = False


class Instance(NamedTuple):
    """A statement with the loops and conditions around it; `positions` has one number more than there are loops."""

    statement: Stmt
    block: Block | None
    loops: tuple[Loop, ...]
    positions: tuple[int, ...]
    place: Place


class Realized(NamedTuple):
    """A block that runs: what its axes are (None where that is not affine), in which loops, under which conditions."""

    node: BlockRealize
    values: tuple[Form | None, ...]
    loops: tuple[Loop, ...]
    guards: tuple[Condition, ...]
    exact: bool


# Of loops in lockstep and of threads, the digits would not run as the loop does.
_COUNTED_BY_DIGITS: Final = (ForKind.SERIAL, ForKind.PARALLEL, ForKind.UNROLLED)


class InLoops(Protocol):
    """Something that stands inside loops, outermost first."""

    @property
    def loops(self) -> tuple[Loop, ...]: ...


def common_depth(a: InLoops, b: InLoops) -> int:
    """How many loops are around both."""
    depth = 0
    for one, other in zip(a.loops, b.loops, strict=False):
        if one is not other:
            break
        depth += 1
    return depth


class Definition(NamedTuple):
    """The value of a variable, and the statement that computes it; None where each use computes it anew."""

    value: Expr
    statement: Stmt | None


class Assumption(NamedTuple):
    """A condition that is not affine, whether it holds, and the statement that asks."""

    condition: Expr
    holds: bool
    statement: Stmt


class View(NamedTuple):
    """A sub-buffer: its element `index` is `source[starts + index]`; leading dimensions of the source may be fixed."""

    source: Buffer
    starts: tuple[Form | None, ...]


class InstanceWalk(Visitor):
    """Walks statements, keeping the loops, conditions and position around the current one.

    Subclasses look at expressions: `visit` is called on each, with `self.instance` the statement that computes it.
    """

    instance: Instance

    def __init__(self) -> None:
        self.affine = Affine()
        self.loops: tuple[Loop, ...] = ()
        self.guards: tuple[Condition, ...] = ()
        self.assumptions: tuple[Assumption, ...] = ()  # what else holds here: conditions that are not affine
        self.definitions: dict[Var, Definition] = {}  # of variables whose value is not affine
        self.exact = True  # the loops and guards say exactly when the current statement runs
        self.block: Block | None = None
        self.place = Place(None, 0, ())
        self.binders: dict[Var, Place] = {}  # loop variables, axes and lets → the block inside which they are bound
        self.homes: dict[Var, tuple[Loop, ...]] = {}  # memory allocated in the program → the loops around that place
        self.constants: set[Var] = set()  # memory that holds its values from the start, and that nobody writes
        self.views: dict[Buffer, View] = {}
        self.realized: list[Realized] = []
        self.barriers: list[Barrier] = []
        self.has_threads = False  # loops bound to threads: statements are not in one order
        self.sizes: tuple[Expr, ...] = ()  # what is not negative, whatever the caller gives
        self.may_leave = False  # a return inside loops or conditions: any statement may be skipped
        self.steady: Container[Var] = ()  # variables of lets that stand for one value, as parameters do
        self._outer: tuple[int, ...] = ()
        self._next = 0

    def begin(self, statement: Stmt) -> Instance:
        """The current statement is `statement`, in the next free position."""
        self.instance = Instance(statement, self.block, self.loops, (*self._outer, self._next), self.place)
        self._next += 1
        return self.instance

    def guard(self, condition: Expr, holds: bool = True) -> None:
        """From here on `condition` holds, or does not."""
        known, exact = self.affine.condition(condition, holds)
        if known is not ALWAYS:
            self.guards = (*self.guards, known)
        if not exact:
            self.assumptions = (*self.assumptions, Assumption(condition, holds, self.instance.statement))
            self.exact = False

    @property
    def conditions(self) -> tuple[tuple[Condition, ...], tuple[Assumption, ...], bool]:
        """All that is known to hold here; set it again where that ends."""
        return self.guards, self.assumptions, self.exact

    @conditions.setter
    def conditions(self, saved: tuple[tuple[Condition, ...], tuple[Assumption, ...], bool]) -> None:
        self.guards, self.assumptions, self.exact = saved

    def _within(self, condition: Expr, holds: bool, body: Stmt) -> None:
        saved = self.conditions
        self.guard(condition, holds)
        self.visit(body)
        self.conditions = saved

    def _loop(self, loop: Loop, body: Stmt, within: Sequence[Loop] = ()) -> None:
        """Visit `body` in `loop`, and in the loops `within` that."""
        self.affine.own(loop.var, loop.low, loop.high)
        self.binders[loop.var] = self.place
        saved = self.loops, self._outer, self._next, self.exact
        self.loops = (*self.loops, loop)
        self._outer = (*self._outer, self._next)
        self._next = 0
        self.exact = self.exact and loop.low is not None and loop.high is not None
        if within:
            self._loop(within[0], body, within[1:])
        else:
            self.visit(body)
        self.loops, self._outer, self._next, self.exact = saved
        self._next += 1

    def visit_For(self, loop: For) -> None:
        if not (isinstance(loop.min, IntImm) and isinstance(loop.extent, IntImm)):
            self.begin(loop)
            self.visit(loop.min)
            self.visit(loop.extent)
        if loop.kind in _COUNTED_BY_DIGITS and (result := digits_of(loop, self.sizes)) is not None:
            self.affine.digits[loop.loop_var] = result[0]
            self.affine.values[loop.loop_var] = None
            self.binders[loop.loop_var] = self.place
            first, *within = [self._digit_loop(item, loop) for item in result[1]]
            self._loop(first, loop.body, within)
            return
        low, extent = self.affine.form(loop.min), self.affine.form(loop.extent)
        high = None if low is None or extent is None else low.plus(extent).shifted(-1)
        if loop.kind is ForKind.THREAD_BINDING:
            self.has_threads = True
        found_loop = Loop(loop.loop_var, low, high, loop)
        if low is not None and extent is None and (loose := self.affine.loose_form(loop.extent)) is not None:
            found_loop.loose_high = low.plus(loose).shifted(-1)
        self._loop(found_loop, loop.body)

    def _digit_loop(self, digit: Digit, loop: For) -> Loop:
        extent = self.affine.form(digit.extent)
        high = None if extent is None else extent.shifted(-1)
        return Loop(digit.var, constant(0), high, loop, loop.loop_var)

    def visit_While(self, loop: While) -> None:
        saved = self.conditions
        self.begin(loop)
        self.visit(loop.condition)
        self.guard(loop.condition)
        # How often the body runs is not known: endless as far as the domain is concerned.
        self._loop(Loop(Var("iteration"), constant(0), None, loop), loop.body)
        self.conditions = saved

    def visit_IfThenElse(self, choice: IfThenElse) -> None:
        self.begin(choice)
        self.visit(choice.condition)
        self._within(choice.condition, True, choice.then_case)
        if choice.else_case is not None:
            self._within(choice.condition, False, choice.else_case)

    def visit_AssertStmt(self, check: AssertStmt) -> None:
        self.begin(check)
        self.visit(check.condition)
        self._within(check.condition, True, check.body)

    def visit_SeqStmt(self, sequence: SeqStmt) -> None:
        saved = self.conditions  # a promise made in the sequence ends with it
        for statement in sequence.seq:
            self.visit(statement)
        self.conditions = saved

    def visit_LetStmt(self, let: LetStmt) -> None:
        self.begin(let)
        self.bind(let.var, let.value)
        self.visit(let.body)

    def bind(self, var: Var, value: Expr, once: bool = True) -> None:
        """`var` stands for `value`, which is computed here, or wherever the variable is used."""
        self.visit(value)
        self.binders[var] = self.place
        if var in self.steady:
            return
        self.affine.stand_for(var, value)
        if self.affine.values[var] is None:
            self.definitions[var] = Definition(value, self.instance.statement if once else None)

    def visit_AttrStmt(self, attr: AttrStmt) -> None:
        self.begin(attr)
        self.visit(attr.value)
        if attr.attr_key in LAUNCHES and isinstance(attr.node, IterVar):
            self.has_threads = True
            extent = self.affine.form(attr.value)
            high = None if extent is None else extent.shifted(-1)
            self._loop(Loop(attr.node.var, constant(0), high, attr), attr.body)
        else:
            self.visit(attr.body)

    def _home(self, data: Var) -> tuple[Loop, ...]:
        """The loops each of whose iterations has the memory for itself, when it is allocated here."""
        if not self.has_threads:
            return self.loops
        return tuple([loop for loop in self.loops if not is_shared_along(scope_of(data), loop.thread_tag)])

    def visit_Allocate(self, allocation: Allocate) -> None:
        self.homes[allocation.buffer_var] = self._home(allocation.buffer_var)
        self.visit(allocation.body)

    def visit_AllocateConst(self, allocation: AllocateConst) -> None:
        self.constants.add(allocation.buffer_var)
        self.visit(allocation.body)

    def visit_BufferRealize(self, realize: BufferRealize) -> None:
        self.homes[realize.buffer.data] = self._home(realize.buffer.data)
        self.visit(realize.body)

    def visit_BlockRealize(self, realize: BlockRealize) -> None:
        block = realize.block
        self.begin(realize)
        self.visit(realize.predicate)
        saved = self.conditions, self.block, self.place
        self.guard(realize.predicate)
        for axis, value in zip(block.iter_vars, realize.iter_values, strict=True):
            self.bind(axis.var, value, once=False)  # lowering writes it wherever the axis stands
        self.place.has_blocks = True
        values = tuple([self.affine.values[axis.var] for axis in block.iter_vars])
        self.place = Place(block, len(self.loops), values, self.place)
        if block.iter_vars:
            self.realized.append(Realized(realize, self.place.values, self.loops, self.guards, self.exact))
        for axis in block.iter_vars:
            self.binders[axis.var] = self.place
        if block.iter_vars or block.name_hint != "root":  # the block around every function means nothing to its author
            self.block = block
        for buffer in block.alloc_buffers:
            self.homes[buffer.data] = self._home(buffer.data)
        for match in block.match_buffers:
            starts = tuple([self.affine.form(axis.min) for axis in match.source.region])
            self.views[match.buffer] = View(match.source.buffer, starts)
        self.visit(block.body)
        self.conditions, self.block, self.place = saved

    def visit_BufferStore(self, store: BufferStore) -> None:
        self.begin(store)
        self.visit_children(store)

    def visit_Evaluate(self, evaluate: Evaluate) -> None:
        value = evaluate.value
        if isinstance(value, IntImm):
            return
        self.begin(evaluate)
        self.visit(value)
        if isinstance(value, Call) and value.op.name == "tir.assume":
            self.guard(value.args[0])
        elif is_barrier(evaluate):
            self.barriers.append(Barrier(self.loops, self.instance.positions, self.guards, self.exact))
        elif is_return(evaluate):
            self.may_leave = self.may_leave or bool(self.loops or self.guards or not self.exact)
            self.exact = False

    def visit_Prefetch(self, prefetch: Prefetch) -> None:
        """A request, not an access."""
