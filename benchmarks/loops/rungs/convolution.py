"""Direct convolutions, 3 × 3 without padding: NCHW and NHWC, several loop orders and tiles, depthwise, pointwise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.bench.bounds import gamma, wide
from benchmarks.bench.case import Array, Bounded, aligned, uniform
from benchmarks.loops.rung import Loops, Rung, Steps, as_written, scheduled
from loopwright import te
from loopwright.schedule import Schedule

KERNEL = 3


def _loops(
    tensors: list[te.Tensor], steps: Steps, x: Array, w: Array, exact: Callable[[Array, Array], Array], terms: int
) -> Loops:
    shape = tuple(int(extent) for extent in tensors[-1].shape)

    def reference() -> list[Bounded]:
        return [Bounded(exact(wide(x), wide(w)), gamma(terms + 1) * exact(np.abs(wide(x)), np.abs(wide(w))))]

    function = scheduled(te.create_prim_func(tensors), steps)
    return Loops(function, [x, w], [aligned(shape)], reference, 2 * terms * int(np.prod(shape)))


def _windows(x: Array, height: int, width: int, kernel: int = KERNEL) -> Array:
    """The windows of an image, their own two axes last."""
    return np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), axis=(height, width))


def nchw(steps: Steps, channels: int, outputs: int, size: int, kernel: int = KERNEL) -> Loops:
    """Y[o, h, w] = Σ X[c, h + y, w + x] · W[o, c, y, x]."""
    out = size - kernel + 1
    X, W = (
        te.placeholder((channels, size, size), name="X"),
        te.placeholder((outputs, channels, kernel, kernel), name="W"),
    )
    c, y, x = (
        te.reduce_axis((0, extent), name=name) for extent, name in ((channels, "c"), (kernel, "y"), (kernel, "x"))
    )
    Y = te.compute(
        (outputs, out, out), lambda o, h, w: te.sum(X[c, h + y, w + x] * W[o, c, y, x], axis=[c, y, x]), name="Y"
    )
    return _loops(
        [X, W, Y], steps, uniform((channels, size, size), seed=1), uniform((outputs, channels, kernel, kernel), seed=2),
        lambda x, w: np.einsum("chwyx,ocyx->ohw", _windows(x, 1, 2, kernel), w, optimize=True), channels * kernel**2,
    )  # fmt: skip


def pointwise(steps: Steps, channels: int, outputs: int, size: int) -> Loops:
    """A convolution with one tap."""
    return nchw(steps, channels, outputs, size, kernel=1)


def nhwc(steps: Steps, channels: int, outputs: int, size: int) -> Loops:
    """Y[h, w, o] = Σ X[h + y, w + x, c] · W[y, x, c, o]."""
    out = size - KERNEL + 1
    X, W = (
        te.placeholder((size, size, channels), name="X"),
        te.placeholder((KERNEL, KERNEL, channels, outputs), name="W"),
    )
    y, x, c = (
        te.reduce_axis((0, extent), name=name) for extent, name in ((KERNEL, "y"), (KERNEL, "x"), (channels, "c"))
    )
    Y = te.compute(
        (out, out, outputs), lambda h, w, o: te.sum(X[h + y, w + x, c] * W[y, x, c, o], axis=[y, x, c]), name="Y"
    )
    return _loops(
        [X, W, Y], steps, uniform((size, size, channels), seed=1), uniform((KERNEL, KERNEL, channels, outputs), seed=2),
        lambda x, w: np.einsum("hwcyx,yxco->hwo", _windows(x, 0, 1), w, optimize=True), channels * KERNEL**2,
    )  # fmt: skip


def depthwise_nchw(steps: Steps, channels: int, size: int) -> Loops:
    """Each channel with a kernel of its own, planes apart."""
    out = size - KERNEL + 1
    X, W = te.placeholder((channels, size, size), name="X"), te.placeholder((channels, KERNEL, KERNEL), name="W")
    y, x = te.reduce_axis((0, KERNEL), name="y"), te.reduce_axis((0, KERNEL), name="x")
    Y = te.compute((channels, out, out), lambda c, h, w: te.sum(X[c, h + y, w + x] * W[c, y, x], axis=[y, x]), name="Y")
    return _loops(
        [X, W, Y], steps, uniform((channels, size, size), seed=1), uniform((channels, KERNEL, KERNEL), seed=2),
        lambda x, w: np.einsum("chwyx,cyx->chw", _windows(x, 1, 2), w), KERNEL**2,
    )  # fmt: skip


def depthwise_nhwc(steps: Steps, channels: int, size: int) -> Loops:
    """Each channel with a kernel of its own, channels innermost."""
    out = size - KERNEL + 1
    X, W = te.placeholder((size, size, channels), name="X"), te.placeholder((KERNEL, KERNEL, channels), name="W")
    y, x = te.reduce_axis((0, KERNEL), name="y"), te.reduce_axis((0, KERNEL), name="x")
    Y = te.compute((out, out, channels), lambda h, w, c: te.sum(X[h + y, w + x, c] * W[y, x, c], axis=[y, x]), name="Y")
    return _loops(
        [X, W, Y], steps, uniform((size, size, channels), seed=1), uniform((KERNEL, KERNEL, channels), seed=2),
        lambda x, w: np.einsum("hwcyx,yxc->hwc", _windows(x, 0, 1), w), KERNEL**2,
    )  # fmt: skip


# --- schedules ------------------------------------------------------------------------------------------------------


def order(names: str) -> Steps:
    """The loops in another order: the letters of the data axes, then of the reduction, say which is which."""
    reordered, _, written = names.partition(" of ")

    def reorder(sch: Schedule) -> None:
        loops = dict(zip(written, sch.get_loops("Y"), strict=True))
        sch.reorder(*[loops[name] for name in reordered])

    return reorder


def nchw_tiled(sch: Schedule) -> None:
    """Tiles of 8 output channels and 4 rows; a row is innermost."""
    o, h, w, c, y, x = sch.get_loops("Y")
    o_0, o_1 = sch.split(o, [None, 8])
    h_0, h_1 = sch.split(h, [None, 4])
    c_0, c_1 = sch.split(c, [None, 16])
    sch.reorder(o_0, h_0, c_0, c_1, y, x, o_1, h_1, w)


def nchw_register_tile(sch: Schedule) -> None:
    """Accumulators of 4 output channels and one vector of a row in a local buffer."""
    o, h, w, c, y, x = sch.get_loops("Y")
    o_0, o_1 = sch.split(o, [None, 4])
    w_0, w_1 = sch.split(w, [None, 16])
    sch.reorder(o_0, h, w_0, c, y, x, o_1, w_1)
    copy = sch.cache_write("Y", 0, "local")
    sch.reverse_compute_at(copy, w_0, preserve_unit_loops=True)
    sch.sink_alloc("Y", "Y_local")
    sch.unroll(o_1)
    sch.vectorize(w_1)
    sch.vectorize(sch.get_loops(copy)[-1])


def nhwc_tiled(sch: Schedule) -> None:
    """Tiles of 8 pixels; output channels are innermost."""
    h, w, o, y, x, c = sch.get_loops("Y")
    w_0, w_1 = sch.split(w, [None, 8])
    sch.reorder(h, w_0, y, x, c, w_1, o)


def nhwc_vectorized(sch: Schedule) -> None:
    """Tiles of 6 pixels, unrolled, and vectors of output channels."""
    h, w, o, y, x, c = sch.get_loops("Y")
    w_0, w_1 = sch.split(w, [None, 6])
    o_0, o_1 = sch.split(o, [None, 16])
    sch.reorder(h, w_0, o_0, y, x, c, w_1, o_1)
    copy = sch.cache_write("Y", 0, "local")
    sch.reverse_compute_at(copy, o_0, preserve_unit_loops=True)
    sch.sink_alloc("Y", "Y_local")
    sch.unroll(w_1)
    sch.vectorize(o_1)
    sch.vectorize(sch.get_loops(copy)[-1])


def unrolled_taps(sch: Schedule) -> None:
    """The nine taps are written out in the innermost loop of a depthwise convolution."""
    *_, y, x = sch.get_loops("Y")
    sch.unroll(y)
    sch.unroll(x)


IMAGE = (32, 64, 58), (3, 5, 18)


def _rung(name: str, make: Callable[..., Loops], steps: Steps, shapes: tuple[tuple[int, ...], ...] = IMAGE) -> Rung:
    return Rung(name, lambda *shape: make(steps, *shape), *shapes)


DEPTHWISE = (128, 114), (6, 21)

RUNGS = [
    _rung("NCHW, as written", nchw, as_written),
    _rung("NCHW, order ocyxhw", nchw, order("ocyxhw of ohwcyx")),
    _rung("NCHW, order ohcyxw", nchw, order("ohcyxw of ohwcyx")),
    _rung("NCHW, tiled 8 × 4, rows innermost", nchw, nchw_tiled),
    _rung("NCHW, register tile", nchw, nchw_register_tile, ((32, 64, 66), (3, 8, 34))),
    _rung("NCHW, 1×1, order ochw", pointwise, order("ocyxhw of ohwcyx"), ((128, 128, 56), (5, 3, 9))),
    _rung("NHWC, as written", nhwc, as_written),
    _rung("NHWC, order hwyxco", nhwc, order("hwyxco of hwoyxc")),
    _rung("NHWC, tiled 8 pixels", nhwc, nhwc_tiled),
    _rung("NHWC, register tile", nhwc, nhwc_vectorized, ((32, 64, 62), (5, 32, 14))),
    _rung("depthwise NCHW, as written", depthwise_nchw, as_written, DEPTHWISE),
    _rung("depthwise NCHW, order chyxw", depthwise_nchw, order("chyxw of chwyx"), DEPTHWISE),
    _rung("depthwise NCHW, taps unrolled", depthwise_nchw, unrolled_taps, DEPTHWISE),
    _rung("depthwise NHWC, as written", depthwise_nhwc, as_written, DEPTHWISE),
    _rung("depthwise NHWC, order hwyxc", depthwise_nhwc, order("hwyxc of hwcyx"), DEPTHWISE),
]
