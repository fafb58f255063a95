"""rows: sums along rows, softmax and normalisations, against float64, at lengths around warps and vectors."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te, topi
from loopwright.autosched.gpu import GpuMachine
from loopwright.autosched.gpu.row_threads import RowThreads, row_threads

EMULATED = "cuda -model=emulated"
H200 = GpuMachine.of("nvidia/nvidia-h200")
ORDERS = ("forwards", "backwards", "random")


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x, g, b):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * g + b


PROGRAMS = {
    "softmax": (1, topi.nn.softmax, softmax),
    "log_softmax": (1, topi.nn.log_softmax, lambda x: np.log(softmax(x))),
    "layer_norm": (3, lambda x, g, b: topi.nn.layer_norm(x, g, b, [1]), layer_norm),
    "rms_norm": (
        2,
        lambda x, g: topi.nn.rms_norm(x, g, [1]),
        lambda x, g: x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * g,
    ),
    "sum": (1, lambda x: topi.sum(x, axis=1), lambda x: x.sum(1)),
    "min": (1, lambda x: topi.min(topi.abs(x), axis=1, keepdims=True), lambda x: abs(x).min(1, keepdims=True)),
    "prod": (1, lambda x: topi.prod(x, axis=1), lambda x: x.prod(1)),
    "argmax": (1, lambda x: topi.argmax(x, axis=1), lambda x: x.argmax(1)),
}


def run(name: str, shape: tuple[int, ...], dtype: str = "float32", rule: str = "rows") -> str:
    """Builds and runs one of PROGRAMS in all orders of threads; its source."""
    count, program, reference = PROGRAMS[name]
    tensors = [te.placeholder(shape if k == 0 else shape[1:], dtype, name=f"x{k}") for k in range(count)]
    result = program(*tensors)
    plan = autosched.apply([*tensors, result], EMULATED)
    assert rule in [decision.rule for decision in plan.decisions], plan.explain()
    module = lw.build(plan.mod, target=EMULATED)
    rng = np.random.default_rng(sum(shape))
    inputs = [rng.standard_normal([int(n) for n in tensor.shape]).astype(tensor.dtype) for tensor in tensors]
    expected = reference(*[x.astype("float64") for x in inputs])
    first = None
    for order in ORDERS:
        output = np.zeros([int(n) for n in result.shape], result.dtype)
        module.set_thread_order(order)
        module(*inputs, output)
        bound = 4e-3 if dtype == "float16" else 1e-5
        np.testing.assert_allclose(output.astype("float64"), expected, rtol=bound, atol=bound)
        first = output if first is None else first
        np.testing.assert_array_equal(output, first)
    return module.get_source()


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (3, RowThreads(4, 32, 1, "local", 1)),
        (16, RowThreads(4, 32, 4, "local", 1)),
        (500, RowThreads(32, 4, 4, "local", 4)),
        (1000, RowThreads(128, 1, 4, "local", 2)),
        (1001, RowThreads(128, 1, 1, "local", 8)),
        (8192, RowThreads(512, 1, 4, "local", 4)),
        (40000, RowThreads(1024, 1, 4, "local", 10)),
        (50257, RowThreads(1024, 1, 1, "local", 50)),
        (53253, RowThreads(1024, 1, 1, "", 53)),
        (100000, RowThreads(1024, 1, 4, "", 25)),
        (None, RowThreads(256, 1, 1, "", None)),
    ],
)
def test_how_rows_are_shared_out(length, expected):
    assert row_threads(length, 4, 1, 100000, H200) == expected


@pytest.mark.parametrize("name", [*PROGRAMS])
def test_every_program(name):
    run(name, (5, 96))


@pytest.mark.parametrize(
    "shape", [(1, 2), (5, 7), (33, 31), (7, 32), (3, 33), (2, 1023), (3, 1025), (1, 3001), (1, 52001)]
)
def test_softmax_of_every_length(shape):
    source = run("softmax", shape)
    assert source.count("__global__") <= 2  # one kernel; a second one for tensors that are not aligned


def test_several_short_rows_are_under_way_together(monkeypatch):
    assert row_threads(64, 4, 1, 1 << 20, H200) == RowThreads(16, 8, 4, "local", 1, 4)
    assert row_threads(64, 4, 1, (1 << 20) + 8, H200).several == 1
    monkeypatch.setattr("loopwright.autosched.gpu.row_threads._WAVES_OF_ROWS", 0)
    for name in ("sum", "argmax"):
        run(name, (8 * 132 * 2, 64))


def test_a_row_is_loaded_once_and_sixteen_bytes_at_a_time():
    source = run("layer_norm", (3, 4096))
    kernel = source[source.index("__global__") :].split("__global__")[1]
    assert kernel.count("= *(const float4 *)&x0[") == 1
    assert "(const float4 *)&x0[" not in kernel.replace("= *(const float4 *)&x0[", "", 1)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_types(dtype):
    run("softmax", (3, 200), dtype)
    run("sum", (3, 200), "float64")


def test_kept_rows_of_several_axes_are_in_registers():
    x = te.placeholder((2, 56, 56), name="x")
    module = lw.build([x, topi.sum(x, (1, 2))], target=EMULATED, autosched=True)
    xs, out = np.random.default_rng(0).standard_normal((2, 56, 56)).astype("float32"), np.zeros(2, "float32")
    module(xs, out)
    np.testing.assert_allclose(out, xs.sum((1, 2), dtype="float64"), rtol=1e-4)


def test_rows_of_several_axes():
    """Group normalisation: the axes within a group are one row."""
    x = te.placeholder((2, 8, 3, 5), name="x")
    g, b = te.placeholder((8,), name="g"), te.placeholder((8,), name="b")
    result = topi.nn.group_norm(x, g, b, 4, 1, [2, 3])
    module = lw.build([x, g, b, result], target=EMULATED, autosched=True)
    rng = np.random.default_rng(0)
    xs, gs, bs = [rng.standard_normal([int(n) for n in t.shape]).astype("float32") for t in (x, g, b)]
    out = np.zeros((2, 8, 3, 5), "float32")
    module(xs, gs, bs, out)
    rows = xs.astype("float64").reshape(2, 4, -1)
    rows = (rows - rows.mean(2, keepdims=True)) / np.sqrt(rows.var(2, keepdims=True) + 1e-5)
    expected = rows.reshape(xs.shape) * gs[:, None, None] + bs[:, None, None]
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(16, 1021, 8), (16, 1021, 2), (5, 7, 3, 16)])
def test_rows_of_several_dimensions_have_a_number_each_in_shared_memory(shape):
    """The rows of a block begin anywhere in their dimensions: this asked for shared memory for all rows there are."""
    X, G, B = [te.placeholder(s, name=n) for s, n in ((shape, "X"), (shape[-1:], "G"), (shape[-1:], "B"))]
    Y = topi.nn.layer_norm(X, G, B, [len(shape) - 1])
    module = lw.build([X, G, B, Y], target=EMULATED, autosched=True)
    rng = np.random.default_rng(1)
    x, g, b = [rng.integers(-3, 4, s).astype("float32") for s in (shape, shape[-1:], shape[-1:])]
    y = np.zeros(shape, "float32")
    module(x, g, b, y)
    np.testing.assert_allclose(y, layer_norm(*[one.astype("float64") for one in (x, g, b)]), atol=2e-5)


def test_short_rows_of_an_open_number_have_no_shared_memory_of_an_open_size():
    n = te.var("n")
    X = te.placeholder((n, 21, 8), name="X")
    module = lw.build([X, topi.nn.softmax(X)], target=EMULATED, autosched=True)
    for count in (0, 1, 13):
        x = np.random.default_rng(count).standard_normal((count, 21, 8)).astype("float32")
        y = np.zeros_like(x)
        module(x, y)
        np.testing.assert_allclose(y, softmax(x), atol=1e-6)
