"""SingleWriter buffers: a lemma for the usual flow of values, in which one block fills a buffer before others read it.

    for l in …:                                  A buffer is settled when a single block writes it, each cell at one
        for …: W writes B[vi, vj]                value of its data axes only, and every reader finds its cell filled
        for …: R reads B[…]                      earlier in the same iteration of the loops around both.

Whatever those loops are, R then sees W at the axis values that the cell tells: nobody else writes there. If W is a
reduction, R sees all of its updates, each once, if they all happen in that iteration, after the init of their cell.
So two versions in which a buffer is settled, by the same W and for the same loads, agree on what is read from it
(`schedule/proof/same_source.py`).

Where a loop was peeled, copies of W may fill the buffer together. Then R sees one of them: which one is not told, only
that each of them tells its axes from the cell in the same way.

What W fills in one iteration must be a box (`boxes.py`), so this needs no isl. Where a buffer is not seen to be
settled, the exact test decides.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

from loopwright.analysis.accesses import Access
from loopwright.analysis.boxes import (
    AxisDigit,
    Box,
    Boxes,
    CellIndex,
    boxes_of,
    cell_index,
    is_single,
    joined,
    joined_boxes,
)
from loopwright.analysis.dataflow import BlockKey, Dataflow
from loopwright.analysis.instances import Instance, Loop, common_depth
from loopwright.arith.affine import Form, constant, inequalities
from loopwright.ir import Buffer, IntImm, IterType, IterVar, Var

PARTS: Final = 6  # blocks that fill a buffer together


class Name(NamedTuple):
    """Which write of which block belongs to a cell: equal where that is the same, whatever the loops are."""

    key: BlockKey
    ordinal: int
    cell: Hashable  # how the axes make the cell
    rest: Hashable  # what the other axes are, or how far they are summed over


class SingleWriter(NamedTuple):
    """A buffer whose readers all see the write, or the whole sum, that their cell tells."""

    writers: Sequence[Access]  # the one that fills it; of a reduction, its init and its update
    names: Sequence[Name]  # of the writers
    others: Sequence[SingleWriter] = ()  # who may have written the cell instead

    @property
    def parts(self) -> Sequence[SingleWriter]:
        """All who may have written a cell: one, but where several blocks fill the buffer together."""
        return (self._replace(others=()), *self.others) if self.others else (self,)


class _Reader(NamedTuple):
    """Who looks at cells: a load, an update that looks for its start value, or the caller at the end (no instance)."""

    cell: Sequence[Form]
    loops: Sequence[Loop]
    known: Sequence[Form]  # not negative where it runs
    instance: Instance | None


class _Wanted(NamedTuple):
    """The axis values of the write that a cell belongs to; of some digits of an index only the number they make."""

    axes: dict[int, Form]
    sums: Sequence[tuple[Sequence[AxisDigit], Form]]


class _Writer(NamedTuple):
    """A write, how its axes are found back from the cell, and what it sums over: axis → extent."""

    access: Access
    cell: CellIndex
    sums: dict[int, int]
    name: Name


class SingleWriterBuffers:
    """The settled buffers of one version of a program, found when asked for."""

    def __init__(self, dataflow: Dataflow) -> None:
        self.dataflow = dataflow
        self.loads = {
            (dataflow.key(access.instance.place), ordinal): access
            for access, ordinal in dataflow.ordinals.items()
            if not access.writes
        }
        self._found: dict[Buffer, SingleWriter | None] = {}
        self._known_boxes: dict[tuple[Access | tuple[Access, ...], int], Boxes | None] = {}

    def of(self, buffer: Buffer) -> SingleWriter | None:
        """How the buffer is settled; None when it is not seen to be."""
        if buffer not in self._found:
            self._found[buffer] = self._find(buffer)
        return self._found[buffer]

    def one_value_a_name(self, buffer: Buffer) -> bool:
        """Whether iterations of its writer with equal axis values write equal values, as far as is seen here.

        Where several blocks fill it, a cell may hold what one of them wrote, and later what another one did.
        """
        settled = self.of(buffer)
        if settled is None or settled.others:
            return settled is None and self.is_input(buffer)
        for writer in settled.writers:
            boxes = self._boxes(writer, 0)
            if boxes is not None and not boxes.idle:
                continue  # no two iterations have equal axis values
            for access in self.dataflow.by_place[writer.instance.place]:
                other = access.cell[0]
                if access.writes or other is buffer or self.is_fixed_input(access):
                    continue
                if not self.one_value_a_name(other):
                    return False
        return True

    def is_input(self, buffer: Buffer) -> bool:
        """Whether the buffer holds what the caller gave, and all its reads are plain."""
        flow = self.dataflow
        if buffer not in flow.arguments or buffer.data in flow.program.unknown or flow.program.has_threads:
            return False
        accesses = flow.by_buffer.get(buffer, ())
        return not any([access.writes or None in access.cell[1] or not is_plain(access) for access in accesses])

    def is_fixed_input(self, access: Access) -> bool:
        """Whether the load, for given values of its block's axes, reads a given cell that nobody writes."""
        location, buffer = access.instance.place, access.cell[0]
        if buffer.data in self.dataflow.program.unknown or location.indexed or location.outer or None in access.cell[1]:
            return False
        return not any([other.writes for other in self.dataflow.by_buffer[buffer]])

    # --- the search -------------------------------------------------------------------------------------------------

    def _find(self, buffer: Buffer) -> SingleWriter | None:
        flow, program = self.dataflow, self.dataflow.program
        accesses = flow.by_buffer.get(buffer, ())
        home = program.homes.get(buffer.data, ())
        if program.has_threads or program.regions.reason is not None or buffer.data in program.unknown:
            return None
        if len(flow.groups.get(buffer, ())) > 1:
            return None
        for access in accesses:
            is_ours = access.cell[0] is access.buffer and access.instance.loops[: len(home)] == home
            if not is_ours or None in access.cell[1] or not is_plain(access) or (access.writes and not access.exact):
                return None
        fills = [access for access in accesses if access.writes and not flow.is_update(access)]
        updates = [access for access in accesses if access.writes and flow.is_update(access)]
        if len(updates) > 1 or not 1 <= len(fills) <= (1 if updates else PARTS):
            return None
        writers = [self._writer(access) for access in (*fills, *updates)]
        known = [writer for writer in writers if writer is not None]
        if len(known) < len(writers):
            return None
        readers = [access for access in accesses if not access.writes and not flow.is_update(access)]
        asking = [_looking(access) for access in readers]
        if buffer in flow.arguments:
            caller = self._caller(buffer)
            if caller is None:
                return None
            asking.append(caller)
        if len(fills) > 1:
            return self._together(known, asking)
        if not self._is_started(known) or not all([self._sees_all(reader, known) for reader in asking]):
            return None
        return SingleWriter((*fills, *updates), [writer.name for writer in known])

    def _together(self, parts: Sequence[_Writer], asking: Sequence[_Reader]) -> SingleWriter | None:
        """How several blocks settle a buffer that tell their axes alike: each reader finds its cell filled by some."""
        if len({(part.name.cell, part.name.rest) for part in parts}) > 1:
            return None
        for reader in asking:
            depths = [_depth_of_earlier(part, reader) for part in parts]
            if any([self._is_filled(reader, part, depth) for part, depth in zip(parts, depths, strict=True)]):
                continue
            if min(depths) < 0 or len(set(depths)) > 1:
                return None  # those nearer to the reader are not all done
            boxes = self._boxes_together([part.access for part in parts], depths[0])
            if boxes is None or not self._is_in(reader, parts[0], boxes):
                return None
        first, *others = [SingleWriter([part.access], [part.name]) for part in parts]
        return first._replace(others=others)

    def _writer(self, access: Access) -> _Writer | None:
        """A write whose cell tells all axes of its block, but those that an update sums over."""
        location = access.instance.place
        index = cell_index(access)
        if index is None or location.block is None:
            return None
        is_update = self.dataflow.is_update(access)
        rest: list[Hashable] = []
        sums: dict[int, int] = {}
        for k, (axis, value) in enumerate(zip(location.block.iter_vars, location.values, strict=True)):
            if is_update and axis.iter_type == IterType.CommReduce:
                extent = axis.dom.extent if axis.dom is not None else None
                if k in index.axes() or not isinstance(extent, IntImm):
                    return None
                sums[k] = extent.value
                rest.append(("over", extent.value))
            elif k in index.axes():
                rest.append(None)
            else:
                number = only_value(axis, value)
                if number is None:
                    return None
                rest.append(("is", number))
        name = Name(self.dataflow.key(location), self.dataflow.ordinals[access], index.key, tuple(rest))
        return _Writer(access, index, sums, name)

    def _caller(self, buffer: Buffer) -> _Reader | None:
        """The caller, who looks at every cell."""
        loops: list[Loop] = []
        cell: list[Form] = []
        for extent in buffer.shape:
            size = self.dataflow.program.affine.form(extent)
            if size is None:
                return None
            if not size.terms and size.const == 1:
                cell.append(constant(0))  # which a store writes as a literal
                continue
            loops.append(Loop(Var("c"), constant(0), size.shifted(-1), extent))
            cell.append(Form({loops[-1].var: 1}, 0))
        return _Reader(cell, loops, (), None)

    def _is_started(self, writers: Sequence[_Writer]) -> bool:
        """Whether each update finds its start value, written in the same iteration of the loops around both."""
        if len(writers) == 1:
            return True
        init, update = writers
        looks = _looking(update.access)
        return self._is_filled(looks, init, _depth_of_earlier(init, looks))

    def _sees_all(self, reader: _Reader, writers: Sequence[_Writer]) -> bool:
        """Whether the reader's cell is filled in the same iteration of the loops around, by all updates if it is a sum.

        The cells of a sum must start in that iteration too, once: loops around init and update that are not around the
        reader must each be told by the cell, in the same way for both. So all updates of a cell follow its one start.
        """
        last = writers[-1]
        depth = _depth_of_earlier(last, reader)
        if not self._is_filled(reader, last, depth):
            return False
        if len(writers) == 1:
            return True
        init = writers[0]
        if reader.instance is not None and common_depth(init.access.instance, reader.instance) < depth:
            return False
        return self._starts_once(init, last, depth)

    def _starts_once(self, init: _Writer, update: _Writer, depth: int) -> bool:
        inner = common_depth(init.access.instance, update.access.instance)
        if inner < depth:
            return False
        loops = [loop for loop in update.access.loops[depth:inner] if not is_single(loop)]
        between = {loop.var for loop in loops}
        if not between:
            return True
        first, then = self._boxes(init.access, depth), self._boxes(update.access, depth)
        if first is None or then is None:
            return False
        told: dict[Var, int] = {}  # how many of a loop's iterations the cell tells apart
        for axis in update.cell.axes():
            mine = then.axes[axis]
            outer = [digit for digit in mine.digits if digit.var in between]
            if not outer:
                continue
            others = [k for k in init.cell.axes() if init.cell.place(k) == update.cell.place(axis)]
            if not others:
                return False
            its = first.axes[others[0]]
            # The slowest digits of both: the rest is less than one step of them.
            if mine.low.key != its.low.key or [*mine.digits[-len(outer) :]] != outer:
                return False
            faster = its.digits[: -len(outer)]
            if [*its.digits[-len(outer) :]] != outer or any([digit.var in between for digit in faster]):
                return False
            for digit in outer:
                told[digit.var] = told.get(digit.var, 1) * digit.extent
        # boxes_of has seen that each of them counts from 0.
        return told == {loop.var: loop.high.const + 1 for loop in loops if loop.high is not None}

    def _is_filled(self, reader: _Reader, writer: _Writer, depth: int) -> bool:
        """Whether the reader's cell is written, by all that is summed up in it, while the outer loops stand still."""
        if depth < 0:
            return False
        boxes = self._boxes(writer.access, depth)
        return boxes is not None and not (writer.sums and boxes.idle) and self._is_in(reader, writer, boxes)

    def _is_in(self, reader: _Reader, writer: _Writer, boxes: Boxes) -> bool:
        """Whether the axis values that belong to the reader's cell are in these boxes, and all that is summed up."""
        wanted = self._axis_values(reader, writer.cell)
        if wanted is None:
            return False
        ranges = self.dataflow.program.ranges
        for digits, number in wanted.sums:
            # The faster digits take all their values, so that the slowest alone decides.
            if not all([_is_full(boxes.axes[digit.axis], digit.extent) for digit in digits[1:]]):
                return False
            slowest = digits[0]
            box = boxes.axes[slowest.axis]
            offset = number.plus(box.low, -slowest.stride)
            if not ranges.is_at_most(offset.negated(), 0, reader.loops, reader.known):
                return False
            if not ranges.is_at_most(offset, box.size * slowest.stride - 1, reader.loops, reader.known):
                return False
            last = None if box.limit is None else (box.limit + 1) * slowest.stride - 1
            if last is not None and not ranges.is_at_most(number, last, reader.loops, reader.known):
                return False
        settled = {digit.axis for digits, _ in wanted.sums for digit in digits}
        for k, box in enumerate(boxes.axes):
            if k in writer.sums:
                last = box.size - 1 if box.limit is None else min(box.size - 1, box.limit)
                if box.low.terms or box.low.const or last != writer.sums[k] - 1:
                    return False
                continue
            if k in settled:
                continue
            value = wanted.axes.get(k, box.low)  # an axis that the cell does not tell has one value
            offset = value.plus(box.low, -1)
            if not ranges.is_at_most(offset.negated(), 0, reader.loops, reader.known):
                return False
            if not ranges.is_at_most(offset, box.size - 1, reader.loops, reader.known):
                return False
            if box.limit is not None and not ranges.is_at_most(value, box.limit, reader.loops, reader.known):
                return False
        return True

    def _axis_values(self, reader: _Reader, index: CellIndex) -> _Wanted | None:
        """The axis values of the write that the reader's cell belongs to; None when it may belong to none."""
        ranges, cell = self.dataflow.program.ranges, reader.cell
        for dimension, number in index.numbers.items():
            offset = cell[dimension].shifted(-number)  # a loop that runs once is a number, too
            if not ranges.is_at_most(offset, 0, reader.loops, reader.known):
                return None
            if not ranges.is_at_most(offset.negated(), 0, reader.loops, reader.known):
                return None
        values = {axis: cell[dimension] for axis, dimension in index.whole.items()}
        for axis, (quotient, remainder, by) in index.parts.items():
            rest = cell[remainder]
            if not ranges.is_at_most(rest.negated(), 0, reader.loops, reader.known):
                return None
            if not ranges.is_at_most(rest, by - 1, reader.loops, reader.known):
                return None
            values[axis] = joined(rest.plus(cell[quotient], by))
        sums: list[tuple[Sequence[AxisDigit], Form]] = []
        for dimension, digits in index.sums.items():
            rest = cell[dimension]
            for k, digit in enumerate(digits):
                cut = self._cut(reader, rest, digit.stride)
                if cut is None:
                    sums.append((digits[k:], rest))
                    break
                values[digit.axis], rest = cut
        return _Wanted(values, sums)

    def _cut(self, reader: _Reader, number: Form, stride: int) -> tuple[Form, Form] | None:
        """Quotient and remainder by `stride`, where the terms that are multiples of it are the quotient."""
        high = {term: k // stride for term, k in number.terms.items() if k % stride == 0}
        low = Form({term: k for term, k in number.terms.items() if k % stride}, number.const % stride)
        ranges = self.dataflow.program.ranges
        if not ranges.is_at_most(low.negated(), 0, reader.loops, reader.known):
            return None
        if not ranges.is_at_most(low, stride - 1, reader.loops, reader.known):
            return None
        return Form(high, number.const // stride), low

    def _boxes(self, access: Access, depth: int) -> Boxes | None:
        """The values that a block's axes take while the outermost `depth` loops stand still; None: they are no box."""
        key = access, depth
        if key not in self._known_boxes:
            self._known_boxes[key] = boxes_of(access, depth, self.dataflow.program.ranges)
        return self._known_boxes[key]

    def _boxes_together(self, accesses: Sequence[Access], depth: int) -> Boxes | None:
        """The values that the axes of several blocks take together."""
        key = tuple(accesses), depth
        if key not in self._known_boxes:
            self._known_boxes[key] = joined_boxes(accesses, depth, self.dataflow.program.ranges)
        return self._known_boxes[key]


def _is_full(box: Box, extent: int) -> bool:
    """Whether the axis takes all its values."""
    last = box.size - 1 if box.limit is None else min(box.size - 1, box.limit)
    return not box.low.terms and box.low.const == 0 and last >= extent - 1


def only_value(axis: IterVar, value: Form | None) -> int | None:
    """The value of an axis that has one only."""
    if axis.dom is not None and isinstance(axis.dom.extent, IntImm) and axis.dom.extent.value == 1:
        return axis.dom.min.value if isinstance(axis.dom.min, IntImm) else None
    return None if value is None or value.terms else value.const


def is_plain(access: Access) -> bool:
    """Whether the access is directly in a block that knows nothing but its axes."""
    location = access.instance.place
    return (
        location.block is not None
        and not location.has_blocks
        and not location.outer
        and not location.indexed
        and len(access.loops) == location.depth
    )


def _looking(access: Access) -> _Reader:
    """An access, as one who looks at its cell."""
    cell = [form for form in access.cell[1] if form is not None]
    return _Reader(cell, access.loops, inequalities(access.guards), access.instance)


def _depth_of_earlier(writer: _Writer, reader: _Reader) -> int:
    """How many loops are around both; -1 when the writer does not come first in them."""
    if reader.instance is None:
        return 0
    mine = writer.access.instance
    depth = common_depth(mine, reader.instance)
    return depth if mine.positions[depth] < reader.instance.positions[depth] else -1
