"""Twelve programs scheduled with te.create_schedule, checked against numpy in float64, each step proved.

    python examples/te_schedules.py                 all of them: steps, error, proof
    python examples/te_schedules.py softmax         print the program that the schedule of softmax makes
    python examples/te_schedules.py --trace softmax print the steps it took

A te schedule says of each stage what its loops shall be and where it shall be computed; lowering turns this into steps
of the same engine that `tir.Schedule` uses. The rungs of a matrix product come first, then whole operators; the same
schedules, step by step on the program, are in tir_schedules.py.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

import loopwright as lw
from loopwright import te, tir
from loopwright.driver.build_module import schedule_to_module


class Case(NamedTuple):
    """A schedule, its parameters (inputs, then outputs), and what the outputs are, with the error each may have."""

    schedule: te.Schedule
    args: list[te.Tensor]
    reference: Callable[..., Sequence[tuple[np.ndarray, np.ndarray | float]]]


FLOAT_EPS = 2.0**-23


# --- the classic sequence of a matrix product ---------------------------------------------------------------------

SIZE, BLOCK, KFACTOR = 64, 16, 4


def _product() -> tuple[te.Tensor, te.Tensor, te.Tensor, te.Tensor]:
    A = te.placeholder((SIZE, SIZE), name="A")
    B = te.placeholder((SIZE, SIZE), name="B")
    k = te.reduce_axis((0, SIZE), name="k")
    C = te.compute((SIZE, SIZE), lambda m, n: te.sum(A[m, k] * B[k, n], axis=k), name="C")
    return A, B, C, k


def _product_reference(a: np.ndarray, b: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    exact = a.astype("float64") @ b.astype("float64")
    return [(exact, SIZE * FLOAT_EPS * (np.abs(a).astype("float64") @ np.abs(b)))]


def gemm_blocked() -> Case:
    """Tiles that fit the cache."""
    A, B, C, k = _product()
    s = te.create_schedule(C.op)
    mo, no, mi, ni = s[C].tile(C.op.axis[0], C.op.axis[1], BLOCK, BLOCK)
    ko, ki = s[C].split(k, factor=KFACTOR)
    s[C].reorder(mo, no, ko, ki, mi, ni)
    return Case(s, [A, B, C], _product_reference)


def gemm_vectorized() -> Case:
    """The innermost loop as vectors."""
    case = gemm_blocked()
    C = case.args[-1]
    case.schedule[C].vectorize(case.schedule[C].leaf_iter_vars[-1])
    return case


def gemm_permuted() -> Case:
    """Rows of A are read in order."""
    A, B, C, k = _product()
    s = te.create_schedule(C.op)
    mo, no, mi, ni = s[C].tile(C.op.axis[0], C.op.axis[1], BLOCK, BLOCK)
    ko, ki = s[C].split(k, factor=KFACTOR)
    s[C].reorder(mo, no, ko, mi, ki, ni)
    s[C].vectorize(ni)
    return Case(s, [A, B, C], _product_reference)


def _packed_product() -> tuple[te.Tensor, te.Tensor, te.Tensor, te.Tensor]:
    """B is packed into panels, so that a tile reads it from one place after the other."""
    A = te.placeholder((SIZE, SIZE), name="A")
    B = te.placeholder((SIZE, SIZE), name="B")
    k = te.reduce_axis((0, SIZE), name="k")
    packed = te.compute((SIZE // BLOCK, SIZE, BLOCK), lambda x, y, z: B[y, x * BLOCK + z], name="packedB")
    C = te.compute((SIZE, SIZE), lambda m, n: te.sum(A[m, k] * packed[n // BLOCK, k, n % BLOCK], axis=k), name="C")
    return A, B, packed, C


def gemm_packed() -> Case:
    """The packed operand, made in parallel."""
    A, B, packed, C = _packed_product()
    s = te.create_schedule(C.op)
    mo, no, mi, ni = s[C].tile(C.op.axis[0], C.op.axis[1], BLOCK, BLOCK)
    (k,) = s[C].op.reduce_axis
    ko, ki = s[C].split(k, factor=KFACTOR)
    s[C].reorder(mo, no, ko, mi, ki, ni)
    s[C].vectorize(ni)
    bigN, _, littleN = s[packed].op.axis
    s[packed].vectorize(littleN)
    s[packed].parallel(bigN)
    return Case(s, [A, B, C], _product_reference)


def gemm_cached() -> Case:
    """A tile of the result is summed up in memory of its own, and written once."""
    A, B, packed, C = _packed_product()
    s = te.create_schedule(C.op)
    CC = s.cache_write(C, "global")
    _, no, _, ni = s[C].tile(C.op.axis[0], C.op.axis[1], BLOCK, BLOCK)
    s[CC].compute_at(s[C], no)
    mc, nc = s[CC].op.axis
    (k,) = s[CC].op.reduce_axis
    ko, ki = s[CC].split(k, factor=KFACTOR)
    s[CC].reorder(ko, mc, ki, nc)
    s[CC].vectorize(nc)
    s[CC].unroll(ki)
    s[C].vectorize(ni)
    bigN, _, littleN = s[packed].op.axis
    s[packed].vectorize(littleN)
    s[packed].parallel(bigN)
    return Case(s, [A, B, C], _product_reference)


def gemm_parallel() -> Case:
    """Rows of tiles on threads."""
    case = gemm_cached()
    C = case.args[-1]
    case.schedule[C].parallel(case.schedule[C].leaf_iter_vars[0])
    return case


# --- operators ----------------------------------------------------------------------------------------------------


def conv2d(n: int = 1, ci: int = 4, size: int = 10, co: int = 8, kernel: int = 3) -> Case:
    """A tiled convolution: padding and product are made for a tile of the output at a time."""
    data = te.placeholder((n, ci, size, size), name="data")
    weight = te.placeholder((co, ci, kernel, kernel), name="weight")
    pad = kernel // 2
    padded = te.compute(
        (n, ci, size + 2 * pad, size + 2 * pad),
        lambda b, c, h, w: te.if_then_else(
            te.all(h >= pad, h < size + pad, w >= pad, w < size + pad),
            data[b, c, h - pad, w - pad],
            te.const(0.0, "float32"),
        ),
        name="padded",
    )
    rc = te.reduce_axis((0, ci), name="rc")
    ry = te.reduce_axis((0, kernel), name="ry")
    rx = te.reduce_axis((0, kernel), name="rx")
    conv = te.compute(
        (n, co, size, size),
        lambda b, o, h, w: te.sum(padded[b, rc, h + ry, w + rx] * weight[o, rc, ry, rx], axis=[rc, ry, rx]),
        name="conv",
    )
    relu = te.compute(conv.shape, lambda *i: te.max(conv(*i), te.const(0.0, "float32")), name="relu")

    s = te.create_schedule(relu.op)
    b, o, h, w = s[relu].op.axis
    oo, oi = s[relu].split(o, factor=4)
    ho, hi = s[relu].split(h, factor=4)  # 10 rows: the last tile is cut short
    s[relu].reorder(b, oo, ho, oi, hi, w)
    s[padded].compute_at(s[relu], ho)
    s[conv].compute_at(s[relu], ho)
    cb, cc, ch, cw = s[conv].op.axis
    s[conv].reorder(cb, rc, ry, rx, cc, ch, cw)
    s[conv].vectorize(cw)
    s[conv].unroll(rx)
    s[relu].vectorize(w)
    s[relu].parallel(oo)

    def reference(x: np.ndarray, k: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        def convolve(x: np.ndarray, k: np.ndarray) -> np.ndarray:
            x = np.pad(x.astype("float64"), [(0, 0), (0, 0), (pad, pad), (pad, pad)])
            windows = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), axis=(2, 3))
            return np.einsum("bchwyx,ocyx->bohw", windows, k.astype("float64"))

        return [(np.maximum(convolve(x, k), 0), ci * kernel**2 * FLOAT_EPS * convolve(np.abs(x), np.abs(k)))]

    return Case(s, [data, weight, relu], reference)


def depthwise_conv2d(channels: int = 6, multiplier: int = 2, size: int = 9, kernel: int = 3) -> Case:
    """A depthwise convolution with batch-norm and relu, whose element-wise parts are inlined by rule."""
    out = size - kernel + 1
    data = te.placeholder((1, channels, size, size), name="data")
    weight = te.placeholder((channels, multiplier, kernel, kernel), name="weight")
    scale = te.placeholder((channels * multiplier,), name="scale")
    shift = te.placeholder((channels * multiplier,), name="shift")
    ry = te.reduce_axis((0, kernel), name="ry")
    rx = te.reduce_axis((0, kernel), name="rx")
    shape = (1, channels * multiplier, out, out)
    depthwise = te.compute(
        shape,
        lambda b, c, h, w: te.sum(
            data[b, c // multiplier, h + ry, w + rx] * weight[c // multiplier, c % multiplier, ry, rx], axis=[ry, rx]
        ),
        name="depthwise",
    )
    scaled = te.compute(shape, lambda b, c, h, w: depthwise[b, c, h, w] * scale[c], name="scaled")
    shifted = te.compute(shape, lambda b, c, h, w: scaled[b, c, h, w] + shift[c], name="shifted")
    relu = te.compute(shape, lambda *i: te.max(shifted(*i), te.const(0.0, "float32")), name="relu")

    s = te.create_schedule(relu.op)
    te.schedule.AutoInlineInjective(s)
    b, c, _, w = s[relu].op.axis
    fused = s[relu].fuse(b, c)
    s[depthwise].compute_at(s[relu], fused)
    s[relu].vectorize(w)
    s[relu].parallel(fused)

    def reference(x: np.ndarray, k: np.ndarray, a: np.ndarray, t: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        windows = np.lib.stride_tricks.sliding_window_view(x.astype("float64"), (kernel, kernel), axis=(2, 3))
        exact = np.einsum("bchwyx,cmyx->bcmhw", windows, k.astype("float64")).reshape(shape)
        size_of = np.einsum("bchwyx,cmyx->bcmhw", np.abs(windows), np.abs(k).astype("float64")).reshape(shape)
        a, t = (v.astype("float64").reshape(1, -1, 1, 1) for v in (a, t))
        bound = (kernel**2 + 3) * FLOAT_EPS * (size_of * np.abs(a) + np.abs(t))
        return [(np.maximum(exact * a + t, 0), bound)]

    return Case(s, [data, weight, scale, shift, relu], reference)


def max_pool_batch_norm(channels: int = 4, size: int = 12) -> Case:
    """2×2 max pooling, then batch-norm by mean and variance, with the element-wise chain inlined."""
    data = te.placeholder((1, channels, size, size), name="data")
    mean = te.placeholder((channels,), name="mean")
    var = te.placeholder((channels,), name="var")
    shape = (1, channels, size // 2, size // 2)
    ry = te.reduce_axis((0, 2), name="ry")
    rx = te.reduce_axis((0, 2), name="rx")
    pool = te.compute(shape, lambda b, c, h, w: te.max(data[b, c, h * 2 + ry, w * 2 + rx], axis=[ry, rx]), name="pool")
    centred = te.compute(shape, lambda b, c, h, w: pool[b, c, h, w] - mean[c], name="centred")
    spread = te.compute((channels,), lambda c: te.sqrt(var[c] + te.const(1.0, "float32")), name="spread")
    norm = te.compute(shape, lambda b, c, h, w: centred[b, c, h, w] / spread[c], name="norm")

    s = te.create_schedule(norm.op)
    te.schedule.AutoInlineInjective(s)
    _, c, h, _ = s[norm].op.axis
    s[pool].compute_at(s[norm], h)
    s[pool].unroll(ry)
    s[pool].unroll(rx)
    s[norm].parallel(c)

    def reference(x: np.ndarray, m: np.ndarray, v: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        pooled = x.reshape(1, channels, size // 2, 2, size // 2, 2).max((3, 5)).astype("float64")
        m, v = (p.astype("float64").reshape(1, -1, 1, 1) for p in (m, v))
        return [((pooled - m) / np.sqrt(v + 1), 4 * FLOAT_EPS * (np.abs(pooled) + np.abs(m)))]

    return Case(s, [data, mean, var, norm], reference)


def softmax(rows: int = 5, columns: int = 33) -> Case:
    """A row at a time: its maximum, the exponentials, their sum, the quotient, all while the row is in the cache."""
    x = te.placeholder((rows, columns), name="x")
    k = te.reduce_axis((0, columns), name="k")
    j = te.reduce_axis((0, columns), name="j")
    largest = te.compute((rows,), lambda i: te.max(x[i, k], axis=k), name="largest")
    power = te.compute((rows, columns), lambda i, c: te.exp(x[i, c] - largest[i]), name="power")
    total = te.compute((rows,), lambda i: te.sum(power[i, j], axis=j), name="total")
    out = te.compute((rows, columns), lambda i, c: power[i, c] / total[i], name="out")

    s = te.create_schedule(out.op)
    i, c = s[out].op.axis
    for stage in (total, power, largest):
        s[stage].compute_at(s[out], i)
    s[power].vectorize(s[power].split(s[power].op.axis[1], factor=4)[1])
    s[out].vectorize(s[out].split(c, factor=4)[1])
    s[out].parallel(i)

    def reference(x: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        e = np.exp(x.astype("float64") - x.max(1, keepdims=True))
        exact = e / e.sum(1, keepdims=True)
        return [(exact, (columns + 8) * FLOAT_EPS * exact)]

    return Case(s, [x, out], reference)


def argmax(rows: int = 5, columns: int = 37, lanes: int = 8) -> Case:
    """The place and the value of the largest element: every lane finds its own, then they are compared (`rfactor`)."""
    x = te.placeholder((rows, columns), name="x")
    k = te.reduce_axis((0, columns), name="k")

    def better(a: tuple[te.Tensor, te.Tensor], b: tuple[te.Tensor, te.Tensor]) -> tuple[object, object]:
        (i, x), (j, y) = a, b
        wins = te.any(x > y, te.all(te.isnan(x), tir.Not(te.isnan(y))))  # a NaN counts as the greatest
        ties = te.any(x.equal(y), te.all(te.isnan(x), te.isnan(y)))
        return te.if_then_else(te.any(wins, te.all(ties, i < j)), i, j), te.max(x, y)

    reducer = te.comm_reducer(better, lambda i, v: (te.max_value(i), te.const(float("-inf"), v)), name="argmax")
    place, value = te.compute((rows,), lambda i: reducer((k.var, x[i, k]), axis=k), name="best")

    s = te.create_schedule(place.op)
    _, ki = s[place].split(k, factor=lanes)
    place_rf, _ = s.rfactor(place, ki)
    s[place_rf].compute_at(s[place], s[place].op.axis[0])
    s[place].parallel(s[place].op.axis[0])

    def reference(x: np.ndarray) -> list[tuple[np.ndarray, float]]:
        return [(x.argmax(1), 0.0), (x.max(1), 0.0)]

    return Case(s, [x, place, value], reference)


def lstm(steps: int = 6, batch: int = 2, hidden: int = 8) -> Case:
    """An LSTM as a scan: gates are inlined into the states, the product runs along rows of the weights."""
    gates_in = te.placeholder((steps, 4, batch, hidden), name="gates_in")
    weight = te.placeholder((4, hidden, hidden), name="weight")
    state = (steps, batch, hidden)
    h, c = te.placeholder(state, name="h"), te.placeholder(state, name="c")
    first_h = te.compute((1, batch, hidden), lambda _, i, j: te.const(0.0, "float32"), name="first_h")
    first_c = te.compute((1, batch, hidden), lambda _, i, j: te.const(0.0, "float32"), name="first_c")
    k = te.reduce_axis((0, hidden), name="k")
    product = te.compute(
        gates_in.shape, lambda t, g, i, j: te.sum(h[t - 1, i, k] * weight[g, k, j], axis=k), name="product"
    )
    gates = te.compute(gates_in.shape, lambda *i: gates_in(*i) + product(*i), name="gates")
    taken = te.compute(state, lambda t, i, j: te.sigmoid(gates[t, 0, i, j]) * te.tanh(gates[t, 1, i, j]), name="taken")
    kept = te.compute(state, lambda t, i, j: te.sigmoid(gates[t, 2, i, j]) * c[t - 1, i, j], name="kept")
    next_c = te.compute(state, lambda t, i, j: kept[t, i, j] + taken[t, i, j], name="next_c")
    next_h = te.compute(state, lambda t, i, j: te.sigmoid(gates[t, 3, i, j]) * te.tanh(next_c[t, i, j]), name="next_h")
    all_h, all_c = te.scan([first_h, first_c], [next_h, next_c], [h, c], inputs=[gates_in], name="lstm")

    s = te.create_schedule(all_h.op)
    for stage in (gates, taken, kept):
        s[stage].compute_inline()
    _, g, i, j = s[product].op.axis
    s[product].reorder(g, i, k, j)
    s[product].vectorize(j)
    for update in (next_h, next_c):
        s[update].vectorize(s[update].op.axis[2])

    def reference(x: np.ndarray, w: np.ndarray) -> list[tuple[np.ndarray, float]]:
        def sigmoid(v: np.ndarray) -> np.ndarray:
            return 1 / (1 + np.exp(-v))

        x, w = x.astype("float64"), w.astype("float64")
        hs, cs = np.zeros(state), np.zeros(state)
        for t in range(1, steps):
            gates = x[t] + np.einsum("ik,gkj->gij", hs[t - 1], w)
            cs[t] = sigmoid(gates[2]) * cs[t - 1] + sigmoid(gates[0]) * np.tanh(gates[1])
            hs[t] = sigmoid(gates[3]) * np.tanh(cs[t])
        # A step sums `hidden` products of at most 1/2 each, and its functions are within a few units of their last
        # place. An error of the step before comes back at most `hidden / 2` times as large, and the cell adds its own.
        once = (hidden + 16) * FLOAT_EPS
        bound = once * sum([(1 + hidden / 2) ** t for t in range(steps)])
        return [(hs, bound), (cs, bound)]

    return Case(s, [gates_in, weight, all_h, all_c], reference)


CASES: dict[str, Callable[[], Case]] = {
    case.__name__: case
    for case in (
        gemm_blocked,
        gemm_vectorized,
        gemm_permuted,
        gemm_packed,
        gemm_cached,
        gemm_parallel,
        conv2d,
        depthwise_conv2d,
        max_pool_batch_norm,
        softmax,
        argmax,
        lstm,
    )
}


def error_of(run: Callable[..., object], case: Case) -> float:
    """Run a program on random inputs of a case; the largest error as a part of what is allowed."""
    outputs = sum([op.num_outputs for op in case.schedule.outputs])
    inputs, results = case.args[: len(case.args) - outputs], case.args[len(case.args) - outputs :]
    random = np.random.default_rng(0)
    arrays = [(random.random([int(n) for n in t.shape]) - 0.5).astype(str(t.dtype)) for t in inputs]
    made = [np.zeros([int(n) for n in t.shape], str(t.dtype)) for t in results]
    run(*arrays, *made)
    worst = 0.0
    for got, (exact, bound) in zip(made, case.reference(*arrays), strict=True):
        error = np.abs(got.astype("float64") - exact)
        assert (error <= bound).all(), f"wrong by {error.max()}, of {np.max(bound)} allowed"
        worst = max(worst, float(np.max(error / np.maximum(bound, 1e-300))) if np.max(bound) else 0.0)
    return worst


def check(case: Case) -> float:
    """Build and run the schedule; the largest error as a part of what is allowed."""
    return error_of(lw.build(case.schedule, case.args), case)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", choices=list(CASES), help="print the program of this one")
    parser.add_argument("--trace", action="store_true", help="print the steps instead")
    options = parser.parse_args()
    if options.name:
        case = CASES[options.name]()
        print(
            case.schedule.as_tir_schedule(case.args).trace
            if options.trace
            else schedule_to_module(case.schedule, case.args)
        )
        return
    print(f"{'schedule':22} {'steps':>5} {'replayed in':>12} {'proved':>7} {'error / allowed':>16}")
    for name, make in CASES.items():
        case = make()
        start = time.perf_counter()
        replayed = case.schedule.as_tir_schedule(case.args)
        seconds = time.perf_counter() - start
        steps = len([inst for inst in replayed.trace.insts if not inst.kind.startswith("Get")])
        print(f"{name:22} {steps:5d} {1e3 * seconds:9.0f} ms {replayed.is_proved!s:>7} {check(case):16.2f}")


if __name__ == "__main__":
    main()
