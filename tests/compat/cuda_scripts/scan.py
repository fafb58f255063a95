"""Running sums down the columns, one kernel for each row; a scan with a stage inside."""

import numpy as np
import tvm
from tvm import te
from tvm.testing import assert_allclose

m, n = te.var("m"), te.var("n")
X = te.placeholder((m, n), name="X")
s_state = te.placeholder((m, n))
s_init = te.compute((1, n), lambda _, i: X[0, i])
s_update = te.compute((m, n), lambda t, i: s_state[t - 1, i] + X[t, i])
s_scan = te.scan(s_init, s_update, s_state, inputs=[X])

s = te.create_schedule(s_scan.op)
num_thread = 64
block_x = te.thread_axis("blockIdx.x")
thread_x = te.thread_axis("threadIdx.x")
for stage in (s_init, s_update):
    xo, xi = s[stage].split(stage.op.axis[1], factor=num_thread)
    s[stage].bind(xo, block_x)
    s[stage].bind(xi, thread_x)
print(tvm.lower(s, [X, s_scan], simple_mode=True))

fscan = tvm.build(s, [X, s_scan], "cuda", name="myscan")
dev = tvm.cuda(0)
x = np.random.uniform(size=(10, 130)).astype("float32")
a, b = tvm.nd.array(x, dev), tvm.nd.array(np.zeros((10, 130), "float32"), dev)
fscan(a, b)
assert_allclose(b.numpy(), np.cumsum(x, axis=0), rtol=1e-5)

state = te.placeholder((m, n))
start = te.compute((1, n), lambda _, i: X[0, i])
scaled = te.compute((m, n), lambda t, i: state[t - 1, i] * 0.5, name="scaled")
update = te.compute((m, n), lambda t, i: scaled[t, i] + X[t, i])
result = te.scan(start, update, state, inputs=[X])
s = te.create_schedule(result.op)
xo, xi = s[update].split(update.op.axis[1], factor=32)
s[update].bind(xo, te.thread_axis("blockIdx.x"))
s[update].bind(xi, te.thread_axis("threadIdx.x"))
s[scaled].compute_at(s[update], xi)
xo, xi = s[start].split(start.op.axis[1], factor=32)
s[start].bind(xo, te.thread_axis("blockIdx.x"))
s[start].bind(xi, te.thread_axis("threadIdx.x"))
f = tvm.build(s, [X, result], "cuda")
f(a, b)
wanted = x.copy()
for t in range(1, 10):
    wanted[t] = wanted[t - 1] * np.float32(0.5) + x[t]
assert_allclose(b.numpy(), wanted, rtol=1e-5)
print("ok")
