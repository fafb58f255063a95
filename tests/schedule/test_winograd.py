"""winograd: a convolution is computed tile by tile, from fewer products."""

from __future__ import annotations

import json

import numpy as np
import pytest

from loopwright import te, tir
from loopwright.evaluator import evaluate
from loopwright.ir import PrimFunc, structural_equal
from loopwright.ir.verifier import verify
from loopwright.runtime.errors import InternalError
from loopwright.schedule import Schedule, Trace
from loopwright.schedule.errors import BadStepArgument, NotSupported
from loopwright.schedule.primitives.compute import winograd as primitive
from loopwright.schedule.winograd import error_bound, transforms
from loopwright.schedule.winograd.convolution import NotWinograd
from loopwright.script import tir as T
from tests.schedule.steps import check_replay, refused, same_program


@T.prim_func
def filtered(X: T.Buffer((2, 7)), W: T.Buffer((3, 2)), Y: T.Buffer((5,))):
    for i, c, k in T.grid(5, 2, 3):
        with T.block("Y"):
            vi, vc, vk = T.axis.remap("SRR", [i, c, k])
            with T.init():
                Y[vi] = T.float32(0)
            Y[vi] = Y[vi] + X[vc, vi + vk] * W[vk, vc]


def test_a_filter():
    sch = tir.Schedule(filtered)
    blocks = sch.winograd("Y", 2)

    @T.prim_func
    def expected(X: T.Buffer((2, 7)), W: T.Buffer((3, 2)), Y: T.Buffer((5,))):
        W_winograd = T.alloc_buffer((4, 2))
        X_wide = T.alloc_buffer((8, 2))
        X_winograd = T.alloc_buffer((4, 3, 2))
        Y_winograd = T.alloc_buffer((4, 3))
        Y_tiles = T.alloc_buffer((6,))
        for a0, c in T.grid(4, 2):
            with T.block("W_winograd"):
                v_a0, v_c = T.axis.remap("SS", [a0, c])
                T.reads(W[0:3, v_c])
                T.writes(W_winograd[v_a0, v_c])
                W_winograd[v_a0, v_c] = T.Select(
                    v_a0 == 0,
                    W[0, v_c] * T.float32(-1),
                    T.Select(
                        v_a0 == 1,
                        (W[0, v_c] + W[2, v_c]) * T.float32(0.5) + W[1, v_c] * T.float32(0.5),
                        T.Select(
                            v_a0 == 2,
                            (W[0, v_c] + W[2, v_c]) * T.float32(0.5) - W[1, v_c] * T.float32(0.5),
                            W[2, v_c],
                        ),
                    ),
                )
        for i, c in T.grid(8, 2):
            with T.block("X_wide"):
                v_i, v_c = T.axis.remap("SS", [i, c])
                T.reads(X[v_c, v_i])
                T.writes(X_wide[v_i, v_c])
                X_wide[v_i, v_c] = T.if_then_else(v_i < 7, X[v_c, v_i], T.float32(0))
        for a0, i_tile, c in T.grid(4, 3, 2):
            with T.block("X_winograd"):
                v_a0, v_i_tile, v_c = T.axis.remap("SSS", [a0, i_tile, c])
                T.reads(X_wide[v_i_tile * 2 : v_i_tile * 2 + 4, v_c])
                T.writes(X_winograd[v_a0, v_i_tile, v_c])
                X_winograd[v_a0, v_i_tile, v_c] = T.Select(
                    v_a0 == 0,
                    X_wide[v_i_tile * 2 + 2, v_c] - X_wide[v_i_tile * 2, v_c],
                    T.Select(
                        v_a0 == 1,
                        X_wide[v_i_tile * 2 + 2, v_c] + X_wide[v_i_tile * 2 + 1, v_c],
                        T.Select(
                            v_a0 == 2,
                            X_wide[v_i_tile * 2 + 2, v_c] - X_wide[v_i_tile * 2 + 1, v_c],
                            X_wide[v_i_tile * 2 + 3, v_c] - X_wide[v_i_tile * 2 + 1, v_c],
                        ),
                    ),
                )
        for a0, i_tile, c in T.grid(4, 3, 2):
            with T.block("Y_winograd"):
                v_a0, v_i_tile, v_c = T.axis.remap("SSR", [a0, i_tile, c])
                T.reads(W_winograd[v_a0, v_c], X_winograd[v_a0, v_i_tile, v_c])
                T.writes(Y_winograd[v_a0, v_i_tile])
                with T.init():
                    Y_winograd[v_a0, v_i_tile] = T.float32(0)
                Y_winograd[v_a0, v_i_tile] = (
                    Y_winograd[v_a0, v_i_tile] + X_winograd[v_a0, v_i_tile, v_c] * W_winograd[v_a0, v_c]
                )
        for i_tile, i_in in T.grid(3, 2):
            with T.block("Y_tiles"):
                v_i_tile, v_i_in = T.axis.remap("SS", [i_tile, i_in])
                T.reads(Y_winograd[0:4, v_i_tile])
                T.writes(Y_tiles[v_i_tile * 2 + v_i_in])
                Y_tiles[v_i_tile * 2 + v_i_in] = T.Select(
                    v_i_in == 0,
                    Y_winograd[0, v_i_tile] + (Y_winograd[1, v_i_tile] + Y_winograd[2, v_i_tile]),
                    Y_winograd[1, v_i_tile] - Y_winograd[2, v_i_tile] + Y_winograd[3, v_i_tile],
                )
        for i in range(5):
            with T.block("Y"):
                vi = T.axis.spatial(5, i)
                T.reads(Y_tiles[vi])
                T.writes(Y[vi])
                Y[vi] = Y_tiles[vi]

    verify(sch.mod["main"])
    same_program(sch.mod["main"], expected)
    check_replay(sch, filtered)
    assert [block.name for block in blocks] == ["W_winograd", "X_wide", "X_winograd", "Y_winograd", "Y_tiles"]
    assert sch.get(sch.get_block("Y")).name_hint == "Y"
    assert sch.is_proved


def test_the_trace_tells_the_step_and_its_reason():
    sch = tir.Schedule(filtered)
    sch.winograd("Y", tile=3)
    (step,) = [inst for inst in sch.trace.insts if inst.kind.name == "Winograd"]
    assert step.proof == "given"
    again = Schedule(filtered)
    Trace.apply_json_to_schedule(json.loads(json.dumps(sch.trace.as_json())), again)
    assert structural_equal(again.mod, sch.mod)


# --- every kind of convolution ------------------------------------------------------------------------------------


def convolution(
    data: str, weight: str, out: str, sizes: dict[str, int], dtype: str = "float64", held: str | None = None
) -> PrimFunc:
    """A convolution in letters: y and x are places with taps i and j; places stand for place + tap in the data."""
    taps = {"z": "k", "y": "i", "x": "j"}
    moving = {place: tap for place, tap in taps.items() if tap in weight}
    reach = {place: sizes[place] + sizes[tap] - 1 for place, tap in moving.items()}
    x = te.placeholder([reach.get(letter, sizes[letter]) for letter in data], held or dtype, name="X")
    w = te.placeholder([sizes[letter] for letter in weight], held or dtype, name="W")
    reduced = [letter for letter in weight if letter not in out]
    axes = {letter: te.reduce_axis((0, sizes[letter]), name=letter) for letter in reduced}

    def element(*at):
        known = {**dict(zip(out, at, strict=True)), **{letter: axis.var for letter, axis in axes.items()}}
        placed = [known[letter] + known[moving[letter]] if letter in moving else known[letter] for letter in data]
        factors = [x(*placed), w(*[known[letter] for letter in weight])]
        if held:
            factors = [factor.astype(dtype) for factor in factors]
        return te.sum(factors[0] * factors[1], axis=list(axes.values()))

    y = te.compute([sizes[letter] for letter in out], element, name="O", varargs_names=list(out))
    return te.create_prim_func([x, w, y])


def assert_right(func: PrimFunc, tile: int) -> Schedule:
    """Both programs run in the evaluator, on float64; the error must be that of rounding."""
    sch = tir.Schedule(func)
    sch.winograd("O", tile)
    verify(sch.mod["main"])
    assert sch.is_proved
    rng = np.random.default_rng(0)
    shapes = [[int(extent) for extent in buffer.shape] for buffer in func.argument_buffers()]
    arrays = [
        rng.standard_normal(shape).astype(b.dtype.numpy())
        for shape, b in zip(shapes, func.argument_buffers(), strict=True)
    ]
    before, after = [array.copy() for array in arrays], [array.copy() for array in arrays]
    evaluate(func, *before)
    evaluate(sch.mod["main"], *after)
    unit = np.finfo(arrays[-1].dtype).eps
    # far above the error, and far below any number that would be missing
    assert np.abs(after[-1] - before[-1]).max() <= 4e4 * unit * max(1.0, np.abs(before[-1]).max())
    return sch


@pytest.mark.one_in(3)
@pytest.mark.parametrize("tile", [2, 3, 4, 6])
@pytest.mark.parametrize(
    ("data", "weight", "out"),
    [("ncyx", "fcij", "nfyx"), ("nyxc", "ijcf", "nyxf"), ("cnyx", "cfji", "fynx"), ("ncyx", "fcij", "nxyf")],
)
def test_layouts(data, weight, out, tile):
    assert_right(convolution(data, weight, out, {"n": 1, "c": 2, "f": 2, "y": 5, "x": 4, "i": 3, "j": 3}), tile)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("y", "x"), [(1, 1), (1, 4), (3, 5), (4, 8), (7, 3)])
def test_tiles_that_stick_out(y, x):
    assert_right(convolution("ncyx", "fcij", "nfyx", {"n": 2, "c": 1, "f": 1, "y": y, "x": x, "i": 3, "j": 3}), 4)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("i", "j", "tile"), [(5, 5, 2), (7, 7, 2), (2, 2, 4), (3, 5, 2), (1, 7, 4), (3, 1, 6), (4, 2, 3)]
)
def test_windows(i, j, tile):
    assert_right(convolution("ncyx", "fcij", "nfyx", {"n": 1, "c": 2, "f": 1, "y": 4, "x": 5, "i": i, "j": j}), tile)


def test_one_dimension_and_three():
    sizes = {"n": 1, "c": 2, "f": 2, "y": 3, "x": 7, "z": 3, "i": 3, "j": 3, "k": 2}
    assert_right(convolution("ncx", "fcj", "nfx", sizes), 4)
    blocks = assert_right(convolution("nczyx", "fckij", "nfzyx", {**sizes, "x": 2, "y": 2}), 2)
    assert [block.name for block in blocks.get_child_blocks(blocks.get_block("root"))].count("X_winograd_2") == 1


def test_blocked_channels_and_groups():
    """Channels in two dimensions, and an axis that all three have."""
    sizes = {"n": 1, "c": 2, "d": 3, "f": 2, "e": 2, "g": 2, "y": 4, "x": 3, "i": 3, "j": 3}
    assert_right(convolution("ncyxd", "fcijde", "nfyxe", sizes), 2)
    assert_right(convolution("ngcyx", "gfcij", "ngfyx", sizes), 2)
    assert_right(convolution("ngyx", "gij", "ngyx", sizes), 2)  # depthwise: no channel is summed up


def test_types():
    sizes = {"n": 1, "c": 3, "f": 2, "y": 5, "x": 5, "i": 3, "j": 3}
    assert_right(convolution("ncyx", "fcij", "nfyx", sizes, "float32"), 4)
    sch = assert_right(convolution("ncyx", "fcij", "nfyx", sizes, "float32", held="float16"), 4)
    assert str(sch.get(sch.get_block("X_wide")).writes[0].buffer.dtype) == "float32"


def test_the_weight_may_stand_first_and_sums_in_any_order():
    @T.prim_func
    def func(X: T.Buffer((1, 6), "float64"), W: T.Buffer((2, 1, 3), "float64"), O: T.Buffer((2, 4), "float64")):
        for k, c, f, x in T.grid(3, 1, 2, 4):
            with T.block("O"):
                vk, vc, vf, vx = T.axis.remap("RRSS", [k, c, f, x])
                with T.init():
                    O[vf, vx] = T.float64(0)
                O[vf, vx] = W[vf, vc, vk] * X[vc, vk + vx] + O[vf, vx]

    sch = assert_right(func, 2)
    block = sch.get_block("O")
    assert sch.get(block).iter_vars[0].var.name == "vf"
    sch.vectorize(sch.get_loops(block)[-1])


def test_the_old_handle_stays_with_the_result():
    """Also where its first axis, by which a block is known, was one of the reduction."""

    @T.prim_func
    def func(X: T.Buffer(6), W: T.Buffer(3), O: T.Buffer(4)):
        for k, x in T.grid(3, 4):
            with T.block("O"):
                vk, vx = T.axis.remap("RS", [k, x])
                with T.init():
                    O[vx] = T.float32(0)
                O[vx] = O[vx] + X[vx + vk] * W[vk]

    sch = tir.Schedule(func)
    block = sch.get_block("O")
    sch.winograd(block, 2)
    assert sch.get(block).name_hint == "O" and sch.get(block).init is None
    sch.vectorize(sch.get_loops(block)[0])


def test_a_start_in_the_data_and_taps_of_one_value():
    @T.prim_func
    def func(X: T.Buffer((9, 4), "float64"), W: T.Buffer((3, 1), "float64"), O: T.Buffer((4, 4), "float64")):
        for y, x, i, j in T.grid(4, 4, 3, 1):
            with T.block("O"):
                vy, vx, vi, vj = T.axis.remap("SSRR", [y, x, i, j])
                with T.init():
                    O[vy, vx] = T.float64(0)
                O[vy, vx] = O[vy, vx] + X[vy + vi + 2, vx + vj] * W[vi, vj]

    assert_right(func, 4)


def test_sizes_of_the_call():
    n, c = te.var("n"), te.var("c")
    x, w = te.placeholder((n, c, 6), "float64", name="X"), te.placeholder((2, c, 3), "float64", name="W")
    rc, rk = te.reduce_axis((0, c), "rc"), te.reduce_axis((0, 3), "rk")
    y = te.compute((n, 2, 4), lambda a, f, i: te.sum(x[a, rc, i + rk] * w[f, rc, rk], axis=[rc, rk]), name="O")
    func = te.create_prim_func([x, w, y])
    sch = tir.Schedule(func)
    sch.winograd("O", 2)
    rng = np.random.default_rng(0)
    for batch, channels in ((0, 2), (1, 0), (1, 1), (2, 3)):
        data, weight = rng.standard_normal((batch, channels, 6)), rng.standard_normal((2, channels, 3))
        got, wanted = np.full((batch, 2, 4), 7.0), np.full((batch, 2, 4), 7.0)
        evaluate(func, data, weight, wanted)
        evaluate(sch.mod["main"], data, weight, got)
        assert np.abs(got - wanted).max(initial=0) <= 1e-13


def test_only_cells_that_the_program_read_are_read():
    """The rest of the data may hold anything: it is not looked at, though the last tile sticks out."""

    @T.prim_func
    def func(X: T.Buffer(16, "float64"), W: T.Buffer(3, "float64"), O: T.Buffer(5, "float64")):
        for x, k in T.grid(5, 3):
            with T.block("O"):
                vx, vk = T.axis.remap("SR", [x, k])
                with T.init():
                    O[vx] = T.float64(0)
                O[vx] = O[vx] + X[vx + vk] * W[vk]

    sch = tir.Schedule(func)
    sch.winograd("O", 4)
    data, got = np.arange(16.0), np.zeros(5)
    data[7:] = np.nan
    evaluate(sch.mod["main"], data, np.ones(3), got)
    assert np.abs(got - np.convolve(np.arange(7.0), np.ones(3), "valid")).max() < 1e-12


def test_further_steps_are_steps_like_any_other():
    func = convolution("ncyx", "fcij", "nfyx", {"n": 1, "c": 4, "f": 4, "y": 6, "x": 6, "i": 3, "j": 3}, "float32")
    sch = tir.Schedule(func)
    columns, rows = sch.winograd("O")[-2:]
    *tiles, y, x, f = sch.get_loops(rows)
    sch.reorder(*tiles, f, y, x)
    sch.compute_at(columns, f)
    sch.set_scope(columns, 0, "local")
    sch.sink_alloc(columns, "O_tiles_1")
    for loop in (y, x):
        sch.unroll(loop)
    check_replay(sch, func)
    assert sch.is_proved
    rng = np.random.default_rng(0)
    data, weight = rng.standard_normal((1, 4, 8, 8)).astype("f"), rng.standard_normal((4, 4, 3, 3)).astype("f")
    got, wanted = np.zeros((1, 4, 6, 6), "f"), np.zeros((1, 4, 6, 6), "f")
    evaluate(func, data, weight, wanted)
    evaluate(sch.mod["main"], data, weight, got)
    assert (np.abs(got - wanted) <= 2 * error_bound(data, weight, 4)).all()


# --- refusals -----------------------------------------------------------------------------------------------------


def summed(store: str, init: str = "T.float32(0)", dtype: str = "float32", axes: str = "SSRR") -> PrimFunc:
    text = f"""
from loopwright.script import tir as T

@T.prim_func
def main(X: T.Buffer((16, 16), "{dtype}"), W: T.Buffer((3, 3), "{dtype}"), O: T.Buffer((4, 4), "{dtype}")):
    for y, x, i, j in T.grid(4, 4, 3, 3):
        with T.block("O"):
            vy, vx, vi, vj = T.axis.remap("{axes}", [y, x, i, j])
            with T.init():
                O[vy, vx] = {init}
            O[vy, vx] = {store}
"""
    from loopwright.script import from_source

    made = from_source(text)
    assert isinstance(made, PrimFunc)
    return made


@pytest.mark.parametrize(
    ("store", "match"),
    [
        ("O[vy, vx] + X[vy * 2 + vi, vx + vj] * W[vi, vj]", r"reads X at vy \* 2 \+ vi: stride 2"),
        ("O[vy, vx] + X[vy + vi * 3, vx + vj] * W[vi, vj]", r"reads X at vy \+ vi \* 3: dilation 3"),
        ("O[vy, vx] + X[vy * 2 + vi * 2, vx + vj] * W[vi, vj]", "stride 2 and dilation 2"),
        ("O[vy, vx] + X[vy - vi + 2, vx + vj] * W[vi, vj]", "dilation -1"),
        (
            "O[vy, vx] + X[vy + vx, vi + vj] * W[vi, vj]",
            r"vy \+ vx, which is no sum of one axis and one reduction axis",
        ),
        ("O[vy, vx] + X[vy + vi + vj, vx] * W[vi, vj]", "no sum of one axis and one reduction axis"),
        ("O[vy, vx] + X[vy, vx] * W[vi, vj]", "has no window"),
        ("O[vy, vx] + X[vy + vi, vx + vj]", "which is no sum of products"),
        ("T.max(O[vy, vx], X[vy + vi, vx + vj] * W[vi, vj])", "which is no sum of products"),
        ("O[vy, vx] + X[vy + vi, vx + vj] * T.float32(2)", "which is no element of a buffer"),
        ("O[vy, vx] + X[vy + vi, vx + vj] * W[vi, 0]", "no sum of one axis and one reduction axis"),
        ("O[vy, vx] + X[vy + vi, vx] * W[vi, vj]", "sums over vj, which the data does not have"),
        ("O[vy, vx] + X[vy + vi, vy + vj] * W[vi, vj]", "uses axis vy twice in X"),
        ("O[vy, vx] + X[vy + vi, vj] * W[vi, vj]", "axis vx that neither factor uses"),
        ("O[vy, vx] + X[vy + vi, vx + vj] * W[vi, vi]", "uses axis vi twice in W"),
        ("O[vy, vx] + X[vy + vi, vx + vj] * O[vi, vj]", "reads O elsewhere than where it writes"),
    ],
)
def test_other_sums_are_refused(store, match):
    refused(tir.Schedule(summed(store)), NotWinograd, match, "winograd", "O")


PLAIN = "O[vy, vx] + X[vy + vi, vx + vj] * W[vi, vj]"


def test_types_that_do_not_fit_are_refused():
    whole = refused(tir.Schedule(summed(PLAIN, "0", "int32")), NotWinograd, "sums in int32", "winograd", "O")
    assert "the transforms multiply by fractions" in str(whole)
    short = summed(PLAIN, "T.float16(0)", "float16")
    error = refused(tir.Schedule(short), NotWinograd, "sums in float16", "winograd", "O")
    assert "sum in float32" in str(error)


def test_other_starts_and_places_are_refused():
    refused(tir.Schedule(summed(PLAIN, "T.float32(1)")), NotWinograd, "starts at .*1.*, not at zero", "winograd", "O")
    sch = tir.Schedule(summed(PLAIN))
    sch.split(sch.get_loops("O")[0], [2, 2])
    refused(sch, NotWinograd, "not stand in a nest of one loop an axis", "winograd", "O")
    sch = tir.Schedule(summed(PLAIN))
    sch.parallel(sch.get_loops("O")[0])
    refused(sch, NotSupported, "loop y is parallel", "winograd", "O")
    sch = tir.Schedule(summed(PLAIN))
    sch.decompose_reduction("O", sch.get_loops("O")[2])
    refused(sch, NotWinograd, "does not give O a start value", "winograd", "O_update")


@pytest.mark.parametrize("tile", [1, 0, -4, True, 2.0, "4", None])
def test_bad_tiles(tile):
    refused(tir.Schedule(summed(PLAIN)), BadStepArgument, r"tile is ", "winograd", "O", tile)


def test_tiles_that_are_too_large():
    error = refused(
        tir.Schedule(summed(PLAIN)), BadStepArgument, "9 results of 3 taps need 11 points", "winograd", "O", 9
    )
    assert "choose a tile of at most 8" in str(error)


def test_matrices_that_are_wrong_are_not_used(monkeypatch):
    """The step itself multiplies them out: nothing else stands between a wrong matrix and the program."""
    made = transforms(2, 3)
    monkeypatch.setattr(primitive, "transforms", lambda *_: made._replace(result=(made.result[0], made.result[0])))
    sch = tir.Schedule(summed(PLAIN))
    with pytest.raises(InternalError, match=r"F\(2, 3\): y\[1\] has 1 times g\[0\] d\[0\]"):
        sch.winograd("O", 2)
    assert structural_equal(sch.mod["main"], summed(PLAIN))


def test_sizes_of_places_must_be_known():
    n = te.var("n")
    x, w = te.placeholder((n + 2,), name="X"), te.placeholder((3,), name="W")
    k = te.reduce_axis((0, 3), "k")
    y = te.compute((n,), lambda i: te.sum(x[i + k] * w[k], axis=k), name="O")
    sch = tir.Schedule(te.create_prim_func([x, w, y]))
    refused(sch, NotWinograd, "of n values: no number known now", "winograd", "O")
