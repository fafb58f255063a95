"""Graphs as JSON: what `ir.save_json` and `ir.load_json` write and read for the classes of this layer.

Inferred types are not saved; they are inferred again. An unknown size is the text "?".
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import getattr_static
from typing import Any, Final

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import PrimFunc
from loopwright.ir.json_fields import ACCEPTED, wrong_field
from loopwright.relay.adt import (
    Clause,
    Constructor,
    Match,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    TypeData,
)
from loopwright.relay.expr import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from loopwright.relay.op.registry import Op, get
from loopwright.relay.types import (
    AnyDim,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    TensorType,
    TypeCall,
    TypeVar,
    is_any,
)
from loopwright.target import VirtualDevice

# Class → the fields of its constructor, in order.
_FIELDS: Final[dict[type, tuple[str, ...]]] = {
    Var: ("name_hint", "type_annotation"),
    Constant: ("data",),
    Tuple: ("fields",),
    TupleGetItem: ("tuple_value", "index"),
    Function: ("params", "body", "ret_type", "type_params", "attrs"),
    Let: ("var", "value", "body"),
    If: ("cond", "true_branch", "false_branch"),
    RefCreate: ("value",),
    RefRead: ("ref",),
    RefWrite: ("ref", "value"),
    FuncType: ("arg_types", "ret_type", "type_params"),
    RefType: ("value",),
    IncompleteType: ("kind",),
    TypeVar: ("name_hint", "kind"),
    GlobalTypeVar: ("name_hint", "kind"),
    TypeCall: ("func", "args"),
    TypeData: ("header", "type_vars", "constructors"),
    Constructor: ("name_hint", "inputs", "belong_to"),
    Match: ("data", "clauses", "complete"),
    Clause: ("lhs", "rhs"),
    PatternWildcard: (),
    PatternVar: ("var",),
    PatternConstructor: ("constructor", "patterns"),
    PatternTuple: ("patterns",),
}
_CLASSES: Final[dict[str, type]] = {cls.__name__: cls for cls in _FIELDS}


def save_fields(node: object) -> dict[str, object] | None:
    """What a node holds, by name; None for a class that has no JSON form."""
    if isinstance(node, TensorType):
        return {"shape": tuple("?" if is_any(size) else size for size in node.shape), "dtype": str(node.dtype)}
    if isinstance(node, Call):
        known = isinstance(node.op, Op)
        return {
            "operator": node.op.name if known else None,
            "callee": None if known else node.op,
            "args": node.args,
            "attrs": {name: _saved(value) for name, value in node.attrs.items()} if known else {},
            "type_args": node.type_args,
        }
    names = _FIELDS.get(type(node))
    if names is None:
        return None
    fields: dict[str, object] = {name: getattr(node, name) for name in names}
    if isinstance(node, Function):
        fields["ret_type"] = node.declared_ret_type  # what is inferred will be again
    if isinstance(node, (Var, Function)) and node.virtual_device_ is not None:
        fields[_DEVICE] = _saved(node.virtual_device_)
    return fields


_DEVICE: Final = "virtual_device"


def _saved(value: object) -> object:
    return {_DEVICE: value.export()} if isinstance(value, VirtualDevice) else value


def _loaded(value: object) -> object:
    """What `_saved` made of an attribute."""
    return VirtualDevice.load(value[_DEVICE]) if isinstance(value, dict) and value.keys() == {_DEVICE} else value


ACCEPTED[Expr] = (Expr, GlobalVar)  # a function of the module is a value too


def _check(cls: type, fields: dict[str, object]) -> None:
    problem = wrong_field(cls, fields, getattr_static(cls, "__init__")) or wrong_field(cls, fields)
    if cls is Let and not isinstance(fields["var"], Var):
        problem = f"var of Let is {type(fields['var']).__name__}"
    if problem is not None:
        raise TypeError(problem)


def load_fields(name: str, fields: dict[str, Any]) -> object:
    """The node of that class; KeyError or TypeError where the fields are not its own."""
    if name == "Op":
        return get(fields["name"])
    if name == "TensorType":
        if not isinstance(fields["dtype"], str):
            raise TypeError(f"the type of a tensor's elements is {fields['dtype']!r}")
        return TensorType([AnyDim() if size == "?" else size for size in fields["shape"]], fields["dtype"])
    if name == "Call":
        if fields["operator"] is None:
            if not isinstance(fields["callee"], (Expr, GlobalVar, PrimFunc)):
                raise TypeError(f"a call of {type(fields['callee']).__name__}")
            _check(Call, fields)
            return Call(fields["callee"], fields["args"], None, fields["type_args"])
        op = get(fields["operator"])
        _check(Call, {name: value for name, value in fields.items() if name != "attrs"})
        attrs = {key: _loaded(value) for key, value in fields["attrs"].items()}
        return Call(op, fields["args"], op.attributes(**attrs), fields["type_args"])
    make: Callable[..., object] = _CLASSES[name]
    device = _loaded(fields.pop(_DEVICE, None))
    _check(_CLASSES[name], fields)
    result = make(*[fields[key] for key in _FIELDS[_CLASSES[name]]])
    if isinstance(result, Expr):
        result.virtual_device_ = device
    return result
