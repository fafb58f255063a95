"""A convolution in HWCN: cooperative fetch of inputs and weights, virtual threads, register tiles."""

import numpy as np
import tvm
from tvm import te
from tvm.testing import assert_allclose

batch, channels, filters, size, kernel, pad = 16, 8, 16, 6, 3, 1

A = te.placeholder((size, size, channels, batch), name="A")
W = te.placeholder((kernel, kernel, channels, filters), name="W")
padded = te.compute(
    (size + 2 * pad, size + 2 * pad, channels, batch),
    lambda y, x, c, n: tvm.tir.if_then_else(
        tvm.tir.all(y >= pad, y - pad < size, x >= pad, x - pad < size),
        A[y - pad, x - pad, c, n],
        tvm.tir.const(0.0, "float32"),
    ),
    name="padded",
)
rc, ry, rx = [te.reduce_axis((0, extent), name=name) for extent, name in ((channels, "rc"), (3, "ry"), (3, "rx"))]
B = te.compute(
    (size, size, filters, batch),
    lambda y, x, f, n: te.sum(padded[y + ry, x + rx, rc, n] * W[ry, rx, rc, f], axis=[ry, rx, rc]),
    name="B",
)

s = te.create_schedule(B.op)
s[padded].compute_inline()
AA, WW = s.cache_read(padded, "shared", [B]), s.cache_read(W, "shared", [B])
AL, WL = s.cache_read(AA, "local", [B]), s.cache_read(WW, "local", [B])
BL = s.cache_write(B, "local")

threads, vthreads, step = 4, 2, 4
block = [te.thread_axis(f"blockIdx.{axis}") for axis in "xyz"]
thread_x, thread_y = te.thread_axis((0, threads), "threadIdx.x"), te.thread_axis((0, threads), "threadIdx.y")
virtual_x, virtual_y = te.thread_axis((0, vthreads), "vthread", name="vx"), te.thread_axis((0, vthreads), "vthread")

y, x, f, n = s[B].op.axis
bz = s[B].fuse(y, x)
by, f = s[B].split(f, factor=16)
bx, n = s[B].split(n, factor=16)
ty_v, f = s[B].split(f, nparts=vthreads)
tx_v, n = s[B].split(n, nparts=vthreads)
ty, f = s[B].split(f, nparts=threads)
tx, n = s[B].split(n, nparts=threads)
s[B].reorder(bz, by, bx, ty_v, tx_v, ty, tx, f, n)
for axis, thread in zip((bx, by, bz, ty_v, tx_v, ty, tx), (*block, virtual_y, virtual_x, thread_y, thread_x)):
    s[B].bind(axis, thread)

s[BL].compute_at(s[B], tx)
yl, xl, fl, nl = s[BL].op.axis
ry_, rx_, rc_ = s[BL].op.reduce_axis
rco, rci = s[BL].split(rc_, factor=step)
s[BL].reorder(rco, ry_, rx_, rci, fl, nl)
for copy, where in ((AA, rx_), (WW, rx_), (AL, rci), (WL, rci)):
    s[copy].compute_at(s[BL], where)
for copy in (AA, WW):
    _, _, third, fourth = s[copy].op.axis
    ty, third = s[copy].split(third, nparts=threads)
    tx, fourth = s[copy].split(fourth, nparts=threads)
    _, lanes = s[copy].split(fourth, factor=4)
    s[copy].reorder(ty, tx, third, _, lanes)
    s[copy].bind(ty, thread_y)
    s[copy].bind(tx, thread_x)
    s[copy].vectorize(lanes)

func = tvm.build(s, [A, W, B], "cuda")
dev = tvm.cuda(0)
a = np.random.uniform(size=(size, size, channels, batch)).astype("float32")
w = np.random.uniform(size=(kernel, kernel, channels, filters)).astype("float32")
b = tvm.nd.empty((size, size, filters, batch), "float32", dev)
func(tvm.nd.array(a, dev), tvm.nd.array(w, dev), b)
around = np.pad(a, ((pad, pad), (pad, pad), (0, 0), (0, 0)))
windows = [np.einsum("yxcn,cf->yxfn", around[i : i + size, j : j + size], w[i, j]) for i in range(3) for j in range(3)]
assert_allclose(b.numpy(), sum(windows), rtol=1e-4)
evaluator = func.time_evaluator(func.entry_name, dev, number=1)
assert evaluator(tvm.nd.array(a, dev), tvm.nd.array(w, dev), b).mean > 0
print("ok")
