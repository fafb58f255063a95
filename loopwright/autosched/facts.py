"""BlockFacts: what the rules want to know about a block, read off its body once.

    C[i, j] = C[i, j] + A[i, k] * B[k, j]        spatial i, j; reduce k; A moves 32 for i, 1 for k; B 64 for k, 1 for j

A block is *plain* when each of its iteration variables is a loop of its own, in order, from 0, with nothing else in
those loops: as te makes blocks, and as most people write them. Rules take plain blocks; the others stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import is_
from typing import NamedTuple

from loopwright.arith.affine import Form
from loopwright.arith.affine_reader import Affine
from loopwright.ir import (
    Add,
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Cast,
    Expr,
    For,
    ForKind,
    IntImm,
    IterType,
    LetStmt,
    Max,
    Min,
    Mul,
    Node,
    SeqStmt,
    Stmt,
    Var,
    post_order_visit,
    structural_equal,
)
from loopwright.schedule.handles import block_key
from loopwright.schedule.view import View


class Axis(NamedTuple):
    """An iteration variable of a block; `extent` is None where it is known only when the program runs."""

    var: Var
    extent: int | None
    is_reduce: bool

    @property
    def name(self) -> str:
        return self.var.name


class Access(NamedTuple):
    """A load or store: for each dimension of the buffer the affine form of its index, None where there is none."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    forms: tuple[Form | None, ...]

    @property
    def is_affine(self) -> bool:
        return all(form is not None for form in self.forms)

    def uses(self, var: Var) -> bool:
        """Whether the cell may change with `var`."""
        return any(form is None or var in form.variables() for form in self.forms)

    def steps(self, var: Var) -> tuple[int | None, ...]:
        """How far each index moves when `var` goes up by one; None where that is not one number."""
        return tuple(_step(form, var) for form in self.forms)

    def own_dimension(self, var: Var) -> int | None:
        """The dimension whose index is `var` and nothing else, if it is the only one that moves with it, else None."""
        moved = [k for k, form in enumerate(self.forms) if form is None or var in form.variables()]
        form = self.forms[moved[0]] if len(moved) == 1 else None
        return moved[0] if form is not None and form.terms == {var: 1} and form.const == 0 else None

    def stride(self, var: Var) -> int | None:
        """How many elements further the cell lies in memory when `var` goes up by one; None when not one number."""
        strides = element_strides(self.buffer)
        total = 0
        for step, stride in zip(self.steps(var), strides, strict=True):
            if step is None or (stride is None and step != 0):
                return None
            total += step * (stride or 0)
        return total


def _step(form: Form | None, var: Var) -> int | None:
    if form is None or any(var in part.variables for part in form.parts()):
        return None
    return form.terms.get(var, 0)


def element_strides(buffer: Buffer) -> tuple[int | None, ...]:
    """The distance in elements between neighbours along each dimension; None where it is not a constant."""
    if buffer.strides:
        return tuple(int(stride) if isinstance(stride, IntImm) else None for stride in buffer.strides)
    strides: list[int | None] = []
    step: int | None = 1
    for size in reversed(buffer.shape):
        strides.append(step)
        step = step * int(size) if step is not None and isinstance(size, IntImm) else None
    return tuple(reversed(strides))


def const(expr: Expr) -> int | None:
    """The number that `expr` is, or None."""
    return int(expr.value) if isinstance(expr, IntImm) else None


@dataclass(frozen=True)
class BlockFacts:
    """A plain block, as rules see it."""

    name: str
    block: Block
    loops: tuple[For, ...]
    axes: tuple[Axis, ...]
    stores: tuple[BufferStore, ...]  # more than one for a reduction of tuples
    writes: tuple[Access, ...]
    reads: tuple[Access, ...]  # each load once a place; cells that the block writes itself are not among them
    reads_itself: bool  # beside the cell that a reduction goes on with

    @property
    def store(self) -> BufferStore:
        return self.stores[0]

    @property
    def write(self) -> Access:
        return self.writes[0]

    @property
    def spatial(self) -> tuple[Axis, ...]:
        return tuple(axis for axis in self.axes if not axis.is_reduce)

    @property
    def reduce(self) -> tuple[Axis, ...]:
        return tuple(axis for axis in self.axes if axis.is_reduce)

    @property
    def is_reduction(self) -> bool:
        return bool(self.reduce)

    @property
    def is_injective(self) -> bool:
        """Each iteration writes a cell of its own, from other buffers."""
        return not self.reduce and self.block.init is None and not self.reads_itself

    @property
    def dtype(self) -> str:
        return str(self.write.buffer.dtype)

    @property
    def writes_in_order(self) -> bool:
        """Whether the data axes are the indices of the result, one by one; those of one element may be written as 0."""
        sizes = self.write.buffer.shape
        indices = [index for index, size in zip(self.write.indices, sizes, strict=True) if const(size) != 1]
        axes = [axis.var for axis in self.spatial if axis.extent != 1]
        return len(indices) == len(axes) and all(map(is_, indices, axes))

    @cached_property
    def combined(self) -> Combined | None:
        """How the reduction combines, and what: None when the block does not reduce, or in another way."""
        return _combined(self.store, self.block) if self.is_reduction and len(self.stores) == 1 else None

    def factor(self, side: Expr) -> Access | None:
        """The one affine load that a factor of a product is, perhaps cast to another type."""
        while isinstance(side, Cast):
            side = side.value
        if not isinstance(side, BufferLoad) or loads_of(side) != [side]:
            return None
        for access in self.reads:
            if access.buffer is side.buffer and access.indices == tuple(side.indices) and access.is_affine:
                return access
        return None

    @cached_property
    def costly_calls(self) -> int:
        return costly_calls(self.block)

    def extent(self, axes: Sequence[Axis]) -> int | None:
        """The product of extents, or None when one is unknown."""
        total = 1
        for axis in axes:
            if axis.extent is None:
                return None
            total *= axis.extent
        return total


class Combined(NamedTuple):
    """`cell = cell ∘ value`."""

    op: str  # "sum", "max", "min", "prod"
    value: Expr


_COMBINERS: dict[type[Expr], str] = {Add: "sum", Max: "max", Min: "min", Mul: "prod"}


def _combined(store: BufferStore, block: Block) -> Combined | None:
    op = _COMBINERS.get(type(store.value))
    if op is None or block.init is None:
        return None
    left, right = store.value.a, store.value.b  # type: ignore[attr-defined]
    for own, other in ((left, right), (right, left)):
        if isinstance(own, BufferLoad) and own.buffer is store.buffer and _is_cell(own, store):
            return Combined(op, other)
    return None


def facts_of(view: View, realize: BlockRealize) -> BlockFacts | None:
    """The facts of a block, or None when it is not plain."""
    return _facts_in(realize, tuple(view.loops_of(block_key(realize.block))))


@lru_cache(maxsize=2048)  # most blocks are the same, in the same loops, after a step as before it
def _facts_in(realize: BlockRealize, loops: tuple[For, ...]) -> BlockFacts | None:
    block = realize.block
    stores = _stores(block.body)
    if not stores or block.match_buffers or block.alloc_buffers or const(realize.predicate) != 1:
        return None
    if len(loops) != len(block.iter_vars) or any(isinstance(loop.body, SeqStmt) for loop in loops):
        return None
    axes: list[Axis] = []
    affine = Affine()
    for loop, iter_var, value in zip(loops, block.iter_vars, realize.iter_values, strict=True):
        dom = iter_var.dom
        starts = const(loop.min) == 0 and dom is not None and const(dom.min) == 0
        if value is not loop.loop_var or not starts or loop.kind is not ForKind.SERIAL or loop.annotations:
            return None
        if iter_var.iter_type not in (IterType.DataPar, IterType.CommReduce):
            return None
        axes.append(Axis(iter_var.var, const(loop.extent), iter_var.iter_type is IterType.CommReduce))
        affine.own(iter_var.var)

    def access(buffer: Buffer, indices: Sequence[Expr]) -> Access:
        return Access(buffer, tuple(indices), tuple(affine.form(index) for index in indices))

    written = {store.buffer: store for store in stores}
    reads, reads_itself = [], False
    for load in loads_of(block.body):
        own = written.get(load.buffer)
        if own is None:
            reads.append(access(load.buffer, load.indices))
        elif block.init is None or not _is_cell(load, own):
            reads_itself = True
    writes = tuple(access(store.buffer, store.indices) for store in stores)
    return BlockFacts(block.name_hint, block, loops, tuple(axes), tuple(stores), writes, tuple(reads), reads_itself)


def _stores(body: Stmt) -> list[BufferStore]:
    """The stores of a body that is nothing but stores, perhaps of values computed before; empty for any other."""
    inner = without_lets(body)
    parts = inner.seq if isinstance(inner, SeqStmt) else (inner,)
    stores = [part for part in parts if isinstance(part, BufferStore)]
    return stores if len(stores) == len(parts) else []


def without_lets(body: Stmt) -> Stmt:
    """What stands inside the values that a statement names first."""
    while isinstance(body, LetStmt):
        body = body.body
    return body


def _is_cell(load: BufferLoad, store: BufferStore) -> bool:
    return all(structural_equal(x, y) for x, y in zip(load.indices, store.indices, strict=True))


_CHEAP_CALLS = frozenset(
    {"if_then_else", "likely", "fabs", "abs", "fma", "floor", "ceil", "sqrt", "reinterpret"}
    | {"shift_left", "shift_right", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"}
)


def costly_calls(block: Block) -> int:
    """How many calls in a block's values take many instructions each: exp and tanh do, a division is none."""
    result = 0

    def look(node: Node) -> None:
        nonlocal result
        if isinstance(node, Call) and node.op.name.removeprefix("tir.") not in _CHEAP_CALLS:
            result += 1

    post_order_visit(block.body, look)
    return result


def loads_of(root: Node) -> list[BufferLoad]:
    """The loads in an expression or statement, in order, also those in indices of others."""
    result: list[BufferLoad] = []

    def look(node: Node) -> None:
        if isinstance(node, BufferLoad):
            result.append(node)

    post_order_visit(root, look)
    return result


def innermost_blocks(view: View) -> list[BlockRealize]:
    """The blocks that hold no others, in the order of the program."""
    result: list[BlockRealize] = []
    outer: set[Node] = set()

    def look(node: Node) -> None:
        if isinstance(node, BlockRealize):
            result.append(node)
            outer.update(view.block_path(block_key(node.block))[:-1])

    post_order_visit(view.function.body, look)
    return [realize for realize in result if realize not in outer]
