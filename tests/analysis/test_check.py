"""check_program: all checks on all functions, at any stage of lowering."""

from __future__ import annotations

import subprocess
import sys

import pytest

from loopwright import te
from loopwright.analysis import OutOfBounds, UninitialisedRead, check_program, polyhedral
from loopwright.ir import IRModule
from loopwright.script import tir as T


def chain(m, k, l, n):
    a = te.placeholder((m, k), name="A")
    b = te.placeholder((k, l), name="B")
    d = te.placeholder((l, n), name="D")
    r, s = te.reduce_axis((0, k), name="r"), te.reduce_axis((0, l), name="s")
    c = te.compute((m, l), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    e = te.compute((m, l), lambda i, j: te.exp(c[i, j]), name="E")
    f = te.compute((m, n), lambda i, j: te.sum(e[i, s] * d[s, j], axis=s), name="F")
    return te.create_prim_func([a, b, d, f])


@T.prim_func
def early(B: T.Buffer((4,), "float32")):
    X = T.alloc_buffer((4,), "float32")
    for i in range(4):
        B[i] = X[i]


@T.prim_func
def outside(B: T.Buffer((4,), "float32")):
    for i in range(5):
        B[i] = T.float32(0)


@pytest.mark.parametrize("sizes", [(4, 5, 6, 7), (1, 1, 1, 1), (1024, 2048, 1024, 3072), (0, 3, 0, 2)])
def test_a_chain_of_matmuls_is_right(sizes):
    check_program(chain(*sizes))


def test_a_chain_with_symbolic_sizes_is_right():
    check_program(chain(*[te.var(name) for name in "mkln"]))


def test_every_function_of_a_module_is_checked():
    check_program(IRModule({"one": chain(2, 2, 2, 2)}))
    with pytest.raises(UninitialisedRead, match=r"reads X\[0\] before anything has written it at i = 0"):
        check_program(IRModule({"one": chain(2, 2, 2, 2), "two": early}))
    with pytest.raises(OutOfBounds, match=r"B\[4\] is outside its shape \(4,\)"):
        check_program(outside)


@pytest.mark.parametrize(("limit", "value"), [("BUDGET", 1), ("QUESTIONS", 0)])
def test_what_cannot_be_decided_passes(monkeypatch, limit, value):
    monkeypatch.setattr(f"loopwright.analysis.polyhedral.{limit}", value)
    polyhedral._smallest.cache_clear()  # what was decided before stays decided
    for function in (early, outside):
        check_program(function)


def test_common_programs_need_no_isl():
    code = (
        "import sys; from loopwright import te; from loopwright.analysis import check_program\n"
        "A = te.placeholder((4, 8), name='A'); k = te.reduce_axis((0, 8), name='k')\n"
        "B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name='B')\n"
        "C = te.compute((4,), lambda i: B[i] * 2.0, name='C')\n"
        "check_program(te.create_prim_func([A, C])); print('islpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
