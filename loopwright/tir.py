"""`tir`: the program's nodes and the functions that build them, under the names users know. No logic lives here."""

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
from loopwright.ir import CallEffect as CallEffectKind
from loopwright.ir import CompareExpr as CmpExpr
from loopwright.ir import Expr as PrimExpr
from loopwright.ir.intrinsics import (
    abs,
    acos,
    acosh,
    address_of,
    all,
    any,
    asin,
    asinh,
    assume,
    atan,
    atan2,
    atanh,
    call_extern,
    call_intrin,
    call_llvm_intrin,
    call_llvm_pure_intrin,
    call_packed,
    call_pure_extern,
    call_tir,
    ceil,
    ceildiv,
    clz,
    copysign,
    cos,
    cosh,
    erf,
    exp,
    exp2,
    exp10,
    fabs,
    floor,
    fma,
    fmod,
    hypot,
    if_then_else,
    infinity,
    isfinite,
    isinf,
    isnan,
    ldexp,
    likely,
    log,
    log1p,
    log2,
    log10,
    max_value,
    min_value,
    nearbyint,
    nextafter,
    popcount,
    pow,
    power,
    reinterpret,
    ret,
    round,
    rsqrt,
    sigmoid,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
)
from loopwright.ir.operators import (
    add,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    floordiv,
    floormod,
    shift_left,
    shift_right,
    true_divide,
    truncdiv,
    truncmod,
)
from loopwright.ir.operators import maximum as max
from loopwright.ir.operators import minimum as min
from loopwright.ir.operators import mul as multiply
from loopwright.ir.operators import sub as subtract

ExprOp = PrimExpr
div = indexdiv = floordiv
indexmod = floormod

# Parts that stand above ir and load when first asked for.
_MODULES = {
    "analysis": "loopwright.analysis",
    "schedule": "loopwright.schedule",
    "transform": "loopwright.transform",
}
_NAMES = {"Schedule": "loopwright.schedule", "ScheduleError": "loopwright.schedule"}


def __getattr__(name: str) -> _Anything:
    if name in _MODULES:
        value = globals()[name] = importlib.import_module(_MODULES[name])
        return value
    if name in _NAMES:
        value = globals()[name] = getattr(importlib.import_module(_NAMES[name]), name)
        return value
    raise AttributeError(f"module 'loopwright.tir' has no attribute {name!r}")
