"""`T`: the words of the script language. `from loopwright.script import tir as T`.

Words that build expressions (`T.exp`, `T.int64`, `T.Select`) work anywhere. Words that build statements (`T.block`,
`T.alloc_buffer`, `T.grid`) return records that only the parser acts on, inside a function under `@T.prim_func`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any as Value
from typing import Final

import numpy as np

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
    BufferStore,
    CallEffect,
    Cast,
    CommReducer,
    Div,
    Evaluate,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    ForKind,
    IntImm,
    IterType,
    IterVar,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    PointerType,
    Prefetch,
    PrimType,
    ProducerLoad,
    Ramp,
    Reduce,
    Select,
    Shuffle,
    SizeVar,
    Stmt,
    StringImm,
    Sub,
    TupleType,
    Type,
    Var,
    as_expr,
    as_exprs,
    const,
)
from loopwright.ir import (
    Buffer as _BufferNode,
)
from loopwright.ir import (
    Call as _CallNode,
)
from loopwright.ir import (
    Let as _LetNode,
)
from loopwright.ir import (
    Op as _OpNode,
)
from loopwright.ir import (
    Range as _RangeNode,
)
from loopwright.ir import (
    cast as _cast,
)
from loopwright.ir.expr import Any_ as Any
from loopwright.ir.expr import Callee
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
from loopwright.ir.intrinsics import call_packed as _call_packed
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
from loopwright.ir.operators import (
    maximum as max,
)
from loopwright.ir.operators import (
    minimum as min,
)
from loopwright.runtime.dtype import HANDLE, INT32, DataType
from loopwright.script.parser import directives as _d
from loopwright.script.parser.differences import extent_between
from loopwright.script.parser.entry import macro, prim_func
from loopwright.script.parser.expressions import TakesRegions

CallEffectKind: Final = CallEffect


# --- types and literals -------------------------------------------------------------------------------------------


class DtypeFunction:
    """`T.int32`: as an annotation a type; called with a value, a literal or a cast; without one, a new variable."""

    def __init__(self, dtype: str) -> None:
        self.dtype = DataType(dtype)
        self.__name__ = dtype

    def __call__(self, expr: Value = None, is_size_var: bool = False) -> Expr:
        if expr is None:
            return SizeVar("", self.dtype) if is_size_var else Var("", self.dtype)
        if isinstance(expr, str):
            return const(float(expr), self.dtype)
        if isinstance(expr, (int, float)):
            return const(expr, self.dtype)
        return _cast(as_expr(expr), self.dtype)

    def __repr__(self) -> str:
        return f"T.{self.__name__}"


boolean = DtypeFunction("bool")
void = DtypeFunction("void")
_DTYPES: Final[dict[str, DtypeFunction]] = {}
DTYPE_NAMES: Final = [
    f"{kind}{lanes}"
    for kind in (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
        "float16 float32 float64 bfloat16 e4m3_float8 e5m2_float8"
    ).split()
    for lanes in ("", "x2", "x4", "x8", "x16", "x32", "x64")
]


def __getattr__(name: str) -> DtypeFunction:
    """Every data type of any lane count: `T.float32x4`, `T.int8x3`."""
    found = _DTYPES.get(name)
    if found is None:
        if not name[:1].isalpha() or not name[-1:].isalnum():
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            found = _DTYPES[name] = DtypeFunction(name)
        except ValueError:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *DTYPE_NAMES])


def handle(dtype: str | Type | None = None, storage_scope: str = "global", *, is_size_var: bool = False) -> Var:
    """A handle; with an element type, a pointer to elements in memory of that scope."""
    kind = SizeVar if is_size_var else Var
    if dtype is None and storage_scope == "global":
        return kind("", "handle")
    element = dtype if isinstance(dtype, Type) else PrimType(DataType(dtype or "void"))
    return kind("", PointerType(element, storage_scope))


def Ptr(dtype: Value, storage_scope: str = "global") -> Var:
    """An older spelling of `T.handle(dtype, scope)`."""
    return handle(dtype.dtype if isinstance(dtype, DtypeFunction) else dtype, storage_scope)


ptr = buffer_var = Ptr


def Tuple(*fields: Value) -> Type:
    """The type of several values; of none, for a function that returns nothing."""
    return TupleType(tuple([PrimType(one.dtype) if hasattr(one, "dtype") else one for one in fields]))


def type_annotation(dtype: str) -> Type:
    """The type of a value of `dtype`."""
    return PrimType(DataType(dtype))


def var(dtype: str, name: str = "") -> Var:
    """A new variable; without a name it takes that of the assignment."""
    return Var(name, dtype)


# --- expressions --------------------------------------------------------------------------------------------------


def cast(value: Value, dtype: str) -> Expr:
    """`value` converted to `dtype`."""
    return _cast(as_expr(value), DataType(dtype))


def ramp(base: Value, stride: Value, lanes: int) -> Expr:
    """The vector base, base + stride, …"""
    return Ramp(base, stride, lanes)


def broadcast(value: Value, lanes: int) -> Expr:
    """`lanes` copies of `value`."""
    return Broadcast(value, lanes)


def Call(dtype: str, op: str | Callee, args: Sequence[Value]) -> Expr:
    """A call of an operator (or of a function of the module) with that result type."""
    return _CallNode(DataType(dtype), _OpNode.get(op) if isinstance(op, str) else op, as_exprs(args))


def Op(name: str) -> _OpNode:
    """The registered operator of that name."""
    return _OpNode.get(name)


def Let(expr: Value, where: Mapping[Var, Value]) -> Expr:
    """`expr` with each variable of `where` standing for its value."""
    result = as_expr(expr)
    for name, value in reversed(list(where.items())):
        result = _LetNode(name, as_expr(value), result)
    return result


def let(v: Var, value: Value, body: Value = None) -> Value:
    """With `body`: that expression with `v` standing for `value`; without: the same for the rest of the scope."""
    if body is not None:
        return _LetNode(v, as_expr(value), as_expr(body))
    return _d.LetSpec(as_expr(value), None, v)


def Range(begin: Value, end: Value = None) -> _RangeNode:
    """The integers from `begin` up to, not including, `end`; from 0 when only one number is given."""
    return _RangeNode(begin) if end is None else _RangeNode.from_min_extent(*extent_between(begin, end))


def iter_var(v: Var | str, dom: Value, iter_type: str | int, thread_tag: str = "") -> IterVar:
    """An iteration variable; the kind by name, e.g. "DataPar" or "CommReduce"."""
    kind = IterType[iter_type] if isinstance(iter_type, str) else IterType(iter_type)
    return IterVar(dom, v, kind, thread_tag)


def comm_reducer(combiner: Callable[..., Value], identity: Sequence[Value]) -> CommReducer:
    """A commutative combination: `combiner` of twice as many arguments as there are identities."""
    identities = as_exprs(identity)
    names = list(inspect.signature(combiner).parameters)
    half = len(names) // 2
    lhs = [Var(name, one.dtype) for name, one in zip(names[:half], identities, strict=True)]
    rhs = [Var(name, one.dtype) for name, one in zip(names[half:], identities, strict=True)]
    result = combiner(*lhs, *rhs)
    results = result if isinstance(result, (tuple, list)) else (result,)
    return CommReducer(tuple(lhs), tuple(rhs), as_exprs(tuple(results)), identities)


def call_packed(*args: Value) -> Expr:
    """A call of a registered packed function; buffers are passed as arrays."""
    return _call_packed(args[0], *[_as_array(arg) for arg in args[1:]])


def call_cpacked(*args: Value) -> Expr:
    """A call of a C function with the packed convention."""
    return _CallNode(
        INT32, _OpNode.get("tir.call_cpacked"), (StringImm(args[0]), *[as_expr(_as_array(arg)) for arg in args[1:]])
    )


def _as_array(arg: Value) -> Value:
    """A buffer as the array structure that packed functions take."""
    if not isinstance(arg, _BufferNode):
        return arg
    make_shape = _OpNode.get("tir.tvm_stack_make_shape")
    shape = _CallNode(HANDLE, make_shape, arg.shape)
    strides: Expr = _CallNode(HANDLE, make_shape, arg.strides) if arg.strides else const(0)
    fields = (arg.data, shape, strides, const(arg.ndim), const(0, arg.dtype), arg.elem_offset)
    return _CallNode(HANDLE, _OpNode.get("tir.tvm_stack_make_array"), fields)


def target(config: Value, host: Value = None) -> Value:
    """A compilation target, from text or a dictionary."""
    from loopwright.target import Target

    return Target(config) if host is None else Target(config, host)


# --- buffers and memory -------------------------------------------------------------------------------------------


def _spec(
    shape: Value,
    dtype: str | None = "float32",
    data: Var | None = None,
    strides: Sequence[Value] | None = None,
    elem_offset: Value = None,
    scope: str = "global",
    align: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Sequence[int] | None = None,
) -> _d.BufferSpec:
    sizes = None if shape is None else tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if isinstance(dtype, DtypeFunction):
        dtype = dtype.dtype
    return _d.BufferSpec(
        sizes, dtype, data, strides, elem_offset, scope, align, offset_factor, buffer_type, axis_separators
    )


class _BufferWord:
    """`T.Buffer((16, 16), "float32")`: a parameter's annotation, or a buffer over memory that exists."""

    def __call__(self, shape: Value, dtype: str = "float32", *args: Value, **kwargs: Value) -> _d.BufferSpec:
        return _spec(shape, dtype, *args, **kwargs)

    def __getitem__(self, keys: Value) -> _d.BufferSpec:
        """The older spelling `T.Buffer[(16, 16), "float32"]`."""
        return _spec(*keys) if isinstance(keys, tuple) and len(keys) == 2 else _spec(keys)


Buffer = buffer_decl = _BufferWord()


def alloc_buffer(shape: Value, dtype: str = "float32", *args: Value, **kwargs: Value) -> _d.AllocBuffer:
    """Memory of the enclosing block, or of the root block."""
    return _d.AllocBuffer(_spec(shape, dtype, *args, **kwargs))


def decl_buffer(shape: Value, dtype: str = "float32", *args: Value, **kwargs: Value) -> _d.DeclSpec:
    """A buffer over `data`; without `data` its memory is allocated too."""
    return _d.DeclSpec(_spec(shape, dtype, *args, **kwargs))


@TakesRegions
def match_buffer(
    param: Value, shape: Value = None, dtype: str | None = None, *args: Value, **kwargs: Value
) -> _d.MatchSpec:
    """The buffer behind a parameter, or, inside a block, a buffer that names a region."""
    return _d.MatchSpec(param, _spec(shape, dtype, *args, **kwargs))


def allocate(
    extents: Value,
    dtype: str,
    scope: str = "global",
    condition: Value = None,
    annotations: Mapping[str, Value] | None = None,
) -> _d.AllocateSpec:
    """A pointer to fresh memory."""
    sizes = extents if isinstance(extents, (tuple, list)) else (extents,)
    holds = const(True) if condition is None else as_expr(condition)
    return _d.AllocateSpec(as_exprs(tuple(sizes)), DataType(dtype), scope, holds, annotations or {}, None)


def allocate_const(
    data: Value, dtype: str, extents: Sequence[Value], annotations: Mapping[str, Value] | None = None
) -> _d.AllocateConstSpec:
    """A pointer to constant memory that holds `data`, a list or an array."""
    sizes = as_exprs(tuple(extents))
    shape = [one.value for one in sizes if isinstance(one, IntImm)]
    if len(shape) != len(sizes):
        raise ValueError("allocate_const: the extents must be constants")
    values = np.asarray(data, DataType(dtype).numpy()).reshape(shape)
    return _d.AllocateConstSpec(values, DataType(dtype), sizes, annotations or {}, None)


@TakesRegions
def realize(buffer_slice: Value, storage_scope: str = "", condition: Value = True) -> _d.RealizeSpec:
    """Have a region stored while the scope runs."""
    region = _d.region_of(buffer_slice)
    if region is None:
        raise TypeError("realize: give a region such as A[0:16, 0:16]")
    return _d.RealizeSpec(region, storage_scope, as_expr(condition))


def prefetch(buffer: _BufferNode, bounds: Sequence[Value]) -> Stmt:
    """Ask for a region of `buffer` to be brought near."""
    return Prefetch(buffer, tuple([one if isinstance(one, _RangeNode) else Range(*one) for one in bounds]))


def buffer_store(buffer: _BufferNode, value: Value, indices: Sequence[Value]) -> Stmt:
    """The assignment `buffer[indices] = value`."""
    places = as_exprs(tuple(indices) if isinstance(indices, (tuple, list)) else (indices,))
    return BufferStore(buffer, _cast(as_expr(value), BufferLoad(buffer, places).dtype), places)


def evaluate(value: Value) -> Stmt:
    """Compute `value` for its effect."""
    return Evaluate(as_expr(value))


# --- loops --------------------------------------------------------------------------------------------------------


def _loop(kind: ForKind, name: str, words: str) -> Callable[..., _d.LoopSpec]:
    def loop(start: Value, stop: Value = None, *, annotations: Mapping[str, Value] | None = None) -> _d.LoopSpec:
        return _d.LoopSpec(kind, start, stop, None, annotations or {})

    loop.__name__, loop.__doc__ = name, words
    return loop


serial = _loop(ForKind.SERIAL, "serial", "A loop whose iterations run one after the other.")
parallel = _loop(ForKind.PARALLEL, "parallel", "A loop whose iterations run on many threads.")
vectorized = _loop(ForKind.VECTORIZED, "vectorized", "A loop whose iterations are the lanes of vectors.")
unroll = _loop(ForKind.UNROLLED, "unroll", "A loop whose iterations are written out one by one.")


def thread_binding(
    start: Value, stop: Value = None, thread: str | None = None, *, annotations: Mapping[str, Value] | None = None
) -> _d.LoopSpec:
    """A loop whose iterations are the threads of an axis such as "threadIdx.x"."""
    if isinstance(stop, str) and thread is None:
        stop, thread = None, stop
    if not isinstance(thread, str):
        raise TypeError('thread_binding: say which threads, e.g. thread="threadIdx.x"')
    return _d.LoopSpec(ForKind.THREAD_BINDING, start, stop, thread, annotations or {})


def grid(*extents: Value) -> _d.GridSpec:
    """A nest of serial loops, outermost first."""
    if not extents:
        raise TypeError("grid: give at least one extent")
    return _d.GridSpec(extents)


# --- blocks -------------------------------------------------------------------------------------------------------


def block(name: str = "", no_realize: bool = False) -> _d.BlockSpec:
    """A block, the unit that schedules move."""
    return _d.BlockSpec(name, no_realize)


def init() -> _d.InitSpec:
    """The start value of the block's reduction."""
    return _d.InitSpec()


class axis:
    """The iteration variables of a block."""

    @staticmethod
    def spatial(dom: Value, binding: Value, dtype: str = "int32") -> _d.AxisSpec:
        """An axis whose iterations write distinct elements."""
        return _d.AxisSpec("spatial", IterType.DataPar, dom, binding, dtype)

    @staticmethod
    def reduce(dom: Value, binding: Value, dtype: str = "int32") -> _d.AxisSpec:
        """An axis whose iterations are combined into the same elements."""
        return _d.AxisSpec("reduce", IterType.CommReduce, dom, binding, dtype)

    @staticmethod
    def scan(dom: Value, binding: Value, dtype: str = "int32") -> _d.AxisSpec:
        """An axis whose iterations run in order."""
        return _d.AxisSpec("scan", IterType.Ordered, dom, binding, dtype)

    @staticmethod
    def opaque(dom: Value, binding: Value, dtype: str = "int32") -> _d.AxisSpec:
        """An axis of which nothing is known."""
        return _d.AxisSpec("opaque", IterType.Opaque, dom, binding, dtype)

    @staticmethod
    def remap(kinds: str, bindings: Value, dtype: str = "int32") -> _d.RemapSpec:
        """One axis for each loop: "S" spatial, "R" reduce; domains are those of the loops."""
        return _d.RemapSpec(kinds, tuple(bindings) if isinstance(bindings, (tuple, list)) else (bindings,))

    S, R = spatial, reduce


@TakesRegions
def reads(*regions: Value) -> _d.RegionsSpec:
    """What the block reads."""
    return _d.RegionsSpec("reads", _flat(regions))


@TakesRegions
def writes(*regions: Value) -> _d.RegionsSpec:
    """What the block writes."""
    return _d.RegionsSpec("writes", _flat(regions))


def _flat(regions: tuple[Value, ...]) -> tuple[Value, ...]:
    return tuple(regions[0]) if len(regions) == 1 and isinstance(regions[0], (list, tuple)) else regions


def where(predicate: Value) -> _d.WhereSpec:
    """The block runs only where this holds."""
    return _d.WhereSpec(predicate)


def block_attr(attrs: Mapping[str, Value]) -> _d.AttributesSpec:
    """Annotations of the block."""
    return _d.AttributesSpec("block_attr", attrs)


# --- functions, scopes, threads -----------------------------------------------------------------------------------


def func_attr(attrs: Mapping[str, Value]) -> _d.AttributesSpec:
    """Attributes of the function."""
    return _d.AttributesSpec("func_attr", attrs)


def attr(node: Value, attr_key: str, value: Value) -> _d.AttrSpec:
    """A fact that holds in the scope."""
    return _d.AttrSpec(node, attr_key, as_expr(value))


def Assert(condition: Value, message: Value) -> _d.AssertSpec:
    """A condition that must hold when the scope is entered."""
    return _d.AssertSpec(logical_and(condition), as_expr(message))


def LetStmt(value: Value, type_annotation: Value = None, *, var: Var | None = None) -> _d.LetSpec:
    """A scope with a name for `value`."""
    given = type_annotation() if callable(type_annotation) else type_annotation
    kind = given.type_annotation if isinstance(given, Var) else given
    return _d.LetSpec(as_expr(value), kind, var)


def env_thread(thread_tag: str) -> _d.EnvThread:
    """A thread axis that `launch_thread` launches."""
    return _d.EnvThread(thread_tag)


def launch_thread(thread: str | Var, extent: Value) -> _d.LaunchThread:
    """Run the scope once a thread of the axis."""
    return _d.LaunchThread(thread, as_expr(extent))


def meta_var(value: Value) -> _d.MetaVar:
    """A value of the parser: it leaves nothing in the program."""
    return _d.MetaVar(value)
