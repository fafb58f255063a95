"""What tensors and te schedules show."""

from __future__ import annotations

from functools import partial

from loopwright import te
from tests.html_check import check_html


def _first(value):
    return value


def product():
    A = te.placeholder((8, 4), name="A")
    B = te.placeholder((4, 6), name="B")
    k = te.reduce_axis((0, 4), name="k")
    C = te.compute((8, 6), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return A, B, C, te.compute((8, 6), lambda i, j: te.exp(C[i, j]), name="D")


def test_a_tensor_shows_all_that_it_is_computed_from(capsys):
    product()[-1].show()
    assert capsys.readouterr().out.splitlines() == [
        "Tensor D: float32(8, 6)  from 4 operations",
        "tensor  type           computed as",
        "A       float32(8, 4)  an input",
        "B       float32(4, 6)  an input",
        "C       float32(8, 6)  [i, j] = sum(A[i, k] * B[k, j], axis=k)",
        "D       float32(8, 6)  [i, j] = T.exp(C[i, j])",
    ]


def test_an_input_alone(capsys):
    te.placeholder((), "int8", name="x").show()
    assert capsys.readouterr().out.splitlines() == [
        "Tensor x: int8()  from 1 operation",
        "tensor  type    computed as",
        "x       int8()  an input",
    ]


def test_reductions_of_every_kind(capsys):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    for reducer, name in ((te.max, "max"), (te.min, "min")):
        k = te.reduce_axis((0, n), name="k")
        te.compute((), partial(_first, reducer(A[k], axis=k)), name="R").show()
        assert f"{name}(A[k], axis=k)" in capsys.readouterr().out
    k = te.reduce_axis((0, n), name="k")
    te.compute((), lambda: te.sum(A[k], axis=k, where=k < 3), name="R").show()
    assert "sum(A[k], axis=k, where=k < 3)" in capsys.readouterr().out


def test_a_reduction_of_pairs_has_a_row_for_each_output(capsys):
    A = te.placeholder((8,), "int32", name="A")
    k = te.reduce_axis((0, 8), name="k")
    both = te.comm_reducer(
        lambda x, y: (x[0] + y[0], x[1] * y[1]), lambda *dtypes: (te.const(0, dtypes[0]), te.const(1, dtypes[1]))
    )
    total, product = te.compute((), lambda: both((A[k], A[k]), axis=k), name="R")
    total.show()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:]] == ["A", "R.v0", "R.v1"]
    assert "reduce[" in lines[-1]
    check_html(product._repr_html_())


def test_scans_and_externs(capsys):
    X = te.placeholder((5, 3), name="X")
    state = te.placeholder((5, 3), name="S")
    init = te.compute((1, 3), lambda _, i: X[0, i], name="init")
    update = te.compute((5, 3), lambda t, i: state[t - 1, i] + X[t, i], name="update")
    te.scan(init, update, state, inputs=[X], name="total").show()
    assert "scan of" in capsys.readouterr().out


def test_long_formulas_are_cut(capsys):
    A = te.placeholder((8,), name="A")

    def body(i):
        total = A[i]
        for _ in range(100):
            total = total + A[i]
        return total

    te.compute((8,), body, name="B").show()
    assert max(len(line) for line in capsys.readouterr().out.splitlines()) < 500


def test_html():
    told = check_html(product()[-1]._repr_html_())
    assert "sum(A[i, k] * B[k, j], axis=k)" in told


def test_a_schedule_shows_its_stages(capsys):
    _, _, C, D = product()
    s = te.create_schedule(D.op)
    outer, inner = s[D].split(D.op.axis[0], 4)
    s[D].parallel(outer)
    s[D].vectorize(D.op.axis[1])
    s[C].compute_at(s[D], outer)
    s.show()
    assert capsys.readouterr().out.splitlines() == [
        "Schedule of D",
        "stage  loops                                          computed at",
        "C      i 8, j 6, k 4 reduced                          loop i.outer of D",
        "D      i.outer 2 parallel, i.inner 4, j 6 vectorized  the root",
    ]
    assert "i.outer 2 parallel" in check_html(s._repr_html_())
    assert inner is not None


def test_an_inlined_stage(capsys):
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((8,), lambda i: B[i] * 2.0, name="C")
    s = te.create_schedule(C.op)
    s[B].compute_inline()
    s.show()
    assert "B      i 8    inlined into its readers" in capsys.readouterr().out.splitlines()
