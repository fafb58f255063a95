"""Convolutions: right within a float64 bound in every layout and at every edge, proved, replayed, with reasons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir, topi
from loopwright.autosched import Machine, Plan, apply
from loopwright.autosched.program import Program
from loopwright.autosched.rules.convolution import Convolution
from loopwright.autosched.rules.convolution.tiles import choose_tiles
from loopwright.autosched.rules.convolution.window import window_of
from loopwright.ir import PrimFunc
from loopwright.schedule import Schedule
from loopwright.schedule.engine.deferred import Doubt
from loopwright.topi.testing import conv_python
from tests.autosched.same_results import planned

ONE, TWO = "llvm -num-cores=1", "llvm -num-cores=2"


class Case(NamedTuple):
    """A convolution, and whether negative results are cut off after it."""

    layout: str
    data: Sequence[int]
    weight: Sequence[int]
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    groups: int = 1
    relu: bool = True

    def program(self, dtype: str = "float32") -> PrimFunc:
        x = te.placeholder(tuple(self.data), dtype, name="X")
        w = te.placeholder(tuple(self.weight), dtype, name="W")
        y = topi.nn.conv(x, w, self.stride, self.padding, self.dilation, self.groups, self.layout)
        if self.relu:
            y = te.compute(y.shape, lambda *at: te.max(y(*at), te.const(0, dtype)), name="relu")
        return te.create_prim_func([x, w, y])

    def numpy(self, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        y = conv_python(x, w, self.stride, self.padding, self.dilation, self.groups, self.layout)
        return np.maximum(y, 0) if self.relu else y


def numbers(shape: Sequence[int], dtype: str, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    if dtype.startswith(("int", "uint")):
        return random.integers(0 if dtype[0] == "u" else -3, 4, shape).astype(dtype)
    return (random.random(shape) - 0.5).astype(dtype)


def check(case: Case, dtype: str = "float32", target: str = ONE, may_refuse: bool = False) -> Plan:
    """The plan, proved, after its result was found to be right. (That plans replay is tested for some below.)"""
    plan = apply(case.program(dtype), target)
    assert plan.schedule.is_proved
    assert may_refuse or "refused" not in plan.explain()
    x, w = numbers(case.data, dtype, 1), numbers(case.weight, dtype, 2)
    exact = case.numpy(x.astype("float64"), w.astype("float64"))
    got = np.full(exact.shape, 7, dtype)
    lw.build(plan.mod, target=target)(x, w, got)
    if dtype.startswith(("int", "uint")):
        assert np.array_equal(got, exact.astype("int64").astype(dtype))
    else:
        size = case._replace(relu=False).numpy(np.abs(x).astype("float64"), np.abs(w).astype("float64"))
        depth = w.size // w.shape[0 if case.layout[1] == "C" else -1] + 2
        assert np.all(np.abs(got.astype("float64") - exact) <= depth * float(np.finfo(dtype).eps) * size + 1e-300)
    return plan


EDGES = {
    "channels of a vector and a half": Case("NCHW", (1, 3, 12, 13), (24, 3, 3, 3), padding=1),
    "channels that are a prime": Case("NCHW", (2, 5, 9, 9), (17, 5, 3, 3), stride=2, padding=1),
    "fewer channels than lanes": Case("NCHW", (1, 4, 7, 11), (3, 4, 3, 3)),
    "a large window": Case("NCHW", (1, 16, 14, 14), (48, 16, 5, 5), padding=2, relu=False),
    "dilation": Case("NCHW", (1, 4, 20, 20), (32, 4, 3, 3), padding=2, dilation=2),
    "one pixel": Case("NCHW", (1, 4, 3, 3), (16, 4, 3, 3)),
    "one line": Case("NCHW", (4, 8, 1, 9), (20, 8, 1, 3)),
    "one column": Case("NCHW", (1, 8, 9, 1), (16, 8, 3, 1)),
    "one column, longer than a tile": Case("NCHW", (1, 8, 43, 1), (24, 8, 5, 3), stride=2, padding=1),
    "one column, channels last": Case("NHWC", (2, 19, 1, 8), (3, 1, 8, 24)),
    "lines longer than a tile by one": Case("NCHW", (1, 2, 5, 31), (32, 2, 3, 3)),
    "a stride larger than the window": Case("NCHW", (1, 8, 13, 13), (16, 8, 2, 2), stride=3),
    "channels last": Case("NHWC", (1, 12, 13, 3), (3, 3, 3, 24), padding=1),
    "channels last, strided": Case("NHWC", (2, 9, 9, 5), (3, 3, 5, 17), stride=2, padding=1, relu=False),
    "one dimension": Case("NCW", (1, 16, 50), (32, 16, 3), padding=1),
    "one dimension, channels last": Case("NWC", (2, 50, 16), (3, 16, 40), stride=2),
    "three dimensions": Case("NCDHW", (1, 3, 5, 6, 7), (16, 3, 3, 3, 3), padding=1),
    "three dimensions, channels last": Case("NDHWC", (1, 4, 5, 6, 4), (3, 3, 3, 4, 32), padding=1),
    "groups": Case("NCHW", (1, 32, 8, 8), (64, 8, 3, 3), padding=1, groups=4),
    "groups of three": Case("NCHW", (2, 12, 7, 7), (12, 3, 3, 3), padding=1, groups=4, relu=False),
    "channels last, in blocks": Case("NHWC", (1, 9, 9, 32), (3, 3, 32, 24), stride=2, padding=1),
    "channels last, in half blocks": Case("NHWC", (2, 7, 8, 8), (3, 3, 8, 32), padding=1),
    "channels last, dilated blocks": Case("NHWC", (1, 9, 8, 16), (3, 2, 16, 16), padding=1, dilation=2),
    "groups, channels last": Case("NHWC", (1, 7, 7, 32), (3, 3, 16, 64), padding=1, groups=2),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", EDGES)
def test_every_edge(name: str) -> None:
    assert "direct convolution" in check(EDGES[name]).explain()


def test_bands_that_are_no_whole_squares_of_a_padded_panel() -> None:
    """Found by random programs: 7 lines of 14 pixels are 6 squares and a bit, and the next band starts after them."""
    plan = check(Case("NCHW", (1, 24, 28, 14), (24, 24, 3, 3), padding=1), target="llvm -num-cores=16")
    assert "direct convolution" in plan.explain()


def test_one_input_channel_is_whatever_is_faster() -> None:
    """Windows that move by several cells leave lanes to be shuffled; those that overlap share what they load."""
    strided = check(Case("NCHW", (2, 1, 23, 29), (32, 1, 5, 7), stride=3, padding=2), may_refuse=True)
    assert "direct convolution" in strided.explain() and "tiles of" in strided.explain()
    assert "depthwise" in check(Case("NCW", (2, 1, 400), (12, 1, 5)), target="llvm -num-cores=1").explain()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["channels of a vector and a half", "groups", "channels last"])
def test_plans_replay(name: str) -> None:
    planned(EDGES[name].program(), ONE)


POINTWISE = [
    Case("NCHW", (1, 16, 8, 8), (48, 16, 1, 1)),
    Case("NCHW", (2, 16, 7, 7), (33, 16, 1, 1), relu=False),
    Case("NCHW", (1, 8, 30, 32), (2, 8, 1, 1)),
    Case("NCHW", (1, 64, 1, 1), (64, 64, 1, 1)),
    Case("NHWC", (1, 14, 14, 32), (1, 1, 32, 64)),
    Case("NHWC", (1, 1, 1, 64), (1, 1, 64, 48)),
    Case("NHWC", (3, 1, 2, 16), (1, 1, 16, 16)),
    Case("NHWC", (2, 5, 5, 2), (1, 1, 2, 3), relu=False),
    Case("NHWC", (2, 1, 7, 33), (1, 1, 33, 17)),
    Case("NCDHW", (1, 8, 3, 4, 5), (32, 8, 1, 1, 1)),
    Case("NCHW", (1, 24, 9, 9), (24, 6, 1, 1), groups=4),
    Case("NCHW", (2, 16, 9, 9), (32, 4, 1, 1), groups=4, stride=2, relu=False),
    Case("NHWC", (1, 9, 9, 24), (1, 1, 6, 24), groups=4),
    Case("NCW", (2, 32, 37), (16, 8, 1), groups=4),  # a product for each group
    Case("NCW", (1, 12, 41), (9, 4, 1), groups=3, relu=False),
    Case("NCW", (2, 96, 211), (8, 96, 1)),  # few rows, a few of the image's at a time
]


def test_channels_last_are_products_of_pixels_by_channels() -> None:
    plan = check(Case("NHWC", (1, 14, 14, 64), (1, 1, 64, 128)))
    assert "a GEMM, pixels by channels" in plan.explain()


def test_channels_that_are_neighbours_are_copied_as_vectors() -> None:
    image = Case("NHWC", (1, 8, 8, 32), (3, 3, 32, 32), stride=2, padding=1)
    plan = apply(image.program(), "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v4 -num-cores=1")
    assert "lines of blocks of 16 channels: channels are contiguous in the image" in plan.explain()
    plan = check(Case("NHWC", (1, 8, 8, 15), (3, 3, 15, 32), stride=2, padding=1))
    assert "blocks of" not in plan.explain()


def test_groups_of_one_pixel_are_products() -> None:
    plan = check(Case("NCHW", (1, 136, 14, 14), (136, 34, 1, 1), groups=4))
    assert "a GEMM, channels by pixels" in plan.explain()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", POINTWISE)
def test_a_window_of_one_pixel(case: Case) -> None:
    check(case)


def test_large_pointwise_convolutions_are_products() -> None:
    plan = check(Case("NCHW", (1, 32, 32, 32), (64, 32, 1, 1)))
    assert "a GEMM, channels by pixels" in plan.explain()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", ["float64", "int32", "int64", "uint8"])
def test_other_types(dtype: str) -> None:
    check(EDGES["channels of a vector and a half"], dtype, may_refuse=True)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["channels of a vector and a half", "channels last"])
def test_threads_do_not_change_a_bit(name: str) -> None:
    case = EDGES[name]._replace(data=[size * 2 if k == 0 else size for k, size in enumerate(EDGES[name].data)])
    x, w = numbers(case.data, "float32", 1), numbers(case.weight, "float32", 2)
    results = []
    for cores in (1, 2, 16):
        got = np.zeros(case.numpy(x, w).shape, "float32")
        lw.build(case.program(), target=f"llvm -num-cores={cores}", autosched=True)(x, w, got)
        results.append(got.tobytes())
    assert len(set(results)) == 1


def test_threads_share_out_bands_and_channels() -> None:
    plan = planned(Case("NCHW", (1, 64, 28, 28), (128, 64, 3, 3), padding=1).program(), "llvm -num-cores=16")
    assert "parallelised over" in plan.explain()


def test_constant_weights_are_packed_by_the_compiler() -> None:
    case = EDGES["a large window"]
    x, w = numbers(case.data, "float32", 1), numbers(case.weight, "float32", 2)
    func = tir.bind_constants(case.program(), {"W": w})
    assert "prepacked in panels" in planned(func, ONE).explain()
    got = np.zeros(case.numpy(x, w).shape, "float32")
    lw.build(func, target="llvm", autosched=True)(x, got)
    assert np.allclose(got, case.numpy(x, w), atol=1e-5)


def test_reasons() -> None:
    func = Case("NCHW", (1, 64, 28, 28), (64, 64, 3, 3), padding=1).program()
    text = planned(func, "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512").explain()
    assert "tiles of" in text and "pixels ×" in text
    assert "padding done for" in text
    assert "accumulators transposed in registers" in text
    assert "of the roofline is expected" in text


@pytest.mark.parametrize("mcpu", ["skylake-avx512", "haswell", "x86-64"])
def test_sums_fit_the_registers(mcpu: str) -> None:
    facts = Program(Schedule(EDGES["a large window"].program()), "main").entries[1].facts
    assert facts is not None
    window, machine = window_of(facts), Machine.of(f"llvm -mtriple=x86_64-linux-gnu -mcpu={mcpu}")
    assert window is not None
    tiles = choose_tiles(window, machine, pads=True)
    assert tiles.mr * tiles.vectors + tiles.vectors < machine.registers


def test_products_of_matrices_are_left_to_others() -> None:
    a, b = te.placeholder((8, 9), name="A"), te.placeholder((9, 16), name="B")
    k = te.reduce_axis((0, 9), "k")
    c = te.compute((8, 16), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    program = Program(Schedule(te.create_prim_func([a, b, c])), "main")
    assert Convolution().take(program.entries, program) == 0


def test_the_result_may_be_used_again() -> None:
    """Somebody else reads the sums as well: they are an output, and the element-wise block runs by itself."""
    x, w = te.placeholder((1, 4, 9, 9), name="X"), te.placeholder((16, 4, 3, 3), name="W")
    y = topi.nn.conv(x, w, 1, 0, 1, 1, "NCHW")
    z = te.compute(y.shape, lambda *at: te.max(y(*at), 0.0), name="relu")
    func = te.create_prim_func([x, w, y, z])
    plan = planned(func, ONE)
    arrays = [numbers((1, 4, 9, 9), "float32", 1), numbers((16, 4, 3, 3), "float32", 2)]
    y1, z1 = np.zeros((1, 16, 7, 7), "float32"), np.zeros((1, 16, 7, 7), "float32")
    lw.build(plan.mod, target=ONE)(*arrays, y1, z1)
    assert np.allclose(y1, conv_python(*arrays), atol=1e-5)
    assert np.array_equal(z1, np.maximum(y1, 0))


@pytest.fixture
def no_doubt(monkeypatch):
    """Steps that cannot be proved together, and would be proved one by one, fail the test."""

    def refuse(self: Doubt) -> None:
        raise AssertionError("the steps were not proved together")

    monkeypatch.setattr(Doubt, "__init__", refuse)


@pytest.mark.usefixtures("no_doubt")
@pytest.mark.parametrize(
    "case",
    [
        Case("NCHW", (1, 5, 36, 36), (112, 5, 5, 5), padding=2),  # squares of pixels, and a rest of 8
        Case("NCHW", (1, 5, 19, 19), (32, 5, 3, 3), padding=1),
    ],
    ids=str,
)
@pytest.mark.parametrize("target", [ONE, TWO])
def test_a_peeled_result_is_proved_with_all_steps_together(case, target):
    """isl gives up on the flow through the result, which two blocks write at quotients and remainders of a pixel."""
    assert apply(case.program(), target).decisions
