"""Types are equal by content, as scripts for TVM compare them; type variables are equal to themselves alone."""

from __future__ import annotations

import pytest

from loopwright import ir, relay, te

n, m = te.size_var("n"), te.size_var("m")


def tensor(*shape, dtype="float32"):
    return relay.TensorType(shape, dtype)


EQUAL = {
    "tensors": lambda: tensor(2, n),
    "sums of sizes": lambda: tensor(n + 1, 3),
    "tensors of unknown size": lambda: tensor(relay.Any(), 3),
    "scalars": lambda: tensor(dtype="int64"),
    "tuples": lambda: relay.TupleType([tensor(2), relay.TupleType([])]),
    "functions": lambda: relay.FuncType([tensor(2), tensor(n)], tensor(2)),
    "references": lambda: relay.RefType(tensor(2)),
    "numbers": lambda: ir.PrimType("int32"),
    "pointers": lambda: ir.PointerType(ir.PrimType("float16"), "shared"),
}


@pytest.mark.parametrize("make", EQUAL.values(), ids=EQUAL)
def test_equal_by_content(make):
    one, other = make(), make()
    assert one is not other and one == other and not one != other and hash(one) == hash(other)
    assert len({one, other}) == 1 and one != None and one != "float32"  # noqa: E711


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (tensor(2), tensor(3)),
        (tensor(2), tensor(2, dtype="float16")),
        (tensor(2), tensor(2, 1)),
        (tensor(n), tensor(m)),
        (tensor(relay.Any()), tensor(2)),
        (tensor(2), relay.TupleType([tensor(2)])),
        (relay.TupleType([tensor(2)]), relay.TupleType([tensor(2), tensor(2)])),
        (relay.FuncType([tensor(2)], tensor(2)), relay.FuncType([tensor(2)], tensor(3))),
        (relay.FuncType([tensor(2)], tensor(2)), relay.FuncType([], tensor(2))),
        (relay.RefType(tensor(2)), relay.RefType(tensor(3))),
        (relay.TypeVar("a"), relay.TypeVar("a")),
        (ir.PrimType("int32"), ir.PrimType("int64")),
        (ir.PointerType(ir.PrimType("int8")), ir.PointerType(ir.PrimType("int8"), "local")),
    ],
)
def test_what_differs(one, other):
    assert one != other and not one == other
    assert other != one


def test_type_parameters_correspond():
    def identity(name):
        a = relay.TypeVar(name)
        return relay.FuncType([a], a, [a])

    a, b = relay.TypeVar("a"), relay.TypeVar("b")
    assert identity("a") == identity("b")
    assert relay.FuncType([a, b], a, [a, b]) != relay.FuncType([a, b], b, [a, b])
    assert relay.FuncType([a], a) != relay.FuncType([b], b)  # free ones do not
    assert a == a and len({a, b, a}) == 2


def test_the_kind_of_a_type():
    name, shape = relay.TypeVar("T"), relay.TypeVar("s", relay.TypeKind.ShapeVar)
    tensor = relay.TensorType((2,))
    relation = relay.TypeRelation(None, [tensor, name], 1)
    assert relay.analysis.check_kind(relay.FuncType([name], tensor, [name], [relation])) == relay.TypeKind.Type
    assert relay.analysis.check_kind(relation) == relay.TypeKind.Constraint
    with pytest.raises(TypeError, match="a field of a tuple is of kind Type, and s is of kind ShapeVar"):
        relay.analysis.check_kind(relay.TupleType([tensor, shape]))
    box = relay.GlobalTypeVar("Box")
    with pytest.raises(TypeError, match="the data type Box is not defined"):
        relay.analysis.check_kind(box(tensor))
    data = relay.TypeData(box, [name], [relay.Constructor("Full", [name], box)])
    assert relay.analysis.check_kind(data) == relay.TypeKind.TypeData
    assert relay.analysis.check_kind(box(tensor)) == relay.TypeKind.Type
    with pytest.raises(TypeError, match="Box is given 2 types, and takes 1"):
        relay.analysis.check_kind(box(tensor, tensor))
