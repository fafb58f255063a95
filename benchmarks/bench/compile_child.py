"""A fresh process that imports, compiles something small (cold), then the program named on its command line (warm).

What is cold is everything a process does for the first time; between the two a small product is compiled, so that the
parts that schedule products are loaded as well.
"""

from __future__ import annotations

import json
import resource
import sys
from time import perf_counter


def main(program: str) -> None:
    """Print the seconds and bytes as JSON."""
    start = perf_counter()
    import loopwright

    imported = perf_counter() - start
    loopwright.runtime.num_threads()  # the native runtime is built once per machine, not per program

    from benchmarks.bench import ours
    from benchmarks.bench.cases.elementwise import flat
    from benchmarks.bench.cases.gemm import matmul

    before = _peak()
    start = perf_counter()
    ours.build(flat("axpy", 48).program())
    cold = perf_counter() - start
    ours.build(matmul(48, 48, 48).program())
    # The arrays of the problem are not the compiler's: only what it allocates is counted.
    problem = flat("add", 1 << 15) if program == "add" else matmul(1024, 1024, 1024)
    make = problem.program
    base = _peak()
    start = perf_counter()
    module = ours.build(make())
    warm = perf_counter() - start
    print(
        json.dumps(
            {
                "import": imported,
                "cold": cold,
                "warm": warm,
                "stages": dict(getattr(module, "timings", {})),
                "peak_bytes": _peak(),
                "start_bytes": min(before, base),
            }
        )
    )


def _peak() -> int:
    """The most memory this process has held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    main(sys.argv[1])
