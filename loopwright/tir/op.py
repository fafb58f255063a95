"""`tir.op`: the functions that build expressions, and the registry of operators."""

from typing import Any

from loopwright.ir import Call, Op, const, register_intrin_lowering, register_intrin_rule, register_op_attr
from loopwright.ir.async_intrinsics import *  # noqa: F403
from loopwright.ir.intrinsics import *  # noqa: F403
from loopwright.ir.machine_intrinsics import *  # noqa: F403
from loopwright.ir.op import CallEffect as CallEffectKind
from loopwright.ir.op import user_op as register_intrin
from loopwright.ir.operators import (
    add,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    div,
    floordiv,
    floormod,
    shift_left,
    shift_right,
    truncdiv,
    truncmod,
)
from loopwright.ir.operators import mul as multiply
from loopwright.ir.operators import sub as subtract
from loopwright.ir.tensor_copy_intrinsics import *  # noqa: F403
from loopwright.ir.warpgroup_intrinsics import *  # noqa: F403

indexdiv, indexmod = floordiv, floormod


def __getattr__(name: str) -> Any:
    if name in ("max", "min", "sum"):  # of values, and over axes
        from loopwright import te

        return getattr(te, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
