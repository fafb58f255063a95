"""The solver of relations between types that scripts reach by name."""

from __future__ import annotations

import pytest

from loopwright.compat.type_solver import TypeSolver, _test_type_solver
from loopwright.ir.env_func import EnvFunc
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.types import FuncType, IncompleteType, TensorType, TupleType, TypeRelation, TypeVar


def test_what_is_not_known_is_found():
    solver, a, b = TypeSolver(), IncompleteType(), IncompleteType()
    wide = TensorType((2, 3))
    solver.add_constraint(TypeRelation(EnvFunc.get("tvm.relay.type_relation.Broadcast"), [a, TensorType((3,)), b], 2))
    assert not solver.solve()
    assert solver.unify(TupleType([a]), TupleType([wide])) == TupleType([wide])
    assert solver.solve() and solver.resolve(b) == wide
    with pytest.raises(TypeMismatch, match="unable to unify"):
        solver.unify(a, TensorType((2,)))


def test_functions_for_any_types_and_types_within_themselves():
    unify = _test_type_solver()("Unify")
    a, b = TypeVar("a"), TypeVar("b")
    some = FuncType([a], TupleType([]), [a])
    assert unify(FuncType([a], b, [a, b]), some) == some
    inner = IncompleteType()
    with pytest.raises(TypeMismatch, match="a type would be a part of itself"):
        unify(inner, TupleType([inner]))
