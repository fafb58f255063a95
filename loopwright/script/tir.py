"""`T`: the words of the script language. `from loopwright.script import tir as T`.

Words that build expressions (`T.exp`, `T.int64`, `T.Select`) work anywhere. Words that build statements (`T.block`,
`T.alloc_buffer`, `T.grid`) return records that only the parser acts on, inside a function under `@T.prim_func`. They
are defined in `words/`; the intrinsics in `loopwright/ir/intrinsics.py` and `machine_intrinsics.py`.
"""

from __future__ import annotations

from loopwright.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Broadcast,
    BufferLoad,
    BufferRegion,
    CallEffect,
    Cast,
    CommReducer,
    Div,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    IterVar,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    ProducerLoad,
    Ramp,
    Reduce,
    Select,
    Shuffle,
    SizeVar,
    StringImm,
    Sub,
    Var,
)
from loopwright.ir.async_intrinsics import *  # noqa: F403
from loopwright.ir.expr import Any_ as Any
from loopwright.ir.intrinsics import *  # noqa: F403
from loopwright.ir.machine_intrinsics import *  # noqa: F403
from loopwright.ir.machine_intrinsics import call_cpacked, call_cpacked_lowered, call_packed_lowered
from loopwright.ir.operators import (
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    floordiv,
    floormod,
    logical_and,
    logical_not,
    logical_or,
    shift_left,
    shift_right,
    truncdiv,
    truncmod,
)
from loopwright.ir.operators import maximum as max
from loopwright.ir.operators import minimum as min
from loopwright.ir.tensor_copy_intrinsics import *  # noqa: F403
from loopwright.ir.warpgroup_intrinsics import *  # noqa: F403
from loopwright.script.parser.entry import macro, prim_func
from loopwright.script.words.control import *  # noqa: F403
from loopwright.script.words.memory import *  # noqa: F403
from loopwright.script.words.types import *  # noqa: F403
from loopwright.script.words.types import DTYPE_NAMES, DtypeFunction, dtype_function
from loopwright.script.words.values import *  # noqa: F403

CallEffectKind = CallEffect
tvm_call_packed, tvm_call_cpacked = call_packed, call_cpacked  # noqa: F405
tvm_call_packed_lowered, tvm_call_cpacked_lowered = call_packed_lowered, call_cpacked_lowered


def __getattr__(name: str) -> DtypeFunction:
    """Every data type of any lane count: `T.float32x4`, `T.int8x3`."""
    result = dtype_function(name)
    if result is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return result


def __dir__() -> list[str]:
    return sorted([*globals(), *DTYPE_NAMES])
