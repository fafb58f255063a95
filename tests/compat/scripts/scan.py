"""Recurrences over time: a running sum, a state with an intermediate stage, two states at once."""

import numpy as np
import tvm
import tvm.testing
from tvm import te


def run(args, *arrays):
    func = tvm.build(te.create_prim_func(args), target="llvm")
    given = [tvm.nd.array(array) for array in arrays]
    func(*given)
    return [array.numpy() for array in given]


def running_sum():
    m, n = te.var("m"), te.var("n")
    X = te.placeholder((m, n), name="X")
    s_state = te.placeholder((m, n))
    s_init = te.compute((1, n), lambda _, i: X[0, i])
    s_update = te.compute((m, n), lambda t, i: s_state[t - 1, i] + X[t, i])
    s_scan = te.scan(s_init, s_update, s_state, inputs=[X])
    assert isinstance(s_scan.op, te.ScanOp)

    for steps in (1, 2, 10):
        x = np.random.rand(steps, 8).astype("float32")
        got = run([X, s_scan], x, np.zeros((steps, 8), "float32"))[1]
        tvm.testing.assert_allclose(got, np.cumsum(x, axis=0), rtol=1e-5)


def with_a_stage_inside():
    m, n = 12, 5
    X = te.placeholder((m, n), name="X")
    s_state = te.placeholder((m, n))
    s_init = te.compute((1, n), lambda _, i: X[0, i])
    s_update_s1 = te.compute((m, n), lambda t, i: s_state[t - 1, i] * 0.5, name="s1")
    s_update_s2 = te.compute((m, n), lambda t, i: s_update_s1[t, i] + X[t, i], name="s2")
    s_scan = te.scan(s_init, s_update_s2, s_state, inputs=[X])

    x = np.random.rand(m, n).astype("float32")
    expected = np.zeros((m, n), "float32")
    expected[0] = x[0]
    for t in range(1, m):
        expected[t] = expected[t - 1] * np.float32(0.5) + x[t]
    tvm.testing.assert_allclose(run([X, s_scan], x, np.zeros((m, n), "float32"))[1], expected, rtol=1e-6)


def two_states():
    m, n, width = 9, 4, 3
    X = te.placeholder((m, n), name="X")
    s_state1 = te.placeholder((m, n))
    s_state2 = te.placeholder((m, width))
    s_init1 = te.compute((1, n), lambda _, i: X[0, i])
    s_init2 = te.compute((1, width), lambda _, i: 0.0)
    s_update1 = te.compute((m, n), lambda t, i: s_state1[t - 1, i] + X[t, i])
    s_update2 = te.compute((m, width), lambda t, i: s_state2[t - 1, i] + s_state1[t - 1, 0])
    s_scan1, s_scan2 = te.scan([s_init1, s_init2], [s_update1, s_update2], [s_state1, s_state2], inputs=[X])

    x = np.random.rand(m, n).astype("float32")
    got = run([X, s_scan1, s_scan2], x, np.zeros((m, n), "float32"), np.zeros((m, width), "float32"))
    first = np.cumsum(x, axis=0)
    second = np.zeros((m, width), "float32")
    for t in range(1, m):
        second[t] = second[t - 1] + first[t - 1, 0]
    tvm.testing.assert_allclose(got[1], first, rtol=1e-5)
    tvm.testing.assert_allclose(got[2], second, rtol=1e-5)


if __name__ == "__main__":
    np.random.seed(2)
    running_sum()
    with_a_stage_inside()
    two_states()
    print("ok")
