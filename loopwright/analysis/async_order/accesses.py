"""Accesses: whether each access of shared memory, and of registers, comes after those before it that it disturbs.

Of an atom the last write is kept, and the reads since: what comes after those comes after all before them. An access
of a thread is known to others from its epoch on, which ends when the thread tells others that it has got so far. What
is asynchronous is done when somebody knows so: from the phase of an mbarrier on, or from a wait of those that began it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from loopwright.analysis.async_order.atoms import Atoms, Region, Space
from loopwright.analysis.async_order.classes import ThreadClass
from loopwright.analysis.async_order.errors import AccumulatorsInUse, NoProxyFence, NotOrdered
from loopwright.analysis.async_order.events import Event, Touch, where_text
from loopwright.ir import Buffer, IntImm, Var

Clock = list[int]  # how far each class has got, and each mbarrier
# What threads do with memory: they read it, or write it.
_VERBS: Final = {
    "touch": ("read", "write"),
    "group_copy": ("", "copy to"),
    "copy": ("", "has a copy to"),
    "store": ("have a store from", ""),
    "wgmma": ("multiplies", "adds up in"),
}
_UNITS: Final = {"copy": ("warp", 32), "wgmma": ("warpgroup", 128)}


@dataclass(eq=False)
class Record:
    """An access that has happened."""

    by: ThreadClass
    event: Event
    region: Region
    is_write: bool
    epoch: int
    done: dict[int, int] | None = None  # of an asynchronous one: who knows that it is done, from which time on
    is_of_all: bool = False  # whether all threads of the class know as soon as it waits
    fence: int | None = None  # the epoch of the writer's fence_proxy_async

    @property
    def is_exact(self) -> bool:
        """Whether it certainly happens, and touches no less."""
        return self.region.is_exact

    def text(self, element: str) -> str:
        """`threads 32 to 95 (role add) read S[0, 0] at k = 2`."""
        verb, unit = _VERBS[self.event.kind][self.is_write], _UNITS.get(self.event.kind)
        if unit is None:
            return self.event.do(f"{verb} {element}")
        name = f"{unit[0]} {self.by.threads[0] // unit[1]}{f' (role {self.event.role})' if self.event.role else ''}"
        return f"{name} {verb} {element}{where_text(self.event.where)}"


@dataclass
class _State:
    """The last write of an atom, and the reads since."""

    write: Record | None = None
    reads: dict[object, Record] = field(default_factory=dict)


class Accesses:
    """What has happened to memory so far."""

    def __init__(self, atoms: Atoms, buffers: dict[Var, Buffer], unit_bytes: dict[Var, int]) -> None:
        self.atoms, self.buffers, self.unit_bytes = atoms, buffers, unit_bytes
        self.states: dict[Space, list[_State]] = {}
        self.unfenced: dict[int, list[Record]] = {}  # stores to shared memory, by class
        self.doubts: dict[str, None] = {}

    def begin(self) -> None:
        """All regions are known."""
        self.atoms.finish()
        for space in self.atoms.spaces.values():
            self.states[space] = [_State() for _ in space.first]
            for region in space.regions:
                del region.units, region.owners  # atoms stand for them

    # --- one access -------------------------------------------------------------------------------------------------

    def access(self, by: ThreadClass, event: Event, touch: Touch, clock: Clock, epoch: int) -> None:
        """The threads of a class load or store."""
        region = self.atoms.known[id(touch.footprint), by.number]
        record = Record(by, event, region, touch.is_write, epoch)
        for atom in region.atoms:
            if touch.is_write and region.is_exact and atom in region.many:
                raise NotOrdered(
                    event.statement,
                    self.element(region.space, atom),
                    "another one of these threads writes it as well",
                    record.text("it"),
                    "let one thread write each element",
                )
            self.check(record, atom, clock, False)
            self.put(record, atom)
        if touch.is_write and region.space.is_shared:
            self.unfenced.setdefault(by.number, []).append(record)

    def begin_asynchronous(self, by: ThreadClass, event: Event, touch: Touch, clock: Clock, epoch: int) -> Record:
        """An asynchronous operation of the class's threads begins, of which `finish` says what ends it."""
        region = self.atoms.known[id(touch.footprint), by.number]
        is_of_all = event.kind in ("wgmma", "copy")
        record = Record(by, event, region, touch.is_write, epoch, {}, is_of_all)
        for atom in region.atoms:
            self.check(record, atom, clock, is_of_all)
        return record

    def finish(self, record: Record) -> None:
        """The operation takes the place of earlier accesses."""
        for atom in record.region.atoms:
            self.put(record, atom)

    def put(self, record: Record, atom: int) -> None:
        state = self.states[record.region.space][atom]
        if record.is_write:
            state.write, state.reads = record, {}
        else:
            kind = record.event.kind if record.done is not None else record.region.map
            state.reads[record.by.number, kind] = record

    def check(self, record: Record, atom: int, clock: Clock, is_of_all: bool) -> None:
        """Raise an error where an earlier access is not known to have come before."""
        space = record.region.space
        state = self.states[space][atom]
        write = state.write
        if write is not None:
            if not self.is_ordered(write, record, atom, clock, is_of_all):
                self.conflict(write, record, atom)
            elif record.done is not None and (write.done is None or write.event.kind == "group_copy"):
                self.check_fence(write, record, atom, clock)
        elif record.event.kind == "touch" and not record.is_write and space.is_shared and record.is_exact:
            # A box may reach beyond its tensor, and a tile beyond the rows that count: what is there does not matter.
            element = self.element(space, atom)
            hint = "wait for who fills it, or fill all of it"
            raise NotOrdered(record.event.statement, element, None, record.text("it"), hint)
        if record.is_write:
            for read in state.reads.values():
                if not self.is_ordered(read, record, atom, clock, is_of_all):
                    self.conflict(read, record, atom)

    def is_ordered(self, old: Record, new: Record, atom: int, clock: Clock, is_of_all: bool) -> bool:
        """Whether the new access knows that the old one is over."""
        mine = new.by.number
        space = new.region.space
        if old.done is None:
            if old.by.number == mine:
                if new.by.count == 1 or not space.is_shared:
                    return True
                if not is_of_all and space.is_same_thread(old.region, new.region, atom):
                    return True
            return clock[old.by.number] >= old.epoch
        if any([clock[who] >= since for who, since in old.done.items()]):
            return True
        if mine in old.done and (old.is_of_all or new.by.count == 1):
            return True
        if mine in old.done and not is_of_all and space.is_same_thread(old.region, new.region, atom):
            return True
        are_matmuls = old.event.kind == new.event.kind == "wgmma" and not space.is_shared
        is_same = old.region is new.region or not (old.is_write or new.is_write)
        return are_matmuls and old.by.number == mine and is_same  # in the order of their calls

    def check_fence(self, write: Record, record: Record, atom: int, clock: Clock) -> None:
        """What threads have stored is seen by the asynchronous proxy."""
        space = record.region.space
        if not space.is_shared or record.event.kind == "group_copy":
            return
        is_own = write.by.number == record.by.number and record.by.count == 1
        is_seen = write.fence is not None and (is_own or clock[write.by.number] >= write.fence)
        if not is_seen:
            element = self.element(space, atom)
            if write.is_exact and record.is_exact:
                raise NoProxyFence(record.event.statement, element, write.text("it"), record.text("it"))
            self.doubts[f"whether a fence_proxy_async is needed for {element} depends on data"] = None

    def conflict(self, old: Record, new: Record, atom: int) -> None:
        space = new.region.space
        element = self.element(space, atom)
        if not (old.is_exact and new.is_exact):
            self.doubts[f"whether two accesses of {element} meet depends on data: {new.event.statement}"] = None
            return
        if not space.is_shared:
            problem = f"{new.text('it')}, before a wgmma_wait says that it is free: {old.text('it')}"
            hint = "put T.wgmma_wait(…) for the group before"
            raise AccumulatorsInUse(new.event.statement, element, problem, hint)
        hint = "let the later one wait for an mbarrier or a barrier at which the other one arrives afterwards"
        if old.done is not None and old.done.keys() <= {old.by.number}:
            hint = f"let {old.by.name} wait for what it began, and only then tell the others"
        raise NotOrdered(new.event.statement, element, old.text("it"), new.text("it"), hint)

    def element(self, space: Space, atom: int) -> str:
        """The first element of an atom, as in `S[0, 64]`."""
        buffer = self.buffers[space.data]
        at = space.first[atom] * self.unit_bytes[space.data] // buffer.dtype.nbytes
        indices: list[int] = []
        for extent in reversed(buffer.shape):
            if not isinstance(extent, IntImm) or buffer.strides:
                return buffer.name
            indices.insert(0, at % extent.value)
            at //= extent.value
        return f"{buffer.name}[{', '.join(map(str, indices))}]"

    # --- fences -----------------------------------------------------------------------------------------------------

    def fence_proxy(self, by: ThreadClass, epoch: int) -> None:
        """What the class has stored to shared memory is for the asynchronous proxy, too."""
        for record in self.unfenced.pop(by.number, []):
            record.fence = epoch
