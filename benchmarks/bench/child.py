"""A child process: measures the rows it is told on one number of threads, and reports each as a line of JSON.

Its orders come as JSON on standard input. Lines go to the original standard output; whatever libraries print goes to
standard error instead, so that it cannot mix with them.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from benchmarks.bench import machine
from benchmarks.bench.cases import cases_of
from benchmarks.bench.measure import Effort
from benchmarks.bench.peers import Peers
from benchmarks.bench.row import run_row

PAUSE = 0.003  # several times as long as idle threads spin, as `pool_settings` says


def main() -> None:
    """Read the orders, run the rows."""
    orders = json.load(sys.stdin)
    report = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(event: str, **what: Any) -> None:
        report.write(json.dumps({"event": event, **what}) + "\n")
        report.flush()

    threads = orders["threads"]
    pin(threads)
    library = orders["c_library"]
    if orders["measure_roofline"] and orders["c_serial"] is not None:
        tell("start", family="roofline", name="")
        tell("roofline", value=machine.measure_roofline(orders["c_serial"], threads, orders["quick"]))
    peers = Peers(
        threads,
        library,
        orders["c_missing"],
        orders["use_torch"],
        orders["use_torch_compile"],
        frozenset(orders["without"]),
    )
    effort = Effort(**orders["effort"], pause=PAUSE if threads > 1 else 0.0)
    done: set[Any] = set()
    counts = sorted({1, 2, orders["cores"]})
    for family, name in orders["rows"]:
        tell("start", family=family, name=name)
        case = next(case for case in cases_of(family) if case.name == name)
        row = run_row(case, peers, effort, counts, orders["boundary"], done)
        tell("row", row={"family": family, **row})


def pin(threads: int) -> None:
    """Keep this process on as many cores as it has threads, so that one thread is not moved about."""
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        if threads < len(allowed):
            os.sched_setaffinity(0, allowed[-threads:])  # the first one serves interrupts


if __name__ == "__main__":
    main()
