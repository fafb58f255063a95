"""plan: where every value of a program is while it runs.

    plan = plan_memory(program)
    plan.peak, plan.lower_bound        bytes of the arena, and the most bytes alive at one moment
    print(plan)                        the same in words, and the largest values

Values whose sizes are numbers get fixed places in one arena (`arena_packing.py`). Those whose sizes are known only at a
call share slots: a slot is used again by a value of the same lengths, up to a factor, when the one before is dead.
Slots follow the fixed part of the arena, or, where their size depends on a number that the program computes (`Bind`),
have an arena of their own, which is made when that number is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loopwright.ir import Expr, Var, const
from loopwright.model.arena_packing import ALIGNMENT, Block, aligned, lower_bound, pack, peak
from loopwright.model.liveness import Home, InPlace, Liveness, size_key
from loopwright.model.prepack_constants import Prepared, as_they_are
from loopwright.model.program import Bind, Program, Value
from loopwright.runtime.shown import view

if TYPE_CHECKING:
    from loopwright.display.sheet import Sheet


@dataclass(eq=False)
class Slot:
    """Room for values of sizes that a call decides: `factor` bytes times the `lengths`."""

    factor: int
    lengths: tuple[tuple[str, tuple[Var, ...]], ...]
    nbytes: Expr
    homes: list[Home] = field(default_factory=list)

    def is_free(self, home: Home) -> bool:
        """Whether nothing in it lives while `home` does."""
        return all(other.last < home.first or home.last < other.first for other in self.homes)


@dataclass(eq=False)
class Plan:
    """The places of a program's values."""

    program: Program
    liveness: Liveness
    offsets: dict[Home, int]  # of the homes in the fixed part of the arena
    peak: int  # bytes of the fixed part
    lower_bound: int
    slots: dict[Bind | None, list[Slot]]  # for the whole program, or from a `Bind` on
    prepared: Prepared  # the constants that the code reads
    constant_offsets: dict[Value, int]
    constant_bytes: int

    def home(self, value: Value) -> Home:
        """The memory of a value."""
        return self.liveness.home(value)

    @property
    def in_place(self) -> int:
        """How many values took over the memory of another."""
        return sum(home.joined is not None for home in set(self.liveness.homes.values()))

    @property
    def unshared(self) -> int:
        """The bytes that values of fixed size would take if each had its own memory."""
        return sum(
            aligned(home.nbytes)
            for home in set(self.liveness.homes.values())
            if home.kind == "arena" and isinstance(home.nbytes, int)
        )

    def __str__(self) -> str:
        over = f"{self.peak / self.lower_bound - 1:.1%} above" if self.peak > self.lower_bound else "equal to"
        count = len(self.offsets)
        lines = [
            f"memory plan of {self.program.name}: arena {_bytes(self.peak)}, {over} the lower bound "
            f"{_bytes(self.lower_bound)}",
            f"  {count} buffer{'s' * (count != 1)}, {self.in_place} in place of another; "
            f"each by itself: {_bytes(self.unshared)}",
            f"  constants {_bytes(self.constant_bytes)}",
        ]
        open_slots = [slot for group in self.slots.values() for slot in group]
        if open_slots:
            sizes = ", ".join(str(slot.nbytes) for slot in open_slots)
            lines.append(f"  {len(open_slots)} of sizes that a call decides: {sizes} bytes")
        return "\n".join(lines)

    def rows(self) -> list[tuple[str, int, int, int, int]]:
        """The buffers of the arena: name, offset, bytes, and the steps at which they are first and last used."""
        result = [
            (home.values[0].name, offset, home.nbytes, home.first, home.last)
            for home, offset in self.offsets.items()
            if isinstance(home.nbytes, int)
        ]
        return sorted(result, key=lambda row: (row[3], row[1]))

    def show(self, style: str | None = None) -> None:
        """Show the plan as a table."""
        self._sheet().show(style)

    def _repr_html_(self) -> str:
        return self._sheet().html()

    def _sheet(self) -> Sheet:
        sheet: Sheet = view("memory_plan", self)
        return sheet


def plan_memory(
    program: Program, in_place: InPlace | None = None, *, prepared: Prepared | None = None, reuse: bool = True
) -> Plan:
    """Places for every value. `in_place` says which kernels may write over what they read (`Launch.may_overwrite`
    says which might), `prepared` which constants the code reads: by default those of the program. Without `reuse`
    every value keeps its own memory, so that it can be looked at afterwards."""
    constants = prepared if prepared is not None else as_they_are(program)
    liveness = Liveness(program, in_place or {}, reuse)
    homes = liveness.arena()
    fixed = [home for home in homes if isinstance(home.nbytes, int)]
    blocks = [Block(home.nbytes, home.first, home.last) for home in fixed if isinstance(home.nbytes, int)]
    locations = pack(blocks)
    constant_offsets, constant_bytes = _place_constants(constants)
    return Plan(
        program,
        liveness,
        dict(zip(fixed, locations, strict=True)),
        peak(blocks, locations),
        lower_bound(blocks),
        _share_slots([home for home in homes if not isinstance(home.nbytes, int)]),
        constants,
        constant_offsets,
        constant_bytes,
    )


def _share_slots(homes: Sequence[Home]) -> dict[Bind | None, list[Slot]]:
    result: dict[Bind | None, list[Slot]] = {}
    for home in homes:  # in order of first use
        factor, lengths = size_key(home.values[0])
        group = result.setdefault(home.bind, [])
        fitting = [slot for slot in group if slot.lengths == lengths and slot.is_free(home)]
        if fitting:
            # The nearest in size: a smaller one grows.
            slot = min(fitting, key=lambda slot: abs(slot.factor - factor))
        else:
            slot = Slot(0, lengths, const(0, "int64"))
            group.append(slot)
        slot.homes.append(home)
        if factor > slot.factor:
            slot.factor, slot.nbytes = factor, _expr(home.nbytes)
    return result


def _expr(size: int | Expr) -> Expr:
    return const(size, "int64") if isinstance(size, int) else size


def _place_constants(prepared: Prepared) -> tuple[dict[Value, int], int]:
    """Offsets of the constants in their section; equal arrays have one place."""
    offsets: dict[Value, int] = {}
    known: dict[tuple[object, ...], list[tuple[bytes | memoryview, int]]] = {}
    end = 0
    for value in prepared.constants:
        array = prepared.array(value)
        content = array.reshape(-1).view("uint8").data
        # Most arrays differ at their ends; only of those that do not is all compared.
        alike = known.setdefault((value.dtype, array.shape, bytes(content[:64]), bytes(content[-64:])), [])
        same = next((offset for other, offset in alike if other == content), None)
        if same is None:
            same = end
            alike.append((content, same))
            end += aligned(array.nbytes)
        offsets[value] = same
    # A constant of no elements has an address too.
    return offsets, max(end, ALIGNMENT) if offsets else 0


def _bytes(count: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count} bytes"
