"""The operator registry."""

from __future__ import annotations

import subprocess
import sys

import pytest

from loopwright import ir, tir
from loopwright.ir.op import CallEffect, UnknownOp, register_op, register_op_attr


def test_operators_are_one_object_a_name():
    assert ir.Op.get("tir.exp") is ir.Op.get("tir.exp")
    assert register_op("tir.exp", CallEffect.OPAQUE) is ir.Op.get("tir.exp")
    assert "tir.exp" in ir.Op.list_op_names() and ir.Op.list_op_names() == sorted(ir.Op.list_op_names())


@pytest.mark.parametrize(
    ("name", "pure"),
    [("exp", True), ("if_then_else", True), ("call_extern", False), ("ret", False), ("address_of", False)],
)
def test_effects(name, pure):
    assert ir.Op.get(f"tir.{name}").is_pure == pure
    assert ir.Op.get("tir.ret").effect is CallEffect.CONTROL_JUMP


def test_an_unknown_operator_is_named_with_guesses():
    with pytest.raises(UnknownOp, match=r"no operator is called 'tir.expp' \[LW0507\]") as caught:
        ir.Op.get("tir.expp")
    assert "hint: did you mean tir.exp" in str(caught.value)
    with pytest.raises(UnknownOp) as caught:
        ir.Op.get("zzzzzzz")
    assert "hint: Op.list_op_names() lists them all" in str(caught.value)
    with pytest.raises(ValueError, match=r"tir\.expp"):
        ir.Op.get("tir.expp")


def test_our_operators_are_known_whatever_was_loaded_before(tmp_path):
    # A worker process may load a program, or a script register a rule, before anything has built an expression.
    saved = tmp_path / "program.json"
    saved.write_text(ir.save_json([tir.exp(tir.Var("x", "float32")), tir.mma_fill("float32", 1)]))
    program = f"""
from loopwright import ir
exp, fill = ir.load_json(open({str(saved)!r}).read())
ir.register_intrin_lowering("tir.sqrt", target="c", f=lambda call: None)
print(exp.op.is_pure, fill.op.effect.name, ir.Op.get("tir.sqrt").is_pure, sorted(ir.Op.of_users))
"""
    made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert made.stdout.split("\n")[0] == "True OPAQUE True []"


def test_attributes_by_level():
    op = ir.Op.get("tir.exp")
    assert not op.has_attr("test.rule") and op.get_attr("test.rule") is None
    try:
        op.set_attr("test.rule", "low", level=5)
        op.set_attr("test.rule", "lower", level=1)
        assert op.get_attr("test.rule") == "low"
        op.set_attr("test.rule", "high", level=5)
        assert op.get_attr("test.rule") == "high" and op.has_attr("test.rule")

        @register_op_attr("tir.exp", "test.rule")
        def rule() -> None: ...

        assert op.get_attr("test.rule") is rule
        assert not ir.Op.get("tir.log").has_attr("test.rule")
    finally:
        op.reset_attr("test.rule")
    assert not op.has_attr("test.rule")
