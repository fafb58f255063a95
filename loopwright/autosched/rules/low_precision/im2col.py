"""Matrices: a convolution, or a product over several axes, as a product of two matrices.

    Y[n, y, x, o] += X[n, y + dy, x + dx, c] * W[dy, dx, c, o]    →    Y2[p, o] += X2[p, k] * W2[k, o]

    p = (n, y, x)      rows: neighbouring dimensions of the result that only one operand moves along
    k = (dy, dx, c)    everything that is reduced

X2 holds each window of the image as a row (an image is copied as often as its windows overlap); where pixels are what
lies along the result, windows are columns. W2 is a copy of the weights, made by the compiler when they are constant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from loopwright.autosched.facts import Access, Axis, BlockFacts, loads_of
from loopwright.autosched.small_steps import vectors
from loopwright.ir import BufferLoad, Cast, Expr, Mul
from loopwright.schedule import BlockRV, LoopRV, Schedule
from loopwright.schedule.primitives.compute.expand_product import factors_of


@dataclass(frozen=True)
class Matrices:
    """A product as matrices: which axes are rows, columns and reduced; the others are loops around."""

    facts: BlockFacts
    row_operand: Access
    column_operand: Access
    rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]
    reduce: tuple[Axis, ...]

    @property
    def types(self) -> tuple[str, str, str]:
        buffers = (self.row_operand.buffer, self.column_operand.buffer)
        return str(buffers[0].dtype), str(buffers[1].dtype), self.facts.dtype

    @property
    def has_zero_points(self) -> bool:
        value = self.facts.combined.value if self.facts.combined is not None else None
        factors = factors_of(value) if value is not None else None
        return factors is not None and any(factor.zero is not None for factor in factors)

    @property
    def is_plain(self) -> bool:
        """Whether the product is of two elements, each cast to the type of the sum at most."""
        value = self.facts.combined.value if self.facts.combined is not None else None
        return isinstance(value, Mul) and all(_is_element(side) for side in (value.a, value.b))

    def result(self) -> list[Sequence[Axis]]:
        """The dimensions of the result, neighbours put together."""
        order = [_axis(self.facts, index) for index in self.facts.write.indices]
        dimensions: list[Sequence[Axis]] = []
        for axis in order:
            group = next((group for group in (self.rows, self.columns) if axis in group), (axis,))
            if axis is group[0]:
                dimensions.append(group)
        return dimensions

    def around(self, operand: Access) -> list[Sequence[Axis]]:
        """The loops around everything that move an operand."""
        inner = {axis.var for axis in (*self.rows, *self.columns, *self.reduce)}
        return [(axis,) for axis in self.facts.axes if axis.var not in inner and operand.uses(axis.var)]


def _is_element(side: Expr) -> bool:
    return isinstance(side.value if isinstance(side, Cast) else side, BufferLoad)


def with_single(dimensions: Sequence[Sequence[Axis]]) -> list[Sequence[Axis]]:
    """The dimensions, those of a single element put together with the one after them."""
    result: list[Sequence[Axis]] = []
    single: list[Axis] = []
    for group in dimensions:
        if size_of(group) == 1 and group is not dimensions[-1]:
            single += group
        else:
            result.append((*single, *group))
            single = []
    return result


def matrices_of(facts: BlockFacts) -> Matrices | None:
    """A block as a product of matrices; None when it is none, or a size is unknown."""
    if any(axis.extent is None or axis.extent < 1 for axis in facts.axes):
        return None
    value = facts.combined.value if facts.combined is not None and facts.combined.op == "sum" else None
    factors = factors_of(value) if value is not None else None
    if factors is None or Counter(facts.write.indices) != Counter([axis.var for axis in facts.spatial]):
        return None
    accesses = [_access(facts, factor.load) for factor in factors]
    if any(access is None for access in accesses) or accesses[0].buffer is accesses[1].buffer:  # type: ignore[union-attr]
        return None
    if not all(access is not None and access.uses(axis.var) for access in accesses for axis in facts.reduce):
        return None  # a sum of one operand by itself
    order = [_axis(facts, index) for index in facts.write.indices]
    for row_side, column_side in (accesses, accesses[::-1]):
        assert row_side is not None and column_side is not None
        columns = _run(order, column_side, row_side, at_end=True)
        rows = _run(order, row_side, column_side, at_end=False)
        if rows and columns:
            # Windows are copied along what the row operand runs along, so that this is the last of the reduction.
            reduce = sorted(facts.reduce, key=lambda axis: -abs(row_side.stride(axis.var) or 0))
            return Matrices(facts, row_side, column_side, tuple(rows), tuple(columns), tuple(reduce))
    return None


def _axis(facts: BlockFacts, index: object) -> Axis:
    return next(axis for axis in facts.axes if axis.var is index)


def _access(facts: BlockFacts, load: BufferLoad) -> Access | None:
    if loads_of(load) != [load]:
        return None
    for access in facts.reads:
        if access.buffer is load.buffer and access.indices == tuple(load.indices) and access.is_affine:
            return access
    return None


def _run(order: Sequence[Axis], mine: Access, other: Access, at_end: bool) -> list[Axis]:
    """The last neighbouring dimensions of the result that only one operand moves along; those at its very end."""
    run: list[Axis] = []
    for axis in reversed(order):
        if mine.uses(axis.var) and not other.uses(axis.var):
            run.insert(0, axis)
        elif run or at_end:
            break
    return run


def im2col(
    sch: Schedule, answer: Matrices, epilogue: Sequence[BlockRV], early: Sequence[bool], lanes: int, threads: int
) -> BlockRV:
    """Copy the operands into matrices, and have the block and what comes after it work on them.

    Gives the block that is last, with all other work on the result in it. `early` copies are left as they are: they are
    made by the compiler.
    """
    facts = answer.facts
    block = sch.get_block(facts.name)
    names: dict[Expr, str] = {axis.var: f"v{k}" for k, axis in enumerate(facts.axes)}
    head = ", ".join(names.values())

    def layout(dimensions: Sequence[Sequence[Axis]]) -> str:
        return f"lambda {head}: ({', '.join(folded(group, names) for group in dimensions)},)"

    reads = [region.buffer for region in sch.get(block).reads]
    for operand, first, second, is_early in (
        (answer.row_operand, answer.rows, answer.reduce, early[0]),
        (answer.column_operand, answer.reduce, answer.columns, early[1]),
    ):
        dimensions = [*with_single([*answer.around(operand), first]), second]
        position = reads.index(operand.buffer)
        copy = sch.reindex_cache_read(block, position, "global", layout(dimensions))
        if not is_early:
            _copy(sch, copy, operand, answer, dimensions, lanes, threads)
    result = _merged(answer)
    out = sch.reindex_cache_write(block, 0, "global", layout(result))
    after = [out, *epilogue]
    for step in after[:-1]:
        sch.compute_inline(step)
    _fold(sch, after[-1], answer, result)
    sch.transform_block_layout(block, layout([*result, answer.reduce]))
    return after[-1]


def _copy(
    sch: Schedule,
    copy: BlockRV,
    operand: Access,
    result: Matrices,
    dimensions: Sequence[Sequence[Axis]],
    lanes: int,
    threads: int,
) -> None:
    """Walk along the copy as it lies in memory, in vectors where the operand does too; lines are shared out."""
    used = [axis for axis in result.facts.axes if operand.uses(axis.var)]
    loops = dict(zip([axis.var for axis in used], sch.get_loops(copy), strict=True))
    order = [loops[axis.var] for group in dimensions for axis in group if axis.var in loops]
    sch.reorder(*order)
    last = next(axis for axis in reversed([axis for group in dimensions for axis in group]) if axis.var in loops)
    if operand.stride(last.var) == 1 and (last.extent or 0) > 1:
        vectors(sch, order[-1], min(lanes, last.extent or lanes))
    outer: list[LoopRV] = order[: max(1, len(order) - 2)]
    if threads > 1 and len(order) > 2:
        sch.parallel(sch.fuse(*outer) if len(outer) > 1 else outer[0])


def _merged(result: Matrices) -> list[Sequence[Axis]]:
    """The dimensions of the result, rows and columns by themselves, single ones with those after them."""
    dimensions = result.result()
    at = dimensions.index(result.rows)
    return [*with_single(dimensions[: at + 1]), *with_single(dimensions[at + 1 :])]


def _fold(sch: Schedule, block: BlockRV, answer: Matrices, result: Sequence[Sequence[Axis]]) -> None:
    """Have an element-wise block run over the dimensions of the matrix."""
    names: dict[Expr, str] = {index: f"v{k}" for k, index in enumerate(answer.facts.write.indices)}
    folds = [folded(group, names) for group in result]
    sch.transform_block_layout(block, f"lambda {', '.join(names.values())}: ({', '.join(folds)},)")


def folded(group: Sequence[Axis], names: Mapping[Expr, str]) -> str:
    """One number for neighbouring axes: (n * 56 + y) * 56 + x."""
    text = names[group[0].var]
    for axis in group[1:]:
        text = f"({text}) * {axis.extent} + {names[axis.var]}"
    return text


def size_of(group: Sequence[Axis]) -> int:
    """How many elements a group of axes has."""
    return prod(axis.extent or 1 for axis in group)
