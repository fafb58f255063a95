"""packed_tiling: multi-level tiling with operands in packed panels, in the order in which register tiles read them.

    B[k, j]    →    B_packed[j // 16, k, j % 16]       for register tiles of 16 columns

The operand that moves with the vectors is packed before all loops, or slab by slab next to the tiles that read it; the
other one slab by slab. Vectors may run along any data axis for which results or an operand can be laid out. Nothing
of that can be said in schedules whose layouts are fixed, which is why it is a rule of its own: leave it out to compare.
"""

from __future__ import annotations

from itertools import product

from loopwright.autosched.facts import BlockFacts
from loopwright.schedule import BlockRV, Schedule
from loopwright.tune.sketches.rules.multi_level_tiling import MultiLevelTiling, Variant, panel_axis, vector_axis


class PackedTiling(MultiLevelTiling):
    """Tiling with packed operands; other rules see the block untiled as well."""

    name = "packed_tiling"

    def untouched(self, sch: Schedule) -> list[Schedule]:
        return [sch]

    def variants(self, sch: Schedule, block: BlockRV, facts: BlockFacts) -> list[Variant]:
        natural = vector_axis(facts)
        lanes = self.machine.lanes(facts.dtype)
        wide = [axis for axis in facts.spatial if (axis.extent or 0) >= lanes] or [natural]
        result = []
        for vector in sorted(wide, key=lambda axis: axis is not natural):
            straight = facts.write.stride(vector.var) == 1
            levels = self.write_levels(sch, block) if vector is natural and straight else [1]
            places: list[list[str]] = []
            for access in facts.reads:
                axis = panel_axis(facts, access, vector)
                moves = axis is vector
                places.append(["-"] if axis is None else ["root", "slab", "-"] if moves else ["-", "slab"])
            for chosen in product(*places):
                packed = tuple([(which, where) for which, where in enumerate(chosen) if where != "-"])
                moved = [which for which, access in enumerate(facts.reads) if access.uses(vector.var)]
                if packed and (vector is natural or all(which in dict(packed) for which in moved)):
                    result += [Variant(vector, level, packed) for level in levels if level != 2]
        return result
