"""known_ops: the operators that passes look for, by name."""

from __future__ import annotations

from typing import Final

from loopwright.ir import Op, intrinsics  # registers the operators

ADDRESS_OF: Final = Op.get("tir.address_of")
IN_BOUNDS: Final = Op.get("tir.in_bounds")
FMA: Final = Op.get("tir.fma")
IF_THEN_ELSE: Final = Op.get("tir.if_then_else")
LIKELY: Final = Op.get("tir.likely")
PREFETCH: Final = Op.get("tir.prefetch")
ASSUME: Final = Op.get("tir.assume")
UNDEF: Final = Op.get("tir.undef")

# Calls that mean "the same on every lane".
LANE_WISE: Final = frozenset(
    Op.get(f"tir.{name}")
    for name in (
        *intrinsics.UNARY_FLOAT,
        *intrinsics.ROUNDING,
        *intrinsics.BINARY_FLOAT,
        *intrinsics.PREDICATES,
        *"abs fma clz popcount ldexp reinterpret".split(),
        *"shift_left shift_right bitwise_and bitwise_or bitwise_xor bitwise_not".split(),
    )
)
