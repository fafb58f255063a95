"""Graphs as text: what is written, and where."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import relay, te, tir
from loopwright.script import tir as T


def text(expression) -> str:
    return str(expression)


def typed(function):
    return relay.transform.InferType()(relay.IRModule.from_expr(function))


def test_a_module_with_types():
    x = relay.var("x", shape=(1, 3))
    y = relay.exp(x)
    mod = typed(relay.Function([x], relay.add(y, y)))
    assert mod.astext() == (
        '#[version = "0.0.5"]\n'
        "def @main(%x: Tensor[(1, 3), float32]) /* -> Tensor[(1, 3), float32] */ {\n"
        "  %0 = exp(%x) /* ty=Tensor[(1, 3), float32] */;\n"
        "  add(%0, %0) /* ty=Tensor[(1, 3), float32] */\n"
        "}\n"
    )


def test_str_has_neither_header_nor_metadata():
    x = relay.var("x", shape=(2,))
    mod = relay.IRModule.from_expr(relay.Function([x], x + relay.const(np.array([1.5, 2.0], "float32"))))
    assert str(mod) == repr(mod) == mod.script()
    assert str(mod) == (
        "def @main(%x: Tensor[(2), float32]) {\n  add(%x, meta[relay.Constant][0] /* ty=Tensor[(2), float32] */)\n}"
    )
    assert mod.astext(show_meta_data=False) == '#[version = "0.0.5"]\n' + str(mod) + "\n"
    assert "#[metadata]" in mod.astext() and '"shape": [2]' in mod.astext()


def test_let_if_tuple_projection_and_refs():
    c, x, v = relay.var("c", "bool"), relay.var("x", shape=(2,)), relay.var("v")
    pair = relay.Tuple([v, x])
    body = relay.If(c, relay.TupleGetItem(pair, 1), relay.RefRead(relay.RefCreate(v)))
    assert text(relay.Function([c, x], relay.Let(v, relay.exp(x), body))) == (
        "fn (%c: bool, %x: Tensor[(2), float32]) {\n"
        "  let %v = exp(%x);\n"
        "  if (%c) {\n"
        "    %0 = (%v, %x);\n"
        "    %0.1\n"
        "  } else {\n"
        "    %1 = ref(%v);\n"
        "    ref_read(%1)\n"
        "  }\n"
        "}"
    )
    assert text(relay.Tuple([])) == "()"
    assert text(relay.Tuple([relay.const(1)])) == "(1,)"


def test_a_value_of_both_branches_is_written_before_them():
    c, x = relay.var("c", "bool"), relay.var("x", shape=(2,))
    shared = relay.exp(x)
    assert text(relay.Function([c, x], relay.If(c, relay.sqrt(shared), shared))) == (
        "fn (%c: bool, %x: Tensor[(2), float32]) {\n"
        "  %0 = exp(%x);\n"
        "  if (%c) {\n"
        "    sqrt(%0)\n"
        "  } else {\n"
        "    %0\n"
        "  }\n"
        "}"
    )


def test_attributes_that_are_defaults_are_left_out():
    x = relay.var("x", shape=(2, 3))
    assert text(relay.sum(x)).endswith("sum(%x)")
    assert text(relay.sum(x, axis=1, keepdims=True)).endswith("sum(%x, axis=[1], keepdims=True)") or text(
        relay.sum(x, axis=1, keepdims=True)
    ).endswith("sum(%x, axis=1, keepdims=True)")
    assert text(relay.cast(x, "int8")).endswith('cast(%x, dtype="int8")')


def test_function_attributes_and_calls():
    p = relay.var("p0", shape=(2,))
    x = relay.var("x", shape=(2,))
    inner = relay.Function([p], relay.exp(p), attrs={"Primitive": 1, "Composite": "a.b", "relay.reshape_only": 1})
    assert text(relay.Function([x], inner(x))) == (
        "fn (%x: Tensor[(2), float32]) {\n"
        '  %0 = fn (%p0: Tensor[(2), float32], Primitive=1, Composite="a.b", relay.reshape_only=1) {\n'
        "    exp(%p0)\n"
        "  };\n"
        "  %0(%x)\n"
        "}"
    )


@pytest.mark.parametrize(
    ("value", "dtype", "written"),
    [
        (42, "int32", "42"),
        (-42, "int64", "-42i64"),
        (7, "int8", "7i8"),
        (255, "uint8", "255u8"),
        (2**64 - 1, "uint64", "18446744073709551615u64"),
        (3, "float32", "3f"),
        (0.1, "float32", "0.1f"),
        (-0.0, "float32", "-0f"),
        (1e-5, "float32", "1e-05f"),
        (3.5, "float16", "3.5f16"),
        (0.1, "float64", "0.1f64"),
        (1.5, "bfloat16", "1.5bf16"),
        (float("inf"), "float32", "inff"),
        (float("-inf"), "float64", "-inff64"),
        (float("nan"), "float32", "nanf"),
        (True, "bool", "True"),
    ],
)
def test_numbers(value, dtype, written):
    assert text(relay.const(value, dtype)) == written
    back = relay.parse_expr(written)
    expected = relay.const(value, dtype).data
    assert back.data.dtype == expected.dtype and back.data.tobytes() == expected.tobytes()


def test_names_are_unique_and_odd_ones_stand_in_quotes():
    one, two, odd = (relay.var(name, shape=(1,)) for name in ("x", "x", "input:0"))
    assert text(relay.Tuple([one, two, odd])).splitlines() == [
        "free_var %x: Tensor[(1), float32];",
        "free_var %x_1: Tensor[(1), float32];",
        'free_var %"input:0": Tensor[(1), float32];',
        '(%x, %x_1, %"input:0")',
    ]


def test_size_variables_have_names_of_their_own():
    n, other = te.var("n"), te.var("n")
    k = te.size_var("k", "int64")
    x = relay.var("x", shape=(n, other, n * 2 + 1, relay.AnyDim(), k))
    assert "Tensor[(n, n_1, n * 2 + 1, ?, k: int64), float32]" in text(x)


def test_a_function_of_loops_stands_in_a_module_of_graphs():
    @T.prim_func
    def kernel(a: T.Buffer((4,), "float32")):
        for i in range(4):
            a[i] = 1.0

    x = relay.var("x", shape=(4,))
    mod = relay.IRModule({"main": relay.Function([x], x), "kernel": kernel})
    shown = str(mod)
    assert "primfn @kernel = meta[tir.PrimFunc][0];" in shown and "// " in shown
    back = relay.parse(mod.astext())
    assert isinstance(back["kernel"], tir.PrimFunc)


def test_annotate_writes_its_own_comments():
    x = relay.var("x", shape=(2,))
    assert (
        relay.exp(x)
        .astext(annotate=lambda e: "here" if isinstance(e, relay.Call) else "")
        .endswith("exp(%x) /* here */\n")
    )


def test_show_and_html(capsys):
    x = relay.var("x", shape=(2,))
    mod = relay.IRModule.from_expr(relay.exp(x))
    mod.show()
    relay.exp(x).show()
    shown = capsys.readouterr().out
    assert shown.count("exp(%x)") == 2
    assert "exp" in mod._repr_html_() and "exp" in relay.exp(x)._repr_html_()


def test_marked_expressions_and_lines_around_them():
    x = relay.var("x", shape=(2,))
    values = [x]
    for _ in range(20):
        values.append(relay.exp(values[-1]))
    shown = relay.Function([x], values[-1]).script(obj_to_underline=[values[10]], num_context_lines=1)
    assert shown == "…\n  %8 = exp(%7);\n  %9 = exp(%8);\n  ^^^^^^^^^^^^\n  %10 = exp(%9);\n…"


def test_a_bare_expression_becomes_main_of_a_module():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    mod = relay.IRModule.from_expr(relay.add(y, x))
    assert [param.name_hint for param in mod["main"].params] == ["y", "x"]


def test_an_error_shows_an_expression():
    from loopwright.relay.errors import TypeMismatch

    error = TypeMismatch("it does not fit", at=relay.exp(relay.var("x", shape=(2,))))
    assert "  > free_var %x: Tensor[(2), float32];" in str(error)


def test_spans_are_named_behind_values():
    x = relay.var("x", shape=(2,))
    add = relay.add(x, x)
    span = relay.Span(relay.SourceName("layer1"), 3, 3, 5, 7)
    one = relay.Call(add.op, add.args, add.attrs, span=span)
    assert "add(%x, %x) /* span=layer1:3:5 */" in one.astext()
    both = relay.Call(add.op, add.args, add.attrs, span=relay.SequentialSpan([span, span]))
    assert "/* span=[layer1:3:5, layer1:3:5] */" in both.astext()
    assert span == relay.Span(relay.SourceName("layer1"), 3, 3, 5, 7)


def test_several_results_have_a_text():
    assert "split(%x, indices_or_sections=2)" in relay.split(relay.var("x", shape=(4,)), 2).astext()
