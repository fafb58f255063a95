"""Notes on convolutions: written with te, taken from topi, and as a layer; padding fused, layouts changed."""

import numpy as np
import tvm
import tvm.testing
import tvm.topi.testing
from tvm import relay, te, topi
from tvm.topi.utils import get_const_tuple

batch, in_channel, out_channel, size, kernel, pad, stride = 1, 4, 8, 10, 3, 1, 1
out_size = (size - kernel + 2 * pad) // stride + 1

A = te.placeholder((in_channel, size, size, batch), name="A")
W = te.placeholder((in_channel, kernel, kernel, out_channel), name="W")
Apad = te.compute(
    (in_channel, size + 2 * pad, size + 2 * pad, batch),
    lambda cc, yy, xx, nn: tvm.tir.if_then_else(
        tvm.tir.all(yy >= pad, yy - pad < size, xx >= pad, xx - pad < size),
        A[cc, yy - pad, xx - pad, nn],
        tvm.tir.const(0.0, "float32"),
    ),
    name="Apad",
)
rc = te.reduce_axis((0, in_channel), name="rc")
ry = te.reduce_axis((0, kernel), name="ry")
rx = te.reduce_axis((0, kernel), name="rx")
B = te.compute(
    (out_channel, out_size, out_size, batch),
    lambda ff, yy, xx, nn: te.sum(
        Apad[rc, yy * stride + ry, xx * stride + rx, nn] * W[rc, ry, rx, ff], axis=[rc, ry, rx]
    ),
    name="B",
)
s = te.create_schedule(B.op)
s[Apad].compute_inline()
BL = s.cache_write(B, "local")
ff, yy, xx, nn = s[B].op.axis
fo, fi = s[B].split(ff, factor=4)
s[B].reorder(yy, fo, xx, fi, nn)
s[BL].compute_at(s[B], fo)
s[B].parallel(yy)
conv = tvm.build(s, [A, W, B], "llvm", name="conv")

rng = np.random.default_rng(3)
a = rng.standard_normal((in_channel, size, size, batch)).astype("float32")
w = rng.standard_normal((in_channel, kernel, kernel, out_channel)).astype("float32")
b = tvm.nd.empty((out_channel, out_size, out_size, batch))
conv(tvm.nd.array(a), tvm.nd.array(w), b)
nchw, oihw = a.transpose(3, 0, 1, 2), w.transpose(3, 0, 1, 2)
answer = tvm.topi.testing.conv2d_nchw_python(nchw, oihw, stride, pad)
tvm.testing.assert_allclose(b.numpy().transpose(3, 0, 1, 2), answer, rtol=1e-4, atol=1e-4)

# topi's operator with a bias and a relu behind it, scheduled by the target's rule
data = te.placeholder(nchw.shape, name="data")
weight = te.placeholder(oihw.shape, name="weight")
bias = te.placeholder((1, out_channel, 1, 1), name="bias")
with tvm.target.Target("llvm"):
    out = topi.nn.relu(topi.add(topi.nn.conv2d_nchw(data, weight, stride, pad, dilation=1), bias))
    s = topi.generic.schedule_conv2d_nchw([out])
fused = tvm.build(s, [data, weight, bias, out])
shift = rng.standard_normal((1, out_channel, 1, 1)).astype("float32")
got = tvm.nd.empty(get_const_tuple(out.shape))
fused(tvm.nd.array(nchw.copy()), tvm.nd.array(oihw.copy()), tvm.nd.array(shift), got)
tvm.testing.assert_allclose(got.numpy(), np.maximum(answer + shift, 0), rtol=1e-4, atol=1e-4)

# the same as a layer, in another layout
x = relay.var("x", relay.TensorType(nchw.shape, "float32"))
k = relay.var("k", relay.TensorType(oihw.shape, "float32"))
layer = relay.Function([x, k], relay.nn.conv2d(x, k, padding=(pad, pad), kernel_size=(3, 3), channels=out_channel))
mod = tvm.IRModule.from_expr(layer)
with tvm.transform.PassContext(opt_level=3):
    passes = [relay.transform.InferType(), relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "HWIO"]})]
    changed = tvm.transform.Sequential(passes)(mod)
assert "NHWC" in changed.astext() and "layout_transform" in changed.astext()
for each in (mod, changed):
    result = relay.create_executor("graph", each, tvm.cpu(), "llvm").evaluate()(nchw, oihw)
    tvm.testing.assert_allclose(result.numpy(), answer, rtol=1e-4, atol=1e-4)
assert relay.analysis.get_total_mac_number(relay.transform.InferType()(mod)["main"]) == 28800
print("ok")
