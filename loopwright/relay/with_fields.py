"""Copies of expressions with some fields replaced: `FunctionWithFields(f, body=new)`.

Fields that are None, or not given, stay. Where nothing changes, the expression itself comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from loopwright.ir.types import Type
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

E = TypeVar("E", bound=Expr)


def _changed(
    old: Expr, fields: Sequence[str], given: Sequence[object], span: object, virtual_device: object
) -> list[object] | None:
    """The values of the fields after the change; None where they all stay."""
    values: list[object] = []
    same = True
    for name, new in zip(fields, given, strict=True):
        before = getattr(old, name)
        if new is None or new is before or _same_items(before, new):
            values.append(before)
        else:
            same = False
            values.append(new)
    if virtual_device is not None and virtual_device is not old.virtual_device_:
        same = False
    if span is not None and span is not old.span:
        same = False
    return None if same else values


def _same_items(before: object, new: object) -> bool:
    if isinstance(before, tuple) and isinstance(new, (list, tuple)):
        return len(before) == len(new) and all(a is b for a, b in zip(before, new, strict=True))
    if isinstance(before, Mapping) and isinstance(new, Mapping):
        return before.keys() == new.keys() and all(before[key] is new[key] for key in before)
    return isinstance(before, (int, str)) and type(before) is type(new) and before == new


def _copy(
    cls: Callable[..., E],
    old: E,
    fields: Sequence[str],
    given: Sequence[object],
    span: object,
    virtual_device: object,
) -> E:
    values = _changed(old, fields, given, span, virtual_device)
    if values is None:
        return old
    result = cls(*values, span=span if span is not None else old.span)
    result.virtual_device_ = virtual_device if virtual_device is not None else old.virtual_device_
    return result


def FunctionWithFields(
    function: Function,
    params: Sequence[Var] | None = None,
    body: Expr | None = None,
    ret_type: Type | None = None,
    ty_params: Sequence[Type] | None = None,
    attrs: Mapping[str, object] | None = None,
    virtual_device: object = None,
    span: object = None,
) -> Function:
    """A Function with these fields replaced; itself where nothing changes."""
    fields = ("params", "body", "declared_ret_type", "type_params", "attrs")
    made: Function = _copy(Function, function, fields, (params, body, ret_type, ty_params, attrs), span, virtual_device)
    return made


def CallWithFields(
    call: Call,
    op: object = None,
    args: Sequence[Expr] | None = None,
    attrs: object = None,
    type_args: Sequence[Type] | None = None,
    virtual_device: object = None,
    span: object = None,
) -> Call:
    """A Call with these fields replaced; itself where nothing changes."""
    if op is not None and op is not call.op and attrs is None and hasattr(op, "attributes"):
        attrs = op.attributes()  # those of another operator mean nothing to this one
    names = ("op", "args", "attrs", "type_args")
    result: Call = _copy(Call, call, names, (op, args, attrs, type_args), span, virtual_device)
    return result


def TupleWithFields(
    tup: Tuple, fields: Sequence[Expr] | None = None, virtual_device: object = None, span: object = None
) -> Tuple:
    """A Tuple with these fields replaced; itself where nothing changes."""
    result: Tuple = _copy(Tuple, tup, ("fields",), (fields,), span, virtual_device)
    return result


def TupleGetItemWithFields(
    get: TupleGetItem,
    tuple_value: Expr | None = None,
    index: int | None = None,
    virtual_device: object = None,
    span: object = None,
) -> TupleGetItem:
    """A TupleGetItem with these fields replaced; itself where nothing changes."""
    built: TupleGetItem = _copy(TupleGetItem, get, ("tuple_value", "index"), (tuple_value, index), span, virtual_device)
    return built


def LetWithFields(
    let: Let,
    variable: Var | None = None,
    value: Expr | None = None,
    body: Expr | None = None,
    virtual_device: object = None,
    span: object = None,
) -> Let:
    """A Let with these fields replaced; itself where nothing changes."""
    result: Let = _copy(Let, let, ("var", "value", "body"), (variable, value, body), span, virtual_device)
    return result


def IfWithFields(
    branch: If,
    cond: Expr | None = None,
    true_branch: Expr | None = None,
    false_branch: Expr | None = None,
    virtual_device: object = None,
    span: object = None,
) -> If:
    """An If with these fields replaced; itself where nothing changes."""
    names = ("cond", "true_branch", "false_branch")
    result: If = _copy(If, branch, names, (cond, true_branch, false_branch), span, virtual_device)
    return result


def VarWithFields(
    var: Var,
    name_hint: str | None = None,
    type_annotation: Type | None = None,
    virtual_device: object = None,
    span: object = None,
) -> Var:
    """A Var with these fields replaced; itself where nothing changes."""
    result: Var = _copy(Var, var, ("name_hint", "type_annotation"), (name_hint, type_annotation), span, virtual_device)
    return result


def ConstantWithFields(
    constant: Constant, data: np.ndarray | None = None, virtual_device: object = None, span: object = None
) -> Constant:
    """A Constant with these fields replaced; itself where nothing changes."""
    result: Constant = _copy(Constant, constant, ("data",), (data,), span, virtual_device)
    return result


def RefCreateWithFields(
    ref: RefCreate, value: Expr | None = None, virtual_device: object = None, span: object = None
) -> RefCreate:
    """A RefCreate with these fields replaced; itself where nothing changes."""
    result: RefCreate = _copy(RefCreate, ref, ("value",), (value,), span, virtual_device)
    return result


def RefReadWithFields(
    ref_read: RefRead, ref: Expr | None = None, virtual_device: object = None, span: object = None
) -> RefRead:
    """A RefRead with these fields replaced; itself where nothing changes."""
    result: RefRead = _copy(RefRead, ref_read, ("ref",), (ref,), span, virtual_device)
    return result


def RefWriteWithFields(
    ref_write: RefWrite,
    ref: Expr | None = None,
    value: Expr | None = None,
    virtual_device: object = None,
    span: object = None,
) -> RefWrite:
    """A RefWrite with these fields replaced; itself where nothing changes."""
    result: RefWrite = _copy(RefWrite, ref_write, ("ref", "value"), (ref, value), span, virtual_device)
    return result
