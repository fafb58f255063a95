"""Expressions: values that statements compute with.

Every expression has a `dtype` (lanes included). Constructors take operands of equal dtype; the operators of Python
(`a + b`, `a < b`, …, in `operators.py`) match types first and fold constants.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Any, Final

import numpy as np

from loopwright.ir.node import Node, base_node, convert_arguments, derived, node
from loopwright.ir.types import PointerType, PrimType, Type, dtype_of_type
from loopwright.runtime.dtype import BOOL, FLOAT32, FLOAT64, HANDLE, INT32, INT64, DataType
from loopwright.runtime.errors import LoopwrightError, with_article


class OperandMismatch(LoopwrightError, TypeError):
    """The operands of one expression have different data types.

    Constructors such as `tir.Add(a, b)` take operands of one type. Python's operators (`a + b`) convert first; to
    convert by hand, use `a.astype("float32")`.
    """

    code = "LW0501"

    def __init__(self, name: str, a: Expr, b: Expr) -> None:
        super().__init__(
            f"{name}: operands have different types, {a.dtype} and {b.dtype}",
            hint=f"convert one with .astype({str(a.dtype)!r}), or use the operator, which converts by itself",
            fields={"node": name, "left": a.dtype, "right": b.dtype},
        )


class ImmediateOutOfRange(LoopwrightError, ValueError):
    """A literal that its data type cannot hold."""

    code = "LW0502"

    def __init__(self, dtype: DataType, value: object) -> None:
        super().__init__(
            f"literal {value} does not fit {dtype}, which holds {dtype.min_value()} to {dtype.max_value()}",
            hint="use a wider type, or wrap the value first",
            fields={"dtype": dtype, "value": value},
        )


class NotAnExpression(LoopwrightError, TypeError):
    """A Python value where an expression is needed, and no expression can be made from it."""

    code = "LW0503"

    def __init__(self, value: object) -> None:
        super().__init__(
            f"cannot make an expression from {type(value).__name__} {value!r}",
            hint="use a number, a variable, an iteration variable, or an expression made from them",
        )


class NotALiteral(LoopwrightError, TypeError):
    """A literal was to be made from something that is not a number."""

    code = "LW0512"

    def __init__(self, dtype: DataType, value: object) -> None:
        super().__init__(
            f"cannot make {with_article(str(dtype))} literal from {type(value).__name__} {value!r}",
            hint="give a number; an expression is converted with .astype",
        )


class NoTruthValue(LoopwrightError, ValueError):
    """A symbolic expression was used where Python needs True or False."""

    code = "LW0504"

    def __init__(self, value: Expr) -> None:
        super().__init__(
            lambda: f"the expression {value!r} has no truth value: it is known only when the program runs",
            hint="use tir.all/tir.any instead of and/or, tir.if_then_else instead of if, "
            "or Analyzer().can_prove(...) to ask whether it always holds",
        )


# operators.py fills these tables; it needs the node classes below, and the node classes need its operators.
binary_operators: Final[dict[str, Callable[[Any, Any], Expr]]] = {}
unary_operators: Final[dict[str, Callable[[Any], Expr]]] = {}


@base_node
class Expr(Node):
    """A value with a `dtype`."""

    __slots__ = ("dtype",)

    dtype: DataType

    def astype(self, dtype: str | DataType) -> Expr:
        """This value converted to `dtype`; itself when it has that type already."""
        return binary_operators["astype"](self, DataType(dtype))

    def equal(self, other: object) -> Expr:
        """The comparison `self == other` as an expression."""
        return binary_operators["=="](self, other)

    def __add__(self, other: object) -> Expr:
        return binary_operators["+"](self, other)

    def __radd__(self, other: object) -> Expr:
        return binary_operators["+"](other, self)

    def __sub__(self, other: object) -> Expr:
        return binary_operators["-"](self, other)

    def __rsub__(self, other: object) -> Expr:
        return binary_operators["-"](other, self)

    def __mul__(self, other: object) -> Expr:
        return binary_operators["*"](self, other)

    def __rmul__(self, other: object) -> Expr:
        return binary_operators["*"](other, self)

    def __truediv__(self, other: object) -> Expr:
        return binary_operators["/"](self, other)

    def __rtruediv__(self, other: object) -> Expr:
        return binary_operators["/"](other, self)

    def __floordiv__(self, other: object) -> Expr:
        return binary_operators["//"](self, other)

    def __rfloordiv__(self, other: object) -> Expr:
        return binary_operators["//"](other, self)

    def __mod__(self, other: object) -> Expr:
        return binary_operators["%"](self, other)

    def __rmod__(self, other: object) -> Expr:
        return binary_operators["%"](other, self)

    def __pow__(self, other: object) -> Expr:
        return binary_operators["**"](self, other)

    def __rpow__(self, other: object) -> Expr:
        return binary_operators["**"](other, self)

    def __pos__(self) -> Expr:
        return self

    def __abs__(self) -> Expr:
        return unary_operators["abs"](self)

    def __lshift__(self, other: object) -> Expr:
        return binary_operators["<<"](self, other)

    def __rlshift__(self, other: object) -> Expr:
        return binary_operators["<<"](other, self)

    def __rshift__(self, other: object) -> Expr:
        return binary_operators[">>"](self, other)

    def __rrshift__(self, other: object) -> Expr:
        return binary_operators[">>"](other, self)

    def __and__(self, other: object) -> Expr:
        return binary_operators["&"](self, other)

    def __rand__(self, other: object) -> Expr:
        return binary_operators["&"](other, self)

    def __or__(self, other: object) -> Expr:
        return binary_operators["|"](self, other)

    def __ror__(self, other: object) -> Expr:
        return binary_operators["|"](other, self)

    def __xor__(self, other: object) -> Expr:
        return binary_operators["^"](self, other)

    def __rxor__(self, other: object) -> Expr:
        return binary_operators["^"](other, self)

    def __neg__(self) -> Expr:
        return unary_operators["-"](self)

    def __invert__(self) -> Expr:
        return unary_operators["~"](self)

    def __lt__(self, other: object) -> Expr:
        return binary_operators["<"](self, other)

    def __le__(self, other: object) -> Expr:
        return binary_operators["<="](self, other)

    def __gt__(self, other: object) -> Expr:
        return binary_operators[">"](self, other)

    def __ge__(self, other: object) -> Expr:
        return binary_operators[">="](self, other)

    # `a == b` is a comparison in the program, whose truth in Python is identity (see EQ.__bool__): so expressions
    # can be dictionary keys and list members, and hash by identity. What cannot be compared is just different.
    def __eq__(self, other: object) -> Any:
        if not _is_comparable(self, other):
            return NotImplemented
        return binary_operators["=="](self, other)

    def __ne__(self, other: object) -> Any:
        if not _is_comparable(self, other):
            return NotImplemented
        return binary_operators["!="](self, other)

    __hash__ = Node.__hash__

    def __bool__(self) -> bool:
        raise NoTruthValue(self)


def _is_comparable(a: Expr, b: object) -> bool:
    if isinstance(b, Expr):
        mixed = (a.dtype.kind == "handle") != (b.dtype.kind == "handle")
        return not mixed and (a.dtype.lanes == b.dtype.lanes or 1 in (a.dtype.lanes, b.dtype.lanes))
    return a.dtype.kind != "handle" and (isinstance(b, (int, float, np.generic)) or hasattr(b, "as_expr"))


def as_expr(value: object) -> Expr:
    """`value` as an expression: numbers become immediates; objects may offer `as_expr()`."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, (bool, int, float, np.generic)):
        return const(value)
    if isinstance(value, str):
        return StringImm(value)
    convert = getattr(value, "as_expr", None)
    if convert is not None:
        converted: Expr = convert()
        return converted
    raise NotAnExpression(value)


def as_exprs(values: Iterable[object]) -> tuple[Expr, ...]:
    """Every value as an expression; a tuple of expressions comes back as the same object."""
    if type(values) is tuple:
        for value in values:
            if not isinstance(value, Expr):
                break
        else:
            return values
    return tuple([as_expr(value) for value in values])


convert_arguments(Expr, as_expr, as_exprs)


# --- variables and immediates -------------------------------------------------------------------------------------


@node
class Var(Expr):
    """A named value, bound once; two variables are the same only when they are one object."""

    name: str
    type_annotation: Type
    dtype: DataType = derived("dtype_of_type(type_annotation)")

    def __init__(self, name: str, dtype: str | DataType | Type = INT32, span: object = None) -> None:
        annotation = dtype if isinstance(dtype, Type) else PrimType(DataType(dtype))
        set_field = object.__setattr__
        set_field(self, "name", name)
        set_field(self, "type_annotation", annotation)
        set_field(self, "dtype", dtype_of_type(annotation))
        set_field(self, "span", span)

    @property
    def name_hint(self) -> str:
        return self.name


class SizeVar(Var):
    """A variable that holds a size: never negative."""

    __slots__ = ()


def pointer(name: str, dtype: str | DataType, scope: str = "global") -> Var:
    """A fresh variable that points to elements of `dtype` in `scope` memory."""
    return Var(name, PointerType(PrimType(DataType(dtype)), scope))


@node
class IntImm(Expr):
    """An integer or truth-value literal; the value fits the type."""

    dtype: DataType
    value: int

    def __init__(self, dtype: str | DataType, value: int, span: object = None) -> None:
        dtype = DataType(dtype)
        value = int(value)
        if not (dtype.is_int or dtype.is_bool) or dtype.lanes != 1:
            raise LoopwrightError(f"IntImm: {dtype} is not a scalar integer type")
        if not dtype.lowest <= value <= dtype.highest:
            raise ImmediateOutOfRange(dtype, value)
        set_field = object.__setattr__
        set_field(self, "dtype", dtype)
        set_field(self, "value", value)
        set_field(self, "span", span)

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return self.value != 0


@node
class FloatImm(Expr):
    """A floating-point literal, already rounded to the type."""

    dtype: DataType
    value: float

    def __init__(self, dtype: str | DataType, value: float, span: object = None) -> None:
        dtype = DataType(dtype)
        value = float(value)
        if not dtype.is_float or dtype.lanes != 1:
            raise LoopwrightError(f"FloatImm: {dtype} is not a scalar floating-point type")
        rounded = round_to(dtype, value)
        if math.isinf(rounded) and not math.isinf(value):
            raise ImmediateOutOfRange(dtype, value)
        set_field = object.__setattr__
        set_field(self, "dtype", dtype)
        set_field(self, "value", rounded)
        set_field(self, "span", span)

    def __float__(self) -> float:
        return self.value

    def __int__(self) -> int:
        return int(self.value)

    def __bool__(self) -> bool:
        return self.value != 0


def round_to(dtype: DataType, value: float) -> float:
    """`value` rounded to the nearest number of type `dtype`, ties to even."""
    if dtype is FLOAT64:
        return value
    if dtype is FLOAT32:  # the common case, ten times faster than through numpy
        try:
            (rounded,) = _SINGLE.unpack(_SINGLE.pack(value))
        except OverflowError:
            return math.copysign(math.inf, value)
        return float(rounded)
    with np.errstate(over="ignore"):
        return float(dtype.numpy().type(value))


_SINGLE: Final = struct.Struct("f")


@node
class StringImm(Expr):
    """A text literal: names of functions, keys and scopes in calls."""

    value: str
    dtype: DataType = derived("HANDLE")


def const(value: Any, dtype: str | DataType | None = None) -> Expr:
    """A literal. Without `dtype`: bool, int32, float32, wider where the value needs it; numpy scalars keep theirs."""
    if type(value) is int:
        known = _SMALL.get((value, dtype))
        if known is not None:
            return known
    if dtype is None:
        dtype = _natural_dtype(value)
    dtype = DataType(dtype)
    element = dtype.element
    if dtype.lanes > 1:
        return Broadcast(const(value, element), dtype.lanes)
    if isinstance(value, (str, bytes)) or not (hasattr(value, "__int__") or hasattr(value, "__float__")):
        raise NotALiteral(element, value)
    if element.is_float:
        return FloatImm(element, float(value))
    if isinstance(value, float) and not value.is_integer():
        raise ImmediateOutOfRange(element, value)
    return IntImm(element, int(value))


# Small index literals are most of all literals; they are shared.
_SMALL: Final[dict[tuple[int, str | None], Expr]] = {}
for _value in range(-16, 257):
    _SMALL[_value, INT32] = _SMALL[_value, None] = IntImm(INT32, _value)
    _SMALL[_value, INT64] = IntImm(INT64, _value)


def _natural_dtype(value: object) -> DataType:
    if isinstance(value, (bool, np.bool_)):
        return BOOL
    if isinstance(value, np.generic):
        return DataType(value.dtype)
    if isinstance(value, int):
        return INT32 if -(1 << 31) <= value < 1 << 31 else INT64
    if isinstance(value, float):
        return FLOAT32 if not np.isfinite(value) or abs(value) <= FLOAT32.max_value() else FLOAT64
    raise NotAnExpression(value)


# --- arithmetic ---------------------------------------------------------------------------------------------------


def _mismatch(name: str, a: Expr, b: Expr) -> DataType:
    raise OperandMismatch(name, a, b)


@base_node
class BinaryExpr(Expr):
    """Two operands of one dtype."""

    __slots__ = ()

    a: Expr
    b: Expr


@node
class Add(BinaryExpr):
    """a + b; integers wrap around."""

    a: Expr
    b: Expr
    dtype: DataType = derived("a.dtype if a.dtype is b.dtype else _mismatch('Add', a, b)")


@node
class Sub(BinaryExpr):
    """a - b; integers wrap around."""

    a: Expr
    b: Expr
    dtype: DataType = derived("a.dtype if a.dtype is b.dtype else _mismatch('Sub', a, b)")


@node
class Mul(BinaryExpr):
    """a * b; integers wrap around."""

    a: Expr
    b: Expr
    dtype: DataType = derived("a.dtype if a.dtype is b.dtype else _mismatch('Mul', a, b)")


@node
class Div(BinaryExpr):
    """a / b: rounded for floats, towards zero for integers."""

    a: Expr
    b: Expr
    dtype: DataType = derived("a.dtype if a.dtype is b.dtype else _mismatch('Div', a, b)")


@node
class Mod(BinaryExpr):
    """The remainder of Div: has the sign of `a`."""

    a: Expr
    b: Expr
    dtype: DataType = derived("a.dtype if a.dtype is b.dtype else _mismatch('Mod', a, b)")


@node
class FloorDiv(BinaryExpr):
    """a // b, rounded down."""

    a: Expr
    b: Expr
    dtype: DataType = derived("a.dtype if a.dtype is b.dtype else _mismatch('FloorDiv', a, b)")


@node
class FloorMod(BinaryExpr):
    """a % b, the remainder of FloorDiv: has the sign of `b`."""

    a: Expr
    b: Expr
    dtype: DataType = derived("a.dtype if a.dtype is b.dtype else _mismatch('FloorMod', a, b)")


@node
class Min(BinaryExpr):
    """The lesser operand; NaN when either is NaN."""

    a: Expr
    b: Expr
    dtype: DataType = derived("a.dtype if a.dtype is b.dtype else _mismatch('Min', a, b)")


@node
class Max(BinaryExpr):
    """The greater operand; NaN when either is NaN."""

    a: Expr
    b: Expr
    dtype: DataType = derived("a.dtype if a.dtype is b.dtype else _mismatch('Max', a, b)")


# --- comparison and logic -----------------------------------------------------------------------------------------


def _compared(name: str, a: Expr, b: Expr) -> DataType:
    if a.dtype is not b.dtype:
        raise OperandMismatch(name, a, b)
    return BOOL.with_lanes(a.dtype.lanes)


@base_node
class CompareExpr(BinaryExpr):
    """A comparison: operands of one dtype, result bool."""

    __slots__ = ()


@node
class EQ(CompareExpr):
    """a == b; false when either is NaN. As a Python truth value: whether both are the same object or equal literals."""

    a: Expr
    b: Expr
    dtype: DataType = derived("_compared('EQ', a, b)")

    def __bool__(self) -> bool:
        if self.a is self.b:
            return True
        return isinstance(self.a, (IntImm, FloatImm)) and type(self.a) is type(self.b) and self.a.value == self.b.value


@node
class NE(CompareExpr):
    """a != b; true when either is NaN. As a Python truth value: the opposite of EQ's."""

    a: Expr
    b: Expr
    dtype: DataType = derived("_compared('NE', a, b)")

    def __bool__(self) -> bool:
        return not EQ(self.a, self.b)


@node
class LT(CompareExpr):
    """a < b; false when either is NaN."""

    a: Expr
    b: Expr
    dtype: DataType = derived("_compared('LT', a, b)")


@node
class LE(CompareExpr):
    """a <= b; false when either is NaN."""

    a: Expr
    b: Expr
    dtype: DataType = derived("_compared('LE', a, b)")


@node
class GT(CompareExpr):
    """a > b; false when either is NaN."""

    a: Expr
    b: Expr
    dtype: DataType = derived("_compared('GT', a, b)")


@node
class GE(CompareExpr):
    """a >= b; false when either is NaN."""

    a: Expr
    b: Expr
    dtype: DataType = derived("_compared('GE', a, b)")


def _logical(name: str, *operands: Expr) -> DataType:
    for operand in operands:
        if not operand.dtype.is_bool or operand.dtype is not operands[0].dtype:
            raise OperandMismatch(name, operands[0], operand if operand is not operands[0] else const(True))
    return operands[0].dtype


@node
class And(BinaryExpr):
    """a and b; `b` is evaluated only when `a` holds."""

    a: Expr
    b: Expr
    dtype: DataType = derived("_logical('And', a, b)")


@node
class Or(BinaryExpr):
    """a or b; `b` is evaluated only when `a` does not hold."""

    a: Expr
    b: Expr
    dtype: DataType = derived("_logical('Or', a, b)")


@node
class Not(Expr):
    """not a."""

    a: Expr
    dtype: DataType = derived("_logical('Not', a)")


@node
class Select(Expr):
    """`true_value` where `condition` holds, else `false_value`; both are evaluated."""

    condition: Expr
    true_value: Expr
    false_value: Expr
    dtype: DataType = derived(
        "true_value.dtype if true_value.dtype is false_value.dtype else _mismatch('Select', true_value, false_value)"
    )


@node
class Cast(Expr):
    """`value` converted to `dtype`, lane by lane."""

    dtype: DataType
    value: Expr


@node(binds="var")
class Let(Expr):
    """`body` with `var` standing for `value`."""

    var: Var
    value: Expr
    body: Expr
    dtype: DataType = derived("body.dtype")


# --- vectors ------------------------------------------------------------------------------------------------------


def _ramp_dtype(base: Expr, stride: Expr, lanes: int) -> DataType:
    if base.dtype is not stride.dtype:
        raise OperandMismatch("Ramp", base, stride)
    return base.dtype.with_lanes(lanes)


@node
class Ramp(Expr):
    """The vector base, base + stride, base + 2 * stride, … of `lanes` elements."""

    base: Expr
    stride: Expr
    lanes: int
    dtype: DataType = derived("_ramp_dtype(base, stride, lanes)")


@node
class Broadcast(Expr):
    """`lanes` copies of `value`."""

    value: Expr
    lanes: int
    dtype: DataType = derived("value.dtype.with_lanes(lanes)")


@node
class Shuffle(Expr):
    """The elements at `indices` of the concatenation of `vectors`."""

    vectors: tuple[Expr, ...]
    indices: tuple[Expr, ...]
    dtype: DataType = derived("vectors[0].dtype.with_lanes(len(indices))")


# --- iteration ----------------------------------------------------------------------------------------------------


@node
class Range(Node):
    """The integers from `min` to `min + extent - 1`. `Range(n)` starts at 0; `Range(begin, end)` omits `end`."""

    min: Expr
    extent: Expr

    def __init__(self, begin: object, end: object = None, span: object = None) -> None:
        set_field = object.__setattr__
        low, extent = (const(0), as_expr(begin)) if end is None else (as_expr(begin), as_expr(end) - as_expr(begin))
        if end is None and extent.dtype is not INT32:
            low = const(0, extent.dtype)
        set_field(self, "min", low)
        set_field(self, "extent", extent)
        set_field(self, "span", span)

    @staticmethod
    def from_min_extent(min: object, extent: object, span: object = None) -> Range:
        """The range of `extent` integers from `min` on."""
        return Range._make(min, extent, span=span)


class IterType(IntEnum):
    """What an iteration variable stands for; the numbers are those users' scripts know."""

    DataPar = 0
    ThreadIndex = 1
    CommReduce = 2
    Ordered = 3
    Opaque = 4
    Unrolled = 5
    Vectorized = 6
    Parallelized = 7
    Tensorized = 8


@node(binds="var")
class IterVar(Node):
    """An iteration variable: `var` runs over `dom`. Arithmetic on it is arithmetic on `var`."""

    dom: Range | None
    var: Var
    iter_type: IterType
    thread_tag: str = ""

    DataPar = IterType.DataPar
    ThreadIndex = IterType.ThreadIndex
    CommReduce = IterType.CommReduce
    Ordered = IterType.Ordered
    Opaque = IterType.Opaque

    def __init__(
        self, dom: object, var: Var | str, iter_type: int | IterType, thread_tag: str = "", span: object = None
    ) -> None:
        if dom is not None and not isinstance(dom, Range):
            if not isinstance(dom, Sequence) or len(dom) != 2:
                raise LoopwrightError(f"IterVar: the domain must be a Range or (begin, end), got {dom!r}")
            dom = Range(dom[0], dom[1])
        if isinstance(var, str):
            var = Var(var, dom.extent.dtype if dom is not None else INT32)
        elif dom is not None and var.dtype is not dom.extent.dtype:
            raise OperandMismatch("IterVar", var, dom.extent)
        set_field = object.__setattr__
        set_field(self, "dom", dom)
        set_field(self, "var", var)
        set_field(self, "iter_type", IterType(iter_type))
        set_field(self, "thread_tag", thread_tag)
        set_field(self, "span", span)

    def as_expr(self) -> Expr:
        return self.var

    @property
    def dtype(self) -> DataType:
        return self.var.dtype

    def astype(self, dtype: str | DataType) -> Expr:
        return self.var.astype(dtype)


def _forward_operators() -> None:
    for name in (
        "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod lshift rlshift rshift rrshift "
        "and rand or ror xor rxor lt le gt ge neg invert"
    ).split():
        dunder = f"__{name}__"

        def method(self: IterVar, *other: object, _dunder: str = dunder) -> Expr:
            result: Expr = getattr(self.var, _dunder)(*other)
            return result

        setattr(IterVar, dunder, method)


_forward_operators()


# --- calls and te-only expressions --------------------------------------------------------------------------------


class Callee(Node):
    """What a Call may call: a registered operator (`Op`) or a function of the module (`GlobalVar`)."""

    __slots__ = ("name",)

    name: str


@node
class GlobalVar(Callee):
    """The name of a function in an IRModule."""

    name: str

    @property
    def name_hint(self) -> str:
        return self.name


@node
class Call(Expr):
    """A call of `op`: an intrinsic, an external function or a function of the module."""

    dtype: DataType
    op: Callee
    args: tuple[Expr, ...]


class Producer(Node):
    """Something whose elements an expression can read before lowering (a te tensor)."""

    __slots__ = ()

    name: str
    dtype: DataType
    shape: tuple[Expr, ...]


@node
class ProducerLoad(Expr):
    """An element of a te tensor; absent once a function is made."""

    producer: Producer
    indices: tuple[Expr, ...]
    dtype: DataType = derived("producer.dtype")


@node(binds=("lhs", "rhs"))
class CommReducer(Node):
    """A commutative, associative combination: `result` in terms of `lhs` and `rhs`, with its identity."""

    lhs: tuple[Var, ...]
    rhs: tuple[Var, ...]
    result: tuple[Expr, ...]
    identity_element: tuple[Expr, ...]


@node
class Reduce(Expr):
    """Field `value_index` of `source` combined over `axis` where `condition` holds; te only."""

    combiner: CommReducer
    source: tuple[Expr, ...]
    axis: tuple[IterVar, ...]
    condition: Expr
    value_index: int
    init: tuple[Expr, ...] = ()
    dtype: DataType = derived("source[value_index].dtype")


@node
class Any_(Expr):
    """An unknown dimension in a shape."""

    dtype: DataType = derived("INT32")
