"""check_kind: whether a type makes sense, and what kind of thing it is.

    check_kind(TensorType((2, 3)))                   TypeKind.Type
    check_kind(TypeRelation(...))                    TypeKind.Constraint
    check_kind(TupleType([a shape variable]))        refused: a field of a tuple is a type

A type is made of types; a data type is given as many types as it was defined with.
"""

from __future__ import annotations

from collections.abc import Iterable

from loopwright.ir.function import IRModule
from loopwright.ir.types import TupleType, Type
from loopwright.relay.adt import TypeData
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.types import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    TensorType,
    TypeCall,
    TypeKind,
    TypeRelation,
    TypeVar,
)


def check_kind(t: Type | TypeData, mod: IRModule | None = None) -> TypeKind:
    """The kind of a type; TypeMismatch where a part of it is of the wrong kind. `mod` says what data types are."""
    if isinstance(t, TypeData):
        _require([t.header], TypeKind.AdtHandle, "the name of a data type", mod)
        _require(t.type_vars, TypeKind.Type, "a parameter of a data type", mod)
        for constructor in t.constructors:
            _require([constructor.belong_to], TypeKind.AdtHandle, "the type that a case belongs to", mod)
            _require(constructor.inputs, TypeKind.Type, f"a field of {constructor.name_hint}", mod)
        return TypeKind.TypeData
    if isinstance(t, (TypeVar, GlobalTypeVar, IncompleteType)):
        return t.kind
    if isinstance(t, TensorType):
        return TypeKind.Type
    if isinstance(t, TupleType):
        _require(t.fields, TypeKind.Type, "a field of a tuple", mod)
    elif isinstance(t, FuncType):
        _require(t.type_params, TypeKind.Type, "a type parameter of a function", mod)
        _require(t.arg_types, TypeKind.Type, "an argument of a function", mod)
        _require([t.ret_type], TypeKind.Type, "the result of a function", mod)
        constraints = [each for each in t.type_constraints if isinstance(each, Type)]
        _require(constraints, TypeKind.Constraint, "a constraint of a function", mod)
    elif isinstance(t, RefType):
        _require([t.value], TypeKind.Type, "what a cell holds", mod)
    elif isinstance(t, TypeRelation):
        _require(t.args, TypeKind.Type, "an argument of a relation", mod)
        return TypeKind.Constraint
    elif isinstance(t, TypeCall):
        _check_data_type(t, mod)
    else:
        raise TypeMismatch(f"{t!r} has no kind: it is a {type(t).__name__}")
    return TypeKind.Type


def _require(parts: Iterable[Type], wanted: TypeKind, what: str, mod: IRModule | None) -> None:
    for part in parts:
        kind = check_kind(part, mod)
        if kind != wanted:
            raise TypeMismatch(f"{what} is of kind {wanted.name}, and {part!r} is of kind {kind.name}")


def _check_data_type(call: TypeCall, mod: IRModule | None) -> None:
    if not isinstance(call.func, GlobalTypeVar):
        raise TypeMismatch(f"{call.func!r} is given types, and is not the name of a data type")
    _require([call.func], TypeKind.AdtHandle, "what is given types", mod)
    _require(call.args, TypeKind.Type, f"what {call.func.name_hint} is given", mod)
    defined = mod.type_definitions.get(call.func) if mod is not None else call.func.definition
    if not isinstance(defined, TypeData):
        raise TypeMismatch(f"the data type {call.func.name_hint} is not defined")
    if len(call.args) != len(defined.type_vars):
        raise TypeMismatch(f"{call.func.name_hint} is given {len(call.args)} types, and takes {len(defined.type_vars)}")
