"""One row: build, check, time; whatever goes wrong becomes the row's status and leaves the other rows alone."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from benchmarks.bench import ours, verify
from benchmarks.bench.case import Case, Problem
from benchmarks.bench.measure import Effort, Samples, measure
from benchmarks.bench.peers import Contender, Missing, Peers
from benchmarks.bench.ratios import estimate, ratio

OURS, AGAIN = "ours", "ours again"


def run_row(
    case: Case,
    peers: Peers,
    effort: Effort,
    thread_counts: Sequence[int],
    boundary: int,
    done: set[Any],
) -> dict[str, Any]:
    """Everything found out about a case; `status` is ok, wrong or error."""
    row: dict[str, Any] = {"name": case.name, "tags": sorted(case.tags), "threads": peers.threads, "status": "error"}
    try:
        problem = case.make(*case.shape)
        row["dtype"] = str(problem.inputs[0].dtype)
        row.update(flops=problem.flops, read=problem.bytes_read, written=problem.bytes_written)
        start = perf_counter()
        module = ours.build(problem.program())
        row["build_seconds"] = perf_counter() - start
        reference = problem.reference()
        checked = verify.check(module, problem, thread_counts, reference)
        checked.boundary = verify.check_boundary(case, thread_counts, boundary, done)
        row["checked"] = {"worst": checked.worst, "boundary": checked.boundary, "threads": list(thread_counts)}
        row["digest"] = checked.digest
        contenders, row["skipped"] = _contenders(problem, peers, module)
        shares = {name: verify.peer_share(contender, reference) for name, contender in contenders.items()}
        del reference
        samples = measure({name: contender.run for name, contender in contenders.items()}, effort)
        row.update(summary(samples))
        for name, share in shares.items():
            row["contenders"][name]["error_share"] = share
        row["status"] = "ok"
    except verify.Wrong as error:
        row.update(status="wrong", message=str(error))
    except Exception as error:
        row.update(message=f"{type(error).__name__}: {error}", trace=traceback.format_exc(limit=-8))
    return row


def _contenders(problem: Problem, peers: Peers, module: Any) -> tuple[dict[str, Contender], dict[str, str]]:
    found = {OURS: ours.contender(module, problem), AGAIN: ours.contender(module, problem)}
    skipped = {}
    for name, peer in problem.peers.items():
        try:
            contender = peers.contender(peer, problem)
            contender.run()
            found[name] = contender
        except Missing as error:
            skipped[name] = str(error)
        except Exception as error:  # a peer's failure is its own affair
            skipped[name] = f"failed: {type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}"
    for name in (OURS, AGAIN):
        found[name].run()
    return found, skipped


def summary(samples: Mapping[str, Samples]) -> dict[str, Any]:
    """Seconds of each contender, and ratios of each against ours: above 1, ours is faster."""
    contenders = {}
    for name, taken in samples.items():
        median, low, high = estimate(taken.seconds)
        contenders[name] = {
            "seconds": median,
            "low": low,
            "high": high,
            "least": min(taken.seconds),
            "rounds": len(taken.seconds),
            "calls": taken.calls,
        }
    ratios = {
        name: ratio(taken.seconds, samples[OURS].seconds)._asdict() for name, taken in samples.items() if name != OURS
    }
    return {"contenders": contenders, "ratios": ratios}
