"""One row: build, check, time; whatever goes wrong becomes the row's status and leaves the other rows alone."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, TypeVar

from benchmarks.bench import ours, verify
from benchmarks.bench.apart import Gone
from benchmarks.bench.case import Case, Onnx, OursToo, Problem, Torch
from benchmarks.bench.measure import Effort, Samples, measure
from benchmarks.bench.peers import Contender, Missing, Peers
from benchmarks.bench.ratios import estimate, ratio

OURS, AGAIN = "ours", "ours again"
T = TypeVar("T")


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
    if case.group:
        row.update(group=case.group, count=case.count)
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
        contenders, row["skipped"] = _contenders(case, problem, peers, module)
        compared = [name for name in contenders if not isinstance(problem.peers.get(name), OursToo)]
        shares = _surviving(
            contenders,
            peers,
            row["skipped"],
            lambda: {name: verify.peer_share(contenders[name], reference) for name in compared if name in contenders},
        )
        shares.update(_check_ours_too(problem, contenders))
        samples = _surviving(
            contenders,
            peers,
            row["skipped"],
            lambda: measure({name: contender.run for name, contender in contenders.items()}, effort),
        )
        row.update(summary(samples))
        for name, figures in row["contenders"].items():
            figures["error_share"] = shares.get(name)
        row["status"] = "ok"
    except verify.Wrong as error:
        row.update(status="wrong", message=str(error))
    except Exception as error:
        row.update(message=f"{type(error).__name__}: {error}", trace=traceback.format_exc(limit=-8))
    return row


def _check_ours_too(problem: Problem, contenders: Mapping[str, Contender]) -> dict[str, float]:
    """The worst error of kernels of ours that have a bound of their own, as a share of it; raises Wrong."""
    shares = {}
    for name, peer in problem.peers.items():
        if isinstance(peer, OursToo) and peer.reference is not None and name in contenders:
            try:
                shares[name] = verify.require_within(contenders[name].results(), peer.reference())
            except verify.Wrong as error:
                raise verify.Wrong(f"{name}: {error}") from error
    return shares


def _surviving(contenders: dict[str, Contender], peers: Peers, skipped: dict[str, str], work: Callable[[], T]) -> T:
    """What the work on all contenders gives; a peer whose process ends on the way is skipped, and it starts again."""
    while True:
        try:
            return work()
        except Gone as gone:
            del contenders[gone.peer]
            peers.forget(gone.peer)
            skipped[gone.peer] = f"failed: {gone}"


def _contenders(case: Case, problem: Problem, peers: Peers, module: Any) -> tuple[dict[str, Contender], dict[str, str]]:
    found = {OURS: ours.contender(module, problem), AGAIN: ours.contender(module, problem)}
    skipped = {}
    for name, peer in problem.peers.items():
        try:
            if isinstance(peer, Onnx) or (isinstance(peer, Torch) and peer.apart):
                contender = peers.apart(name, peer, case)
            else:
                contender = peers.contender(peer, problem)
            contender.run()
            found[name] = contender
        except Missing as error:
            skipped[name] = str(error)
        except Gone as error:
            peers.forget(name)
            skipped[name] = f"failed: {error}"
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
