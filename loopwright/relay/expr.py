"""Graph expressions: a model as a function of tensors.

    x = var("x", shape=(1, 64))
    y = op.nn.relu(x)
    Function([x], y)

An expression used twice is one object used twice: a graph, not a tree. `Let` and `If` say what runs when. Expressions
never change, but for `checked_type_`, which type inference fills in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from loopwright.ir.attributes import DictAttrs
from loopwright.ir.expr import Call as LoopCall
from loopwright.ir.expr import GlobalVar
from loopwright.ir.node import ModuleForm, Node, when_used
from loopwright.ir.structural import compare_with
from loopwright.ir.structural_hash import hash_with
from loopwright.ir.types import TupleType, Type
from loopwright.relay.arrays import as_tensor_array
from loopwright.relay.errors import NotAName, NotAnExpression, NotInferred
from loopwright.relay.types import (
    DimLike,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    TensorType,
    TypeCall,
    TypeVar,
)
from loopwright.runtime.dtype import DataType

# Who prints graphs, looks for their variables and makes calls of operators imports the classes of this file.
_astext = when_used("loopwright.relay.text.printer", "astext")
_plain_text = when_used("loopwright.relay.text.printer", "plain_text")
_show = when_used("loopwright.relay.text.show", "show")
_html = when_used("loopwright.relay.text.show", "html")
_free_vars = when_used("loopwright.relay.analysis.variables", "free_vars")
_make_call = when_used("loopwright.relay.op.registry", "make")


class Expr(Node):
    """A value of a graph. `checked_type` is its type once inferred."""

    __slots__ = ("checked_type_", "virtual_device_")

    module_form = ModuleForm(
        when_used("loopwright.relay.text.printer", "module_text"),
        _show,
        _html,
    )
    checked_type_: Type | None
    virtual_device_: object

    def _begin(self, span: object = None) -> None:
        self.checked_type_ = None
        self.virtual_device_ = None
        self.span = span

    @property
    def checked_type(self) -> Type:
        """The type of this value; an error before inference has found it."""
        if self.checked_type_ is None:
            raise NotInferred(self)
        return self.checked_type_

    def astype(self, dtype: str) -> Expr:
        """The value converted to elements of `dtype`."""
        return _call("cast", self, dtype=dtype)

    def astext(self, show_meta_data: bool = True, annotate: Callable[[Expr], str] | None = None) -> str:
        """The expression in the text form, with a header; constants at the end unless `show_meta_data` is False."""
        text: str = _astext(self, show_meta_data, annotate)
        return text

    def script(self, **options: object) -> str:
        """The text form without header and metadata; `obj_to_underline` names expressions to mark."""
        text: str = _plain_text(self, **options)
        return text

    def as_function(self) -> Function:
        """A function of the variables that the expression does not bind; a function is one already."""
        return self if isinstance(self, Function) else Function(_free_vars(self), self)

    def __repr__(self) -> str:
        text: str = _plain_text(self)
        return text

    __str__ = __repr__

    def show(self, style: str | None = None, black_format: bool | None = None, **options: object) -> None:
        """Print the text form."""
        _show(self, style)

    def _repr_html_(self) -> str:
        html: str = _html(self)
        return html

    # `==` compares objects: expressions are nodes of a graph.
    def __add__(self, other: object) -> Expr:
        return _binary("add", self, other)

    def __sub__(self, other: object) -> Expr:
        return _binary("subtract", self, other)

    def __mul__(self, other: object) -> Expr:
        return _binary("multiply", self, other)

    def __truediv__(self, other: object) -> Expr:
        return _binary("divide", self, other)

    def __lt__(self, other: object) -> Expr:
        return _binary("less", self, other)

    def __gt__(self, other: object) -> Expr:
        return _binary("greater", self, other)

    def __le__(self, other: object) -> Expr:
        return _binary("less_equal", self, other)

    def __ge__(self, other: object) -> Expr:
        return _binary("greater_equal", self, other)

    def __neg__(self) -> Expr:
        return _call("negative", self)

    def __radd__(self, other: object) -> Expr:
        return _binary("add", other, self)

    def __rsub__(self, other: object) -> Expr:
        return _binary("subtract", other, self)

    def __rmul__(self, other: object) -> Expr:
        return _binary("multiply", other, self)

    def __rtruediv__(self, other: object) -> Expr:
        return _binary("divide", other, self)

    def call_with(self, callee: GlobalVar, args: Sequence[Expr]) -> Call:
        """A call, by name, of a function that is given this value among others: what `GlobalVar(…)` makes."""
        return Call(callee, args)

    def __call__(self, *args: Expr) -> Call:
        """A call of this value, which is a function."""
        return Call(self, args)


class Constant(Expr):
    """A tensor whose elements are known: `data` is a numpy array (never changed)."""

    __slots__ = ("data",)

    data: np.ndarray

    def __init__(self, data: object, span: object = None) -> None:
        array = data if isinstance(data, np.ndarray) else np.asarray(data.numpy() if hasattr(data, "numpy") else data)
        self.data = as_tensor_array(array)
        self._begin(span)
        self.checked_type_ = TensorType(array.shape, str(DataType(array.dtype.name)))


class Var(Expr):
    """A variable; `name_hint` is for readers, the object itself is its identity."""

    __slots__ = ("name_hint", "type_annotation")

    def __init__(self, name_hint: str, type_annotation: Type | None = None, span: object = None) -> None:
        self.name_hint = name_hint
        self.type_annotation = type_annotation
        self._begin(span)

    @property
    def vid(self) -> Var:
        """What tells the variable from others: itself."""
        return self


class Tuple(Expr):
    """Several values as one."""

    __slots__ = ("fields",)

    def __init__(self, fields: Sequence[Expr], span: object = None) -> None:
        self.fields = tuple(fields)
        for field in self.fields:
            require_expr(field, "a field of a tuple")
        self._begin(span)

    def __getitem__(self, index: int) -> Expr:
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Expr]:
        return iter(self.fields)

    def astype(self, dtype: str) -> Expr:
        raise TypeError("a tuple has no element type: convert its fields")


class TupleGetItem(Expr):
    """Field `index` of a tuple."""

    __slots__ = ("index", "tuple_value")

    def __init__(self, tuple_value: Expr, index: int, span: object = None) -> None:
        self.tuple_value = require_expr(tuple_value, "the tuple of a projection")
        self.index = int(index)
        self._begin(span)


class Call(Expr):
    """`op` applied to `args`; `op` is an operator, a function, or a value that is one.

    The `attrs` of an operator's call are its parameters that are no values of the graph (an axis, strides).
    """

    __slots__ = ("args", "attrs", "op", "type_args")

    op: Any  # an Op (`op/registry.py`), an expression, a GlobalVar, or a PrimFunc that was lowered
    attrs: Any  # an Operator, whose fields are those of the operator; None where a function is called

    def __init__(
        self,
        op: object,
        args: Sequence[Expr],
        attrs: object = None,
        type_args: Sequence[Type] = (),
        span: object = None,
    ) -> None:
        self.op = op
        self.args = tuple(args)
        for arg in self.args:
            require_expr(arg, f"an argument of {getattr(op, 'name', 'a call')}")
        own = getattr(op, "attributes", None)
        if own is not None and type(attrs) is not own:
            attrs = own() if attrs is None else own.like(attrs)
        self.attrs = attrs
        self.type_args = tuple(type_args or ())
        self._begin(span)


class Function(Expr):
    """A function of `params`; `attrs` say what it is for: Primitive, Composite, Compiler, global_symbol."""

    __slots__ = ("attrs", "body", "declared_ret_type", "params", "type_params")

    attrs: dict[str, object]  # a DictAttrs
    declared_ret_type: Type | None  # what it is said to return; None where inference finds that

    def __init__(
        self,
        params: Sequence[Var],
        body: Expr,
        ret_type: Type | None = None,
        type_params: Sequence[Type] | None = None,
        attrs: Mapping[str, object] | None = None,
        span: object = None,
    ) -> None:
        self.params = tuple(params)
        self.body = require_expr(body, "the body of a function")
        self.declared_ret_type = ret_type
        self.type_params = tuple(type_params or ())
        self.attrs = DictAttrs(attrs or {})
        self._begin(span)

    @property
    def ret_type(self) -> Type | None:
        """The type of what it returns: as declared, or else as inferred; None before either."""
        if self.declared_ret_type is not None:
            return self.declared_ret_type
        inferred = self.checked_type_.ret_type if isinstance(self.checked_type_, FuncType) else None
        return None if isinstance(inferred, IncompleteType) else inferred

    @property
    def name(self) -> str:
        return str(self.attrs.get("global_symbol", "main"))

    def with_attr(self, key: str | Mapping[str, object], value: object = None) -> Function:
        """A copy with one attribute (or a dictionary of them) set."""
        added = {key: value} if isinstance(key, str) else dict(key)
        return self._with_attrs({**self.attrs, **added})

    def without_attr(self, key: str) -> Function:
        return self._with_attrs({name: value for name, value in self.attrs.items() if name != key})

    def rebuilt(self, params: Sequence[Var], body: Expr, ret_type: Type | None = None) -> Function:
        """A function of another body, and else like this one: its attributes, its source, its device."""
        result = Function(params, body, ret_type, self.type_params, self.attrs, self.span)
        result.virtual_device_ = self.virtual_device_
        return result

    def _with_attrs(self, attrs: Mapping[str, object]) -> Function:
        copy = Function(self.params, self.body, self.declared_ret_type, self.type_params, attrs, self.span)
        copy.checked_type_ = self.checked_type_
        copy.virtual_device_ = self.virtual_device_
        return copy


class Let(Expr):
    """`body`, in which `var` is `value`, computed once and before it."""

    __slots__ = ("body", "value", "var")

    def __init__(self, variable: Var, value: Expr, body: Expr, span: object = None) -> None:
        self.var = variable
        self.value = require_expr(value, "the value of a let")
        self.body = require_expr(body, "the body of a let")
        self._begin(span)


class If(Expr):
    """One of two values; only that one is computed."""

    __slots__ = ("cond", "false_branch", "true_branch")

    def __init__(self, cond: Expr, true_branch: Expr, false_branch: Expr, span: object = None) -> None:
        self.cond = require_expr(cond, "a condition")
        self.true_branch = require_expr(true_branch, "a branch")
        self.false_branch = require_expr(false_branch, "a branch")
        self._begin(span)


class RefCreate(Expr):
    """A new cell that holds `value`."""

    __slots__ = ("value",)

    def __init__(self, value: Expr, span: object = None) -> None:
        self.value = require_expr(value, "the value of a cell")
        self._begin(span)


class RefRead(Expr):
    """What the cell `ref` holds now."""

    __slots__ = ("ref",)

    def __init__(self, ref: Expr, span: object = None) -> None:
        self.ref = require_expr(ref, "a cell")
        self._begin(span)


class RefWrite(Expr):
    """Put `value` into the cell `ref`; the result is the empty tuple."""

    __slots__ = ("ref", "value")

    def __init__(self, ref: Expr, value: Expr, span: object = None) -> None:
        self.ref = require_expr(ref, "a cell")
        self.value = require_expr(value, "the value of a cell")
        self._begin(span)


class TupleWrapper:
    """The results of an operator that has several: an expression whose fields are counted, named by position."""

    def __init__(self, tuple_value: Expr, size: int) -> None:
        self.tuple_value = tuple_value
        self.size = size

    def astuple(self) -> Expr:
        return self.tuple_value

    def astext(self, show_meta_data: bool = True, annotate: Callable[[Expr], str] | None = None) -> str:
        """The text form of the tuple."""
        return self.tuple_value.astext(show_meta_data, annotate)

    def astype(self, dtype: str) -> Expr:
        raise TypeError("a tuple has no element type: convert its fields")

    def __getitem__(self, index: int) -> TupleGetItem:
        location = index + self.size if index < 0 else index
        if not 0 <= location < self.size:
            raise IndexError(f"there are {self.size} results, and no number {index}")
        return TupleGetItem(self.tuple_value, location)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[TupleGetItem]:
        return (self[k] for k in range(self.size))

    def __repr__(self) -> str:
        return f"TupleWrapper({self.tuple_value!r}, {self.size})"


def var(
    name_hint: str,
    type_annotation: Type | str | None = None,
    shape: Iterable[DimLike] | None = None,
    dtype: str = "float32",
    span: object = None,
) -> Var:
    """A variable of a type, or of a tensor's shape and element type; a text alone is the type of a scalar."""
    if not isinstance(name_hint, str):
        raise NotAName(name_hint)
    if type_annotation is not None and shape is not None:
        raise ValueError(f"var {name_hint!r}: give its type or its shape, not both")
    if shape is not None:
        type_annotation = TensorType(shape, dtype)
    elif isinstance(type_annotation, str):
        type_annotation = TensorType((), type_annotation)
    return Var(name_hint, type_annotation, span)


def const(value: object, dtype: str | TensorType | None = None, span: object = None) -> Constant:
    """A constant: Python's ints are int32 and floats float32; so are numpy's, unless `dtype` says otherwise.

    The type of a scalar is as good as its element type.
    """
    if isinstance(dtype, TensorType):
        dtype = str(dtype.dtype)
    array = value.numpy() if hasattr(value, "numpy") and not isinstance(value, np.ndarray) else np.asarray(value)
    if dtype is not None:
        return Constant(np.asarray(array, dtype=numpy_type(dtype)), span)
    if hasattr(value, "numpy"):
        return Constant(array, span)
    narrower = {"int64": "int32", "float64": "float32"}.get(array.dtype.name)
    return Constant(array.astype(narrower) if narrower else array, span)


def numpy_type(dtype: str) -> np.dtype:
    """The numpy type of that name; those that numpy lacks are of ml_dtypes."""
    return DataType(dtype).numpy()


def require_expr(value: object, what: str) -> Expr:
    """`value`, which is an expression (or the results of an operator that has several)."""
    if isinstance(value, (Expr, GlobalVar)):
        return value  # type: ignore[return-value]
    if isinstance(value, TupleWrapper):
        return value.tuple_value
    if isinstance(value, LoopCall) and isinstance(value.op, GlobalVar):  # `GlobalVar(…)()` cannot tell whose call it is
        return Call(value.op, [require_expr(arg, what) for arg in value.args])
    raise NotAnExpression(value, what)


def _call(name: str, *args: Expr, **attributes: object) -> Expr:
    result: Expr = _make_call(name, *args, **attributes)
    return result


def _binary(name: str, lhs: object, rhs: object) -> Expr:
    for operand in (lhs, rhs):
        if not isinstance(operand, (Expr, TupleWrapper)):
            raise NotAnExpression(operand, f"an operand of {name}")
    return _call(name, require_expr(lhs, name), require_expr(rhs, name))


# How `ir.structural_equal` and `ir.structural_hash` treat graphs and their types.
for _cls in (Expr, FuncType, GlobalTypeVar, IncompleteType, RefType, TensorType, TypeCall, TypeVar):
    compare_with(_cls, when_used("loopwright.relay.structural", "compare"))
    hash_with(_cls, when_used("loopwright.relay.structural", "write"))


__all__ = [
    "Call",
    "Constant",
    "Expr",
    "FuncType",
    "Function",
    "GlobalVar",
    "If",
    "Let",
    "RefCreate",
    "RefRead",
    "RefWrite",
    "Tuple",
    "TupleGetItem",
    "TupleType",
    "TupleWrapper",
    "Var",
    "const",
    "require_expr",
    "var",
]
