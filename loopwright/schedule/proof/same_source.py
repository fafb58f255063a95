"""same_source: what a settled cell holds, as a function of its indices: a lemma for readers that stand for others.

    for …: W writes B[vi // 4, vi % 4]          B[p, q] holds what W[p * 4 + q] wrote, wherever its loops are
    for …: P copies P[vj, vk] = B[vk, vj]       P[q, p] holds the same: copies are seen through
    for …: R reads P[ui % 4, ui // 4]           so R[ui] sees W[ui]

A reader of the new version that stands for an old one at other axis values (`Origins`), or that reads a copy in another
layout, sees what it saw if both indices lead to the same instance of W. That is decided by simplification; it needs no
isl. Where copies of W fill the buffer together, all must lead to one instance: a peeled rest stands for what it was cut
from. Where a buffer is not settled (`analysis/single_writer.py`), or the expressions stay different, the exact test
decides. What very same statements wrote in both versions (`unchanged_writers.py`) is the same in any case.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence, Set
from typing import Final, NamedTuple

from loopwright.analysis.accesses import Access
from loopwright.analysis.boxes import cell_index
from loopwright.analysis.dataflow import BlockKey
from loopwright.analysis.single_writer import SingleWriter, SingleWriterBuffers, is_plain, only_value
from loopwright.arith import Analyzer
from loopwright.ir import (
    Buffer,
    BufferLoad,
    BufferStore,
    Expr,
    IntImm,
    IterType,
    IterVar,
    Range,
    Var,
    const,
    structural_equal,
    substitute,
    uses_var,
)
from loopwright.schedule.origins import Origins

_SAME: Final = Origins()


class _Over(NamedTuple):
    """In place of an axis value: the sum over all of that many."""

    extent: int


class _Source(NamedTuple):
    """What a cell holds: the caller's buffer at indices, or what blocks of the old version write at axis values."""

    what: Hashable
    at: Sequence[Expr]


def same_sources(
    old: SingleWriterBuffers,
    new: SingleWriterBuffers,
    buffer: Buffer,
    origins: Origins,
    unchanged: Set[Buffer] = frozenset(),
) -> bool:
    """Whether every reader of the buffer in the new version sees what it saw in the old one, as far as is seen here.

    The buffers in `unchanged` hold the same in both (`unchanged_writers.py`).
    """
    is_unchanged = buffer in unchanged
    if buffer in origins.buffers or not (is_unchanged or new.of(buffer) is not None or new.is_input(buffer)):
        return False
    seen_before: set[Buffer] = set()
    for reader in new.dataflow.by_buffer.get(buffer, ()):
        if reader.writes or new.dataflow.is_update(reader):
            continue
        key = new.dataflow.key(reader.instance.place)
        if key in origins.copies:
            if is_unchanged and buffer not in new.dataflow.arguments:
                return False  # it may find no value there
            continue  # seen through; it finds a value, as all readers do
        before = _sees_the_same(old, new, reader, key, origins, unchanged)
        if before is None:
            return False
        seen_before.add(before)
    if buffer in new.dataflow.arguments:
        cell = [Var("c") if not _is_one(extent) else const(0) for extent in buffer.shape]
        facts = Analyzer()
        for index, extent in zip(cell, buffer.shape, strict=True):
            if isinstance(index, Var):
                facts.bind(index, Range.from_min_extent(0, extent))
        now = _source(new, buffer, cell, origins, facts, unchanged)
        if not _equal(now, _source(old, buffer, cell, _SAME, facts, unchanged), facts):
            return False
        seen_before.add(buffer)
    return all([other in unchanged or old.one_value_a_name(other) for other in seen_before])


def reads_instance(version: SingleWriterBuffers, key: BlockKey, writer: BlockKey, values: Sequence[Expr]) -> bool:
    """Whether some load of block `key` is seen to read what `writer` writes at `values`, in the axes of `key`."""
    for (reading, _), load in version.loads.items():
        if reading != key or not is_plain(load) or load.cell[0] is not load.buffer or version.dataflow.is_update(load):
            continue
        settled = version.of(load.buffer)
        if settled is None or len(settled.writers) != 1 or settled.others:
            continue
        if version.dataflow.key(settled.writers[0].instance.place) != writer:
            continue
        at = _axis_values(version, settled.writers[0], load.node.indices)
        if at is not None and _all_equal(at, values, _facts_of(load)):
            return version.one_value_a_name(load.buffer)
    return False


def _sees_the_same(
    old: SingleWriterBuffers,
    new: SingleWriterBuffers,
    reader: Access,
    key: BlockKey,
    origins: Origins,
    unchanged: Set[Buffer],
) -> Buffer | None:
    """The buffer that a reader's origin reads, if both see the same; else None."""
    ordinal = new.dataflow.ordinals[reader]
    axes: list[Var] = _axes(reader)
    values: Sequence[Expr] = axes
    if (key, ordinal) in origins.loads:
        key, ordinal, values = origins.loads[key, ordinal]
    elif key in origins.renamed:
        key, old_values = origins.renamed[key]
        values = old_values(axes)
    other = old.loads.get((key, ordinal))
    if other is None or old.dataflow.is_update(other) or not _is_direct(other) or not _is_direct(reader):
        return None
    theirs = _axes(other)
    if len(theirs) != len(values):
        return None
    # An axis keeps its variable: a block whose axes are others is another one.
    if values is axes and theirs != axes:
        return None
    at = {axis: value.astype(axis.dtype) for axis, value in zip(theirs, values, strict=True)}
    before = [substitute(index, at) for index in other.node.indices]
    facts = _facts_of(reader)
    now = _source(new, reader.buffer, reader.node.indices, origins, facts, unchanged)
    same = _equal(now, _source(old, other.buffer, before, _SAME, facts, unchanged), facts)
    return other.buffer if same else None


def _source(
    version: SingleWriterBuffers,
    buffer: Buffer,
    indices: Sequence[Expr],
    origins: Origins,
    facts: Analyzer,
    unchanged: Set[Buffer],
    copied: tuple[Buffer, ...] = (),
) -> _Source | None:
    """What the cell holds, copies seen through; None where that is not seen. `copied` are the buffers on the way."""
    if buffer in unchanged:
        return None if buffer in origins.buffers else _Source(("given", buffer), indices)
    settled = version.of(buffer)
    if settled is None:
        is_given = version.is_input(buffer) and buffer not in origins.buffers
        return _Source(("given", buffer), indices) if is_given else None
    if buffer in copied:
        return None  # one of several blocks that fill it copies what another one wrote: there, and back
    way = (*copied, buffer)
    first, *others = [_written(version, part, indices, origins, facts, unchanged, way) for part in settled.parts]
    return first if all([_equal(first, other, facts) for other in others]) else None


def _written(
    version: SingleWriterBuffers,
    settled: SingleWriter,
    indices: Sequence[Expr],
    origins: Origins,
    facts: Analyzer,
    unchanged: Set[Buffer],
    way: tuple[Buffer, ...],
) -> _Source | None:
    """What the last buffer of `way` holds in a cell if these blocks wrote it."""
    if version.dataflow.key(settled.writers[0].instance.place) in origins.copies:
        copy = settled.writers[0]
        load = _copied(version, copy)
        axes = _axis_values(version, copy, indices)
        if load is None or axes is None or len(settled.writers) > 1:
            return None  # or a sum that starts from what was copied
        values = {axis: value.astype(axis.dtype) for axis, value in zip(_axes(copy), axes) if isinstance(value, Expr)}
        at = [substitute(index, values) for index in load.node.indices]
        return _source(version, load.buffer, at, origins, facts, unchanged, way)
    what: list[Hashable] = []
    instances: list[Expr] = []
    for writer, name in zip(settled.writers, settled.names, strict=True):
        axes = _axis_values(version, writer, indices)
        found = None if axes is None else _old_instance(name.key, _axes(writer), axes, origins)
        if found is None:
            return None
        key, values_there = found
        what.append((key, name.ordinal, tuple([value if isinstance(value, _Over) else None for value in values_there])))
        instances += [value for value in values_there if isinstance(value, Expr)]
    return _Source(tuple(what), instances)


def _old_instance(
    key: BlockKey, axes: Sequence[Var], values: Sequence[Expr | _Over], origins: Origins
) -> tuple[BlockKey, list[Expr | _Over]] | None:
    """The block of the old version that one with these axis values stands for, and its axis values."""
    if key not in origins.renamed:
        return key, list(values)
    old_key, old_values = origins.renamed[key]
    sums = {axis: value for axis, value in zip(axes, values, strict=True) if isinstance(value, _Over)}
    told = {axis: value.astype(axis.dtype) for axis, value in zip(axes, values, strict=True) if isinstance(value, Expr)}
    result: list[Expr | _Over] = []
    for value in old_values(axes):
        if isinstance(value, Var) and value in sums:
            result.append(sums.pop(value))  # of one that comes twice, the second is refused below
        elif uses_var(value, lambda var: var in axes and var not in told):
            return None
        else:
            result.append(substitute(value, told))
    return None if sums else (old_key, result)


def _axis_values(version: SingleWriterBuffers, writer: Access, cell: Sequence[Expr]) -> list[Expr | _Over] | None:
    """The axis values of the instance that writes a cell of a settled buffer."""
    index, is_update = cell_index(writer), version.dataflow.is_update(writer)
    if index is None:
        return None
    digits = {
        digit.axis: (dimension, digit, digit is group[0])
        for dimension, group in index.sums.items()
        for digit in group
    }
    result: list[Expr | _Over] = []
    for k, (axis, value) in enumerate(zip(_iter_vars(writer), writer.instance.place.values, strict=True)):
        if k in index.whole:
            result.append(cell[index.whole[k]])
        elif k in index.parts:
            quotient, remainder, by = index.parts[k]
            result.append(cell[quotient] * by + cell[remainder])
        elif (only := only_value(axis, None)) is not None:
            result.append(const(only))
        elif is_update and axis.iter_type is IterType.CommReduce:
            if axis.dom is None or not isinstance(axis.dom.extent, IntImm):
                return None
            result.append(_Over(axis.dom.extent.value))
        elif k in digits:
            dimension, digit, is_slowest = digits[k]
            number = cell[dimension] // digit.stride
            result.append(number if is_slowest else number % digit.extent)
        elif (only := only_value(axis, value)) is not None:
            result.append(const(only))
        else:
            return None
    return result


def _copied(version: SingleWriterBuffers, store: Access) -> Access | None:
    """The load of which a block does nothing but store the value."""
    loads = [access for access in version.dataflow.by_place[store.instance.place] if not access.writes]
    if len(loads) != 1 or not _is_direct(loads[0]):
        return None
    return loads[0] if isinstance(store.node, BufferStore) and store.node.value is loads[0].node else None


def _is_direct(access: Access) -> bool:
    """Whether the access is right in its block, to the buffer by its own name, at indices without data."""
    is_ours = access.cell[0] is access.buffer and None not in access.cell[1]
    return is_ours and is_plain(access) and isinstance(access.node, (BufferLoad, BufferStore))


def _iter_vars(access: Access) -> Sequence[IterVar]:
    block = access.instance.place.block
    return block.iter_vars if block is not None else ()


def _axes(access: Access) -> list[Var]:
    return [axis.var for axis in _iter_vars(access)]


def _is_one(extent: Expr) -> bool:
    return isinstance(extent, IntImm) and extent.value == 1


def _facts_of(access: Access) -> Analyzer:
    """What is known of the axes of an access's block."""
    facts = Analyzer()
    for axis in _iter_vars(access):
        if axis.dom is not None:
            facts.bind(axis.var, axis.dom)
    return facts


def _equal(one: _Source | None, other: _Source | None, facts: Analyzer) -> bool:
    return one is not None and other is not None and one.what == other.what and _all_equal(one.at, other.at, facts)


def _all_equal(some: Sequence[Expr | _Over], others: Sequence[Expr | _Over], facts: Analyzer) -> bool:
    if len(some) != len(others):
        return False
    return all([_is_same(a, b, facts) for a, b in zip(some, others, strict=True)])


def _is_same(one: Expr | _Over, other: Expr | _Over, facts: Analyzer) -> bool:
    if isinstance(one, _Over) or isinstance(other, _Over):
        return one == other
    if one.dtype != other.dtype:
        wide = max(one.dtype, other.dtype, key=lambda dtype: dtype.bits)
        one, other = one.astype(wide), other.astype(wide)
    return one is other or structural_equal(one, other) or facts.can_prove_equal(one, other)
