"""Quantisation: by a pass over a float model, and by hand with qnn; both beside float."""

import numpy as np
import tvm
import tvm.testing
from tvm import relay

rng = np.random.default_rng(5)
x = rng.uniform(-1, 1, (1, 16, 8, 8)).astype("float32")
w = rng.uniform(-1, 1, (16, 16, 3, 3)).astype("float32")

data = relay.var("data", shape=x.shape)
weight = relay.var("weight", shape=w.shape)
conv = relay.nn.conv2d(data, weight, kernel_size=(3, 3), padding=(1, 1), channels=16)
out = relay.nn.global_avg_pool2d(relay.nn.relu(conv))
mod = tvm.IRModule.from_expr(relay.Function([data, weight], out))
params = {"weight": tvm.nd.array(w)}
expected = relay.create_executor("graph", mod, tvm.cpu(), "llvm", params).evaluate()(x).numpy()

with relay.quantize.qconfig(calibrate_mode="global_scale", global_scale=4.0, skip_conv_layers=[]):
    quantized = relay.quantize.quantize(mod, params=params)
text = quantized.astext(show_meta_data=False)
assert "int8" in text and "int32" in text
got = relay.create_executor("graph", quantized, tvm.cpu(), "llvm").evaluate()(x).numpy()
assert np.abs(got - expected).max() < 0.1 * np.abs(expected).max()

# by hand: quantize, an integer dense layer, requantize, dequantize
rows, inner, units = 4, 32, 8
a = rng.uniform(-1, 1, (rows, inner)).astype("float32")
b = rng.uniform(-1, 1, (units, inner)).astype("float32")
a_scale, b_scale, y_scale = 2 / 255, 2 / 255, 0.1
a_zero, b_zero, y_zero = 3, 0, -5

A = relay.var("A", shape=a.shape)
B = relay.var("B", shape=b.shape)
qa = relay.qnn.op.quantize(A, relay.const(a_scale), relay.const(a_zero), out_dtype="int8")
qb = relay.qnn.op.quantize(B, relay.const(b_scale), relay.const(b_zero), out_dtype="int8")
y = relay.qnn.op.dense(
    qa, qb, relay.const(a_zero), relay.const(b_zero), relay.const(a_scale), relay.const(b_scale), units, "int32"
)
y = relay.qnn.op.requantize(
    y, relay.const(a_scale * b_scale), relay.const(0), relay.const(y_scale), relay.const(y_zero), out_dtype="int8"
)
y = relay.qnn.op.dequantize(y, relay.const(y_scale), relay.const(y_zero))
dense = tvm.IRModule.from_expr(relay.Function([A, B], y))
lowered = tvm.transform.Sequential([relay.transform.InferType(), relay.qnn.transform.CanonicalizeOps()])(dense)
assert "qnn." not in lowered.astext()
real = a.astype("float64") @ b.astype("float64").T
for each in (dense, lowered):
    result = relay.create_executor("vm", each, tvm.cpu(), "llvm").evaluate()(a, b).numpy()
    assert np.abs(result - real).max() < y_scale + inner * (a_scale + b_scale) / 2 * 0.1
    assert set(np.round(result / y_scale).ravel()) <= set(range(-128 - y_zero, 128 - y_zero))
print("ok")
