"""fuzz_graphs: random graphs compiled to native code, against the reference interpreter.

    python -m benchmarks.fuzz_graphs --count 200
    python -m benchmarks.fuzz_graphs --seed 1234 --count 1      one of them again

The graphs compute on small whole numbers, so that every way to compute them gives the same numbers, to the last bit.
Each is built as `relay.build` does it, or with fusion off, or with one of the passes off.
"""

from __future__ import annotations

import argparse
import sys
from time import perf_counter
from typing import Any

import numpy as np

from loopwright import relay
from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext
from loopwright.relay.interpreter import evaluate
from loopwright.relay.transform.pipeline import build_passes
from tests.relay.random_graphs import RandomGraph

PASSES = sorted({each.info.name for each in build_passes()} - {"InferType"})


def context_of(seed: int) -> dict[str, Any]:
    """How a graph is built: all passes, none but the needed ones, or all but one."""
    way = seed % 4
    if way == 0:
        return {"opt_level": 0}
    if way == 1:
        return {"opt_level": 4, "disabled_pass": [PASSES[seed // 4 % len(PASSES)]]}
    return {"opt_level": 3}


def check(seed: int) -> str | None:
    """What is wrong with the graph of this seed, or None."""
    graph = RandomGraph(seed, size=8 + seed % 9)
    arguments = graph.arguments()
    wanted = evaluate(graph.function, arguments)
    with PassContext(**context_of(seed)):
        found = relay.build(IRModule.from_expr(graph.function), target="llvm")(*arguments)
    results = found if isinstance(found, list) else [found]
    for place, (one, other) in enumerate(zip(results, wanted, strict=True)):
        if one.shape != other.shape or one.dtype != other.dtype or not np.array_equal(one, other):
            return f"output {place} differs"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description="Random graphs, compiled and interpreted.")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    start, wrong = perf_counter(), []
    for seed in range(args.seed, args.seed + args.count):
        try:
            problem = check(seed)
        except Exception as error:
            if args.count == 1:
                raise
            problem = f"{type(error).__name__}: {error}".splitlines()[0]
        if problem is not None:
            wrong.append(f"seed {seed}, {context_of(seed)}: {problem}")
    seconds = perf_counter() - start
    print(f"{args.count} random graphs compiled and run in {seconds:.0f} s: {len(wrong)} wrong")
    for line in wrong:
        print("  " + line)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
