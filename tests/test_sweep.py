"""The sweep: a case is its seed and its index, references are right, and reports count rightly."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.bench import verify
from benchmarks.sweep import cli, contenders, report
from benchmarks.sweep.case import KERNEL, MODEL, Case, Input, Output, Step
from benchmarks.sweep.errors import Rounded, exactly
from benchmarks.sweep.families import FAMILIES, WEIGHTS, NoSuchCase, case_of, draw_of, indices_of
from benchmarks.sweep.row import is_doubtful, row_of
from benchmarks.sweep.run import Options, merged, run
from benchmarks.sweep.sizes import broadcast_of, extent, log_uniform, shape_of, some_axes
from benchmarks.sweep.windows import Window, convolution, transposed_convolution

pytestmark = pytest.mark.usefixtures("no_collection")


def small(family: str, count: int, most: int = 1 << 16) -> list[Case]:
    """The first drawn cases of a family that are small."""
    found: list[Case] = []
    for index in range(4000):
        case = replace(draw_of(family)(np.random.default_rng([7, index])), family=family, index=index, seed=7)
        sizes = [int(np.prod(x.shape)) for x in [*case.inputs, *case.outputs]]
        if sum(sizes) <= most:
            found.append(case)
            if len(found) == count:
                break
    return found


def ok_row(index: int, ratio: float, **changes: object) -> dict:
    return {
        "index": index,
        "family": "gemm",
        "operator": "matmul",
        "name": "matmul f32[3×5] f32[5×7]",
        "ours": "kernel",
        "dtype": "float32",
        "status": "ok",
        "ratio": ratio,
        "low": ratio * 0.99,
        "high": ratio * 1.01,
        "seconds": {"ours": 1e-4, "numpy": 1e-4 * ratio},
        "fastest": "numpy",
        "compile_cpu": 0.1,
        **changes,
    }


def record(rows: list[dict], **settings: object) -> dict:
    given = {"seed": 0, "threads": 1, "families": ["gemm"], "ours": None, "only": "", **settings}
    return {"settings": given, "rows": rows, "machine": {"cores": 2}, "versions": {"numpy": "2"}}


def test_a_case_is_its_seed_and_index():
    for index in range(40):
        one, other = case_of(3, index), case_of(3, index)
        assert (one.name, one.family, one.ours) == (other.name, other.family, other.ours)
    assert [case_of(3, index).name for index in range(9)] != [case_of(4, index).name for index in range(9)]


def test_the_values_of_inputs_are_those_of_the_case():
    case = next(case for case in (case_of(1, index) for index in range(99)) if case.inputs[0].shape[0] < 99)
    for one, other in zip(case.arrays(), case.arrays(), strict=True):
        assert one.ctypes.data % 4096 == 0 and np.array_equal(one, other)


def test_pieces_are_the_whole():
    whole = Options(seed=2, cases=23).chosen()
    pieces = [Options(seed=2, cases=23, piece=piece, pieces=4).chosen() for piece in (1, 2, 3, 4)]
    assert sorted([index for piece in pieces for index in piece]) == whole == list(range(23))


def test_some_families_keep_their_indices():
    found = list(indices_of(5, 6, lambda case: case.family == "gemm"))
    assert len(found) == 6
    assert {case_of(5, index).family for index in found} == {"gemm"}


def test_a_name_that_no_case_has(monkeypatch):
    monkeypatch.setattr("benchmarks.sweep.families.PATIENCE", 200)
    with pytest.raises(NoSuchCase, match="of 201 cases in a row none is wanted: is the name one that cases have"):
        Options(only="no operator is called so").chosen()


def test_no_case_is_huge():
    for index in range(400):
        case = case_of(6, index)
        assert sum([int(np.prod(x.shape)) for x in [*case.inputs, *case.outputs]]) <= 2**25, case.name
        assert all([min(x.shape, default=1) > 0 for x in [*case.inputs, *case.outputs]]), case.name


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_states_its_distribution(family):
    assert "Distribution:" in (sys.modules[draw_of(family).__module__].__doc__ or "")
    assert WEIGHTS[family] > 0


@pytest.mark.one_in(3)
@pytest.mark.parametrize("family", FAMILIES)
def test_references_agree_with_numpy(family):
    compared = 0
    for case in small(family, 15):
        arrays = case.arrays()
        reference = case.exact(arrays)
        assert [bounded.exact.shape for bounded in reference] == [out.shape for out in case.outputs], case.name
        if case.numpy is None:
            continue
        try:
            contender = contenders.peer("numpy", replace(case, ours=KERNEL), arrays, 1)
            results = contender.results()
        except NotImplementedError:
            continue
        # Numpy's own error is somewhat larger in places: the bound is for our algorithms.
        wider = [bounded._replace(allowed=np.asarray(bounded.allowed) * 50 + 0.0) for bounded in reference]
        verify.require_within(results, wider)
        compared += 1
    assert compared or family == "convolutions"  # numpy has none, but of one channel


def test_convolutions_are_sums_over_windows():
    rng = np.random.default_rng(0)
    x, w = rng.random((2, 6, 9, 8)), rng.random((4, 3, 3, 2))
    window = Window((3, 2), (2, 1), (1, 2), (1, 0))
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, :, :, ::2]
    halves = [np.einsum("nchwij,ocij->nohw", seen[:, 3 * g : 3 * g + 3], w[2 * g : 2 * g + 2]) for g in (0, 1)]
    found = convolution(x, w, window, 2)
    assert np.allclose(found, np.concatenate(halves, 1)) and found.shape[2:] == window.out((9, 8))
    # What is transposed is the adjoint: ⟨conv(x), y⟩ = ⟨x, conv_transposed(y)⟩.
    y = rng.random(found.shape)
    back = transposed_convolution(y, w, window, 2, (0, 0))
    assert back.shape == x.shape and np.isclose(np.sum(found * y), np.sum(x * back))


def doubled(kernel, model=(), exact=None) -> Case:
    shape = (5, 7)
    return Case(
        "double",
        [Input(shape)],
        [Output(shape)],
        exact or (lambda x: [exactly(x[0] * 2)]),
        kernel=kernel,
        model=model,
        numpy=lambda x, out: np.multiply(x[0], 2, out=out[0]),
        family="test",
    )


def test_a_row_of_a_kernel():
    row = row_of(doubled(lambda x: x * 2.0), 1, 0.01, ["numpy"])
    assert row["status"] == "ok" and row["fastest"] == "numpy" and row["ratio"] > 0, row
    assert row["compile_cpu"] > 0 and row["error_share"] == 0


def test_a_row_of_a_model():
    pytest.importorskip("onnx")
    case = replace(doubled(None, [Step("Add", ["x0", "x0"], "y0")]), ours=MODEL)
    row = row_of(case, 1, 0.01, ["numpy", "onnxruntime"])
    assert row["status"] == "ok", row


def test_a_wrong_kernel_is_not_timed():
    row = row_of(doubled(lambda x: x * 2.5), 1, 0.01, ["numpy"])
    assert row["status"] == "wrong" and "should be" in row["message"] and "ratio" not in row


def test_a_kernel_that_does_not_compile_is_a_row():
    row = row_of(doubled(lambda x: undefined), 1, 0.01, ["numpy"])
    assert row["status"] == "error" and "NameError" in row["message"]


def test_a_case_without_peers_is_alone():
    assert row_of(replace(doubled(lambda x: x * 2.0), numpy=None), 1, 0.01, ["numpy"])["status"] == "alone"


def test_a_peer_with_another_meaning_is_left_out():
    row = row_of(replace(doubled(lambda x: x * 2.0), numpy=lambda x, out: x[0] * 3), 1, 0.01, ["numpy"])
    assert row["status"] == "alone" and "something else" in row["skipped"]["numpy"]


def test_doubt():
    assert is_doubtful({"ratio": 0.9, "low": 0.7, "high": 0.93})
    assert is_doubtful({"ratio": 0.93, "low": 0.92, "high": 0.96})
    assert not is_doubtful({"ratio": 0.5, "low": 0.49, "high": 0.51})
    assert not is_doubtful({"ratio": 1.2, "low": 0.5, "high": 2.0})


def test_the_summary_counts():
    found = report.summary([ok_row(0, 0.25), ok_row(1, 1.0), ok_row(2, 4.0), {"status": "wrong"}])
    assert found["rows"] == 3 and found["geomean"] == pytest.approx(1.0)
    assert found["at least as fast"] == pytest.approx(2 / 3) and found["below half"] == pytest.approx(1 / 3)
    assert found["least"] == 0.25 and found["50 %"] == 1.0


def test_the_report(tmp_path, capsys):
    rows = [ok_row(0, 0.4), ok_row(1, 2.0, ours="model"), ok_row(2, 0.7, compile_cpu=2.5)]
    rows.append({**ok_row(3, 1), "status": "crashed", "message": "signal 11"})
    (tmp_path / "a.json").write_text(json.dumps(record(rows)))
    (tmp_path / "b.json").write_text(json.dumps(record([ok_row(0, 0.1), ok_row(2, 0.7)])))
    assert cli.main(["report", str(tmp_path / "a.json"), "--before", str(tmp_path / "b.json")]) == 0
    said = capsys.readouterr().out
    assert "0.40" in said and "0.10" in said and "CRASHED case 3" in said and "above 1.5 s: 2.50 s case 2" in said


def test_what_is_slower_than_before_is_named():
    def row(index: int, ratio: float, ours: float) -> dict:
        return ok_row(index, ratio, seconds={"ours": ours, "numpy": ours * ratio})

    now = [row(0, 1.0, 2e-4), row(1, 1.0, 1e-4), row(2, 2.0, 3e-4), row(3, 0.3, 3e-4)]
    then = [row(0, 2.0, 1e-4), row(1, 2.0, 1e-4), row(2, 2.1, 1e-4), row(3, 3.0, 1e-4), row(9, 1.0, 1e-4)]
    assert [pair[0]["index"] for pair in report.slower(now, then)] == [3, 0]


def test_reasons_are_found():
    entries = [{"family": "gemm", "name": ".*f64.*", "why": "one"}, {"operator": "mat.*", "why": "two"}]
    assert report.reason_of(ok_row(0, 1), entries) == "two"
    assert report.reason_of(ok_row(0, 1, name="matmul f64[3]"), entries) == "one"
    assert report.reason_of(ok_row(0, 1, operator="sum"), entries) == "?"
    assert report.reason_of(ok_row(0, 1), [{"within_us": 99, "why": "quick"}]) == "?"  # it takes 100
    assert report.reason_of(ok_row(0, 1), [{"within_us": 101, "why": "quick"}]) == "quick"
    assert all(["why" in entry for entry in report.reasons()])


def test_pieces_are_merged():
    one, other = record([ok_row(0, 1.0)]), record([ok_row(1, 1.0)])
    assert [row["index"] for row in merged([other, one])["rows"]] == [0, 1]
    with pytest.raises(ValueError, match="more than one"):
        merged([one, one])
    with pytest.raises(ValueError, match="seed"):
        merged([one, record([], seed=1)])


def test_a_child_that_dies_costs_one_case():
    program = """
import json, os, sys
orders = json.load(sys.stdin)
for index in orders["indices"]:
    print(json.dumps({"event": "start", "index": index}), flush=True)
    if index == 1:
        os.abort()
    print(json.dumps({"event": "row", "row": {"index": index, "status": "ok"}}), flush=True)
"""
    rows: list[dict] = []
    found = run(Options(cases=3, child=(sys.executable, "-c", program)), rows.append)["rows"]
    assert found == rows and [row["status"] for row in found] == ["ok", "crashed", "ok"]


def test_bounds_follow_the_steps():
    x = np.random.default_rng(0).random((50, 31), dtype="float32") + np.float32(0.5)
    r = Rounded.of(x)
    for found, of in (
        ((x * x + x) / x, (r * r + r) / r),
        (x.sum(axis=1, keepdims=True), r.sum(1)),
        (np.sqrt(np.mean(x * x, axis=-1, keepdims=True)), (r * r).mean(-1).sqrt()),
        (np.exp(np.float64(x - x.max(axis=1, keepdims=True))).astype("float32"), (r - r.max(1)).exp()),
        (x @ x.T, r.matmul(r.move(np.transpose))),
        (np.clip(x, 0.6, 0.9), r.maximum(0.6).minimum(0.9)),
    ):
        bounded = of.bounded()
        verify.require_within([found], [bounded])
        assert np.max(bounded.allowed) < 1e-3


def test_sizes():
    rng = np.random.default_rng(0)
    for _ in range(300):
        shape = shape_of(rng, (100, 10000))
        assert 1 <= len(shape) <= 5 and 20 <= np.prod(shape) <= 10100
        assert np.broadcast_shapes(shape, broadcast_of(rng, shape)) == shape
        assert some_axes(rng, len(shape))
        assert 4 <= extent(rng, 90, 4) <= 90 and 3 <= log_uniform(rng, 3, 17) <= 17
