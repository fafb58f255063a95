"""curve: one search, and how fast the best candidate is after each measurement, as a ratio to the rule's."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.search.tasks import Searched


def curve(
    searched: Searched,
    trials: int,
    threads: int,
    seconds: float,
    space: str = "default",
    model: str = "auto",
    seed: int = 0,
    library: bool = True,
) -> dict[str, Any]:
    """A row of the record: ratios to the rule after each trial, the final race, failures, time; and the library's."""
    from loopwright.frontends.tuning import tasks_of
    from loopwright.ir import PrimFunc
    from loopwright.target import Target
    from loopwright.tune import Budget, Measurer, RuleSpace, Session

    target = Target(f"llvm -num-cores={threads}")
    program = searched.program()
    (task,) = tasks_of(program if isinstance(program, PrimFunc) else list(program), target)
    start = time.perf_counter()
    measurer = Measurer(target, threads=threads, seed=seed)
    session = Session([task], measurer, seed=seed, model=model, spaces=lambda one: spaces(one, space))
    session.run(Budget(trials=trials, minutes=seconds / 60))
    took = time.perf_counter() - start
    (search,) = session.searches
    best, ratios = 1.0, []
    for trial in search.trials:
        if trial.is_duplicate:
            continue
        best = max(best, search.rule_seconds / trial.seconds) if trial.is_best else best
        ratios.append(round(best, 4))
    against_rule = _against_rule(session, task) if space in ("sketches", "unpacked") else None
    first = search.spaces[0]
    row: dict[str, Any] = {
        "family": searched.family,
        "name": searched.name,
        "space": space,
        "rule_seconds": search.rule_seconds,
        "ratios": ratios,
        "final": round(search.speed_up, 4),
        "interval": None if search.final is None else [search.final.low, search.final.high],
        "noise": search.noise,
        "against_rule": against_rule,
        "failures": _failures(search.trials),
        "size": first.size if isinstance(first, RuleSpace) else None,
        "roofline": _roofline(search),
        "build_seconds": _median([trial.built.total_seconds for trial in search.trials if trial.built.object_bytes]),
        "seconds": round(took, 2),
        "notes": search.notes,
    }
    if library and searched.case is not None:
        row["library"] = _library(searched, threads)
    return row


def _against_rule(session: Any, task: Any) -> float | None:
    """Where rules were hidden from the search: how fast the best is beside theirs."""
    from loopwright.tune import RuleSpace
    from loopwright.tune.measure import BuildJob

    (search,) = session.searches
    rule = RuleSpace(task)
    job = BuildJob(lambda: rule.schedule(rule.candidate(rule.first())), task.bound)
    (built,) = session.measurer.build(task.as_called, [job])
    if built.failure is not None or search.incumbent is None:
        return None
    measured = session.measurer.race(task.as_called, built, search.incumbent.built)
    return None if measured.failure is not None else round(measured.ratio, 4)


def spaces(task: Any, name: str) -> list[Any]:
    """The spaces that are searched: those of `lw.tune`, of the rules, of sketches (also without packing), or both."""
    from loopwright.tune import RuleSpace
    from loopwright.tune.session import default_spaces
    from loopwright.tune.sketches import SketchSpace, llvm_rules

    if name == "default":
        return default_spaces(task)
    if name == "rules":
        return [RuleSpace(task)]
    if name == "unpacked":
        return [SketchSpace(task, rules=[rule for rule in llvm_rules() if "pack" not in type(rule).__name__.lower()])]
    return [SketchSpace(task)] if name == "sketches" else [RuleSpace(task), SketchSpace(task)]


def _failures(trials: Any) -> dict[str, int]:
    counts: dict[str, int] = {}
    for trial in trials:
        if trial.failure is not None:
            counts[trial.failure.kind] = counts.get(trial.failure.kind, 0) + 1
    return counts


def _roofline(search: Any) -> float:
    from loopwright.tune.session import roofline_share

    return round(roofline_share(search) / search.speed_up, 3)


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2] if values else 0.0


def _library(searched: Searched, threads: int) -> dict[str, float]:
    """The time of each peer over that of the rule's kernel, measured side by side."""
    from benchmarks.bench.measure import Effort
    from benchmarks.bench.peers import Peers
    from benchmarks.bench.row import run_row

    assert searched.case is not None
    clock = time.process_time if threads == 1 else time.perf_counter
    peers = Peers(threads, use_torch_compile=False)
    row = run_row(searched.case, peers, Effort(budget=0.6, clock=clock), [threads], 0, set())
    return {name: figures["median"] for name, figures in row.get("ratios", {}).items() if "ours" not in name}
