"""Notes on GEMM: the same matmul six times, each time with one more idea, timed and compared."""

import numpy as np
import tvm
import tvm.testing
from tvm import te

M = K = N = 64
bn = 16
dtype = "float32"
target = tvm.target.Target("llvm")
dev = tvm.device(target.kind.name, 0)

rng = np.random.RandomState(0)
a = tvm.nd.array(rng.rand(M, K).astype(dtype), dev)
b = tvm.nd.array(rng.rand(K, N).astype(dtype), dev)
answer = a.numpy().astype("float64") @ b.numpy().astype("float64")


def declare():
    k = te.reduce_axis((0, K), "k")
    A = te.placeholder((M, K), name="A")
    B = te.placeholder((K, N), name="B")
    C = te.compute((M, N), lambda m, n: te.sum(A[m, k] * B[k, n], axis=k), name="C")
    return A, B, C


log = []


def check(s, args, title):
    func = tvm.build(s, args, target=target, name="mmult")
    assert func
    c = tvm.nd.array(np.zeros((M, N), dtype=dtype), dev)
    func(a, b, c)
    tvm.testing.assert_allclose(c.numpy(), answer, rtol=1e-5)
    evaluator = func.time_evaluator(func.entry_name, dev, number=1)
    log.append((title, evaluator(a, b, c).mean))


# 1: nothing
A, B, C = declare()
s = te.create_schedule(C.op)
check(s, [A, B, C], "none")

# 2: blocks
A, B, C = declare()
s = te.create_schedule(C.op)
mo, no, mi, ni = s[C].tile(C.op.axis[0], C.op.axis[1], bn, bn)
(kaxis,) = s[C].op.reduce_axis
ko, ki = s[C].split(kaxis, factor=4)
s[C].reorder(mo, no, ko, ki, mi, ni)
check(s, [A, B, C], "blocking")

# 3: vectors, in the order that suits the cache
s[C].vectorize(ni)
check(s, [A, B, C], "vectorization")
text = str(tvm.lower(s, [A, B, C], simple_mode=True))
assert "T.grid" in text or "for " in text

# 4: B packed, the loop over k outside of the rows
A, B, _ = declare()
k = te.reduce_axis((0, K), "k")
packed = te.compute((N // bn, K, bn), lambda big, k, little: B[k, big * bn + little], name="packedB")
C = te.compute(
    (M, N), lambda m, n: te.sum(A[m, k] * packed[n // bn, k, tvm.tir.indexmod(n, bn)], axis=k), name="C"
)
s = te.create_schedule(C.op)
mo, no, mi, ni = s[C].tile(C.op.axis[0], C.op.axis[1], bn, bn)
(kaxis,) = s[C].op.reduce_axis
ko, ki = s[C].split(kaxis, factor=4)
s[C].reorder(mo, no, ko, mi, ki, ni)
s[C].vectorize(ni)
big, _, little = s[packed].op.axis
s[packed].vectorize(little)
s[packed].parallel(big)
check(s, [A, B, C], "packing")

# 5 and 6: a cache for the block, then all cores
CC = None
s = te.create_schedule(C.op)
CC = s.cache_write(C, "global")
mo, no, mi, ni = s[C].tile(C.op.axis[0], C.op.axis[1], bn, bn)
s[CC].compute_at(s[C], no)
mc, nc = s[CC].op.axis
(kaxis,) = s[CC].op.reduce_axis
ko, ki = s[CC].split(kaxis, factor=4)
s[CC].reorder(ko, mc, ki, nc)
s[CC].unroll(ki)
s[CC].vectorize(nc)
check(s, [A, B, C], "block caching")
s[C].parallel(mo)
check(s, [A, B, C], "parallelization")

for title, seconds in log:
    print(f"{title:>20}\t{seconds:.6f}\t{seconds / log[0][1]:.2f}")
assert len(log) == 6 and all(seconds > 0 for _, seconds in log)

# What a GPU's threads would do can be read without a GPU.
A, B, C = declare()
s = te.create_schedule(C.op)
by, ty = s[C].split(C.op.axis[0], factor=8)
bx, tx = s[C].split(C.op.axis[1], factor=8)
s[C].reorder(by, bx, ty, tx)
s[C].bind(by, te.thread_axis("blockIdx.y"))
s[C].bind(bx, te.thread_axis("blockIdx.x"))
s[C].bind(ty, te.thread_axis("threadIdx.y"))
s[C].bind(tx, te.thread_axis("threadIdx.x"))
text = str(tvm.lower(s, [A, B, C], simple_mode=True))
assert "blockIdx.x" in text and "threadIdx.y" in text
print("ok")
