"""Architecture: one instruction set as a table: its baseline, what each feature brings, the CPUs known by name.

`architectures.py` and `small_architectures.py` hold the tables themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Units:
    """What the execution units of a CPU can do."""

    float_bits: int = 64  # width of a vector of float32 or float64
    int_bits: int = 64  # of int32 or int64
    narrow_int_bits: int = 64  # of int8 or int16
    registers: int = 16  # vector registers
    has_fma: bool = False
    has_memory_operands: bool = False  # arithmetic takes an operand from memory, which needs no register then
    has_saturating_convert: bool = False  # float32 to 32-bit integers saturates, and NaN gives 0, in one instruction
    has_whole_max: bool = False  # the greater of two floats in one instruction: NaN wins, and +0 over -0
    has_plain_max: bool = False  # in one instruction too, but it gives the second of two zeros, and where one is NaN
    has_native_f16: bool = False  # adds and multiplies float16 vectors
    has_f16_convert: bool = False  # converts float16 vectors to and from float32
    has_native_bf16: bool = False  # adds and multiplies bfloat16 vectors; dot products alone are not enough
    has_bf16_convert: bool = False
    has_bf16_dot: bool = False
    has_int8_dot: bool = False
    has_matrix_unit: bool = False  # AMX, SME, or 8-bit matrix instructions on vectors
    has_scalable_vectors: bool = False
    has_gather: bool = False  # loads the lanes of a vector from anywhere in one instruction


@dataclass(frozen=True)
class Architecture:
    """One instruction set: its baseline, what features bring, and the CPUs known by name."""

    name: str
    pointer_bits: int
    base: Units
    brings: Mapping[str, Mapping[str, int]]  # feature → fields of Units; later rows win
    baseline: frozenset[str] = frozenset()  # features every CPU has
    implies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cpus: Mapping[str, str] = field(default_factory=dict)  # name → features, space-separated; empty: any name will do
    lists_every_cpu: bool = True  # a CPU that is not listed is a mistake; otherwise LLVM is asked
    system_features: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of a triple's system, by convention
    default_caches: tuple[int, int, int, int] = (32 << 10, 256 << 10, 2 << 20, 64)  # L1d, L2, L3, line

    def closure(self, features: set[str]) -> set[str]:
        """`features` and all that they imply."""
        reached: set[str] = set()
        pending = list(features)
        while pending:
            name = pending.pop()
            if name not in reached:
                reached.add(name)
                pending += self.implies.get(name, ())
        return reached

    def features_of(self, cpu: str) -> set[str]:
        """The features a CPU name stands for; only the baseline for a name not in the table."""
        return self.closure({*self.baseline, *self.cpus.get(cpu, "").split()})

    def apply(self, features: set[str], changes: list[str]) -> set[str]:
        """`features` after `+name` and `-name`, in order; taking one away takes away what needs it."""
        current = set(features)
        for change in changes:
            name = change[1:]
            if change[0] == "+":
                current |= self.closure({name})
            else:
                current = {other for other in current if name not in self.closure({other})}
        return current

    def units(self, features: set[str]) -> Units:
        """What a CPU with `features` can do."""
        fields: dict[str, int] = {}
        for feature, brought in self.brings.items():
            if feature in features:
                fields.update(brought)
        return replace(self.base, **fields)  # type: ignore[arg-type]
