"""`tir`: the program's nodes and the functions that build them, under the names users know. No logic lives here.

Its modules (`tir.transform`, `tir.stmt_functor`, `tir.op` …) load when first asked for.
"""

from __future__ import annotations

import importlib
from typing import Any as _Anything

from loopwright.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    Allocate,
    AllocateConst,
    And,
    AssertStmt,
    AttrStmt,
    BinaryExpr,
    Block,
    BlockRealize,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferRealize,
    BufferRegion,
    BufferStore,
    Call,
    Cast,
    CommReducer,
    DeclBuffer,
    Div,
    Evaluate,
    FloatImm,
    FloorDiv,
    FloorMod,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    IterVar,
    Let,
    LetStmt,
    MatchBufferRegion,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Op,
    Or,
    PointerType,
    Prefetch,
    PrimFunc,
    PrimType,
    ProducerLoad,
    ProducerRealize,
    ProducerStore,
    Ramp,
    Range,
    Reduce,
    Select,
    SeqStmt,
    Shuffle,
    SizeVar,
    Stmt,
    StringImm,
    Sub,
    TupleType,
    Var,
    While,
    const,
    decl_buffer,
    post_order_visit,
    pre_order_visit,
    stmt_list,
    stmt_seq,
    substitute,
)
from loopwright.ir import Any_ as Any
from loopwright.ir import BinaryExpr as BinaryOpExpr
from loopwright.ir import CallEffect as CallEffectKind
from loopwright.ir import CompareExpr as CmpExpr
from loopwright.ir import Expr as PrimExpr
from loopwright.ir import Producer as DataProducer
from loopwright.ir.async_intrinsics import *  # noqa: F403
from loopwright.ir.intrinsics import *  # noqa: F403
from loopwright.ir.machine_intrinsics import *  # noqa: F403
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
    true_divide,
    truncdiv,
    truncmod,
)
from loopwright.ir.operators import mul as multiply
from loopwright.ir.operators import sub as subtract
from loopwright.ir.tensor_copy_intrinsics import *  # noqa: F403
from loopwright.ir.warpgroup_intrinsics import *  # noqa: F403

ExprOp = PrimExpr
indexdiv = floordiv
indexmod = floormod

# Parts that stand above ir and load when first asked for.
_MODULES = (
    "analysis buffer data_layout expr function generic ir_builder op schedule stmt stmt_functor transform".split()
)
_NAMES = {
    "BijectiveLayout": "loopwright.arith.layout",
    "BlockRV": "loopwright.schedule.handles",
    "BlockScope": "loopwright.schedule",
    "BlockDependenceInfo": "loopwright.schedule.engine.block_dependence",
    "IndexMap": "loopwright.arith.index_map",
    "max": "loopwright.te",
    "min": "loopwright.te",
    "Layout": "loopwright.arith.layout",
    "LoopRV": "loopwright.schedule.handles",
    "Schedule": "loopwright.schedule",
    "ScheduleError": "loopwright.schedule",
    "ScheduleState": "loopwright.schedule",
    "StmtSRef": "loopwright.schedule",
    "TensorIntrin": "loopwright.transform.tensor_intrinsics",
    "bijective_layout": "loopwright.tir.data_layout",
    "bind_constants": "loopwright.ir.bind_constants",
    "check_intrinsic": "loopwright.transform.tensor_intrinsics.check",
    "comm_reducer": "loopwright.te",
    "ir_transform": "loopwright.ir.functor",
    "layout": "loopwright.arith.layout",
    "renew_defs": "loopwright.ir.clone",
    "sum": "loopwright.te",
}


def __getattr__(name: str) -> _Anything:
    if name in _MODULES:
        return importlib.import_module(f"loopwright.tir.{name}")
    if name in _NAMES:
        value = globals()[name] = getattr(importlib.import_module(_NAMES[name]), name)
        return value
    raise AttributeError(f"module 'loopwright.tir' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES, *_NAMES])
