from __future__ import annotations

import pytest

from loopwright import ir
from loopwright.script import from_source
from loopwright.script import tir as T
from loopwright.script.parser.errors import EndlessMacro, ExpressionFailed, NotAFunction, UndefinedName

k = 5


@T.macro
def fill(A, i, *rest, scale=2.0, **named):
    A[i] = T.float32(scale) + T.float32(k)
    for j in range(len(rest)):
        A[j] = T.float32(named["z"])


@T.macro(hygienic=False)
def set_here(i):
    A[i] = T.float32(k)


def same(func, text):
    ir.assert_structural_equal(func, from_source(text))


def test_any_python_signature_and_names_of_the_definition():
    k = 9

    @T.prim_func
    def f(A: T.Buffer(16)):
        fill(A, 3, "a", "b", scale=1.0, z=7)

    body = "    A[3] = T.float32(6)\n    for j in range(2):\n        A[j] = T.float32(7)"
    same(f, f"@T.prim_func\ndef f(A: T.Buffer(16)):\n{body}")


def test_without_hygiene_names_are_those_of_the_call():
    k = 9

    @T.prim_func
    def f(A: T.Buffer(16)):
        for q in range(4):
            set_here(q)

    same(f, "@T.prim_func\ndef f(A: T.Buffer(16)):\n    for q in range(4):\n        A[q] = T.float32(9)")


def test_macros_speak_about_the_block_they_stand_in():
    @T.macro
    def axes(A, i):
        v = T.axis.spatial(16, i)
        T.reads()
        T.writes(A[v])
        A[v] = T.float32(1)

    @T.prim_func
    def f(A: T.Buffer(16)):
        for i in range(16):
            with T.block("b"):
                axes(A, i)

    assert len(f.body.block.body.body.block.iter_vars) == 1


def test_macros_call_macros():
    @T.macro
    def twice(A, i):
        fill(A, i, z=1)
        fill(A, i + 1, z=1)

    @T.prim_func
    def f(A: T.Buffer(16)):
        twice(A, 0)

    stored = [int(part.indices[0]) for part in f.body.seq[0].seq + f.body.seq[1].seq if hasattr(part, "indices")]
    assert stored == [0, 1]


def test_errors_stand_in_the_macro_and_name_the_call():
    @T.macro
    def bad(A):
        A[0] = nothing

    with pytest.raises(UndefinedName, match="'nothing' is not defined") as caught:

        @T.prim_func
        def f(A: T.Buffer(16)):
            bad(A)

    assert "A[0] = nothing" in str(caught.value)
    assert caught.value.__notes__[0].startswith("in macro bad, called at ")


def test_a_macro_that_calls_itself():
    @T.macro
    def again(A):
        again(A)

    with pytest.raises(EndlessMacro, match="macro 'again' calls itself without an end"):
        from_source("@T.prim_func\ndef f(A: T.Buffer(4)):\n    again(A)", {"again": again})


def test_wrong_arguments():
    with pytest.raises(ExpressionFailed, match="missing a required argument: 'i'"):
        from_source("@T.prim_func\ndef f(A: T.Buffer(4)):\n    fill(A)", {"fill": fill})
    with pytest.raises(NotAFunction, match=r"@T\.macro expects a function, got bool"):
        T.macro(True)
