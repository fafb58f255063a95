"""depthwise: convolutions without a sum over channels, by rule: the bits of the program as written, in every layout."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.autosched.facts import facts_of, innermost_blocks
from loopwright.autosched.machine import Machine
from loopwright.autosched.rules.sliding_window import window_of
from loopwright.autosched.rules.sliding_window.tiles import choose_tiles
from loopwright.evaluator import evaluate
from loopwright.ir import PrimFunc
from loopwright.schedule import Schedule
from loopwright.topi.testing import depthwise_conv2d_python_nchw
from tests.autosched.same_results import check_same_bits, function, numbers, parallel_extents, planned

nn = topi.nn
AVX512 = "llvm -mcpu=skylake-avx512 -mtriple=x86_64-linux-gnu"


def convolution(
    layout: str,
    sizes: tuple[int, int, int, int],
    kernel: tuple[int, int] = (3, 3),
    stride=1,
    padding=1,
    dilation=1,
    multiplier: int = 1,
    dtype: str = "float32",
    after: str = "",
) -> tuple[PrimFunc, list[np.ndarray]]:
    """A depthwise convolution of batch, channels, height and width `sizes`, and arrays to call it with."""
    n, c, h, w = sizes
    if layout == "NCHW":
        data = te.placeholder((n, c, h, w), name="data", dtype=dtype)
        weight = te.placeholder((c, multiplier, *kernel), name="weight", dtype=dtype)
        out = nn.depthwise_conv2d_nchw(data, weight, stride, padding, dilation)
    elif layout == "NHWC":
        data = te.placeholder((n, h, w, c), name="data", dtype=dtype)
        weight = te.placeholder((*kernel, c, multiplier), name="weight", dtype=dtype)
        out = nn.depthwise_conv2d_nhwc(data, weight, stride, padding, dilation)
    else:
        data = te.placeholder((n, 2, h, w, c), name="data", dtype=dtype)
        weight = te.placeholder((2, 1, *kernel, 1, c), name="weight", dtype=dtype)
        out = nn.depthwise_conv2d_NCHWc(data, weight, stride, padding, dilation)
    inputs = [data, weight]
    channel = 1 if layout == "NCHW" else -1
    if after == "relu6":
        last = te.compute(out.shape, lambda *i: te.max(te.min(out(*i), te.const(6, dtype)), te.const(0, dtype)))
    elif after == "bias":
        bias = te.placeholder((out.shape[channel],), name="bias", dtype=dtype)
        inputs.append(bias)
        last = te.compute(out.shape, lambda *i: te.max(out(*i) + bias[i[channel]], te.const(0, dtype)), name="biased")
    elif after == "exp":
        first = te.compute(out.shape, lambda *i: te.exp(out(*i) * te.const(0.01, dtype)), name="first")
        last = te.compute(out.shape, lambda *i: first(*i) * first(*i) + te.const(1, dtype), name="last")
    else:
        last = out
    shapes = [[int(size) for size in tensor.shape] for tensor in (*inputs, last)]
    arrays = [numbers(*shape, dtype=dtype, seed=k) for k, shape in enumerate(shapes[:-1])]
    return function(*inputs, last), [*arrays, np.zeros(shapes[-1], dtype)]


def check(*args, **kwargs) -> str:
    """The rule takes it, and its bits are those of the program as written; what it explains."""
    plan = check_same_bits(*convolution(*args, **kwargs))
    assert [decision.rule for decision in plan.decisions if decision.rule != "inlined"] == ["depthwise convolution"]
    return plan.explain()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("width", [2, 15, 16, 17, 37])
def test_rows_of_all_lengths(width):
    check("NCHW", (1, 3, 7, width), after="relu6")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("channels", [1, 7, 33])
def test_numbers_of_channels(channels):
    check("NHWC", (1, channels, 3, 4), after="bias")


WINDOWS = [
    ("NCHW", (3, 3), 2, 1, 1),
    ("NCHW", (3, 3), 1, 2, 2),
    ("NCHW", (5, 5), (2, 1), 2, 1),
    ("NCHW", (7, 7), 1, 3, 1),
    ("NCHW", (3, 3), 1, 0, 1),
    ("NCHW", (2, 3), (1, 3), (0, 0, 1, 1), 1),
    ("NCHW", (3, 1), (1, 2), (1, 0), 1),
    ("NHWC", (3, 3), 2, 1, 1),
    ("NHWC", (3, 3), 1, (0, 0, 2, 2), 2),
    ("NHWC", (7, 7), 1, 3, 1),
    ("NHWC", (3, 3), 1, 0, 1),
    ("NCHWc", (3, 3), 1, 1, 1),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("layout", "kernel", "stride", "padding", "dilation"), WINDOWS)
def test_windows(layout, kernel, stride, padding, dilation):
    check(layout, (1, 4, 9, 11), kernel, stride, padding, dilation)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("multiplier", [2, 3])
def test_several_windows_of_a_channel(multiplier):
    check("NCHW", (1, 4, 4, 20), multiplier=multiplier, after="bias")
    func, arrays = convolution("NHWC", (1, 12, 3, 4), padding=0, multiplier=multiplier)
    plan = check_same_bits(func, arrays) if multiplier == 2 else planned(func, may_refuse=True)
    assert ("depthwise convolution" in plan.explain()) == (multiplier == 2)  # three do not fill vectors


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "int8", "uint8"])
def test_every_type(dtype):
    check("NCHW", (1, 2, 6, 18), dtype=dtype, after="relu6")
    check("NHWC", (1, 9, 4, 2), stride=2, dtype=dtype)


def test_bytes_summed_in_words():
    data = te.placeholder((1, 4, 6, 21), name="data", dtype="uint8")
    weight = te.placeholder((4, 1, 3, 3), name="weight", dtype="int8")
    func = function(data, weight, nn.depthwise_conv2d_nchw(data, weight, 1, 1, 1, "int32"))
    arrays = [numbers(1, 4, 6, 21, dtype="uint8"), numbers(4, 1, 3, 3, dtype="int8"), np.zeros((1, 4, 6, 21), "int32")]
    assert "vectors of" in check_same_bits(func, arrays).explain()


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_work_after_it_that_is_not_one_block(layout):
    check(layout, (1, 4, 3, 5), after="exp")


def test_a_result_that_is_seen_and_used():
    data, weight = te.placeholder((1, 3, 5, 17), name="data"), te.placeholder((3, 1, 3, 3), name="weight")
    out = nn.depthwise_conv2d_nchw(data, weight, 1, 1, 1)
    last = te.compute(out.shape, lambda *i: te.max(out(*i), 0.0), name="last")
    arrays = [numbers(1, 3, 5, 17), numbers(3, 1, 3, 3), *[np.zeros((1, 3, 5, 17), "float32") for _ in range(2)]]
    check_same_bits(te.create_prim_func([data, weight, out, last]), arrays)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_groups_of_one_channel(layout, multiplier):
    features = 5 * multiplier
    shape, kernel = ((1, 5, 3, 18), (features, 1, 3, 3)) if layout == "NCHW" else ((1, 3, 4, 5), (3, 3, 1, features))
    data, weight = te.placeholder(shape, name="data"), te.placeholder(kernel, name="weight")
    out = nn.conv(data, weight, 1, 1, 1, 5, layout)
    result = np.zeros([int(size) for size in out.shape], "float32")
    plan = check_same_bits(function(data, weight, out), [numbers(*shape), numbers(*kernel), result])
    assert plan.decisions[-1].rule == "depthwise convolution"


@pytest.mark.parametrize("multiplier", [1, 3])
@pytest.mark.parametrize("kernel", [(2, 1), (1, 3)])
def test_strides_of_windows_of_one_cell(kernel, multiplier):
    """The only channel of a group is no tap, but the only column of a window is one: windows are 2 apart there."""
    x, w = te.placeholder((2, 4, 9, 39), name="x"), te.placeholder((4 * multiplier, 1, *kernel), name="w")
    out = topi.nn.group_conv2d_nchw(x, w, 2, 0, 1, 4)
    arrays = [numbers(*[int(size) for size in tensor.shape], seed=k) for k, tensor in enumerate((x, w))]
    plan = check_same_bits(function(x, w, out), [*arrays, np.zeros([int(size) for size in out.shape], "float32")])
    assert [decision.rule for decision in plan.decisions] == ["depthwise convolution"]


@pytest.mark.parametrize("layout", ["NCW", "NDHWC"])
def test_other_ranks(layout):
    sizes = {"N": 2, "C": 6, "D": 3, "H": 4, "W": 5}
    spatial = [letter for letter in layout if letter in "DHW"]
    kernel_layout = ["O", "I", *spatial] if layout[1] == "C" else [*spatial, "I", "O"]
    shape = [sizes[letter] for letter in layout]
    kernel = [{"O": 6, "I": 1}.get(letter, 3) for letter in kernel_layout]
    data, weight = te.placeholder(shape, name="data"), te.placeholder(kernel, name="weight")
    out = nn.conv(data, weight, 1, 1, 1, 6, layout)
    plan = check_same_bits(function(data, weight, out), [numbers(*shape), numbers(*kernel), np.zeros(shape, "float32")])
    assert plan.decisions[-1].rule == "depthwise convolution"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_a_batch_known_only_when_it_runs(layout):
    n = te.var("n")
    shape, kernel = ((n, 5, 7, 18), (5, 1, 3, 3)) if layout == "NCHW" else ((n, 7, 18, 5), (3, 3, 5, 1))
    data, weight = te.placeholder(shape, name="data"), te.placeholder(kernel, name="weight")
    op = nn.depthwise_conv2d_nchw if layout == "NCHW" else nn.depthwise_conv2d_nhwc
    func = function(data, weight, op(data, weight, 1, 1, 1))
    plan = planned(func)
    assert plan.decisions[-1].rule == "depthwise convolution"
    plain, built = lw.build(func), lw.build(plan.mod)
    for batch in (0, 1, 3):
        x, w = numbers(batch, *[int(size) for size in shape[1:]]), numbers(*kernel)
        one, other = np.zeros(x.shape, "float32"), np.zeros(x.shape, "float32")
        plain(x, w, one)
        built(x, w, other)
        assert one.tobytes() == other.tobytes()


def test_an_image_known_only_when_it_runs_is_for_other_rules():
    data, weight = te.placeholder((1, 4, 7, te.var("w")), name="data"), te.placeholder((4, 1, 3, 3), name="weight")
    func = function(data, weight, nn.depthwise_conv2d_nchw(data, weight, 1, 1, 1))
    assert "depthwise convolution" not in planned(func, may_refuse=True).explain()


@pytest.mark.parametrize("sizes", [(0, 4, 5, 5), (1, 0, 5, 5)])
def test_nothing_to_compute(sizes):
    func, arrays = convolution("NCHW", sizes)
    check_same_bits(func, arrays, may_refuse=True)


def test_the_evaluator_agrees():
    func, arrays = convolution("NCHW", (1, 3, 9, 18), stride=2, after="relu6")
    plan = planned(func)
    mine = [array.copy() for array in arrays]
    evaluate(plan.mod["main"], *mine)
    expected = depthwise_conv2d_python_nchw(arrays[0].astype("float64"), arrays[1].astype("float64"), 2, 1)
    bound = 10 * 2.0**-24 * depthwise_conv2d_python_nchw(abs(arrays[0].astype("float64")), abs(arrays[1]), 2, 1)
    assert np.all(abs(mine[-1] - np.clip(expected, 0, 6)) <= bound)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_threads_compute_the_same(layout):
    func, arrays = convolution(layout, (3, 16, 48, 48), after="relu6")
    results = []
    for cores in (1, 2):
        plan = lw.autosched.apply(func, lw.target.Target(f"llvm -num-cores={cores}"))
        assert bool(parallel_extents(plan)) == (cores > 1)
        own = [array.copy() for array in arrays]
        lw.build(plan.mod)(*own)
        results.append(own[-1].tobytes())
    assert results[0] == results[1]


def test_what_it_explains():
    func, _ = convolution("NCHW", (1, 4, 8, 32), after="relu6")
    told = planned(func, AVX512).explain()
    assert "pad_temp, DepthwiseConv2d, compute: depthwise convolution" in told
    assert "vectors of 16 along v_j: neighbours along v_j are contiguous, and their windows overlap" in told
    assert "4 adjacent windows read 6 cells along v_i, not 12" in told
    assert "data copied with its padding for 8 rows at a time" in told
    told = planned(convolution("NHWC", (1, 32, 8, 8))[0], AVX512).explain()
    assert "their windows do not overlap" in told
    assert "padding in place: only tiles at the border check for it" in told


def test_arithmetic_on_padded_data_is_done_once():
    data, weight = te.placeholder((1, 6, 9, 16), name="data"), te.placeholder((3, 3, 16, 1), name="weight")
    scaled = te.compute(data.shape, lambda *i: data(*i) * 2.0 + 1.0, name="scaled")
    out = nn.depthwise_conv2d_nhwc(scaled, weight, 1, 1, 1)
    arrays = [numbers(1, 6, 9, 16), numbers(3, 3, 16, 1), np.zeros((1, 6, 9, 16), "float32")]
    plan = check_same_bits(function(data, weight, out), arrays)
    rules = [decision.rule for decision in plan.decisions if decision.rule != "inlined"]
    assert rules == ["element-wise", "depthwise convolution"]


def facts(func: PrimFunc, name: str):
    view = Schedule(func).view("main")
    realize = next(found for found in innermost_blocks(view) if found.block.name_hint == name)
    return facts_of(view, realize)


def test_what_is_a_window():
    func, _ = convolution("NCHW", (2, 3, 8, 16), stride=2)
    window = window_of(facts(func, "DepthwiseConv2d"))
    assert [movement.axis.name for movement in window.movements] == ["v_i", "v_j"]
    assert [(movement.stride, movement.dilation) for movement in window.movements] == [(2, 1), (2, 1)]
    assert window.movements[0].reach(4) == 9
    assert window.is_along
    assert [axis.name for axis in window.outer] == ["v_b", "v_c"]
    func, _ = convolution("NHWC", (2, 3, 8, 16))
    assert not window_of(facts(func, "DepthwiseConv2d")).is_along


def test_a_sum_over_channels_is_no_window_of_ours():
    data, weight = te.placeholder((1, 4, 8, 8), name="data"), te.placeholder((4, 4, 3, 3), name="weight")
    func = function(data, weight, nn.conv2d_nchw(data, weight, 1, 0, 1))
    assert window_of(facts(func, "conv2d_nchw")) is None


def test_tiles_fit_the_registers():
    func, _ = convolution("NCHW", (1, 32, 112, 112))
    window = window_of(facts(func, "DepthwiseConv2d"))
    for cpu, lanes in (("skylake-avx512", 16), ("haswell", 8)):
        machine = Machine.of(f"llvm -mcpu={cpu} -mtriple=x86_64-linux-gnu")
        tiles = choose_tiles(window, machine, copies=True)
        assert tiles.lanes == lanes
        assert tiles.rows * tiles.places + 4 <= machine.registers
        assert tiles.copied <= machine.l1


@pytest.mark.parametrize(
    ("kernel", "dilation", "written_out"),
    [
        (7, 1, 2),  # rows of results share rows of data: their updates stay side by side
        (7, 2, 1),  # they share none, and 49 weights are more than registers hold
        (7, 3, 1),
        (5, 3, 2),  # 25 are held
    ],
)
def test_taps_of_a_dilated_window_are_written_out_where_registers_hold_the_weights(kernel, dilation, written_out):
    func, _ = convolution("NCHW", (1, 4, 35, 35), (kernel, kernel), padding=0, dilation=dilation)
    window = window_of(facts(func, "DepthwiseConv2d"))
    tiles = choose_tiles(window, Machine.of(AVX512), copies=False)
    assert min(tiles.written_out, 2) == written_out


def test_cells_that_a_dilated_window_leaves_out_are_not_counted():
    func, _ = convolution("NCHW", (1, 4, 35, 35), (7, 7), padding=0, dilation=3)
    down = window_of(facts(func, "DepthwiseConv2d")).down
    assert [(down.reach(rows), down.cells(rows)) for rows in (1, 2, 3, 4)] == [(19, 7), (20, 14), (21, 21), (22, 22)]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("padding", "dilation"), [(0, 3), (9, 3), (6, 2), (3, (1, 2))])
def test_large_dilated_windows(padding, dilation):
    check("NCHW", (1, 2, 21, 37), (7, 7), 1, padding, dilation, after="bias")


def one_channel(batch: int, channels: int, size: tuple[int, ...], padding: int = 1, after: bool = False):
    """A convolution of one input channel by windows of 3, and arrays to call it with."""
    conv = {1: nn.conv1d_ncw, 2: nn.conv2d_nchw, 3: nn.conv3d_ncdhw}[len(size)]
    data = te.placeholder((batch, 1, *size), name="data")
    weight = te.placeholder((channels, 1, *[3] * len(size)), name="weight")
    out = conv(data, weight, 1, padding, 1)
    last = nn.relu(out) if after else out
    shapes = [[int(length) for length in tensor.shape] for tensor in (data, weight, last)]
    arrays = [numbers(*shape, seed=k) for k, shape in enumerate(shapes[:-1])]
    return function(data, weight, last), [*arrays, np.zeros(shapes[-1], "float32")]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("batch", "channels", "size"),
    [(1, 5, (9, 17)), (3, 2, (16, 16)), (1, 7, (4, 5, 18)), (2, 6, (50,)), (1, 1, (9, 17))],
)
def test_one_input_channel_is_copied_with_its_padding_once(batch, channels, size, after):
    plan = check_same_bits(*one_channel(batch, channels, size, after=after))
    once = "data copied with its padding once for all v_ff"
    assert (once in plan.explain()) == (channels > 1 and "depthwise" in plan.explain())
    assert once in plan.explain() or len(size) != 2 or channels == 1


def test_the_copy_for_all_channels_is_made_before_their_loop():
    func, _ = one_channel(2, 5, (9, 17))
    text = str(planned(func).mod)
    copy, channels = text.index('T.block("pad_temp")'), text.index("for ff")
    assert text.index("for nn") < copy < channels


def test_data_that_does_not_fit_l2_is_copied_for_a_few_rows():
    func, _ = one_channel(1, 4, (1024, 1024))
    assert "once" not in planned(func, AVX512).explain()


@pytest.mark.parametrize("batch", [1, 3, 32])
def test_threads_share_out_the_channels_of_one_copy(batch):
    func, arrays = one_channel(batch, 64 // batch, (40, 40), after=True)
    results = []
    for cores in (1, 2):
        plan = lw.autosched.apply(func, lw.target.Target(f"llvm -num-cores={cores}"))
        assert "once for all v_ff" in plan.explain()
        assert bool(parallel_extents(plan)) == (cores > 1)
        lw.build(plan.mod)(*arrays)
        results.append(arrays[-1].tobytes())
    assert results[0] == results[1]
