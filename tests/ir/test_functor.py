"""ir_transform, and walks over expressions that share their parts."""

from __future__ import annotations

import pytest

from loopwright import ir, tir
from loopwright.ir.functor import BadReplacement, UnknownNodeName
from tests.ir.programs import two_stages

x = tir.Var("x", "float32")


def test_postorder_replaces_and_none_keeps():
    def change(literal):
        return tir.const(3.0) if literal.value == 2.0 else None

    new = tir.stmt_functor.ir_transform(two_stages, None, change, ["tir.FloatImm"])
    assert "C[vi] * T.float32(3)" in new.script()
    same = tir.stmt_functor.ir_transform(two_stages.body, None, lambda node: None)
    assert same is two_stages.body


def test_preorder_stops_where_it_answers():
    seen = []

    def before(node):
        seen.append(type(node).__name__)
        return tir.Evaluate(0) if isinstance(node, tir.For) else None

    loop = tir.For(tir.Var("i"), 0, 4, 0, tir.Evaluate(7))
    assert isinstance(tir.stmt_functor.ir_transform(loop, before, None), tir.Evaluate)
    assert seen == ["For"]


def test_only_enable_names_classes_and_their_subclasses():
    seen = []
    tir.stmt_functor.ir_transform(two_stages.body, lambda node: seen.append(type(node).__name__), None, ["tir.For"])
    assert seen == ["For", "For"]
    with pytest.raises(UnknownNodeName, match=r"no node is called 'tir.Foor'(.|\n)*tir.For"):
        tir.stmt_functor.ir_transform(two_stages.body, None, None, ["tir.Foor"])


@pytest.mark.parametrize("result", [True, "x", tir.const(1)])
def test_a_statement_is_replaced_by_a_statement(result):
    with pytest.raises(BadReplacement, match="For is replaced by a statement"):
        tir.stmt_functor.ir_transform(two_stages.body, None, lambda node: result, ["tir.For"])


def chain(value, count):
    for _ in range(count):
        value = value * value + 1.0
    return value


def test_walks_take_time_by_objects_not_by_places():
    deep = chain(x, 200)  # 2**200 places
    y = tir.Var("y", "float32")
    moved = tir.stmt_functor.substitute(deep, {x: y})
    assert ir.uses_var(moved, lambda var: var is y) and not ir.uses_var(moved, lambda var: var is x)
    assert ir.structural_equal(moved, chain(y, 200))
    assert not ir.structural_equal(moved, chain(y, 199))
    assert ir.structural_equal(deep, chain(y, 200), map_free_vars=True)
    assert ir.structural_hash(moved) == ir.structural_hash(chain(y, 200))
    assert (
        ir.structural_hash(deep, True)
        == ir.structural_hash(chain(y, 200), True)
        != ir.structural_hash(chain(y, 99), True)
    )
    count = 0

    def look(_):
        nonlocal count
        count += 1

    ir.post_order_visit(deep, look)
    assert count == 400 + 1 + 200  # the sums and products, x, and a literal in each sum
    assert tir.stmt_functor.ir_transform(deep, None, lambda node: None) is deep
    assert ir.structural_equal(ir.load_json(ir.save_json(deep)), deep, map_free_vars=True)


def test_a_rewriter_with_memory_keeps_sharing_and_one_without_does_not():
    class Plain(ir.Rewriter):
        def visit_Var(self, var):
            return tir.Var("y", "float32")

    class Remembering(Plain, memo=True):
        pass

    product = (x + 1.0) * 1.0
    shared = tir.Mul(product, product)
    plain, kept = Plain().visit(shared), Remembering().visit(shared)
    assert plain.a is not plain.b and kept.a is kept.b

    class Counting(ir.Visitor, memo=True):
        count = 0

        def visit_Add(self, e):
            self.count += 1

    counting = Counting()
    counting.visit(shared)
    assert counting.count == 1
    assert Counting()._memo == {}  # each walk has its own memory
