"""Mistakes made while learning: each is met with a message that says what is wrong and what would work."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.evaluator import evaluate
from loopwright.ir import assert_structural_equal
from loopwright.runtime.errors import LoopwrightError
from loopwright.script import from_source

HEAD = "@T.prim_func\ndef f(A: T.Buffer((8,), 'float32'), B: T.Buffer((8,), 'float32')):\n"


def row_sums():
    A = te.placeholder((8, 4), name="A")
    k = te.reduce_axis((0, 4), "k")
    return A, te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")


@pytest.fixture(scope="module")
def built():
    return lw.build(row_sums())


def told(kind, call):
    """The message of the error that `call` raises: ours, and of the given Python type too."""
    with pytest.raises(LoopwrightError) as caught:
        call()
    assert isinstance(caught.value, kind), type(caught.value)
    return str(caught.value)


def script(*lines, head=HEAD):
    return from_source(head + "\n".join("    " + line for line in lines) + "\n")


# te


def test_a_tensor_is_not_a_sequence():
    A, _ = row_sums()
    for walk in (lambda: list(A), lambda: max(A), lambda: list(A[0]), lambda: sum(A[0, 0])):
        assert "cannot be iterated over" in told(TypeError, walk)
    assert "write te.compute" in told(TypeError, lambda: list(A))


def test_a_buffer_is_not_a_sequence():
    assert "cannot be iterated over" in told(TypeError, lambda: list(lw.tir.decl_buffer((8,), name="A")))


def test_compute_wants_a_function():
    assert "te.compute C: int 3 is not a function" in told(TypeError, lambda: te.compute((8,), 3, name="C"))


def test_python_spellings_of_abs_power_and_plus():
    A = te.placeholder((5,), name="A")
    B = te.compute((5,), lambda i: abs(A[i]) ** 2 + 2 ** i.astype("float32") + (+A[i]), name="B")
    run = lw.build([A, B])
    a, b = np.array([-2, -1, 0, 1, 3], "float32"), np.empty(5, "float32")
    run(a, b)
    np.testing.assert_allclose(b, a * a + 2.0 ** np.arange(5) + a, rtol=1e-6)


def test_the_power_of_integers_is_refused():
    n = te.var("n")
    assert "operator ** is not defined for int32 and int32" in told(TypeError, lambda: n**2)


def test_a_text_is_no_number():
    assert "exp is not defined for handle" in told(TypeError, lambda: te.exp("x"))
    assert "power is not defined for handle" in told(TypeError, lambda: te.power("x", "y"))
    assert "cannot make an int8 literal from str 'x'" in told(TypeError, lambda: lw.tir.const("x", "int8"))


def test_a_function_is_called_by_its_own_name():
    with pytest.raises(TypeError, match=r"^exp\(\) takes 1 positional argument but 2 were given"):
        te.exp(1.0, 2.0)


def test_the_condition_of_if_then_else_is_named():
    A, _ = row_sums()
    assert "the condition A[0, 0] of type float32 is neither true nor false" in told(
        TypeError, lambda: te.if_then_else(A[0, 0], 1.0, 2.0)
    )


# build


def test_a_variable_may_be_a_parameter_of_a_build():
    n, X = te.var("n"), te.placeholder((8,), name="X")
    Y = te.compute((8,), lambda i: X[i] * n, name="Y")
    y = np.empty(8, "float32")
    lw.build([X, n, Y])(np.ones(8, "float32"), 3, y)
    assert (y == 3).all()


def test_build_says_what_it_was_given():
    A, B = row_sums()
    assert "cannot build an int" in told(ValueError, lambda: lw.build(3))
    assert "cannot build an empty list" in told(ValueError, lambda: lw.build([]))
    assert "entry 1 of the list is a list" in told(ValueError, lambda: lw.build([A, [B]]))


@pytest.mark.parametrize("given", ["c", lw.Target("c"), {"kind": "c"}])
def test_a_target_in_the_place_of_args_is_the_target(given):
    assert "#include" in lw.build(row_sums(), given).get_source("c")
    assert_structural_equal(lw.lower(row_sums(), given), lw.lower(row_sums(), target=given))


def test_arguments_belong_to_a_schedule():
    assert "args belongs to a schedule" in told(TypeError, lambda: lw.build(row_sums(), list(row_sums())))
    assert "args belongs to a schedule" in told(TypeError, lambda: lw.lower(row_sums(), list(row_sums())))
    with pytest.warns(UserWarning, match="args is ignored: the program says what its parameters are"):
        lw.build(te.create_prim_func(list(row_sums())), list(row_sums()))


@pytest.mark.parametrize("name", ["", 3, None])
def test_a_function_needs_a_name(name):
    assert f"{name!r} cannot name a function" in told(TypeError, lambda: lw.build(row_sums(), name=name))


def test_code_for_another_cpu_can_be_read_and_says_so_when_called():
    module = lw.build(row_sums(), target="llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=neoverse-n1")
    if lw.target.describe(lw.Target("llvm")).triple.startswith("aarch64"):
        pytest.skip("that is this machine")
    assert "aarch64-unknown-linux-gnu" in module.get_source("ll")
    assert "ret" in module.get_source("asm")
    assert "cannot run here" in told(
        LoopwrightError, lambda: module(np.ones((8, 4), "float32"), np.empty(8, "float32"))
    )
    assert "cannot run here" in told(LoopwrightError, lambda: module["main"]())


# calls


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.ones((8, 4), object), "element type object"),
        (np.ones((8, 4), [("x", "f4")]), "which no function takes"),
        (np.ones((8, 4), "S3"), "element type |S3"),
        (np.ones((8, 4), np.dtype("float32").newbyteorder()), "bytes in the other order"),
    ],
    ids=["object", "record", "text", "byte order"],
)
def test_arrays_that_cannot_be_passed_are_named(built, array, words):
    message = told(TypeError, lambda: built(array, np.zeros(8, "float32")))
    assert "main: argument number 1 " in message
    assert words in message
    assert ".astype(" in message


def test_a_read_only_argument_is_counted_from_one(built):
    out = np.zeros(8, "float32")
    out.flags.writeable = False
    assert "main: argument number 2 is a read-only array" in told(
        ValueError, lambda: built(np.ones((8, 4), "float32"), out)
    )


def test_a_module_of_several_functions_is_called_by_name():
    A = te.placeholder((8,), name="A")
    function = te.create_prim_func([A, te.compute((8,), lambda i: A[i] + 1)])
    clash = "functions one and two would both be compiled as 'main'"
    assert clash in told(ValueError, lambda: lw.build(lw.IRModule({"one": function, "two": function})))
    assert "main and main would both" in told(ValueError, lambda: lw.build([function, function]))
    named = {name: function.with_attr("global_symbol", name) for name in ("one", "two")}
    module = lw.build(lw.IRModule(named))
    assert 'call one of them, as in module["one"](…)' in told(AttributeError, lambda: module())


def test_the_forms_of_source_are_listed(built):
    assert told(ValueError, lambda: built.get_source("ptx")).endswith("it can show ll, asm, s, llvm, h, json")


@pytest.mark.parametrize("option", ["number", "repeat", "min_repeat_ms"])
def test_timing_options_are_numbers(built, option):
    assert f"time_evaluator: {option} is str 'x'" in told(
        ValueError, lambda: built.time_evaluator("main", lw.cpu(), **{option: "x"})
    )


def test_evaluate_wants_a_program():
    assert "cannot evaluate int 3" in told(TypeError, lambda: evaluate(3))


# script


def test_memory_in_a_loop_is_shown_its_place():
    message = told(
        LoopwrightError,
        lambda: script("for i in range(8):", "    t = T.alloc_buffer((1,))", "    t[0] = A[i]", "    B[i] = t[0]"),
    )
    assert "use T.decl_buffer here" in message
    lw.build(script("for i in range(8):", "    t = T.decl_buffer((1,))", "    t[0] = A[i]", "    B[i] = t[0]"))


def test_a_step_of_a_range_is_written_into_the_index():
    for bounds, index in (("0, 8, 2", "i * 2"), ("1, 8, 3", "1 + i * 3"), ("7, -1, -1", "7 - i")):
        message = told(TypeError, lambda b=bounds: script(f"for i in range({b}):", "    B[i] = A[i]"))
        assert f"and use {index} as the index" in message


def test_short_names_get_no_far_fetched_suggestion():
    message = told(NameError, lambda: script("for i in range(8):", "    B[i] = A[i]", "B[i] = A[0]"))
    assert "did you mean" not in message
    assert "a loop variable ends with its loop" in message


def test_a_parameter_is_not_given_a_second_value():
    assert "'B' is already defined" in told(LoopwrightError, lambda: script("B = A"))
    assert "B[0:8] = " in told(LoopwrightError, lambda: script("B = A"))


def test_a_buffer_has_a_shape_of_sizes():
    head = "@T.prim_func\ndef f(A: T.Buffer(%s, 'float32')):\n"
    assert "dimension 0 of the shape is -8" in told(LoopwrightError, lambda: script("pass", head=head % "-8"))
    assert "dimension 0 of the shape is a text" in told(LoopwrightError, lambda: script("pass", head=head % "('n',)"))
    assert "dimension 1 of the shape is of type float32" in told(
        LoopwrightError, lambda: script("pass", head=head % "(8, 2.5)")
    )


# the package


def test_a_python_function_is_no_program():
    message = told(ValueError, lambda: lw.build(row_sums))
    assert "cannot build row_sums, which is a Python function" in message
    assert "give its result: row_sums(); if it is one, put @T.prim_func above it" in message

    def sized(n):
        return row_sums()

    assert "give its result: sized(…);" in told(ValueError, lambda: lw.build(sized))


def test_what_is_to_come_is_said_to_be():
    with pytest.raises(AttributeError, match=r"'loopwright\.autotvm' is not built yet"):
        _ = lw.autotvm
    with pytest.raises(AttributeError, match="has no attribute 'frobnicate'"):
        _ = lw.frobnicate
    assert not hasattr(lw, "rpc")


def test_the_package_lists_its_public_names_once():
    names = dir(lw)
    assert len(names) == len(set(names))
    assert "importlib" not in names
    assert {"build", "te", "tir"} <= set(names)
