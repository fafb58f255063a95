"""The types of graph expressions.

    TensorType((1, 3, n), "float32")     a tensor; a size is a number, an expression of size variables, or AnyDim()
    TupleType([a, b])                    several values
    FuncType([a, b], c)                  a function

`AnyDim()` (`relay.Any()` in scripts for TVM) is a size that nobody knows before the program runs; two of them are
never known to be equal.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, SupportsIndex, TypeAlias

from loopwright.arith import simplified_size
from loopwright.ir import Expr as PrimExpr
from loopwright.ir import IntImm
from loopwright.ir.expr import Any_
from loopwright.ir.types import TupleType, Type
from loopwright.relay.int_value import IntValue
from loopwright.runtime.dtype import DataType

if TYPE_CHECKING:
    from typing_extensions import TypeIs
else:

    def __getattr__(name: str) -> type:
        if name != "Any":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        message = "relay.types.Any is deprecated: write AnyDim (relay.Any stays, as TVM's name of it)"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return AnyDim


class AnyDim:
    """A size known only when the program runs, printed `?`; `relay.Any`, its name in TVM, is an alias."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "?"


Dim: TypeAlias = int | PrimExpr | AnyDim  # one size of a type
DimLike: TypeAlias = SupportsIndex | PrimExpr | AnyDim  # what `as_dim` makes one of


class TypeKind(IntEnum):
    """What a type variable stands for: a type, a shape, an element type, a relation, the name of a data type."""

    Type = 0
    ShapeVar = 1
    BaseType = 2
    Constraint = 4
    AdtHandle = 5
    TypeData = 6


class _ByContent(Type):
    """A type that is equal to others like it; the hash of each kind tells apart what is cheap to compare."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and same_type(self, other)

    __hash__ = Type.__hash__


class TensorType(_ByContent):
    """A tensor of elements of `dtype`; a shape of no sizes is a scalar."""

    __slots__ = ("dtype", "shape")

    shape: tuple[Dim, ...]
    dtype: DataType

    def __init__(self, shape: Iterable[DimLike], dtype: str = "float32", span: object = None) -> None:
        self.shape = tuple(as_dim(size) for size in shape)
        self.dtype = DataType(dtype)
        self.span = span

    @property
    def concrete_shape(self) -> tuple[int, ...]:
        """The shape as numbers; a ValueError where a size is not known."""
        if not all(isinstance(size, int) for size in self.shape):
            raise ValueError(f"{self} has sizes that are not numbers")
        return tuple(size for size in self.shape if isinstance(size, int))

    def concrete_dim(self, axis: int) -> int:
        """One size as a number; a ValueError where it is not known."""
        size = self.shape[axis]
        if not isinstance(size, int):
            raise ValueError(f"size {axis} of {self} is not a number")
        return size

    def __hash__(self) -> int:
        return hash((TensorType, str(self.dtype), len(self.shape)))

    def __repr__(self) -> str:
        return type_text(self)

    __str__ = __repr__


class FuncType(_ByContent):
    """A function from values of `arg_types` to one of `ret_type`."""

    __slots__ = ("arg_types", "ret_type", "type_constraints", "type_params")

    def __init__(
        self,
        arg_types: Sequence[Type],
        ret_type: Type,
        type_params: Sequence[Type] = (),
        type_constraints: Sequence[object] = (),
    ) -> None:
        self.arg_types = tuple(arg_types)
        self.ret_type = ret_type
        self.type_params = tuple(type_params)
        self.type_constraints = tuple(type_constraints)
        self.span = None

    def __hash__(self) -> int:
        return hash((FuncType, len(self.arg_types)))

    def __repr__(self) -> str:
        return type_text(self)

    __str__ = __repr__


class RefType(_ByContent):
    """A cell that holds a value of type `value`."""

    __slots__ = ("value",)

    def __init__(self, value: Type) -> None:
        self.value = value
        self.span = None

    def __hash__(self) -> int:
        return hash((RefType, self.value))

    def __repr__(self) -> str:
        return type_text(self)


class IncompleteType(Type):
    """A type that inference has yet to find."""

    __slots__ = ("kind",)

    def __init__(self, kind: int = TypeKind.Type) -> None:
        self.kind = TypeKind(kind)
        self.span = None

    def __repr__(self) -> str:
        return "IncompleteType"


class TypeVar(Type):
    """A type that a polymorphic function is given."""

    __slots__ = ("kind", "name_hint")

    def __init__(self, name_hint: str, kind: int = TypeKind.Type) -> None:
        self.name_hint = name_hint
        self.kind = TypeKind(kind)
        self.span = None

    def __repr__(self) -> str:
        return self.name_hint


class GlobalTypeVar(Type):
    """The name of a data type (`adt.py`); `definition` is what it means, once that is said."""

    __slots__ = ("definition", "kind", "name_hint")

    def __init__(self, name_hint: str, kind: int = TypeKind.AdtHandle) -> None:
        self.name_hint = name_hint
        self.kind = TypeKind(kind)
        self.definition: object = None
        self.span = None

    @property
    def name(self) -> str:
        return self.name_hint

    def __call__(self, *args: Type) -> TypeCall:
        """The type for these types: `List(A)`."""
        return TypeCall(self, args)

    def __repr__(self) -> str:
        return self.name_hint


class TypeConstraint(Type):
    """Something that is said about types."""

    __slots__ = ()


class TypeRelation(TypeConstraint):
    """`func` holds between `args`, of which the first `num_inputs` are given and the others follow."""

    __slots__ = ("args", "attrs", "func", "num_inputs")

    def __init__(self, func: object, args: Sequence[Type], num_inputs: int, attrs: object = None) -> None:
        self.func = func
        self.args = tuple(args)
        self.num_inputs = int(num_inputs)
        self.attrs = attrs
        self.span = None

    def __repr__(self) -> str:
        return f"{getattr(self.func, 'name', self.func)}({', '.join(map(type_text, self.args))})"


class TypeCall(_ByContent):
    """A data type with the types it is given: a list of what."""

    __slots__ = ("args", "func")

    def __init__(self, func: GlobalTypeVar, args: Sequence[Type]) -> None:
        self.func = func
        self.args = tuple(args)
        self.span = None

    def __hash__(self) -> int:
        return hash((TypeCall, self.func))

    def __repr__(self) -> str:
        return type_text(self)

    __str__ = __repr__


def scalar_type(dtype: str) -> TensorType:
    """The type of one number."""
    return TensorType((), dtype)


def as_dim(size: DimLike) -> Dim:
    """One size of a shape: numbers as integers, expressions simplified, AnyDim as it is."""
    if type(size) is IntValue or isinstance(size, AnyDim):
        return size
    if isinstance(size, Any_):
        return AnyDim()
    if isinstance(size, PrimExpr):
        simple = size if isinstance(size, IntImm) else simplified_size(size)
        return IntValue(simple.value) if isinstance(simple, IntImm) else simple
    if isinstance(size, bool) or not hasattr(size, "__index__"):
        raise TypeError(f"a size is an integer, an expression or AnyDim(), not {type(size).__name__} {size!r}")
    return IntValue(size)


def is_any(size: object) -> TypeIs[AnyDim]:
    return isinstance(size, AnyDim)


def known_sizes(of: TensorType) -> list[int | PrimExpr]:
    """The sizes of a tensor, none of which is AnyDim()."""
    return [size for size in of.shape if not isinstance(size, AnyDim)]


def is_dynamic(of: Type) -> bool:
    """Whether a size in the type is no number."""
    if isinstance(of, TensorType):
        return not all(isinstance(size, int) for size in of.shape)
    if isinstance(of, TupleType):
        return any(is_dynamic(field) for field in of.fields)
    if isinstance(of, FuncType):
        return any(is_dynamic(part) for part in (*of.arg_types, of.ret_type))
    if isinstance(of, TypeCall):
        return any(is_dynamic(part) for part in of.args)
    return isinstance(of, RefType) and is_dynamic(of.value)


def same_dim(one: Dim, other: Dim) -> bool:
    """Whether two sizes are known to be the same number."""
    if one is other:
        return not is_any(one)
    if is_any(one) or is_any(other):
        return False
    if isinstance(one, int) and isinstance(other, int):
        return one == other
    return _difference(one, other) == 0


def same_dims(one: Sequence[Dim], other: Sequence[Dim]) -> bool:
    """Whether two shapes, or as many sizes of each, are known to be the same numbers."""
    return len(one) == len(other) and all(map(same_dim, one, other))


def dims_differ(one: Dim, other: Dim) -> bool:
    """Whether two sizes are known to be different numbers."""
    if is_any(one) or is_any(other):
        return False
    difference = _difference(one, other)
    return isinstance(difference, int) and difference != 0


def _difference(one: int | PrimExpr, other: int | PrimExpr) -> Dim:
    return as_dim(one - other)


def same_type(one: Type | None, other: Type | None, params: Mapping[Type, Type] = MappingProxyType({})) -> bool:
    """Whether two types are the same, `?` standing for the same as `?`; `params` are type variables that correspond."""
    if one is other:
        return True
    if isinstance(one, TensorType) and isinstance(other, TensorType):
        return (
            one.dtype == other.dtype
            and len(one.shape) == len(other.shape)
            and all((is_any(a) and is_any(b)) or same_dim(a, b) for a, b in zip(one.shape, other.shape, strict=True))
        )
    if isinstance(one, TupleType) and isinstance(other, TupleType):
        return _same_types(one.fields, other.fields, params)
    if isinstance(one, FuncType) and isinstance(other, FuncType):
        if len(one.type_params) != len(other.type_params):
            return False
        inside = {**params, **dict(zip(one.type_params, other.type_params, strict=True))}
        return _same_types((*one.arg_types, one.ret_type), (*other.arg_types, other.ret_type), inside)
    if isinstance(one, RefType) and isinstance(other, RefType):
        return same_type(one.value, other.value, params)
    if isinstance(one, TypeCall) and isinstance(other, TypeCall):
        return one.func is other.func and _same_types(one.args, other.args, params)
    return isinstance(one, TypeVar) and params.get(one) is other and other is not None


def _same_types(one: Sequence[Type], other: Sequence[Type], params: Mapping[Type, Type]) -> bool:
    return len(one) == len(other) and all([same_type(a, b, params) for a, b in zip(one, other, strict=True)])


def dim_text(size: Dim) -> str:
    return str(size)


def type_text(of: Type | None) -> str:
    """A type as the text form writes it: `Tensor[(1, ?), float32]`."""
    if isinstance(of, TensorType):
        if not of.shape:
            return str(of.dtype)
        inner = ", ".join(map(dim_text, of.shape)) + ("," if len(of.shape) == 1 else "")
        # A shape of one size is written without the comma that a Python tuple needs.
        return f"Tensor[({inner.rstrip(',')}), {of.dtype}]"
    if isinstance(of, TupleType):
        inner = ", ".join(type_text(field) for field in of.fields)
        return f"({inner}{',' if len(of.fields) == 1 else ''})"
    if isinstance(of, FuncType):
        return f"fn ({', '.join(type_text(part) for part in of.arg_types)}) -> {type_text(of.ret_type)}"
    if isinstance(of, RefType):
        return f"ref({type_text(of.value)})"
    if isinstance(of, TypeCall):
        return of.func.name_hint + (f"[{', '.join(map(type_text, of.args))}]" if of.args else "")
    if isinstance(of, IncompleteType):
        return "_"
    return "_" if of is None else repr(of)
