"""Contractions: sums of products over several axes, convolutions among them, as one matrix product (implicit GEMM).

    O[n, f, y, x] += P[n, c, y + ry, x + rx] * W[f, c, ry, rx]
        →   O'[f, (n y x)] += W'[f, (c ry rx)] * P'[(c ry rx), (n y x)]       P', W' are never stored

Rows are the axes of one operand alone, columns those of the other one, along which the result runs in memory; the axes
of both are a batch (groups). The axis of channels, if its extent is a multiple of a slab, is cut into slabs, and a slab
has one tap of the window: taps that follow each other read what is in L1 already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final, NamedTuple

from loopwright.autosched.facts import Access, Axis, BlockFacts, const, element_strides
from loopwright.autosched.gpu.rules.gemm.tiles import Side
from loopwright.ir import Expr, FloorDiv, Mul, Var, collect

DTYPES: Final = ("float32", "float64", "int32")


class Piece(NamedTuple):
    """A part of an axis: `axis // step % size`."""

    axis: Axis
    step: int
    size: int

    def of(self, value: Expr) -> Expr:
        extent = self.axis.extent or 0
        result = value if self.step == 1 else value // self.step
        return result if self.step * self.size >= extent else result % self.size


@dataclass(frozen=True)
class Contraction:
    """The parts of a contraction; each part is one axis of the matrix product, its first piece the slowest."""

    facts: BlockFacts
    row_operand: Access
    column_operand: Access
    batch: tuple[Piece, ...]
    rows: tuple[Piece, ...]
    columns: tuple[Piece, ...]
    reduce: tuple[Axis, ...]  # the innermost one last
    channel: Axis | None  # the reduced axis that is no window's

    @property
    def m(self) -> int:
        return _size(self.rows)

    @property
    def n(self) -> int:
        return _size(self.columns)

    @property
    def k(self) -> int:
        return prod([axis.extent or 0 for axis in self.reduce])

    @property
    def groups(self) -> int:
        return _size(self.batch)

    @property
    def split_axis(self) -> Axis:
        """The reduced axis of which parts may be sums of their own."""
        return self.channel or self.reduce[-1]

    def reduced(self, depth: int) -> tuple[Piece, ...]:
        """The reduced axes: channels in slabs of `depth`, or all as they are."""
        channel = self.channel
        if channel is None or (channel.extent or 0) % depth:
            return tuple([Piece(axis, 1, axis.extent or 0) for axis in self.reduce])
        taps = [Piece(axis, 1, axis.extent or 0) for axis in self.reduce if axis is not channel]
        return (Piece(channel, depth, (channel.extent or 0) // depth), *taps, Piece(channel, 1, depth))


def layout(axes: Sequence[Axis], *parts: Sequence[Piece]) -> Callable[..., list[Expr]]:
    """The index map from the axes of a block to one axis a part."""

    def mapped(*values: Expr) -> list[Expr]:
        at = dict(zip([axis.var for axis in axes], values, strict=True))
        return [_joined(part, at) for part in parts]

    return mapped


def _joined(pieces: Sequence[Piece], at: dict[Var, Expr]) -> Expr:
    """Where the values of the axes are along the one that the pieces make."""
    result: Expr | None = None
    for piece in pieces:
        if piece.size == 1 and piece.axis.extent != 1:
            continue  # the axis is in other pieces
        value = piece.of(at[piece.axis.var])
        result = value if result is None else result * piece.size + value
    assert result is not None
    return result


def contraction_of(facts: BlockFacts) -> Contraction | None:
    """The block as a contraction; None where it is none, or a size is not known."""
    combined = facts.combined
    if combined is None or combined.op != "sum" or not isinstance(combined.value, Mul) or not facts.writes_in_order:
        return None
    if any(not axis.extent for axis in facts.axes):
        return None
    sides = [facts.factor(side) for side in (combined.value.a, combined.value.b)]
    first, second = sides
    if first is None or second is None or first.buffer is second.buffer:
        return None
    dtypes = {str(access.buffer.dtype) for access in (first, second, facts.write)}
    if len(dtypes) != 1 or dtypes.pop() not in DTYPES:
        return None
    along = [axis for axis in facts.spatial if axis.extent != 1]
    used = [axis for axis in facts.spatial if first.uses(axis.var) or second.uses(axis.var)]
    if not along or any(axis not in used for axis in along):
        return None
    parts: dict[str, list[Piece]] = {"batch": [], "first": [], "second": []}
    for axis in used:
        for name, piece in _parts_of(axis, first, second):
            parts[name].append(piece)
    if parts["second"] and parts["second"][-1].axis is along[-1]:
        row, column, rows, columns = first, second, parts["first"], parts["second"]
    elif parts["first"] and parts["first"][-1].axis is along[-1]:
        row, column, rows, columns = second, first, parts["second"], parts["first"]
    else:
        return None  # operands are multiplied element by element along the result
    reduce = [axis for axis in facts.reduce if row.uses(axis.var) or column.uses(axis.var) or axis.extent != 1]
    if not rows or not reduce or any(not (row.uses(axis.var) and column.uses(axis.var)) for axis in reduce):
        return None
    weight = min(row, column, key=lambda access: len([axis for axis in facts.spatial if access.uses(axis.var)]))
    reduce.sort(key=lambda axis: -abs(weight.stride(axis.var) or 0))
    shared = {piece.axis.var for piece in parts["batch"]}
    own = [axis for axis in reduce if _is_alone(row, axis, shared) and _is_alone(column, axis, shared)]
    channel = max(own, key=lambda axis: axis.extent or 0, default=None)
    return Contraction(facts, row, column, tuple(parts["batch"]), tuple(rows), tuple(columns), tuple(reduce), channel)


def _parts_of(axis: Axis, first: Access, second: Access) -> list[tuple[str, Piece]]:
    """Which part an axis belongs to: a batch where both operands use it, and two parts where one uses its quotient."""
    extent = axis.extent or 0
    uses = first.uses(axis.var), second.uses(axis.var)
    if uses != (True, True):
        return [("first" if uses[0] else "second", Piece(axis, 1, extent))]
    for access, other in ((first, "second"), (second, "first")):
        each = _group_of(access, axis.var)
        if each is not None and extent % each == 0 and each < extent:
            return [("batch", Piece(axis, each, extent // each)), (other, Piece(axis, 1, each))]
    return [("batch", Piece(axis, 1, extent))]


def _group_of(access: Access, var: Var) -> int | None:
    """The number by which the axis is divided wherever the access uses it."""
    quotients = [node for index in access.indices for node in collect(index, FloorDiv) if node.a is var]
    numbers = {const(node.b) for node in quotients}
    places = [node for index in access.indices for node in collect(index, Var) if node is var]
    return numbers.pop() if len(numbers) == 1 and len(quotients) == len(places) else None


def _is_alone(access: Access, axis: Axis, batch: set[Var]) -> bool:
    """Whether a dimension moves with the axis and at most with those of a batch, but with no other axis."""
    moved = [form.variables() for form in access.forms if form is not None and axis.var in form.variables()]
    return access.is_affine and len(moved) == 1 and moved[0] - {axis.var} <= batch


def _size(pieces: Sequence[Piece]) -> int:
    return prod([piece.size for piece in pieces])


# --- how operands lie in memory ---------------------------------------------------------------------------------------


def side_of(contraction: Contraction, access: Access, padding: BlockFacts | None, depth: int, vector: int) -> Side:
    """How the threads load an operand: along the reduction or not, vectors or numbers.

    `padding` is the block that computes what the operand reads, where loads compute it themselves.
    """
    is_padded = padding is not None and padding.write.buffer is access.buffer
    strides = _strides(access, padding if is_padded else None)
    pieces = contraction.rows if access is contraction.row_operand else contraction.columns
    along, reduced = [part[-1] for part in (pieces, contraction.reduced(depth))]
    step = {piece: _moved(access, piece.axis.var, strides) for piece in (along, reduced)}
    is_transposed = (abs(step[reduced]) or 1 << 30) < (abs(step[along]) or 1 << 30)
    inner = reduced if is_transposed else along
    if step[inner] != 1 or inner.size % vector:
        return Side(is_transposed, False)
    others = [axis for axis in contraction.facts.axes if axis is not inner.axis and access.uses(axis.var)]
    if any([_moved(access, axis.var, strides) % vector for axis in others if axis.extent != 1]):
        return Side(is_transposed, False)
    if is_padded:
        assert padding is not None
        dimension = next(k for k, form in enumerate(access.forms) if form is None or inner.axis.var in form.variables())
        is_whole = const(access.buffer.shape[dimension]) == const(padding.reads[0].buffer.shape[dimension])
        return Side(is_transposed, is_whole)
    return Side(is_transposed, True)


def _strides(access: Access, padding: BlockFacts | None) -> Sequence[int | None]:
    buffer = access.buffer
    if padding is not None and len(padding.reads) == 1 and len(padding.reads[0].buffer.shape) == len(buffer.shape):
        buffer = padding.reads[0].buffer
    return element_strides(buffer)


def _moved(access: Access, var: Var, strides: Sequence[int | None]) -> int:
    """How far the cell moves in memory with the axis; 1 << 20 where that is not one number."""
    total = 0
    for step, stride in zip(access.steps(var), strides, strict=True):
        if step is None or (stride is None and step):
            return 1 << 20
        total += step * (stride or 0)
    return total
