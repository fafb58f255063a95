"""te schedules: tiles, caches, inlining, rfactor, scans and an instruction of one's own."""

import numpy as np
import tvm
import tvm.testing
from tvm import te, tir

dev = tvm.cpu(0)


def run(s, args, *shapes):
    """Build for this machine; random inputs, and the outputs that the function gives."""
    func = tvm.build(s, args, "llvm", name="func")
    arrays = [tvm.nd.array(np.random.uniform(size=shape).astype("float32"), dev) for shape in shapes]
    func(*arrays)
    return [array.numpy() for array in arrays]


# a vector sum, split and marked
n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.placeholder((n,), name="B")
C = te.compute(A.shape, lambda i: A[i] + B[i], name="C")
s = te.create_schedule(C.op)
outer, inner = s[C].split(C.op.axis[0], factor=64)
s[C].parallel(outer)
assert isinstance(s[C], te.schedule.Stage)
assert isinstance(s[C].relations[0], te.schedule.Split)
print(tvm.lower(s, [A, B, C], simple_mode=True))
a, b, c = run(s, [A, B, C], 1000, 1000, 1000)
tvm.testing.assert_allclose(c, a + b)

# a matrix product with a cache, tiles and vectors
M = K = N = 64
k = te.reduce_axis((0, K), "k")
A = te.placeholder((M, K), name="A")
B = te.placeholder((K, N), name="B")
packed = te.compute((N // 16, K, 16), lambda bigN, k, littleN: B[k, bigN * 16 + littleN], name="packed")
C = te.compute((M, N), lambda m, n: te.sum(A[m, k] * packed[n // 16, k, tvm.tir.indexmod(n, 16)], axis=k), name="C")
s = te.create_schedule(C.op)
CC = s.cache_write(C, "global")
mo, no, mi, ni = s[C].tile(C.op.axis[0], C.op.axis[1], 16, 16)
s[CC].compute_at(s[C], no)
mc, nc = s[CC].op.axis
(kaxis,) = s[CC].op.reduce_axis
ko, ki = s[CC].split(kaxis, factor=4)
s[CC].reorder(ko, mc, ki, nc)
s[CC].vectorize(nc)
s[CC].unroll(ki)
s[C].parallel(mo)
bigN, _, littleN = s[packed].op.axis
s[packed].vectorize(littleN)
s[packed].parallel(bigN)
a, b, c = run(s, [A, B, C], (M, K), (K, N), (M, N))
tvm.testing.assert_allclose(c, a @ b, rtol=1e-4)

# a reduction in two stages
A = te.placeholder((7, 100), name="A")
k = te.reduce_axis((0, 100), "k")
B = te.compute((7,), lambda i: te.sum(A[i, k], axis=k), name="B")
s = te.create_schedule(B.op)
ko, ki = s[B].split(B.op.reduce_axis[0], factor=16)
BF = s.rfactor(B, ki)
s[BF].parallel(s[BF].op.axis[0])
a, b = run(s, [A, B], (7, 100), 7)
tvm.testing.assert_allclose(b, a.sum(1), rtol=1e-5)

# stages that are inlined, and computed inside others
A = te.placeholder((32, 32), name="A")
B = te.compute((32, 32), lambda i, j: A[i, j] * 2, name="B")
C = te.compute((32, 32), lambda i, j: te.exp(B[i, j]), name="C")
D = te.compute((32, 32), lambda i, j: C[i, j] + C[i, 31 - j], name="D")
s = te.create_schedule(D.op)
s[B].compute_inline()
s[C].compute_at(s[D], D.op.axis[0])
a, d = run(s, [A, D], (32, 32), (32, 32))
tvm.testing.assert_allclose(d, np.exp(2 * a) + np.exp(2 * a)[:, ::-1], rtol=1e-5)
bounds = te.schedule.InferBound(s)
assert bounds[C.op.axis[0]].extent.value == 1

# a running sum
X = te.placeholder((10, 24), name="X")
state = te.placeholder((10, 24))
init = te.compute((1, 24), lambda _, i: X[0, i])
update = te.compute((10, 24), lambda t, i: state[t - 1, i] + X[t, i])
total = te.scan(init, update, state, inputs=[X])
s = te.create_schedule(total.op)
xo, xi = s[update].split(update.op.axis[1], factor=8)
s[update].vectorize(xi)
x, t = run(s, [X, total], (10, 24), (10, 24))
tvm.testing.assert_allclose(t, np.cumsum(x, axis=0), rtol=1e-5)

# an instruction of one's own
x, y = te.placeholder((16,), name="x"), te.placeholder((16,), name="y")
z = te.compute((16,), lambda i: x[i] + y[i], name="z")


def vadd(ins, outs):
    """Sixteen sums."""
    ib = tir.ir_builder.create()
    p, q, r = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
    with ib.for_range(0, 16, "lane") as i:
        r[i] = p[i] + q[i]
    return ib.get()


intrin = te.decl_tensor_intrin(z.op, vadd, name="vadd", default_buffer_params={"offset_factor": 16})
A = te.placeholder((4, 32), name="A")
B = te.placeholder((4, 32), name="B")
C = te.compute((4, 32), lambda i, j: A[i, j] + B[i, j], name="C")
s = te.create_schedule(C.op)
jo, ji = s[C].split(C.op.axis[1], factor=16)
s[C].tensorize(ji, intrin)
a, b, c = run(s, [A, B, C], (4, 32), (4, 32), (4, 32))
tvm.testing.assert_allclose(c, a + b)

# what cannot be done says why
try:
    s[C].reorder(ji, C.op.axis[1])
except tvm.TVMError as error:
    print(str(error).splitlines()[0])
print("ok")
