"""pad_odd_sizes: data axes grow to sizes that register tiles divide, as primes have no tiles at all.

    for i, j, k in T.grid(257, 257, 257)    →    for i, j, k in T.grid(258, 288, 260)        6 × 48 divides 258 × 288
        C[i, j] += A[i, k] * B[k, j]                 C_pad[i, j] += A_pad[i, k] * B_pad[k, j]

Other rules tile by divisors alone, so that tiles are whole and no guard is in a register tile. The copies that hold
zeros at the edge are packed copies then, where operands are packed. The size that is taken is the one at which the best
register tile that divides it does most useful work in a cycle; the block as it is stays an alternative.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final

from loopwright.autosched.cost import tile_step
from loopwright.autosched.facts import Axis, BlockFacts
from loopwright.autosched.machine import Machine, rounded_up
from loopwright.autosched.tile_search import TWO_AHEAD, divisors, register_tiles
from loopwright.schedule import BlockRV, Schedule, ScheduleError
from loopwright.tune.sketches.blocks import is_output, is_padding, own_facts
from loopwright.tune.sketches.notes import PLACES
from loopwright.tune.sketches.rules.multi_level_tiling import has_reuse, vector_axis
from loopwright.tune.sketches.rules.rule import ScheduleRule

_MOST_ROWS: Final = 16  # of a register tile
_MOST_VECTORS: Final = 4
_LARGER_ROWS: Final = 16  # sizes that are looked at, one after the other
_LARGER_VECTORS: Final = 6
_STEP: Final = 4  # of a reduction: iterations that can be written out
_GAIN: Final = 1.1  # in useful work of a register tile that copies must bring


class PadOddSizes(ScheduleRule):
    """Pads what has reuse and no good register tiles; other rules see the block as it is, too."""

    name = "pad_odd_sizes"

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        facts = own_facts(sch, block)
        if facts is None or not has_reuse(facts):
            return [sch]
        result = []
        for sizes in paddings(facts, self.machine):
            trial = sch.copy()
            try:
                trial.pad_einsum(block, list(sizes))
                for copy in trial.get_producers(block):
                    if is_padding(trial, copy):
                        trial.annotate(trial.get_block(copy.name), PLACES, 0)  # before all loops, or in packed copies
                for reader in trial.get_consumers(block):
                    if not is_output(trial, reader):
                        trial.compute_inline(reader)  # what follows takes its elements from the padded result
            except ScheduleError:
                continue  # an axis is no index by itself, say, or sums begin elsewhere than at zero
            result.append(trial)
        return [*result[:1], sch]


def paddings(facts: BlockFacts, machine: Machine) -> list[list[int]]:
    """Multiples to pad the axes to; first those that pad the reduction too, if it is odd."""
    vector = vector_axis(facts)
    rows = _row_axis(facts, vector)
    if not _is_index(facts, vector):
        return []
    lanes = machine.lanes(facts.dtype)
    height = 1 if rows is None else rows.extent or 1
    width = vector.extent or 1
    first, second = _best_sizes(height, width, lanes, machine)
    before = _rate(height, width, height, width, lanes, machine)
    if _rate(first, second, height, width, lanes, machine) < _GAIN * before:
        return []
    grown = {vector.var: second}
    if rows is not None:
        grown[rows.var] = first
    plain = [grown.get(axis.var, 1) for axis in facts.axes]
    *_, last = facts.reduce
    if (last.extent or 1) > 2 * _MOST_ROWS and (last.extent or 1) % _STEP:
        return [[_STEP if axis is last else size for axis, size in zip(facts.axes, plain, strict=True)], plain]
    return [plain]


def _row_axis(facts: BlockFacts, vector: Axis) -> Axis | None:
    """The longest other data axis whose register tile reuses an operand."""
    shared = [
        axis
        for axis in facts.spatial
        if axis is not vector and axis.extent != 1 and not all(one.uses(axis.var) for one in facts.reads)
    ]
    return max([axis for axis in shared if _is_index(facts, axis)], key=lambda axis: axis.extent or 0, default=None)


def _is_index(facts: BlockFacts, axis: Axis) -> bool:
    """Whether wherever the axis is used it is an index by itself: what can be padded."""
    accesses = [one for one in (facts.write, *facts.reads) if one.uses(axis.var)]
    return all(one.own_dimension(axis.var) is not None for one in accesses)


def _best_sizes(height: int, width: int, lanes: int, machine: Machine) -> tuple[int, int]:
    """Where most useful work is done in a cycle; of equal ones the smallest."""
    heights: Sequence[int] = range(height, height + _LARGER_ROWS) if height > 1 else [1]
    least = rounded_up(width, lanes)
    widths = [width, *range(least, least + _LARGER_VECTORS * lanes, lanes)]
    pairs = [(tall, wide) for tall in heights for wide in widths]
    return max(pairs, key=lambda pair: (_rate(pair[0], pair[1], height, width, lanes, machine), -pair[0] * pair[1]))


def _rate(tall: int, wide: int, height: int, width: int, lanes: int, machine: Machine) -> float:
    """Useful multiply-adds in a cycle of the best register tile that divides `tall` × `wide`."""
    rows = [part for part in divisors(tall) if part <= _MOST_ROWS]
    columns = [part for part in divisors(wide) if part <= _MOST_VECTORS * lanes]
    fitting = set(register_tiles(machine, _MOST_ROWS, _MOST_VECTORS, TWO_AHEAD))
    rates = []
    for mr in rows:
        for nr in columns:
            vectors = ceil(nr / lanes)
            if (mr, vectors) in fitting:
                guarded = nr % lanes > 0  # part of a vector is under a mask, or element by element
                rates.append(mr * nr / tile_step(machine, mr, vectors + guarded))
    return max(rates, default=0.0) * height * width / (tall * wide)
