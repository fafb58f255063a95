"""Convolutions by winograd, chosen by rule: right within the bound, the same on any number of cores, told in words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te
from loopwright.autosched.machine import Machine
from loopwright.autosched.program import Program
from loopwright.autosched.rules.winograd import rule
from loopwright.autosched.rules.winograd.allowed import BadWinograd, largest_tile
from loopwright.autosched.rules.winograd.layer import Layer, match_with_fused
from loopwright.autosched.rules.winograd.sizes import GAIN, Sizes, choose_sizes
from loopwright.ir import PrimFunc, bind_constants, structural_equal
from loopwright.schedule import Schedule, Trace
from loopwright.schedule.winograd import error_bound
from loopwright.transform import precompute_constants
from tests.compile_caching import switch_on

ONE, TWO = "llvm -num-cores=1", "llvm -num-cores=2"


@pytest.fixture(autouse=True)
def wherever_possible(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Small layers are computed by winograd too, unless a test asks for the model's own choice."""
    if "by_the_model" not in request.fixturenames:
        monkeypatch.setattr(rule, "GAIN", 0.0)


@pytest.fixture
def by_the_model() -> None:
    """The model decides whether it pays."""


def layer(
    n: int,
    c: int,
    h: int,
    w: int,
    f: int,
    last: bool = False,
    after: str = "",
    pad: int = 1,
    taps: int = 3,
    stride: int = 1,
    dtype: str = "float32",
) -> PrimFunc:
    """Padding, convolution and what comes `after` it: bias, relu, residual; channels `last` or after the batch."""

    def shape(channels: int, rows: int, columns: int) -> tuple[int, ...]:
        return (n, rows, columns, channels) if last else (n, channels, rows, columns)

    def told(at: tuple[te.Var, ...]) -> tuple[te.Var, ...]:
        return (at[0], at[3], at[1], at[2]) if last else at

    def of(tensor: te.Tensor, a: object, ch: object, i: object, j: object) -> object:
        return tensor(a, i, j, ch) if last else tensor(a, ch, i, j)

    x = te.placeholder(shape(c, h, w), dtype, name="X")
    weight = te.placeholder((taps, taps, c, f) if last else (f, c, taps, taps), dtype, name="W")
    bias = te.placeholder((f,), dtype, name="B")
    rows, columns = ((size + 2 * pad - taps) // stride + 1 for size in (h, w))
    other = te.placeholder(shape(f, rows, columns), dtype, name="R")
    zero = te.const(0, dtype)
    padded = x
    if pad:

        def element(*at: te.Var) -> object:
            a, ch, i, j = told(at)
            inside = te.all(i >= pad, i < h + pad, j >= pad, j < w + pad)
            return te.if_then_else(inside, of(x, a, ch, i - pad, j - pad), zero)

        padded = te.compute(shape(c, h + 2 * pad, w + 2 * pad), element, name="P")
    rc, ri, rj = (te.reduce_axis((0, size), name) for size, name in ((c, "rc"), (taps, "ri"), (taps, "rj")))

    def product(*at: te.Var) -> object:
        a, o, i, j = told(at)
        held = weight[ri, rj, rc, o] if last else weight[o, rc, ri, rj]
        return te.sum(of(padded, a, rc, i * stride + ri, j * stride + rj) * held, axis=[rc, ri, rj])

    made = te.compute(shape(f, rows, columns), product, name="O")
    given = [x, weight]
    if "bias" in after:
        given.append(bias)
        before = made
        made = te.compute(made.shape, lambda *at: before(*at) + bias[told(at)[1]], name="Bias")
    if "residual" in after:
        given.append(other)
        summed = made
        made = te.compute(made.shape, lambda *at: summed(*at) + other(*at), name="Sum")
    if "relu" in after:
        cut = made
        made = te.compute(made.shape, lambda *at: te.max(cut(*at), zero), name="Relu")
    return te.create_prim_func([*given, made])


def numbers(func: PrimFunc, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    buffers = func.argument_buffers()
    return [rng.standard_normal([int(e) for e in b.shape]).astype(b.dtype.numpy()) for b in buffers]


def first(array: np.ndarray, last: bool) -> np.ndarray:
    """The array with channels after the batch."""
    return np.moveaxis(array, -1, 1) if last else array


def assert_right(func: PrimFunc, arrays: list[np.ndarray], got: np.ndarray, last: bool, after: str, pad: int) -> None:
    """Within the bound of the convolution, and of what comes after it."""
    x, w = first(arrays[0], last), arrays[1].transpose(3, 2, 0, 1) if last else arrays[1]
    wide = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad))).astype("float64")
    taps, (rows, columns) = w.shape[2], (size - w.shape[2] + 1 for size in wide.shape[2:])
    total = np.zeros((x.shape[0], w.shape[0], rows, columns))
    for i in range(taps):
        for j in range(taps):
            part = wide[:, :, i : i + rows, j : j + columns]
            total += np.einsum("nchw,fc->nfhw", part, w[:, :, i, j].astype("float64"), optimize=True)
    room = error_bound(wide, w, 4, str(x.dtype)) * 2
    rest = arrays[2:-1]
    if "bias" in after:
        total += rest.pop(0)[None, :, None, None]
    if "residual" in after:
        total += first(rest.pop(0), last)
    total = np.maximum(total, 0) if "relu" in after else total
    room += 4 * np.finfo(x.dtype).eps * np.abs(total) + (1e-9 if x.dtype == np.float64 else 0)
    assert (np.abs(first(got, last) - total) <= room).all()


def planned(func: PrimFunc, target: str, winograd: int = 4) -> autosched.Plan:
    plan = autosched.apply(func, target, winograd=winograd)
    assert plan.schedule.is_proved
    assert plan.decisions[-1].rule == "winograd" and "refused" not in plan.explain(), plan.explain()
    return plan


LANES = Machine.of(ONE).lanes("float32")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("n", "h", "w", "last", "after", "pad", "target"),
    [
        (1, 8, 8, False, "bias relu", 1, ONE),
        (2, 5, 12, False, "bias residual relu", 1, TWO),
        (2, 7, 6, True, "bias residual relu", 1, TWO),
        (1, 10, 9, False, "relu", 0, ONE),
        (1, 3, 3, True, "", 0, ONE),
        (1, 1, 1, False, "", 1, ONE),
    ],
)
def test_right(n: int, h: int, w: int, last: bool, after: str, pad: int, target: str) -> None:
    func = layer(n, LANES, h, w, 2 * LANES, last, after, pad)
    arrays = numbers(func)
    bound = bind_constants(func, {"W": arrays[1]})
    plan = planned(bound, target)
    lw.build(plan.mod, target=target)(*[array for k, array in enumerate(arrays) if k != 1])
    assert_right(func, arrays, arrays[-1], last, after, pad)


def test_weights_that_are_arguments_and_other_sizes() -> None:
    for dtype, taps, tile, target in (("float64", 3, 2, TWO), ("float32", 5, 4, ONE)):
        lanes = Machine.of(ONE).lanes(dtype)
        func = layer(1, lanes, 9, 10, lanes, pad=1, taps=taps, dtype=dtype)
        arrays = numbers(func)
        lw.build(planned(func, target, tile).mod, target=target)(*arrays)
        assert_right(func, arrays, arrays[-1], False, "", 1)


@pytest.mark.long
def test_the_same_bits_on_any_number_of_cores() -> None:
    func = layer(2, 2 * LANES, 12, 12, 2 * LANES, after="bias relu")
    arrays = numbers(func)
    bound = bind_constants(func, {"W": arrays[1]})
    results = []
    for cores in (1, 16):  # strips, and phases
        target = f"llvm -num-cores={cores}"
        args = [array.copy() for k, array in enumerate(arrays) if k != 1]
        lw.build(planned(bound, target).mod, target=target)(*args)
        results.append(args[-1].tobytes())
    assert results[0] == results[1]


def test_the_trace_replays() -> None:
    func = layer(1, LANES, 6, 6, LANES, after="bias relu")
    plan = planned(func, ONE)
    again = Schedule(func)
    Trace.apply_json_to_schedule(json.loads(json.dumps(plan.trace.as_json())), again)
    assert structural_equal(again.mod["main"], plan.mod["main"])


def test_constants_are_transformed_by_the_compiler() -> None:
    func = layer(1, LANES, 6, 6, LANES)
    plan = planned(bind_constants(func, {"W": numbers(func)[1]}), ONE)
    assert "they are constant: transformed at compile time" in plan.explain()
    assert 'T.block("W_winograd")' in plan.mod.script()
    assert 'T.block("W_winograd")' not in precompute_constants(plan.mod).script()


def test_in_words() -> None:
    plan = planned(layer(1, LANES, 8, 8, LANES, after="bias relu"), ONE)
    told = plan.explain()
    assert "P, O, Relu: winograd" in told or "P, O, Bias, Relu: winograd" in told
    small = "tiles of 2 × 2 results: 16 multiplications instead of 36"
    assert small in told or "36 multiplications instead of 144" in told
    assert "rounding differs: equal over the real numbers; the bound on the error is" in told
    assert "× max|data| × max|weight|" in told
    assert "range differs: where max|data| is above" in told
    assert "X, Relu transposed in registers: the lanes are channels, which are not contiguous there" in told
    assert "weights transformed into panels" in told and "once a call" in told


# --- what is not taken --------------------------------------------------------------------------------------------


def rules_of(func: PrimFunc, target: str = ONE, winograd: bool | int = True) -> list[str]:
    return [decision.rule for decision in autosched.apply(func, target, winograd=winograd).decisions]


def test_only_where_the_caller_allows_it() -> None:
    func = layer(1, LANES, 8, 8, LANES)
    assert "winograd" in rules_of(func)
    assert "winograd" not in rules_of(func, winograd=False)
    assert "winograd" not in [decision.rule for decision in autosched.apply(func, ONE).decisions]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "func",
    [
        layer(1, LANES, 8, 8, LANES, stride=2),
        layer(1, LANES, 8, 8, LANES, taps=1, pad=0),
        layer(1, 1, 8, 8, LANES),
        layer(1, LANES, 8, 8, 1),
        layer(1, LANES, 12, 12, LANES, taps=11, pad=0),
    ],
)
def test_other_convolutions_are_left_to_other_rules(func: PrimFunc) -> None:
    assert "winograd" not in rules_of(func)


def test_channels_that_fill_no_vectors() -> None:
    plan = autosched.apply(layer(1, LANES + 1, 8, 8, LANES), ONE, winograd=True)
    assert plan.decisions[-1].rule != "winograd"
    assert f"winograd: {LANES + 1} and {LANES} channels do not fill vectors of {LANES}" in plan.explain()


def test_why_the_direct_form_was_taken(by_the_model: None) -> None:
    plan = autosched.apply(layer(1, LANES, 4, 4, LANES), ONE, winograd=True)
    assert plan.decisions[-1].rule != "winograd"
    assert "times as fast as the direct form, by the cost model" in plan.explain()


def test_the_largest_tile_is_the_callers() -> None:
    assert [largest_tile(given) for given in (False, True, 0, 2, 4, 6)] == [0, 4, 0, 2, 4, 6]
    for given in (3, -1, 8, "4", None, 4.0):
        with pytest.raises(BadWinograd, match="winograd is"):
            largest_tile(given)  # type: ignore[arg-type]
    with pytest.raises(BadWinograd, match="winograd is 5"):
        autosched.apply(layer(1, LANES, 4, 4, LANES), winograd=5)


def sized(c: int, f: int, size: int, is_constant: bool = True) -> Layer:
    return Layer(None, "float32", 1, c, f, (size, size), (3, 3), is_constant)  # type: ignore[arg-type]


@pytest.mark.parametrize("cores", [1, 2, 16])
def test_the_model(cores: int) -> None:
    machine = Machine.of(f"llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids -num-cores={cores}")
    for c, size in ((64, 224), (128, 112), (256, 56), (512, 28), (512, 14)):
        sizes = choose_sizes(sized(c, c, size), machine, 4)
        assert isinstance(sizes, Sizes)
        assert sizes.tile == (4 if c < 512 else 2)  # weights of 512 channels would take 36 MiB
        assert sizes.gain > 1.5
        assert sizes.mr * sizes.vectors + sizes.vectors < machine.registers
        assert c % sizes.nr == 0
        assert sizes.rows is None or sizes.counts[0] % sizes.rows == 0
    small = choose_sizes(sized(16, 16, 4), machine, 6)
    assert isinstance(small, Sizes) and small.direct < GAIN * small.alone
    assert choose_sizes(sized(20, 16, 56), machine, 6) == "20 and 16 channels do not fill vectors of 16"


def test_few_tiles_are_divided_by_positions() -> None:
    """16 cores and 16 tiles: strips would have every core read all weights."""
    machine = Machine.of("llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids -num-cores=16")
    sizes = choose_sizes(sized(512, 512, 14), machine, 4)
    assert isinstance(sizes, Sizes) and sizes.rows is None and sizes.threads == 16


def test_a_result_that_the_caller_sees_ends_the_epilogue() -> None:
    x = te.placeholder((1, LANES, 6, 6), name="X")
    w = te.placeholder((LANES, LANES, 3, 3), name="W")
    c, i, j = (te.reduce_axis((0, size), name) for size, name in ((LANES, "c"), (3, "i"), (3, "j")))
    out = te.compute(
        (1, LANES, 4, 4), lambda n, f, y, z: te.sum(x[n, c, y + i, z + j] * w[f, c, i, j], axis=[c, i, j]), name="O"
    )
    cut = te.compute(out.shape, lambda *at: te.max(out(*at), 0.0), name="Relu")
    func = te.create_prim_func([x, w, out, cut])
    program = Program(Schedule(func), "main", 4)
    taken = match_with_fused(program.entries, program)
    assert taken is not None and taken.count == 1
    plan = autosched.apply(func, ONE, winograd=True)
    arrays = numbers(func)
    lw.build(plan.mod, target=ONE)(*arrays)
    assert_right(func, [*arrays[:2], arrays[2]], arrays[2], False, "", 0)
    assert np.array_equal(arrays[3], np.maximum(arrays[2], 0))


def test_build_keeps_both_forms_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache knows whether winograd was allowed."""
    switch_on(monkeypatch, tmp_path)
    func = layer(1, LANES, 8, 8, LANES)
    results = []
    for winograd in (False, True):
        arrays = numbers(func)
        lw.build(func, target=ONE, autosched=True, winograd=winograd)(*arrays)
        results.append(arrays[-1])
    assert not np.array_equal(results[0], results[1])
