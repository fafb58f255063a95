"""A solver of relations between types, under the names that scripts reach it by.

    solver = _test_type_solver();  unify = solver("Unify");  unify(one, other)

Types that are not known yet (`IncompleteType`) stand for others once they were unified with them. Relations
(`relay/type_relations.py`) are kept until they say something: from inputs to results, the identity backward too.
Our own inference (`relay/infer_type.py`) needs neither.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from loopwright.ir.types import TupleType, Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.type_arguments import filled
from loopwright.relay.type_relations import RELATIONS, relation
from loopwright.relay.types import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    TensorType,
    TypeCall,
    TypeRelation,
    TypeVar,
    same_type,
)
from loopwright.runtime import register_func

# `EnvFunc.get("tvm.relay.type_relation.Broadcast")` finds a relation among registered functions.
for _name, _relation in RELATIONS.items():
    register_func(f"tvm.relay.type_relation.{_name}", _relation.rule, override=True)


def _differ(one: Type, other: Type) -> TypeMismatch:
    return TypeMismatch(f"unable to unify {one!r} and {other!r}")


class TypeSolver:
    """Types that were found to be the same, and relations that wait."""

    def __init__(self) -> None:
        self.found: dict[Type, Type] = {}  # a type that was not known → what it is
        self.waiting: list[TypeRelation] = []

    def resolve(self, of: Type) -> Type:
        """The type with what is known of its parts."""
        while of in self.found and isinstance(of, IncompleteType):
            of = self.found[of]
        if isinstance(of, TupleType):
            return TupleType(tuple(map(self.resolve, of.fields)))
        if isinstance(of, RefType):
            return RefType(self.resolve(of.value))
        if isinstance(of, TypeCall):
            return TypeCall(of.func, list(map(self.resolve, of.args)))
        if isinstance(of, FuncType):
            return FuncType(list(map(self.resolve, of.arg_types)), self.resolve(of.ret_type), of.type_params)
        return of

    def unify(self, one: Type, other: Type) -> Type:
        """Make both the same type; TypeMismatch where they cannot be."""
        one, other = self.resolve(one), self.resolve(other)
        if isinstance(one, IncompleteType):
            return self._learn(one, other)
        if isinstance(other, IncompleteType):
            return self._learn(other, one)
        if isinstance(one, TupleType) and isinstance(other, TupleType):
            return TupleType(tuple(self._all(one, other, one.fields, other.fields)))
        if isinstance(one, RefType) and isinstance(other, RefType):
            return RefType(self.unify(one.value, other.value))
        if isinstance(one, TypeCall) and isinstance(other, TypeCall):
            self.unify(one.func, other.func)
            return TypeCall(one.func, self._all(one, other, one.args, other.args))
        if isinstance(one, FuncType) and isinstance(other, FuncType):
            return self._functions(one, other)
        if one is other or (isinstance(one, TensorType) and same_type(one, other)):
            return one
        if isinstance(one, GlobalTypeVar) or isinstance(other, GlobalTypeVar):
            raise TypeMismatch(f"data types {one!r} and {other!r} are not the same")
        raise _differ(one, other)

    def _all(self, one: Type, other: Type, some: Sequence[Type], others: Sequence[Type]) -> list[Type]:
        if len(some) != len(others):
            raise _differ(one, other)
        for a, b in zip(some, others, strict=True):
            self.unify(a, b)
        return [self.resolve(a) for a in some]

    def _learn(self, unknown: IncompleteType, of: Type) -> Type:
        if of is unknown:
            return of
        if _holds(of, unknown):
            raise TypeMismatch(f"a type would be a part of itself: {of!r}")
        self.found[unknown] = of
        return of

    def _functions(self, one: FuncType, other: FuncType) -> Type:
        """The one with more type variables is opened: each of its variables is to be found."""
        if len(other.type_params) > len(one.type_params):
            one, other = other, one
        opened: dict[TypeVar, Type] = {of: IncompleteType() for of in one.type_params if isinstance(of, TypeVar)}
        parts = [filled(of, opened) for of in (*one.arg_types, one.ret_type)]
        if len(one.arg_types) != len(other.arg_types):
            raise _differ(one, other)
        for a, b in zip(parts, (*other.arg_types, other.ret_type), strict=True):
            self.unify(a, b)
        return self.resolve(other)

    def add_constraint(self, constraint: TypeRelation) -> None:
        self.waiting.append(constraint)

    def solve(self) -> bool:
        """Apply relations as long as one says something; whether none is left."""
        changed = True
        while changed:
            before, self.waiting = self.waiting, []
            for each in before:
                if not self._apply(each):
                    self.waiting.append(each)
            changed = len(self.waiting) < len(before)
        return not self.waiting

    def _apply(self, constraint: TypeRelation) -> bool:
        inputs = [self.resolve(of) for of in constraint.args[: constraint.num_inputs]]
        result = constraint.args[-1]
        rule = relation(str(getattr(constraint.func, "name", "")).rpartition(".")[2])
        if rule.name == "Identity":
            self.unify(inputs[0], result)
            return True
        if any(isinstance(of, IncompleteType) for of in inputs):
            return False
        self.unify(result, rule(inputs, constraint.attrs))
        return True


def _holds(of: Type, wanted: Type) -> bool:
    if of is wanted:
        return True
    parts: Sequence[Type] = ()
    if isinstance(of, TupleType):
        parts = of.fields
    elif isinstance(of, FuncType):
        parts = (*of.arg_types, of.ret_type)
    elif isinstance(of, TypeCall):
        parts = of.args
    elif isinstance(of, RefType):
        parts = (of.value,)
    return any(_holds(part, wanted) for part in parts)


class _Named:
    """A solver whose methods are asked for by name."""

    def __init__(self) -> None:
        solver = TypeSolver()
        self._methods: dict[str, Callable[..., Any]] = {
            "Unify": solver.unify,
            "Resolve": solver.resolve,
            "AddConstraint": solver.add_constraint,
            "Solve": solver.solve,
        }

    def __call__(self, name: str) -> Callable[..., Any]:
        return self._methods[name]


def _test_type_solver() -> _Named:
    return _Named()
