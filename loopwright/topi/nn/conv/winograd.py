"""Convolutions of stride 1 by winograd: tiles of data and weights are transformed, multiplied and transformed back.

    out tile = Aᵀ [ (G g Gᵀ) ⊙ (Bᵀ d B) summed over channels ] A

`conv2d_winograd_weight_transform` makes G g Gᵀ ahead, and the `…_without_weight_transform` operators take it. The
matrices are those of `schedule.winograd`. (A schedule by rule may turn any direct convolution of stride 1 into this
form: `autosched.apply(…, winograd=True)`, which is proved and has fused transforms. Prefer it where you can.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from loopwright import te
from loopwright.ir import Expr
from loopwright.schedule.winograd import transforms
from loopwright.schedule.winograd.matrices import Transforms
from loopwright.te.tags import default_tag
from loopwright.topi import tag
from loopwright.topi.nn.conv.window import Window, window_over
from loopwright.topi.nn.conv.winograd_weights import (
    NoWinograd,
    checked_transforms,
    constant_matrix,
    numbers_of,
    transformed_weight,
    weight_transform,
)
from loopwright.topi.nn.padding import pad_unless_zero
from loopwright.topi.parts.pad_amounts import get_pad_tuple
from loopwright.topi.parts.sizes import check_rank, check_same, simplify
from loopwright.topi.registry import Reference, Sample, operator
from loopwright.topi.samples import real_numbers
from loopwright.topi.testing.convolution import conv_python
from loopwright.topi.types import Arguments, Dims, DType, IntPadding, Ints, Padding

_KERNEL: Final = {"NCHW": "OIHW", "NHWC": "HWIO"}
TILE: Final = 4  # results each way; larger tiles lose more digits than they save


def _by_tiles(
    data: np.ndarray, ready: np.ndarray, padding: IntPadding, layout: str, magnitudes: bool = False
) -> np.ndarray:
    """The whole in numpy, from a transformed weight; of magnitudes only, it bounds what rounding may do."""
    taps = ready.shape[0] - TILE + 1
    result = transforms(TILE, taps)
    a, b = numbers_of(result.result), numbers_of(result.data)
    if magnitudes:
        data, ready, a, b = np.abs(data), np.abs(ready), np.abs(a), np.abs(b)
    x = data if layout == "NCHW" else data.transpose(0, 3, 1, 2)
    top, left, bottom, right = get_pad_tuple(padding, (taps, taps))
    locations = x.shape[2] + top + bottom - taps + 1, x.shape[3] + left + right - taps + 1
    counts = [-(-size // TILE) for size in locations]
    more = [count * TILE - size for count, size in zip(counts, locations, strict=True)]
    x = np.pad(x, [(0, 0), (0, 0), (top, bottom + more[0]), (left, right + more[1])])
    out = np.zeros((x.shape[0], ready.shape[2], counts[0] * TILE, counts[1] * TILE))
    for i, j in np.ndindex(*counts):
        tile = x[:, :, i * TILE : i * TILE + result.size, j * TILE : j * TILE + result.size]
        seen = np.einsum("ak,bl,nckl->abnc", b, b, tile)
        answer = np.einsum("abnc,aboc->abno", seen, ready)
        at = slice(i * TILE, (i + 1) * TILE), slice(j * TILE, (j + 1) * TILE)
        out[:, :, at[0], at[1]] = np.einsum("ka,lb,abno->nokl", a, a, answer)
    out = out[:, :, : locations[0], : locations[1]]
    return out if layout == "NCHW" else out.transpose(0, 2, 3, 1)


def _oihw(weight: np.ndarray, layout: str) -> np.ndarray:
    return weight if layout == "NCHW" else weight.transpose(3, 2, 0, 1)


def _entry(layout: str, is_ready: bool) -> tuple[Reference, Callable[[], Iterator[Sample]]]:
    """Reference and samples of one of the four operators."""

    def reference(
        data: np.ndarray,
        weight: np.ndarray,
        strides: Ints,
        padding: IntPadding,
        dilation: Ints,
        out_dtype: DType | None = None,
    ) -> np.ndarray:
        if is_ready:
            return _by_tiles(data, weight, padding, layout)
        return conv_python(data, weight, strides, padding, dilation, 1, layout)

    def bound(args: Arguments, exact: np.ndarray) -> np.ndarray | float:
        data, weight, _, padding, *_ = args
        ready = weight
        taps = ready.shape[0] - TILE + 1
        if not is_ready:
            plain = _oihw(weight, layout)
            taps = plain.shape[2]
            g = np.abs(numbers_of(transforms(TILE, taps).weight))
            ready = np.einsum("ak,bl,oikl->aboi", g, g, np.abs(plain))
        # Terms of the sums over tiles of data, of results and of weights, and over channels; constants and products.
        size = TILE + taps - 1
        roundings = 2 * size * size + taps * taps + ready.shape[3] + 13
        return roundings * float(np.finfo("float32").eps) * _by_tiles(data, ready, padding, layout, True)

    def samples() -> Iterator[Sample]:
        cases = [((2, 3, 6, 7), (4, 3, 3, 3), 1), ((1, 2, 4, 4), (1, 2, 3, 3), 0), ((1, 2, 9, 9), (2, 2, 5, 5), 2)]
        for shape, kernel, padding in cases:
            data, weight = real_numbers(shape), real_numbers(kernel)
            if layout == "NHWC":
                data, weight = data.transpose(0, 2, 3, 1).copy(), weight.transpose(2, 3, 1, 0).copy()
            if is_ready:
                weight = np.ascontiguousarray(weight_transform(_oihw(weight, layout), TILE), "float32")
            yield Sample((data, weight, 1, padding, 1, None), bound=bound)

    return reference, samples


def _named(layout: str, is_ready: bool) -> Callable[..., te.Tensor]:
    name = f"conv2d_winograd_{layout.lower()}{'_without_weight_transform' if is_ready else ''}"

    def winograd(
        data: te.Tensor,
        weight: te.Tensor,
        strides: Dims,
        padding: Padding,
        dilation: Dims,
        out_dtype: DType | None = None,
        pre_computed: bool = is_ready,
    ) -> te.Tensor:
        return _winograd(name, layout, data, weight, strides, padding, dilation, out_dtype, pre_computed)

    winograd.__name__ = winograd.__qualname__ = name
    given = "a transformed weight, (size, size, O, I)" if is_ready else "a weight in " + _KERNEL[layout]
    winograd.__doc__ = f"The convolution of stride 1 of data in {layout} by {given}, in tiles of {TILE} × {TILE}."
    reference, samples = _entry(layout, is_ready)
    return operator(reference=reference, samples=samples, name=f"nn.{name}")(winograd)


def _winograd(
    op: str,
    layout: str,
    data: te.Tensor,
    weight: te.Tensor,
    strides: Dims,
    padding: Padding,
    dilation: Dims,
    out_dtype: DType | None,
    pre_computed: bool,
) -> te.Tensor:
    check_rank(op, "data", data, layout, 4)
    check_rank(op, "weight", weight, "of a transformed weight" if pre_computed else _KERNEL[layout], 4)
    sizes = dict(zip(layout, data.shape, strict=True))
    if pre_computed:
        size, other, outputs, inputs = weight.shape
        check_same(op, "the transformed window is not square", ("rows", size), ("columns", other))
        taps = simplify(size - TILE + 1)
    else:
        kernel = dict(zip(_KERNEL[layout], weight.shape, strict=True))
        taps, outputs, inputs = kernel["H"], kernel["O"], kernel["I"]
        check_same(op, "the window is not square", ("rows", taps), ("columns", kernel["W"]))
    check_same(op, "input channels differ", ("the data", sizes["C"]), ("the weight", inputs))
    result = checked_transforms(op, TILE, taps)
    window = window_over(op, (sizes["H"], sizes["W"]), (taps, taps), strides, padding, dilation)
    if any(number != 1 for number in (*window.strides, *window.dilations)):
        problem = f"strides are {window.strides} and dilations {window.dilations}"
        raise NoWinograd(op, problem, "winograd is for convolutions of stride 1 and dilation 1")
    ready = weight
    if not pre_computed:

        def read(o: Expr, i: Expr, y: Expr, x: Expr) -> Expr:
            value: Expr = weight(*((o, i, y, x) if layout == "NCHW" else (y, x, i, o)))
            return value

        ready = transformed_weight(op, weight, TILE, read, (outputs, inputs), taps)
    return _in_tiles(op, layout, data, ready, result, window, out_dtype or data.dtype)


def _in_tiles(
    op: str, layout: str, data: te.Tensor, ready: te.Tensor, made: Transforms, window: Window, dtype: DType
) -> te.Tensor:
    size = made.size
    sizes = dict(zip(layout, data.shape, strict=True))
    batch, inputs, outputs = sizes["N"], sizes["C"], ready.shape[2]
    counts = [simplify((location + TILE - 1) // TILE) for location in window.places]
    tiles = simplify(batch * counts[0] * counts[1])
    # The last tiles may reach past the data by some cells.
    ends = [
        simplify(high + count * TILE - location)
        for high, count, location in zip(window.after, counts, window.places, strict=True)
    ]
    low = {"H": window.before[0], "W": window.before[1]}
    high = {"H": ends[0], "W": ends[1]}
    padded = pad_unless_zero(
        data, [low.get(axis, 0) for axis in layout], [high.get(axis, 0) for axis in layout], name="data_pad"
    )

    def cell(eps: Expr, nu: Expr, p: Expr, c: Expr) -> Expr:
        n, y, x = p // (counts[0] * counts[1]), p // counts[1] % counts[0], p % counts[1]
        at = {"N": n, "C": c, "H": y * TILE + eps, "W": x * TILE + nu}
        value: Expr = padded(*[at[axis] for axis in layout]).astype(dtype)
        return value

    tile = te.compute((size, size, tiles, inputs), cell, name="input_tile", tag=default_tag(tag.INJECTIVE))
    b, a = constant_matrix(made.data, dtype, "B"), constant_matrix(made.result, dtype, "A")
    r_a, r_b = (te.reduce_axis((0, size), name=name) for name in ("r_a", "r_b"))
    packed = te.compute(
        (size, size, tiles, inputs),
        lambda eps, nu, p, c: te.sum(tile(r_a.var, r_b.var, p, c) * b(eps, r_a.var) * b(nu, r_b.var), axis=[r_a, r_b]),
        name="data_pack",
    )
    rc = te.reduce_axis((0, inputs), name="ci")
    product = te.compute(
        (size, size, tiles, outputs),
        lambda eps, nu, p, o: te.sum(packed(eps, nu, p, rc.var) * ready(eps, nu, o, rc.var).astype(dtype), axis=rc),
        name="bgemm",
    )
    r_e, r_n = (te.reduce_axis((0, size), name=name) for name in ("r_e", "r_n"))
    inverse = te.compute(
        (TILE, TILE, tiles, outputs),
        lambda vh, vw, p, o: te.sum(product(r_e.var, r_n.var, p, o) * a(vh, r_e.var) * a(vw, r_n.var), axis=[r_e, r_n]),
        name="inverse",
    )

    def placed(*indices: Expr) -> Expr:
        at = dict(zip(layout, indices, strict=True))
        y, x = at["H"], at["W"]
        number = (at["N"] * counts[0] + y // TILE) * counts[1] + x // TILE
        value: Expr = inverse(y % TILE, x % TILE, number, at["C"])
        return value

    shape = {"N": batch, "C": outputs, "H": window.places[0], "W": window.places[1]}
    out: te.Tensor = te.compute(
        [shape[axis] for axis in layout], placed, name="conv2d_winograd", tag=default_tag("conv2d_winograd")
    )
    return out


conv2d_winograd_nchw, conv2d_winograd_nhwc = _named("NCHW", False), _named("NHWC", False)
conv2d_winograd_nchw_without_weight_transform = _named("NCHW", True)
conv2d_winograd_nhwc_without_weight_transform = _named("NHWC", True)
