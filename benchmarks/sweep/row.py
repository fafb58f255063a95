"""One case measured: compiled, compared with its reference, timed beside its peers; failures become its status.

A row's `status` is ok, wrong, error (it does not compile, or fails when it runs) or alone (no peer has it). `crashed`
and `hung` are written by the parent (`run.py`). A `ratio` is the time of the fastest peer over ours. On one thread
times are the processor's, in all threads of the process, so that a machine that others use as well does not matter.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.bench import verify
from benchmarks.bench.case import Array, Bounded, Missing
from benchmarks.bench.measure import Effort, Samples, measure
from benchmarks.bench.peers import Contender
from benchmarks.bench.ratios import estimate, ratio
from benchmarks.sweep import contenders
from benchmarks.sweep.case import KERNEL, Case

Row = dict[str, Any]
OURS = "ours"
BAR = 0.95  # a ratio from which on we are as fast
NEAR = 1.5  # peers that take longer than this times the fastest are not measured further
WIDE = 1.1  # an interval whose ends are farther apart than this is doubtful
PAUSE = 0.003  # seconds in which pools of several threads fall asleep
FAR_OFF = 1e3  # times our bound: a peer that far off computes something else


def row_of(case: Case, threads: int, budget: float, peers: Sequence[str] = contenders.PEERS) -> Row:
    """Everything found out about the case."""
    row: Row = {
        "index": case.index,
        "family": case.family,
        "operator": case.operator,
        "name": case.name,
        "ours": case.ours,
        "dtype": case.inputs[0].dtype if case.inputs else case.outputs[0].dtype,
        "status": "error",
    }
    try:
        arrays = case.arrays()
        start, cpu = perf_counter(), process_time()
        made = contenders.compiled(case, arrays)
        row["compile_seconds"], row["compile_cpu"] = perf_counter() - start, process_time() - cpu
        mine = contenders.ours(case, made, arrays)
        reference = case.exact(arrays)
        row["error_share"] = check(case, mine, reference)
        others, row["skipped"] = _others(case, arrays, reference, threads, peers)
        if not others:
            row["status"] = "alone"
            return row
        row.update(timed(mine, others, budget, process_time if threads == 1 else perf_counter))
        row["status"] = "ok"
    except verify.Wrong as error:
        row.update(status="wrong", message=str(error))
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        row.update(message=f"{type(error).__name__}: {lines[0][:300]}", trace=traceback.format_exc(limit=-6))
    return row


def check(case: Case, mine: Contender, reference: Sequence[Bounded]) -> float:
    """Our worst error as a share of its bound; raises Wrong, also where two runs differ."""
    found: list[list[Array]] = []
    for _ in range(2):
        if case.ours == KERNEL:
            for out in mine.results():
                verify.poison(out)
            mine.run()
        found.append([np.array(x) for x in mine.results()])
    if len(found[0]) != len(case.outputs):
        raise verify.Wrong(f"{len(found[0])} results, not {len(case.outputs)}")
    for number, (result, declared) in enumerate(zip(found[0], case.own_outputs)):
        if result.shape != declared.shape or str(result.dtype) != declared.dtype:
            raise verify.Wrong(f"output {number} is {result.dtype}{result.shape}, not {declared.dtype}{declared.shape}")
    if any([one.tobytes() != other.tobytes() for one, other in zip(*found)]):
        raise verify.Wrong("the bits changed from one run to the next")
    return verify.require_within(found[0], reference)


def _others(
    case: Case, arrays: Sequence[Array], reference: Sequence[Bounded], threads: int, names: Sequence[str]
) -> tuple[dict[str, Contender], dict[str, str]]:
    """The peers that have the operator with the same meaning, and why others are left out."""
    found, skipped = {}, {}
    for name in names:
        try:
            contender = contenders.peer(name, case, arrays, threads)
            contender.run()
            off = _share(contender.results(), reference)
            if off > FAR_OFF:
                raise Missing(f"computes something else ({off:.2g} times our bound)")
            found[name] = contender
        except Missing as error:
            skipped[name] = str(error)
        except Exception as error:  # a peer's failure is its own affair
            skipped[name] = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:150]}"
    return found, skipped


def _share(results: Sequence[Array], reference: Sequence[Bounded]) -> float:
    """A peer's greatest error as a share of our bound, where one is allowed at all."""
    worst = 0.0
    for result, (exact, allowed) in zip(results, reference):
        if result.shape != exact.shape:
            raise Missing(f"returns the shape {result.shape}")
        got = result.astype("float64", copy=False)
        with np.errstate(all="ignore"):
            off = np.abs(got - exact.astype("float64", copy=False))
            bound = np.broadcast_to(np.asarray(allowed, "float64"), off.shape)
            share = np.where(off == 0, 0.0, off / bound)
        worst = max(worst, float(np.nanmax(share, initial=0.0)))
    return worst


def timed(mine: Contender, others: dict[str, Contender], budget: float, clock: Callable[[], float]) -> Row:
    """Seconds of everyone, and the ratio to the fastest peer: first all briefly, then those near the fastest."""
    pause = 0.0 if clock is process_time else PAUSE
    effort = Effort(budget, least=7, most=61, clock=clock, pause=pause)
    runs = {OURS: mine.run, **{name: other.run for name, other in others.items()}}
    brief = measure(runs, replace(effort, budget=budget / 8, least=3, most=9))
    least = {name: min(taken.seconds) for name, taken in brief.items()}
    best = min([seconds for name, seconds in least.items() if name != OURS])
    near = {name: run for name, run in runs.items() if name == OURS or least[name] <= NEAR * best}
    if least[OURS] > 0.5:  # a call of seconds is a finding, and needs no more digits
        return {**_figures({name: brief[name] for name in near}), "rough": least}
    found = _figures(measure(near, effort))
    if is_doubtful(found):
        again = _figures(measure(near, replace(effort, budget=2 * budget, least=15, most=101)))
        if again["high"] / again["low"] <= found["high"] / found["low"]:
            found = {**again, "first_ratio": found["ratio"]}
    return {**found, "rough": least}


def is_doubtful(figures: Row) -> bool:
    """Whether a ratio below the bar might be noise: its interval is wide, or reaches the bar."""
    is_wide = bool(figures["high"] / figures["low"] > WIDE)
    return bool(figures["ratio"] < BAR and (is_wide or figures["high"] >= BAR))


def _figures(samples: dict[str, Samples]) -> Row:
    seconds = {name: estimate(taken.seconds).median for name, taken in samples.items()}
    fastest = min([name for name in seconds if name != OURS], key=lambda name: seconds[name])
    median, low, high = ratio(samples[fastest].seconds, samples[OURS].seconds)
    return {
        "seconds": seconds,
        "fastest": fastest,
        "ratio": median,
        "low": low,
        "high": high,
        "rounds": len(samples[OURS].seconds),
    }
