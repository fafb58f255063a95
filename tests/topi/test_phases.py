"""topi/nn/conv/phases.py: every tap of a transposed convolution is computed once, in whichever form."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.topi.nn.conv.phase_convolutions import _cells
from loopwright.topi.nn.conv.phases import Line, choose_forms
from loopwright.topi.nn.conv.transposed import conv_transpose
from loopwright.topi.testing.convolution import conv_transpose_python, dilate_python


def lines():
    for size, taps, stride, dilation in itertools.product((1, 2, 5), (1, 2, 3, 5), (1, 2, 3, 4), (1, 2, 3, 4)):
        reach = (taps - 1) * dilation + 1
        for before, after, extra in ((0, 0, 0), (reach - 1, 0, stride - 1), (reach // 2, reach // 2, 0)):
            places = (size - 1) * stride + reach - before - after + extra
            if places > 0:
                yield Line(size, taps, stride, dilation, before, places)


def test_cells_of_terms():
    for line in lines():
        for term in range(line.terms):
            low, high = _cells(line, term)
            for place in range(line.places):
                for tap in range(term * line.step, min(line.taps, (term + 1) * line.step)):
                    cell = line.cell(place, tap)
                    assert cell is None or low <= cell <= high


def test_a_window_sees_all_cells_of_a_phase():
    for line in lines():
        for form in choose_forms([line], 4, 4) or []:
            if not form.is_window:
                assert (form.channels, form.places, form.taps) == (line.taps, line.size, 1)
                continue
            for place, tap in itertools.product(range(line.places), range(line.taps)):
                cell = line.cell(place, tap)
                if cell is None:
                    continue
                at = (place + line.padding) // line.stride - form.begin
                phase = (place + line.padding) % line.stride
                assert 0 <= at < form.places and phase < form.channels
                window = (cell + form.before - at) // line.spread
                assert 0 <= window < form.taps and tap == phase + line.step * (form.taps - 1 - window)


def transposed(data_shape, weight_shape, strides, padding, extra, groups, dilation, **kwargs):
    spatial = "DHW"[5 - len(data_shape) :]
    A, W = te.placeholder(data_shape, name="A"), te.placeholder(weight_shape, name="W")
    Y = conv_transpose("conv_transpose", A, W, strides, padding, None, extra, groups, spatial, dilation)
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-4, 5, shape).astype("float32") for shape in (data_shape, weight_shape))
    y = np.full([int(size) for size in Y.shape], np.nan, "float32")
    lw.build([A, W, Y], **kwargs)(x, w, y)
    spread = dilate_python(w, [1, 1, *dilation])
    expected = conv_transpose_python(x.astype("float64"), spread.astype("float64"), strides, padding, extra, groups)
    assert np.array_equal(y, expected)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(12))
def test_random(seed):
    rng = random.Random(seed)
    rank, groups = rng.choice((1, 2, 3)), rng.choice((1, 1, 2))
    strides, taps = ([rng.randint(1, 4) for _ in range(rank)] for _ in range(2))
    dilation, sizes = [rng.choice((1, 1, 2, 3)) for _ in range(rank)], [rng.randint(2, 6) for _ in range(rank)]
    reach = [(k - 1) * d + 1 for k, d in zip(taps, dilation, strict=True)]
    pads = tuple([rng.randint(0, r // 2) for r in reach] + [rng.randint(0, r // 2) for r in reach])
    extra = [rng.randint(0, stride - 1) for stride in strides]
    inputs, outputs = groups * rng.choice((1, 3)), rng.choice((1, 2, 5))
    transposed((2, inputs, *sizes), (inputs, outputs, *taps), strides, pads, extra, groups, dilation)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("data", "weight", "strides", "padding", "groups", "dilation"),
    [
        ((1, 24, 9, 7), (24, 5, 3, 3), [2, 2], 1, 1, [1, 1]),  # sums over taps, in vectors
        ((1, 6, 5, 17), (6, 4, 4, 4), [2, 2], 1, 2, [1, 1]),  # windows of a phase
        ((2, 3, 37), (3, 4, 3), [3], 2, 1, [2]),  # phases that meet taps in another order
        ((1, 3, 5, 19), (3, 2, 2, 3), [1, 4], 0, 1, [1, 2]),  # phases that meet none
    ],
)
def test_by_rule(data, weight, strides, padding, groups, dilation):
    transposed(data, weight, strides, padding, [0] * len(strides), groups, dilation, autosched=True)
