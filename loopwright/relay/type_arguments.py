"""Type arguments: what the type variables of a polymorphic function stand for in one call of it.

map : fn [A, B](fn (A) -> B, List[A]) -> List[B]
map(f, xs) with xs : List[int32]                     A is int32
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopwright.ir.types import TupleType, Type
from loopwright.relay.types import FuncType, IncompleteType, RefType, TypeCall, TypeVar

_UNKNOWN = IncompleteType()


def learned_from(wanted: Type, given: Type, known: dict[TypeVar, Type]) -> None:
    """Note in `known` what the type variables in `wanted` are, where a value of type `given` stands."""
    if isinstance(wanted, TypeVar):
        if not isinstance(given, IncompleteType):
            known[wanted] = _fuller(known[wanted], given) if wanted in known else given
    elif isinstance(wanted, TupleType) and isinstance(given, TupleType):
        for part, other in zip(wanted.fields, given.fields, strict=False):
            learned_from(part, other, known)
    elif isinstance(wanted, TypeCall) and isinstance(given, TypeCall):
        for part, other in zip(wanted.args, given.args, strict=False):
            learned_from(part, other, known)
    elif isinstance(wanted, RefType) and isinstance(given, RefType):
        learned_from(wanted.value, given.value, known)
    elif isinstance(wanted, FuncType) and isinstance(given, FuncType):
        parts = [opened(of, given.type_params) for of in (*given.arg_types, given.ret_type)]
        for part, other in zip((*wanted.arg_types, wanted.ret_type), parts, strict=False):
            learned_from(part, other, known)


def _fuller(one: Type, other: Type) -> Type:
    """Of two views of a type, what both say: a list of unknown and a list of numbers are a list of numbers."""
    if isinstance(one, IncompleteType):
        return other
    if isinstance(one, TypeCall) and isinstance(other, TypeCall) and one.func is other.func:
        return TypeCall(one.func, [_fuller(a, b) for a, b in zip(one.args, other.args, strict=True)])
    if isinstance(one, TupleType) and isinstance(other, TupleType) and len(one.fields) == len(other.fields):
        return TupleType(tuple(_fuller(a, b) for a, b in zip(one.fields, other.fields, strict=True)))
    return one


def filled(of: Type, known: Mapping[TypeVar, Type]) -> Type:
    """The type with its variables replaced."""
    if not known:
        return of
    if isinstance(of, TypeVar):
        return known.get(of, of)
    if isinstance(of, TupleType):
        return TupleType(tuple(filled(part, known) for part in of.fields))
    if isinstance(of, TypeCall):
        return TypeCall(of.func, [filled(part, known) for part in of.args])
    if isinstance(of, RefType):
        return RefType(filled(of.value, known))
    if isinstance(of, FuncType):
        return FuncType([filled(part, known) for part in of.arg_types], filled(of.ret_type, known), of.type_params)
    return of


def opened(of: Type, variables: Sequence[Type]) -> Type:
    """The type with those of `variables` that are left in it not known."""
    return filled(of, dict.fromkeys(variables, _UNKNOWN)) if variables else of  # type: ignore[arg-type]
