"""Sums, products, convolutions and argmax: reductions over one axis, several axes, and tuples."""

import numpy as np
import tvm
from tvm import te
from tvm.testing import assert_allclose


def run(args, *arrays):
    """Build the function of these tensors and run it; the arrays after the call."""
    func = tvm.build(te.create_prim_func(args), target="llvm")
    given = [tvm.nd.array(array) for array in arrays]
    func(*given)
    return [array.numpy() for array in given]


def row_sums():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    assert B.op.reduce_axis[0].var.name == "k"

    a = np.random.rand(13, 37).astype("float32")
    assert_allclose(run([A, B], a, np.zeros(13, "float32"))[1], a.astype("float64").sum(1), rtol=37 * 2**-23)

    # The same sum in parts: the reduction is split, its start value stands before it, rows run in parallel.
    sch = tvm.tir.Schedule(te.create_prim_func([A, B]))
    block = sch.get_block("B")
    i, kk = sch.get_loops(block)
    ko, ki = sch.split(kk, factors=[None, 16])
    sch.decompose_reduction(block, ko)
    sch.parallel(i)
    func = tvm.build(sch.mod, target="llvm")
    b = tvm.nd.empty((13,), "float32")
    func(tvm.nd.array(a), b)
    assert_allclose(b.numpy(), a.astype("float64").sum(1), rtol=37 * 2**-23)


def convolution():
    n = 9
    Input = te.placeholder((n, n), name="Input")
    Filter = te.placeholder((3, 3), name="Filter")
    di = te.reduce_axis((0, 3), name="di")
    dj = te.reduce_axis((0, 3), name="dj")
    Output = te.compute(
        (n - 2, n - 2),
        lambda i, j: te.sum(Input[i + di, j + dj] * Filter[di, dj], axis=[di, dj]),
        name="Output",
    )
    x, f = np.random.rand(n, n).astype("float32"), np.random.rand(3, 3).astype("float32")
    expected = sum(x[a : a + n - 2, b : b + n - 2].astype("float64") * f[a, b] for a in range(3) for b in range(3))
    got = run([Input, Filter, Output], x, f, np.zeros((n - 2, n - 2), "float32"))[2]
    assert_allclose(got, expected, rtol=9 * 2**-23)


def a_reducer_of_ones_own():
    product = te.comm_reducer(lambda x, y: x * y, lambda t: tvm.tir.const(1, dtype=t), name="product")
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    B = te.compute((n,), lambda i: product(A[i, k], axis=k), name="B")
    a = np.random.uniform(0.5, 1.5, (4, 11)).astype("float32")
    assert_allclose(run([A, B], a, np.zeros(4, "float32"))[1], a.astype("float64").prod(1), rtol=11 * 2**-23)


def argmax():
    def fcombine(x, y):
        lhs = tvm.tir.Select((x[1] >= y[1]), x[0], y[0])
        rhs = tvm.tir.Select((x[1] >= y[1]), x[1], y[1])
        return lhs, rhs

    def fidentity(t0, t1):
        return tvm.tir.const(-1, t0), te.min_value(t1)

    largest = te.comm_reducer(fcombine, fidentity, name="argmax")
    m, n = te.var("m"), te.var("n")
    idx = te.placeholder((m, n), name="idx", dtype="int32")
    val = te.placeholder((m, n), name="val", dtype="int32")
    k = te.reduce_axis((0, n), "k")
    T0, T1 = te.compute((m,), lambda i: largest((idx[i, k], val[i, k]), axis=k), name="T")

    values = np.random.randint(-1000, 1000, (6, 19)).astype("int32")
    indices = np.broadcast_to(np.arange(19, dtype="int32"), values.shape).copy()
    got = run([idx, val, T0, T1], indices, values, np.zeros(6, "int32"), np.zeros(6, "int32"))
    np.testing.assert_array_equal(got[2], values.argmax(1))
    np.testing.assert_array_equal(got[3], values.max(1))


def only_where():
    A = te.placeholder((10,), name="A", dtype="int32")
    k = te.reduce_axis((0, 10), name="k")
    B = te.compute((1,), lambda i: te.max(A[k], axis=k, where=A[k] < 5), name="B")
    a = np.array([9, 3, 4, 7, -2, 5, 1, 8, 0, 6], "int32")
    assert run([A, B], a, np.zeros(1, "int32"))[1][0] == 4


if __name__ == "__main__":
    np.random.seed(1)
    row_sums()
    convolution()
    a_reducer_of_ones_own()
    argmax()
    only_where()
    print("ok")
