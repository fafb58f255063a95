"""What we promise, held against a run: every bar with its figure, and whether it is kept.

A ratio is the peer's time over ours. *must* bars are the promise, *aim* bars what we would like; a bar without figures
in this run (a peer is missing, or its rows were left out) has no verdict, nor has one with doubtful rows (`doubts.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.bench.cases import LOW_PRECISION, NETWORKS
from benchmarks.bench.networks import BEST, OURS_FLOAT32, allowing_winograd, ratio_to
from benchmarks.bench.ratios import geomean

Row = dict[str, Any]
Bar = dict[str, Any]


def geomeans(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The geometric mean of the ratios by family, number of threads and peer, without doubtful ones."""
    found: dict[tuple[str, int, str], list[float]] = {}
    for row in rows:
        for peer, ratio in row.get("ratios", {}).items():
            if peer not in row.get("doubtful", {}):
                found.setdefault((row["family"], row["threads"], peer), []).append(ratio["median"])
    return [
        {"family": family, "threads": threads, "peer": peer, "ratio": geomean(values), "rows": len(values)}
        for (family, threads, peer), values in found.items()
    ]


def judge(record: dict[str, Any]) -> list[Bar]:
    """All bars, for each number of threads."""
    bars: list[Bar] = []
    rows, is_arm = record["rows"], record["machine"]["arch"] in ("aarch64", "arm64")
    for threads in dict.fromkeys([row["threads"] for row in rows]):
        mine = [row for row in rows if row["threads"] == threads]
        roofline = record["roofline"].get(str(threads))
        bars += [{**bar, "threads": threads} for bar in _kernels(mine, roofline, is_arm)]
    return bars + _rows_in_order(rows) + _compiling(record["compile"])


def _kernels(rows: list[Row], roofline: dict[str, Any] | None, is_arm: bool) -> list[Bar]:
    def family(*names: str, tag: str = "") -> list[Row]:
        return [row for row in rows if row["family"] in names and (not tag or tag in row.get("tags", ()))]

    sgemm = family("sgemm", tag="bar")
    chain = family("chain", tag="bar")
    reductions = family("reductions", tag="large")
    functions = family("math", "softmax") + family("normalization", tag="bar")
    bars = [
        _mean("sgemm: geometric mean against OpenBLAS", sgemm, "numpy", 1.0),
        _each("sgemm: none below 0.85 × OpenBLAS", sgemm, "numpy", 0.85),
        _share("sgemm 1024³: share of FMA peak", family("sgemm", tag="1024³"), roofline, 0.95),
        _each("chain against numpy", chain, "numpy", 1.02),
        _each("chain against numpy", chain, "numpy", 1.05, "aim"),
        _each("element-wise against C loops with the same streams", family("elementwise"), "C", 0.95),
        _each("transpose against numpy", family("transpose"), "numpy", 4.0),
        _each("transpose against torch", family("transpose"), "torch", 1.0),
        _each("large reductions against the read bandwidth of a C loop", reductions, "C", 0.95),
        _slow_numpy(family("reductions")),
        _each("functions, softmax, layer norm against torch", functions, "torch", 1.0),
    ]
    bars += _networks(family(*NETWORKS, tag="bar")) + _low_precision(family(*LOW_PRECISION), is_arm)
    if is_arm:
        bars.append(_each("functions, softmax, layer norm against numpy", functions, "numpy", 2.0))
    return bars


def _networks(rows: list[Row]) -> list[Bar]:
    return [
        _mean("convolutions: geometric mean against ONNX Runtime", rows, "onnxruntime", 1.2),
        _mean("convolutions: geometric mean against the best of three", rows, BEST, 1.0),
        _mean("convolutions: geometric mean against the best of three", rows, BEST, 1.2, "aim"),
        _mean(
            "convolutions, winograd allowed: geometric mean against the best of three",
            [allowing_winograd(row) for row in rows],
            BEST,
            1.2,
            "aim",
        ),
    ]


def _low_precision(rows: list[Row], is_arm: bool) -> list[Bar]:
    def tagged(tag: str) -> list[Row]:
        return [row for row in rows if tag in row.get("tags", ())]

    bars = [
        _mean("int8: geometric mean against our float32", tagged("int8"), OURS_FLOAT32, 2.5),
        _mean("int8: geometric mean against ONNX Runtime's", tagged("int8"), "onnxruntime", 1.0),
        _mean("bfloat16: geometric mean against torch's", tagged("bfloat16"), "torch", 1.0, "aim"),
    ]
    if is_arm:
        bars.append(_mean("float16: geometric mean against our float32", tagged("float16"), OURS_FLOAT32, 1.6))
    return bars


def _bar(what: str, kind: str, threshold: float, value: float | None, below: Sequence[str] = ()) -> Bar:
    passed = None if value is None else value >= threshold
    return {"what": what, "kind": kind, "threshold": threshold, "value": value, "passed": passed, "below": list(below)}


def _ratios(rows: Sequence[Row], peer: str) -> dict[tuple[str, str], float]:
    """By family and name: rows of several families may be called the same."""
    found = {(row["family"], row["name"]): ratio_to(row, peer) for row in rows}
    return {name: ratio for name, ratio in found.items() if ratio is not None}


def _without_doubt(bar: Bar, rows: Sequence[Row], peer: str) -> Bar:
    """A bar that rows were left out of can be missed, but is not kept: those rows have to be measured first."""
    doubtful = [f"{row['name']} doubtful" for row in rows if peer in row.get("doubtful", {})]
    passed = None if doubtful and bar["passed"] else bar["passed"]
    return {**bar, "passed": passed, "below": [*bar["below"], *doubtful]}


def _mean(what: str, rows: Sequence[Row], peer: str, threshold: float, kind: str = "must") -> Bar:
    ratios = _ratios(rows, peer)
    bar = _bar(what, kind, threshold, geomean(ratios.values()) if ratios else None)
    return _without_doubt(bar, rows, peer)


def _each(what: str, rows: Sequence[Row], peer: str, threshold: float, kind: str = "must") -> Bar:
    """The least ratio counts. A kernel that is wrong, or does not build, has failed the bar as well."""
    ratios = _ratios(rows, peer)
    below = [f"{name} {ratio:.2f}" for (_, name), ratio in ratios.items() if ratio < threshold]
    failed = [f"{row['name']} {row['status']}" for row in rows if row["status"] != "ok"]
    value = min(ratios.values()) if ratios else None
    bar = _bar(what, kind, threshold, value, [*below, *failed])
    return {**bar, "passed": False} if failed else _without_doubt(bar, rows, peer)


def _share(what: str, rows: Sequence[Row], roofline: dict[str, Any] | None, threshold: float) -> Bar:
    rates = [row["flops"] / row["contenders"]["ours"]["seconds"] for row in rows if "contenders" in row]
    value = rates[0] / roofline["flops"]["float32"] if rates and roofline else None
    return _bar(what, "aim", threshold, value)


def _slow_numpy(rows: Sequence[Row]) -> Bar:
    """Where numpy takes more than twice as long as a C loop that reads the same array, ours is to be twice as fast."""
    slow = []
    for row in rows:
        times = {name: contender["seconds"] for name, contender in row.get("contenders", {}).items()}
        if "numpy" in row.get("ratios", {}) and "C" in times and times["numpy"] > 2 * times["C"]:
            slow.append(row)
    return _each("reductions where numpy is below half of the read bandwidth", slow, "numpy", 2.0)


def _rows_in_order(rows: Sequence[Row]) -> list[Bar]:
    if not rows:
        return []
    wrong = [f"{row['family']} {row['name']} {row['status']}" for row in rows if row["status"] != "ok"]
    differ = [f"{row['family']} {row['name']}" for row in rows if row.get("same_bits") is False]
    good = 1 - len(wrong) / len(rows)
    same = 1 - len(differ) / len(rows)
    return [
        {**_bar("rows that are correct and were timed", "must", 1.0, good, wrong), "threads": 0},
        {**_bar("rows with the same bits for any number of threads", "must", 1.0, same, differ), "threads": 0},
    ]


def _compiling(rows: Sequence[Row]) -> list[Bar]:
    """Bars on seconds: here less is better."""
    by_name = {row["name"]: row for row in rows if row["status"] == "ok"}

    def bar(what: str, limit: float, row: str, figure: Callable[[Row], float]) -> Bar:
        value = figure(by_name[row]) if row in by_name else None
        made = _bar(what, "must", limit, value)
        return {**made, "passed": None if value is None else value <= limit, "threads": 0, "seconds": True}

    if not rows:
        return []
    gemm = "gemm 1024³"
    return [
        bar("compile a gemm: scheduling", 0.15, gemm, lambda row: row["groups"]["schedule"]),
        bar("compile a gemm: lowering", 0.08, gemm, lambda row: row["groups"]["lower"]),
        bar("compile a gemm: LLVM", 0.07, gemm, lambda row: row["groups"]["llvm"]),
        bar("compile a simple kernel", 0.1, "vector add", lambda row: row["warm"]),
        bar("a gemm from the cache, warm process", 0.05, "gemm 1024³ from cache", lambda row: row["warm"]),
        bar("import loopwright", 0.3, "vector add", lambda row: row["import"]),
    ]
