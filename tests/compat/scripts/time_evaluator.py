"""How long does it take? The same product, scheduled in three ways."""

import numpy as np
import tvm
import tvm.testing
from tvm import te, tir

N = 64
k = te.reduce_axis((0, N), "k")
A = te.placeholder((N, N), name="A")
B = te.placeholder((N, N), name="B")
C = te.compute((N, N), lambda m, n: te.sum(A[m, k] * B[k, n], axis=k), name="C")
func = te.create_prim_func([A, B, C])

dev = tvm.cpu(0)
a = tvm.nd.array(np.random.rand(N, N).astype("float32"), dev)
b = tvm.nd.array(np.random.rand(N, N).astype("float32"), dev)
answer = a.numpy().astype("float64") @ b.numpy()


def blocked():
    sch = tir.Schedule(func)
    m, n, kk = sch.get_loops(sch.get_block("C"))
    mo, mi = sch.split(m, factors=[None, 8])
    no, ni = sch.split(n, factors=[None, 16])
    sch.reorder(mo, no, kk, mi, ni)
    return sch


def vectorized():
    sch = blocked()
    sch.vectorize(sch.get_loops(sch.get_block("C"))[-1])
    return sch


def parallel():
    sch = vectorized()
    sch.parallel(sch.get_loops(sch.get_block("C"))[0])
    return sch


def evaluate(name, program, log):
    lib = tvm.build(program, target="llvm", name="mmult")
    c = tvm.nd.array(np.zeros((N, N), "float32"), dev)
    lib(a, b, c)
    tvm.testing.assert_allclose(c.numpy(), answer, rtol=N * 2**-23)
    evaluator = lib.time_evaluator(lib.entry_name, dev, number=3, repeat=2)
    result = evaluator(a, b, c)
    assert len(result.results) == 2 and all(seconds > 0 for seconds in result.results)
    assert result.min <= result.median <= result.max
    assert abs(result.mean - sum(result.results) / 2) < 1e-12
    log.append((name, result.mean))
    return result


if __name__ == "__main__":
    log = []
    evaluate("none", func, log)
    for make in (blocked, vectorized, parallel):
        evaluate(make.__name__, make().mod, log)
    longer = tvm.build(func, target="llvm")
    timed = longer.time_evaluator("main", dev, number=1, repeat=1, min_repeat_ms=2)
    print(timed(a, b, tvm.nd.array(np.zeros((N, N), "float32"), dev)))
    for name, seconds in log:
        print(f"{name:12s} {seconds * 1e6:10.1f} us")
    print("ok")
