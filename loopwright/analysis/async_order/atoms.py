"""Atoms: the parts of memory that all accesses of a kernel touch as a whole, or not at all.

    S[slot, 0:512] by a copy, S[slot, 0:256] and S[slot, 256:512] by two warpgroups        two atoms a slot

What is known of an atom is known of each of its units. Whether two accesses of a class of threads touch a unit by the
same thread is the same for all units of an atom, too.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

from loopwright.analysis.async_order.classes import ThreadClass
from loopwright.analysis.async_order.footprints import MANY, Footprint
from loopwright.analysis.async_order.values import Array
from loopwright.ir import Var

_MOST_PAIRS = 100  # of ways in which the threads of a class share memory, which are compared


@dataclass(eq=False)
class Region:
    """What a class of threads, or an asynchronous operation of theirs, touches."""

    space: Space
    units: Array
    owners: Array | None  # the thread of each unit; None: an asynchronous operation, or memory of each thread
    is_exact: bool
    of: int  # the number of the class
    atoms: list[int] = field(default_factory=list)
    map: int = -1  # the way in which the threads of the class share memory here
    many: frozenset[int] = frozenset()  # atoms that several threads touch


@dataclass(eq=False)
class Space:
    """The memory of a block, or the registers of the threads of a class."""

    data: Var
    is_shared: bool
    regions: list[Region] = field(default_factory=list)
    size: int = 0  # units
    first: list[int] = field(default_factory=list)  # a unit of each atom
    maps: dict[int, list[Array]] = field(default_factory=dict)  # by class: the thread of each unit, or -1
    written: set[int] = field(default_factory=set)

    def is_same_thread(self, one: Region, other: Region, atom: int) -> bool:
        """Whether two accesses of a class touch each unit of an atom by the same thread."""
        if not self.is_shared:
            return True
        if one.map < 0 or other.map < 0 or atom in one.many or atom in other.many:
            return False
        if one.map == other.map:
            return True
        maps, unit = self.maps[one.of], self.first[atom]
        return bool(maps[one.map][unit] == maps[other.map][unit])


class Atoms:
    """The memory of a kernel, cut into atoms."""

    def __init__(self, shared: frozenset[Var]) -> None:
        self.shared = shared
        self.spaces: dict[tuple[Var, int], Space] = {}
        self.known: dict[tuple[int, int], Region] = {}

    def region(self, footprint: Footprint, of: ThreadClass) -> Region:
        """What a class touches of a footprint."""
        key = id(footprint), of.number
        result = self.known.get(key)
        if result is None:
            is_shared = footprint.data in self.shared
            which = footprint.data, -1 if is_shared else of.number
            space = self.spaces.get(which)
            if space is None:
                space = self.spaces[which] = Space(footprint.data, is_shared)
            units, owners = footprint.restricted(of.number, of.members)
            result = Region(space, units, owners if is_shared else None, footprint.is_exact, of.number)
            space.regions.append(result)
            self.known[key] = result
        return result

    def finish(self) -> None:
        """All regions are known: cut memory into atoms."""
        for space in self.spaces.values():
            _cut(space)


def _cut(space: Space) -> None:
    bits = random.Random(0)
    regions = [region for region in space.regions if len(region.units)]
    space.size = max([int(region.units.max()) for region in regions], default=0) + 1
    labels = np.zeros(space.size, "uint64")
    seen: set[bytes] = set()

    def mark(units: Array) -> None:
        key = units.tobytes()
        if len(units) and key not in seen:
            seen.add(key)
            labels[units] ^= np.uint64(bits.getrandbits(64))

    for region in regions:
        mark(region.units)
        if region.owners is not None:
            mark(region.units[region.owners == MANY])
            region.map = _map_of(space, region)
    for maps in space.maps.values():
        pairs = [(one, other) for k, one in enumerate(maps) for other in maps[:k]]
        for one, other in pairs[:_MOST_PAIRS]:
            mark(np.flatnonzero((one >= 0) & (one == other)))
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    inverse = inverse.reshape(-1)
    space.first = [int(unit) for unit in first]
    for region in regions:
        region.atoms = [int(atom) for atom in np.unique(inverse[region.units])]
        if region.owners is not None:
            shared = region.units[region.owners == MANY]
            region.many = frozenset([int(atom) for atom in np.unique(inverse[shared])])


def _map_of(space: Space, region: Region) -> int:
    """Which of the ways in which the threads of the class share memory agrees with the region; or a new one."""
    assert region.owners is not None
    single = region.owners >= 0
    units, owners = region.units[single], region.owners[single]
    maps = space.maps.setdefault(region.of, [])
    for number, known in enumerate(maps):
        there = known[units]
        if ((there < 0) | (there == owners)).all():
            known[units] = owners
            return number
    new = np.full(space.size, -1, "int64")
    new[units] = owners
    maps.append(new)
    return len(maps) - 1
