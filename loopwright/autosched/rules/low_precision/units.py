"""Units: what a machine multiplies bytes and halves with, and what operands must become for it.

int8 · int8 → int32 where vpdpbusd is all there is      A becomes uint8 (or B does), 128 is taken off in the end
bfloat16 · bfloat16 → float32 without dot products      both become float32, and the product is an ordinary one
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from loopwright.autosched.machine import Machine
from loopwright.runtime import amx
from loopwright.transform.tensor_intrinsics.dot_block import KINDS, DotKind, dot_block
from loopwright.transform.tensor_intrinsics.x86_amx import ROWS, amx_dot

BYTES: Final = ("int8", "uint8")
SMALL: Final = (*BYTES, "bfloat16", "float16")
_SHORT: Final = {"int8": "s8", "uint8": "u8", "bfloat16": "bf16"}
_AMX: Final = {"int8": "amx-int8", "uint8": "amx-int8", "bfloat16": "amx-bf16"}


@dataclass(frozen=True)
class Unit:
    """A way to multiply: its intrinsic, the sizes it comes in, and the types of the operands it takes."""

    kind: str
    a: str
    b: str
    c: str
    lanes: int  # columns are a multiple of it
    group: int  # neighbours of the reduction that one instruction adds up
    k: int  # the reduction is a multiple of it
    instruction: str
    is_tile: bool = False
    adds_after: bool = False

    def intrinsic(self, rows: int, columns: int, k: int, from_zero: bool) -> str:
        """The name of the tensor intrinsic for a block."""
        make = amx_dot if self.is_tile else dot_block
        return make(rows, columns, k, self.kind, from_zero)

    def products_per_cycle(self, machine: Machine) -> float:
        """Multiply-adds that one core does at most."""
        if self.is_tile:
            return ROWS * ROWS * self.k / machine.cpu.microarchitecture.tile_cycles
        return machine.fma_per_cycle * self.lanes * self.group / (2 if self.adds_after else 1)


class TileKernel(NamedTuple):
    """How well an intrinsic on tile registers keeps the unit busy: times what its instructions take by themselves."""

    products: float
    loads: float
    astray: float  # times a load: a tile whose rows lie in two cache lines each

    def cycles(self, machine: Machine, products: int, loads: float) -> float:
        """Cycles of that many products of tiles, and loads."""
        core = machine.cpu.microarchitecture
        return products * self.products * core.tile_cycles + loads * self.loads * core.tile_load_cycles


AMX_DOT: Final = TileKernel(1.5, 2.0, 2.0)  # products wait for loads
AMX_WINDOW: Final = TileKernel(0.875, 0.625, 6.0)  # sums stay over the whole window, and loads go on beside products


@dataclass(frozen=True)
class Choice:
    """A unit, and whether each operand is converted for it; None for no unit: the product is done in plain vectors."""

    unit: Unit | None
    types: tuple[str, str]  # of the row and the column operand, "" where they stay as they are


def choices(
    machine: Machine, types: tuple[str, str, str], early: tuple[bool, bool], has_zero_points: bool
) -> list[Choice]:
    """The ways to multiply rows by columns of these types; empty when the rule for plain products does as well.

    `early`: which operands are constants, so that what is computed from them alone costs nothing.
    """
    a, b, c = types
    units = _units(machine)
    result = [Choice(unit, ("", "")) for unit in units if (unit.a, unit.b, unit.c) == types]
    if a in BYTES and b in BYTES and c == "int32":
        if not any(not choice.unit.is_tile for choice in result if choice.unit is not None):
            result += _converted(units, a, b, early)
        if not result and has_zero_points:
            result.append(Choice(None, ("", "")))
    elif c == "float32" and not result and {a, b} <= {"bfloat16", "float16"}:
        result.append(Choice(None, ("float32", "float32")))
    return result


def _converted(units: Sequence[Unit], a: str, b: str, early: tuple[bool, bool]) -> list[Choice]:
    """Vector units that take the operands after one of them is shifted by 128; or both widened, where there are none.

    The operand that is converted costs a copy, and the sums of the other one: those of constants are free.
    """
    for new in [(_other(a), b), (a, _other(b))][:: 1 if early[1] else -1]:
        for unit in units:
            if (unit.a, unit.b) == new and not unit.is_tile:
                return [Choice(unit, _changes((a, b), new))]
    return [Choice(unit, ("int16", "int16")) for unit in units if unit.a == "int16"]


def _other(dtype: str) -> str:
    return "uint8" if dtype == "int8" else "int8"


def _changes(old: tuple[str, str], new: tuple[str, str]) -> tuple[str, str]:
    return "" if old[0] == new[0] else new[0], "" if old[1] == new[1] else new[1]


def _units(machine: Machine) -> Sequence[Unit]:
    """The units of a machine, tiles first, then the widest vectors."""
    if not machine.has_instructions:
        return []
    features = machine.cpu.features
    has_tiles = not (machine.cpu.is_host and amx.ask())  # the kernel has a say on this very machine
    result = [
        Unit(_tile_kind(a, b), a, b, c, ROWS, group, ROWS * group, f"AMX {_tile_kind(a, b)}", is_tile=True)
        for a, b, c, group in _tile_types()
        if has_tiles and _AMX[a] in features
    ]
    kinds = [(name, kind) for name, kind in KINDS.items() if _has(machine, kind)]
    for name, kind in sorted(kinds, key=lambda item: -item[1].lanes):
        if not any((unit.a, unit.b, unit.c) == (kind.a, kind.b, kind.c) and not unit.is_tile for unit in result):
            word = kind.instruction.removeprefix("llvm.").removeprefix("x86.").removeprefix("aarch64.")
            result.append(
                Unit(name, kind.a, kind.b, kind.c, kind.lanes, kind.group, kind.group, word, adds_after=kind.adds_after)
            )
    return result


def _tile_types() -> list[tuple[str, str, str, int]]:
    return [*[(a, b, "int32", 4) for a in BYTES for b in BYTES], ("bfloat16", "bfloat16", "float32", 2)]


def _tile_kind(a: str, b: str) -> str:
    return f"{_SHORT[a]}{_SHORT[b]}{'f32' if a == 'bfloat16' else 's32'}"


def _has(machine: Machine, kind: DotKind) -> bool:
    """Whether the machine has an instruction, in vectors it uses, and one that is worth using."""
    features = machine.cpu.features
    if not features.issuperset(kind.features) or kind.lanes * kind.group * _bits(kind.a) > machine.cpu.vector_bits:
        return False
    # Processors with tiles do vdpbf16ps at a quarter of the rate of a multiply-add (measured: 1.3 against 5.2 a ns).
    return not (kind.instruction.startswith("llvm.x86.avx512bf16") and "amx-tile" in features)


def _bits(dtype: str) -> int:
    return 8 if dtype in BYTES else 16
