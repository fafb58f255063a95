"""Operators of users, and rules that say what calls become."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import ir, te, tir
from loopwright.evaluator import evaluate
from loopwright.ir.intrinsic_rules import BadRuleResult, NoIntrinsicRule, NotARule, RuleExists, rule_targets
from loopwright.script import tir as T
from loopwright.transform import lower_intrinsics


@pytest.fixture(autouse=True)
def fresh_registry():
    """Operators and rules live as long as the process; a test takes its own back."""
    registry, users = dict(ir.Op.registry), set(ir.Op.of_users)
    attributes = {key: dict(table) for key, table in ir.Op.attribute_tables.items()}
    yield
    ir.Op.registry.clear()
    ir.Op.registry.update(registry)
    ir.Op.of_users.clear()
    ir.Op.of_users.update(users)
    ir.Op.attribute_tables.clear()
    ir.Op.attribute_tables.update(attributes)


def unary(name: str, dtype: str = "float32", n: int = 19) -> tir.PrimFunc:
    A = te.placeholder((n,), dtype, name="A")
    return te.create_prim_func([A, te.compute((n,), lambda i: tir.call_intrin(dtype, name, A[i]), name="B")])


def last_line(func: tir.PrimFunc) -> str:
    return func.script().splitlines()[-1].strip()


def pure(name: str) -> None:
    ir.register_op_attr(name, "TCallEffectKind", tir.CallEffectKind.Pure)


def test_a_new_operator_is_made_by_naming_an_attribute():
    with pytest.raises(AttributeError, match=r"no operator is called 'tir.mine'"):
        ir.Op.get("tir.mine")
    ir.register_op_attr("tir.mine", "TCallEffectKind", tir.CallEffectKind.Pure)
    op = ir.Op.get("tir.mine")
    assert op.is_pure and op.get_attr("TCallEffectKind") == tir.CallEffectKind.Pure
    assert "tir.mine" in ir.Op.list_op_names()
    op.reset_attr("TCallEffectKind")
    assert not op.is_pure


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 19])
def test_a_rule_to_arithmetic_from_te(n):
    pure("tir.cube")
    ir.register_intrin_lowering("tir.cube", target="default", f=lambda c: c.args[0] * c.args[0] * c.args[0])
    func = unary("tir.cube", n=n)
    a, b = np.linspace(-2, 2, n).astype("float32"), np.empty(n, "float32")
    lw.build(func)(a, b)
    np.testing.assert_array_equal(b, a * a * a)
    again = np.empty(n, "float32")
    evaluate(func, a, again)  # the evaluator knows the rule, too
    np.testing.assert_array_equal(b, again)


def test_a_rule_to_an_extern_call_from_script_also_vectorized():
    pure("tir.mylog")
    ir.register_intrin_lowering(
        "tir.mylog", target="llvm", f=lambda c: tir.call_pure_extern(c.dtype, "logf", *c.args), level=99
    )

    @T.prim_func
    def func(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in T.vectorized(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = T.call_intrin("float32", "tir.mylog", A[vi])

    a, b = np.linspace(1, 2, 8).astype("float32"), np.empty(8, "float32")
    lw.build(func)(a, b)
    np.testing.assert_allclose(b, np.log(a.astype("float64")), rtol=0, atol=2**-23)


def test_the_kind_of_the_target_comes_before_default_and_levels_decide():
    pure("tir.pick")
    pick = ir.register_intrin_lowering
    pick("tir.pick", "default", f=lambda c: tir.const(1.0))
    assert last_line(lower_intrinsics(unary("tir.pick"))).endswith("= T.float32(1)")
    pick("tir.pick", "cpu", f=lambda c: tir.const(2.0))  # a key of the target
    assert last_line(lower_intrinsics(unary("tir.pick"))).endswith("= T.float32(2)")
    pick("tir.pick", "llvm", f=lambda c: tir.const(3.0))
    pick("tir.pick", "llvm", f=lambda c: tir.const(4.0), level=5)  # lower than the one there
    pick("tir.pick", "c", f=lambda c: tir.const(5.0))
    assert last_line(lower_intrinsics(unary("tir.pick"))).endswith("= T.float32(3)")
    with lw.Target("c"):
        assert last_line(lower_intrinsics(unary("tir.pick"))).endswith("= T.float32(5)")
    assert rule_targets(ir.Op.get("tir.pick")) == ["c", "cpu", "default", "llvm"]


def test_a_rule_that_returns_none_leaves_the_next_one_or_the_call():
    ir.register_intrin_lowering("tir.exp", "llvm", f=lambda c: None)
    func = unary("tir.exp")
    assert lower_intrinsics(func) is func
    ir.register_intrin_lowering("tir.exp", "default", f=lambda c: c.args[0])
    assert last_line(lower_intrinsics(func)) == "B[v_i] = A[v_i]"


def test_a_rule_may_use_its_own_operator_and_others_are_lowered_in_turn():
    pure("tir.inner")
    ir.register_intrin_lowering("tir.inner", "default", f=lambda c: c.args[0] * 2.0)
    ir.register_intrin_lowering("tir.exp", "llvm", f=lambda c: tir.exp(tir.call_intrin(c.dtype, "tir.inner", *c.args)))
    assert last_line(lower_intrinsics(unary("tir.exp"))) == "B[v_i] = T.exp(A[v_i] * T.float32(2))"


def test_nested_calls_are_lowered_once_each_however_often_rules_repeat_their_argument():
    pure("tir.again")
    ir.register_intrin_lowering("tir.again", "default", f=lambda c: c.args[0] * c.args[0] * 0.5 + 0.25)
    A = te.placeholder((4,), name="A")

    def body(i):
        x = A[i]
        for _ in range(30):
            x = tir.call_intrin("float32", "tir.again", x)
        return x

    func = te.create_prim_func([A, te.compute((4,), body, name="B")])
    a, b = np.linspace(0, 1, 4).astype("float32"), np.empty(4, "float32")
    lw.build(func)(a, b)
    wanted = a
    for _ in range(30):
        wanted = wanted * wanted * np.float32(0.5) + np.float32(0.25)
    np.testing.assert_allclose(b, wanted, rtol=2**-22)


def test_the_older_spelling():
    ir.register_intrin_rule("llvm", "exp", lambda c: c.args[0])
    with pytest.raises(RuleExists, match=r"tir.exp has an intrinsic rule for target 'llvm' already"):
        ir.register_intrin_rule("llvm", "exp", lambda c: c.args[0] + 1.0)
    ir.register_intrin_rule("llvm", "tir.exp", lambda c: c.args[0] + 1.0, override=True)
    assert last_line(lower_intrinsics(unary("tir.exp"))) == "B[v_i] = A[v_i] + T.float32(1)"


def test_an_operator_without_a_rule_is_refused_by_name():
    pure("tir.mystery")
    with pytest.raises(NoIntrinsicRule, match=r"operator tir.mystery has no intrinsic rule for target kind 'llvm'"):
        lw.lower(unary("tir.mystery"), target="llvm")
    ir.register_intrin_lowering("tir.mystery", "cuda", f=lambda c: c.args[0])
    with pytest.raises(NoIntrinsicRule, match="it has rules for cuda"):
        lw.lower(unary("tir.mystery"), target="llvm")
    ir.register_intrin_lowering("tir.mystery", "llvm", f=lambda c: None)
    with pytest.raises(NoIntrinsicRule, match="since its rule returned None"):
        lw.lower(unary("tir.mystery"), target="llvm")


@pytest.mark.parametrize("result", [1.0, "x", tir.const(1), tir.Broadcast(1.0, 4)])
def test_a_rule_must_return_an_expression_of_the_type_of_the_call(result):
    ir.register_intrin_lowering("tir.exp", "llvm", f=lambda c: result)
    with pytest.raises(BadRuleResult, match=r"the intrinsic rule of tir.exp returned .* for a call of type float32"):
        lw.lower(unary("tir.exp"), target="llvm")


def test_a_rule_is_a_function():
    with pytest.raises(NotARule, match=r"the intrinsic rule of tir.exp is str 'expf'"):
        ir.register_intrin_lowering("tir.exp", "llvm", f="expf")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_what_a_rule_makes_is_legalized_like_any_program(dtype):
    pure("tir.twice")
    ir.register_intrin_lowering("tir.twice", "default", f=lambda c: c.args[0] + c.args[0])
    func = unary("tir.twice", dtype, 5)
    a = np.arange(5).astype(lw.DataType(dtype).numpy())
    b = np.empty_like(a)
    lw.build(func)(a, b)
    np.testing.assert_array_equal(b, a + a)


@pytest.mark.parametrize("key", ["my.cost", "other"])
def test_attributes_of_operators(key):
    op = ir.Op.get("tir.sqrt")
    assert op.get_attr(key) is None and not op.has_attr(key)

    @ir.register_op_attr("tir.sqrt", key)
    def cost():
        return 12

    assert op.get_attr(key) is cost and op.has_attr(key)
    op.set_attr(key, 1, level=3)
    assert op.get_attr(key) is cost
    op.set_attr(key, 2, level=11)
    assert op.get_attr(key) == 2
    op.reset_attr(key)
    assert op.get_attr(key) is None
