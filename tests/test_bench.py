"""The benchmark harness: it times only what is right, says what is missing, and survives what crashes."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from benchmarks.bench import bars, c_loops, cli, doubts, machine, verify
from benchmarks.bench.case import Bounded, Case, CLoop, Numpy, Problem, Torch, aligned, uniform
from benchmarks.bench.cases import FAMILIES, KERNELS, cases_of
from benchmarks.bench.cli import _without_folders
from benchmarks.bench.compile_times import groups
from benchmarks.bench.measure import Effort, Samples, _order, measure
from benchmarks.bench.peers import Missing, Peers
from benchmarks.bench.plot import NoMatplotlib, plot
from benchmarks.bench.ratios import estimate, geomean, ratio
from benchmarks.bench.row import run_row, summary
from benchmarks.bench.run import Options, merged, pool_settings, run, thread_counts
from benchmarks.bench.table import duration, family_table, show
from loopwright import te

pytestmark = pytest.mark.usefixtures("no_collection")  # a time is of no matter here

SMALL = Effort(budget=0.01, sample=1e-5, least=5, most=7)


def add(n: int, mistake: int | None = None) -> Problem:
    """x + y, except for element `mistake`."""
    x, y = uniform(n, seed=1), uniform(n, seed=2)

    def program():
        X, Y = te.placeholder((n,), name="X"), te.placeholder((n,), name="Y")
        at = -1 if mistake is None else mistake
        return [X, Y, te.compute((n,), lambda i: te.if_then_else(i == at, X[i], X[i] + Y[i]), name="Z")]

    def reference():
        exact = x.astype("float64") + y
        return [Bounded(exact, 2.0**-24 * np.abs(exact))]

    peers = {
        "C": CLoop("c_add", (n,)),
        "numpy": Numpy(lambda x, out: lambda: np.add(x[0], x[1], out=out[0])),
        "torch": Torch(lambda torch, x, out: lambda: torch.add(x[0], x[1], out=out[0])),
    }
    return Problem(program, [x, y], [aligned(n)], reference, peers, flops=n)


def small_row(case: Case, peers: Peers | None = None) -> dict:
    return run_row(case, peers or Peers(1, use_torch=False), SMALL, [1, 2], 8, set())


def ok_row(**changes) -> dict:
    figures = {"seconds": 1e-3, "low": 9e-4, "high": 1.1e-3, "least": 9e-4, "rounds": 5, "calls": 1, "error_share": 0.5}
    ratios = {"median": 1.5, "low": 1.4, "high": 1.6}
    return {
        "family": "sgemm",
        "name": "1024³",
        "threads": 1,
        "status": "ok",
        "tags": ["1024³", "bar"],
        "dtype": "float32",
        "flops": 2 * 1024**3,
        "read": 2 * 4 * 1024**2,
        "written": 4 * 1024**2,
        "contenders": {"ours": figures, "ours again": figures, "numpy": figures},
        "ratios": {"ours again": {"median": 1.0, "low": 0.9, "high": 1.1}, "numpy": ratios},
        "skipped": {},
        "roofline": {"bound": "compute", "least_seconds": 5e-4, "share": 0.5},
        **changes,
    }


def record(rows: list[dict], compile_rows: list[dict] | None = None) -> dict:
    bandwidth = {name: [[1 << 18, 1e11], [1 << 27, 1e10]] for name in machine.STREAMS}
    made = {
        "schema": 1,
        "date": "2030-01-01",
        "machine": {"cpu": "A CPU", "llvm_cpu": "cpu", "arch": "aarch64", "cores": 2},
        "versions": {"python": "3.11"},
        "roofline": {"1": {"flops": {"float32": 4e12, "float64": 2e12}, "bandwidth": bandwidth}},
        "rows": rows,
        "compile": compile_rows or [],
        "notes": ["torch skipped: torch is not installed (sgemm)"],
    }
    return {**made, "geomeans": bars.geomeans(rows), "bars": bars.judge(made)}


# A row: correct before timed.


def test_a_correct_kernel_is_checked_and_timed():
    row = small_row(Case("add", add, (100,), [(1,), (17,)]))
    assert row["status"] == "ok", row.get("message")
    assert row["checked"]["boundary"] == ["1", "17"] and 0 <= row["checked"]["worst"] <= 1
    assert set(row["contenders"]) == {"ours", "ours again", "numpy"}
    assert set(row["ratios"]) == {"ours again", "numpy"}
    assert row["contenders"]["numpy"]["error_share"] <= 1
    assert (row["read"], row["written"], row["flops"]) == (800, 400, 100)


def test_a_wrong_kernel_is_reported_and_not_timed():
    row = small_row(Case("add", add, (100, 63)))
    assert row["status"] == "wrong"
    assert row["message"].startswith("output 0 at [63] is ") and "but should be" in row["message"]
    assert "contenders" not in row


def test_a_kernel_wrong_on_a_boundary_shape_only_is_found():
    row = small_row(Case("add", add, (100,), [(5,), (17, 16)]))
    assert row["status"] == "wrong" and row["message"].startswith("on the boundary shape 17×16: output 0 at [16]")


def test_a_kernel_that_does_not_build_is_an_error_of_its_row():
    def broken(n: int) -> Problem:
        raise RuntimeError(f"no kernel for {n}")

    row = small_row(Case("broken", broken, (3,)))
    assert (row["status"], row["message"]) == ("error", "RuntimeError: no kernel for 3")


def test_bits_that_change_are_found(monkeypatch):
    problem = add(8)
    outputs = [aligned(8)]
    runs = iter(range(100))

    def unsteady():
        np.add(*problem.inputs, out=outputs[0])
        outputs[0][3] = np.nextafter(outputs[0][3], np.float32(np.inf if next(runs) else -np.inf))

    wide_bound = [Bounded(exact, np.full(8, 1.0)) for exact, _ in problem.reference()]
    fake = type("Fake", (), {"run": staticmethod(unsteady), "results": staticmethod(lambda: outputs)})
    monkeypatch.setattr(verify.ours, "contender", lambda module, problem: fake)
    with pytest.raises(verify.Wrong, match=r"the bits changed: run 2 on 1 threads differs from the first on 1"):
        verify.check(None, problem, [1], wide_bound)


def test_an_element_never_written_and_a_nan_are_outside_any_bound():
    exact = np.zeros(4)
    for bad in (np.nan, np.inf):
        with pytest.raises(verify.Wrong, match=r"output 0 at \[2\]"):
            verify.require_within([np.array([0, 0, bad, 0], "float32")], [Bounded(exact, 1.0)])
    assert verify.require_within([np.array([0, 0.5, 0, 0], "float32")], [Bounded(exact, 1.0)]) == 0.5
    assert verify.require_within([np.zeros(0, "float32")], [Bounded(np.zeros(0), 1.0)]) == 0.0


# Peers that are not here.


def test_missing_peers_are_skipped_with_a_line():
    row = small_row(Case("add", add, (10,)), Peers(1, None, "no C compiler was found", use_torch=False))
    assert row["skipped"] == {"C": "no C compiler was found", "torch": "left out by --no-torch"}


def test_a_package_that_is_not_installed_is_named():
    peer = Numpy(lambda x, out: lambda: None, needs="a_package_that_nobody_has")
    with pytest.raises(Missing, match="a_package_that_nobody_has is not installed"):
        Peers(1).contender(peer, add(3))


def test_a_peer_that_fails_is_skipped():
    problem = add(10)

    def failing(x, out):
        raise ZeroDivisionError("oh")

    made = Problem(problem.program, problem.inputs, problem.outputs, problem.reference, {"numpy": Numpy(failing)})
    assert small_row(Case("add", lambda: made, ()))["skipped"] == {"numpy": "failed: ZeroDivisionError: oh"}


def test_the_c_loops_compute_what_their_kernels_do(tmp_path):
    loops = c_loops.build(tmp_path)
    if loops.serial is None:
        pytest.skip(loops.missing)
    peers = Peers(1, loops.serial)
    for family in ("elementwise", "transpose", "reductions"):
        for make, shape in dict.fromkeys([(case.make, shape) for case in cases_of(family) for shape in case.boundary]):
            problem = make(*shape)
            if "C" in problem.peers and problem.inputs[0].size:
                contender = peers.contender(problem.peers["C"], problem)
                contender.run()
                assert verify.peer_share(contender, problem.reference()) <= 1, (make, shape)


def test_no_compiler_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(c_loops.shutil, "which", lambda name: None)
    assert c_loops.build(tmp_path).missing == "no C compiler was found"


# Timing and statistics.


@pytest.mark.parametrize("count", range(2, 7))
def test_everyone_is_in_every_place_and_after_everyone_else(count):
    names = [f"c{k}" for k in range(count)]
    orders = [_order(names, done) for done in range(2 * count)]
    assert all(sorted(order) == names for order in orders)
    neighbours = Counter([pair for order in orders for pair in pairwise(order)])
    places = Counter([placed for order in orders for placed in enumerate(order)])
    assert len(neighbours) == count * (count - 1) and set(neighbours.values()) == {2}
    assert len(places) == count * count and set(places.values()) == {2}


def test_rounds_stop_at_the_budget_and_pair_up():
    samples = measure({"a": lambda: None, "b": lambda: sum(range(10000))}, Effort(0.0, 1e-5, 6, 50))
    assert [len(taken.seconds) for taken in samples.values()] == [6, 6]
    assert samples["a"].calls >= samples["b"].calls >= 1


def test_a_median_and_its_interval():
    assert estimate([3.0, 1.0, 2.0]) == (2.0, 1.0, 3.0)  # too few to leave any out
    values = [float(v) for v in range(1, 26)]
    assert estimate(values) == (13.0, 8.0, 18.0)  # n = 25: the 8th on either side, as in tables of the sign test
    assert estimate([1.0]) == (1.0, 1.0, 1.0)


def test_the_interval_holds_the_true_median_in_95_cases_of_100():
    rng = np.random.default_rng(0)
    found = [estimate(rng.exponential(size=31).tolist()) for _ in range(2000)]
    inside = sum(e.low <= math.log(2) <= e.high for e in found) / len(found)
    assert 0.94 < inside < 0.99


def test_ratios_are_of_pairs():
    drift = [1.0 + 0.1 * k for k in range(20)]  # the machine slows down; the pairs do not notice
    samples = {
        "ours": Samples(drift, 1),
        "ours again": Samples(drift, 1),
        "numpy": Samples([2 * seconds for seconds in drift], 3),
    }
    row = summary(samples)
    assert row["ratios"]["numpy"] == {"median": 2.0, "low": 2.0, "high": 2.0}
    assert row["ratios"]["ours again"]["median"] == 1.0
    assert row["contenders"]["numpy"]["calls"] == 3
    assert ratio([2.0, 8.0, 4.0], [1.0, 2.0, 2.0]) == (2.0, 2.0, 4.0)
    assert geomean([2.0, 0.5]) == pytest.approx(1.0) and math.isnan(geomean([]))


# The roofline and the bars.


def test_what_limits_a_kernel():
    roofline = record([])["roofline"]["1"]
    assert machine.attainable(roofline, 10**12, 1 << 20, 1 << 20)[1] == "compute"
    seconds, bound = machine.attainable(roofline, 0, 1 << 27, 1 << 27)
    assert bound == "memory" and seconds == pytest.approx((1 << 28) / 1e10)


def test_bars_name_the_rows_below_them():
    slow = ok_row(name="127³", tags=["bar"], ratios={"numpy": {"median": 0.5, "low": 0.4, "high": 0.6}})
    wrong = ok_row(name="257³", tags=["bar"], status="wrong", message="output 0")
    del wrong["ratios"], wrong["contenders"]
    judged = {(bar["what"], bar["threads"]): bar for bar in record([ok_row(), slow, wrong])["bars"]}
    none = judged["sgemm: none below 0.85 × OpenBLAS", 1]
    assert (none["passed"], none["value"], none["below"]) == (False, 0.5, ["127³ 0.50", "257³ wrong"])
    assert judged["sgemm: geometric mean against OpenBLAS", 1]["value"] == pytest.approx(0.75**0.5)
    assert judged["transpose against torch", 1]["passed"] is None
    assert judged["rows that are correct and were timed", 0]["below"] == ["sgemm 257³ wrong"]
    assert judged["sgemm 1024³: share of FMA peak", 1]["value"] == pytest.approx(2 * 1024**3 / 1e-3 / 4e12)


def test_a_peer_slower_on_more_threads_keeps_no_bar():
    slow = {**ok_row()["contenders"]["numpy"], "seconds": 3e-3}
    many = ok_row(threads=2, contenders={**ok_row()["contenders"], "numpy": slow})
    rows = [ok_row(), many]
    assert doubts.mark(rows) == [
        "1 peers slower on many threads than on one, left out of the bars: sgemm 1024³ (numpy)"
    ]
    assert many["doubtful"] == {"numpy": "3 times as long on 2 threads as on 1"} and rows[0]["doubtful"] == {}
    judged = {(bar["what"], bar["threads"]): bar for bar in record(rows)["bars"]}
    assert judged["sgemm: none below 0.85 × OpenBLAS", 1]["passed"] is True
    none = judged["sgemm: none below 0.85 × OpenBLAS", 2]
    assert (none["passed"], none["below"]) == (None, ["1024³ doubtful"])


def test_noisy_rows_are_named():
    row = ok_row()
    row["ratios"]["ours again"] = {"median": 1.0, "low": 0.7, "high": 1.4}
    assert doubts.mark([row]) == ["1 rows whose A/A interval reaches more than 10 % from 1: sgemm 1024³ on 1"]


def test_compile_bars_are_upper_limits():
    figures = {"import": 0.2, "cold": 1.0, "warm": 0.25, "peak_bytes": 1e8, "start_bytes": 1e8}
    stages = {"check": 0.01, "lower": 0.09, "emit text": 0.01, "llvm parse": 0.02, "link": 0.01}
    rows = [
        {"name": "vector add", "status": "ok", **figures, "groups": groups(0.25, stages)},
        {"name": "gemm 1024³", "status": "ok", **figures, "groups": groups(0.25, stages)},
        {"name": "gemm 1024³ from cache", "status": "error", "message": "oh"},
    ]
    judged = {bar["what"]: bar["passed"] for bar in record([], rows)["bars"]}
    assert judged["compile a gemm: scheduling"] is True and judged["compile a gemm: lowering"] is False
    assert judged["compile a gemm: LLVM"] is True and judged["import loopwright"] is True
    assert judged["a gemm from the cache, warm process"] is None
    assert groups(0.25, {**stages, "schedule": 0.05})["schedule"] == 0.05


# The run as a whole.


def test_a_run_writes_a_record_of_this_shape(tmp_path, capsys):
    path = tmp_path / "out.json"
    asked = ["--quick", "--families", "scans", "--threads", "1", "--no-torch", "--budget", "0.01", "--json", str(path)]
    code = cli.main(asked)
    made = json.loads(path.read_text(encoding="utf-8"))
    assert code == 0, made["rows"]
    assert set(made) == {
        *"schema date machine settings roofline rows compile notes versions geomeans networks bars".split(),
    }
    assert {"cpu", "arch", "cores", "caches", "memory_bytes"} <= set(made["machine"])
    assert {"python", "numpy", "loopwright"} <= set(made["versions"])
    (row,) = made["rows"]
    assert row["family"] == "scans" and row["threads"] == 1 and row["same_bits"] is True
    for estimate_ in row["ratios"].values():
        assert estimate_["low"] <= estimate_["median"] <= estimate_["high"]
    assert made["settings"]["pools"]["OPENBLAS_THREAD_TIMEOUT"] == "20"
    assert any(note.startswith("torch skipped: left out by --no-torch") for note in made["notes"])
    printed = capsys.readouterr().out
    assert "scans, 1 thread" in printed and "A/A" in printed


CHILD = """
import json, os, sys, time
orders = json.load(sys.stdin)
def tell(**what):
    print(json.dumps(what), flush=True)
for family, name in orders["rows"]:
    tell(event="start", family=family, name=name)
    if "2048" in name:
        os.abort()
    if name == "1023³":
        time.sleep(60)
    row = {"family": family, "name": name, "threads": orders["threads"], "status": "wrong", "message": "x"}
    tell(event="row", row=row)
"""


def test_a_crash_or_a_hang_costs_one_row(tmp_path):
    child = tmp_path / "child.py"
    child.write_text(CHILD)
    options = Options(families=["sgemm"], threads=["1"], child=[sys.executable, str(child)], patience=2.0)
    made = run(options, lambda text: None)
    by_name = {row["name"]: row for row in made["rows"]}
    assert set(by_name) == {case.name for case in cases_of("sgemm")}
    assert by_name["2048³"]["status"] == "crashed" and by_name["2048³"]["message"].startswith("signal 6")
    assert by_name["1023³"]["message"] == "no answer for 2 s"
    assert by_name["1000³"]["status"] == "wrong"


def test_pools_are_quiet_and_counted():
    assert pool_settings(4)["OPENBLAS_NUM_THREADS"] == "4" and pool_settings(4)["GOMP_SPINCOUNT"] == "100000"
    assert thread_counts(["1", "all"], 16) == [1, 16] and thread_counts(["1", "all"], 1) == [1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--families", "sgemm,nothing"], "no family nothing; there are sgemm"),
        (["--threads", "0"], "'0' is no list of thread counts such as 1,all"),
        (["--budget", "-1"], "-1 is no time to measure for"),
    ],
)
def test_the_command_line_refuses(arguments, message, capsys):
    with pytest.raises(SystemExit):
        cli.main(arguments)
    assert message in capsys.readouterr().err


# Showing it.


def test_tables_show_wrong_kernels_and_all_peers(capsys):
    from rich.console import Console

    rows = [ok_row(), ok_row(name="127³", status="wrong", message="output 0 at [3] is nan")]
    show(record(rows), Console(width=200))
    printed = capsys.readouterr().out
    assert "numpy / ours" in printed and "1.50 ±0.10" in printed and "WRONG" in printed
    assert "output 0 at [3] is nan" in printed and "note: torch skipped" in printed
    assert family_table("sgemm", 2, rows).row_count == 3


@pytest.mark.parametrize(("seconds", "text"), [(2.5, "2.5 s"), (0.0123, "12.3 ms"), (4e-6, "4 µs"), (2e-7, "200 ns")])
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_the_picture(tmp_path):
    source, picture = tmp_path / "record.json", tmp_path / "record.png"
    source.write_text(json.dumps(record([ok_row(), ok_row(name="127³")])))
    if importlib.util.find_spec("matplotlib") is None:
        assert cli.main(["plot", str(source), str(picture)]) == 1
        with pytest.raises(NoMatplotlib, match="matplotlib is not installed"):
            plot(json.loads(source.read_text()), picture)
        return
    assert cli.main(["plot", str(source), str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


# The cases.


def test_names_are_unique_and_every_family_has_a_quick_row():
    for family in FAMILIES:
        names = [case.name for case in cases_of(family)]
        assert len(set(names)) == len(names), family
        assert any(case.quick for case in cases_of(family)), family
        assert all(case.boundary for case in cases_of(family)), family


def test_the_shapes_we_promise_are_there():
    names = {case.name for case in cases_of("sgemm") if "bar" in case.tags}
    cubes = {f"{n}³" for n in (256, 512, 1024, 2048, 127, 255, 257, 1000, 1023)}
    thin = {"1024×2048×1024", "4096×64×64", "64×4096×64", "64×64×4096", "1×1024×1024", "8×1024×1024"}
    assert names == cubes | thin


@pytest.mark.parametrize("family", KERNELS)
def test_references_hold_for_numpy_in_float64_bounds(family):
    """The float64 reference and its bound agree with an independent evaluation: numpy's, on one boundary shape."""
    seen = set()
    for case in cases_of(family):
        if case.make not in seen:
            seen.add(case.make)
            problem = case.make(*case.boundary[0])
            try:
                contender = Peers(1).contender(problem.peers["numpy"], problem)
            except Missing as missing:
                assert str(missing) == "scipy is not installed"
                continue
            contender.run()
            # Within a small multiple: numpy's functions and its form of batch norm have bounds of their own.
            assert verify.peer_share(contender, problem.reference()) <= 4, case.name


def test_results_are_kept_in_the_repository():
    assert cli.RESULTS == Path(__file__).resolve().parent.parent / "benchmarks" / "results"


def test_a_record_names_files_without_their_folders():
    given = ["--quick", "--json", "/home/someone/out/a.json", "--json=/home/someone/b.json", "--only", "256³"]
    assert _without_folders(given) == ["--quick", "--json", "a.json", "--json=b.json", "--only", "256³"]


# Records of several runs.


def test_runs_of_other_rows_are_merged_and_judged_together():
    row = {"family": "sgemm", "name": "256³", "threads": 1, "status": "wrong", "message": "x"}
    part = {
        "machine": machine.describe(),
        "versions": {"numpy": "2"},
        "settings": {"command": "a"},
        "roofline": {"1": None},
        "rows": [row],
        "compile": [],
        "notes": ["1 rows whose A/A interval …", "the machine was busy before the run"],
    }
    other = {**part, "settings": {"command": "b"}, "roofline": {"2": None}, "rows": [{**row, "threads": 2}]}
    whole = merged([part, other])
    assert [row["threads"] for row in whole["rows"]] == [1, 2] and whole["settings"]["command"] == "a; b"
    assert whole["roofline"].keys() == {"1", "2"} and whole["notes"] == ["the machine was busy before the run"] * 2
    with pytest.raises(ValueError, match="a row is in more than one of the runs"):
        merged([part, part])
    with pytest.raises(ValueError, match="not the same machine"):
        merged([part, {**other, "machine": {**machine.describe(), "cores": 96}}])
