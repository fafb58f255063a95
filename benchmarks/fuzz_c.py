"""Random programs as C, compiled with warnings as errors and under sanitizers, compared bit for bit with the evaluator.

    python benchmarks/fuzz_c.py --cases 500 --seed 0
    python benchmarks/fuzz_c.py --cases 200 --target "c -mtriple=arm-linux-gnueabihf" \\
        --cc "gcc -O1 -m32 -msse2 -mfpmath=sse"
    python benchmarks/fuzz_c.py --cases 200 --target "c -mtriple=arm-linux-gnueabihf" --sanitize none \\
        --cc "arm-linux-gnueabihf-gcc -static" --runner qemu-arm

Exit status 1 when a case fails. A batch that fails is halved until the programs that fail alone are found.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("LOOPWRIGHT_FREEZE", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from loopwright.target import Target
from tests.agreement import Disagreement
from tests.c_programs import Case, CBatch
from tests.random_programs import random_arguments, random_function


def main() -> int:
    """Run the campaign that the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cases", type=int, default=200, help="how many programs (default 200)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--target", default="c", help='the target, such as "c -mcpu=x86-64" (default c)')
    parser.add_argument("--cc", default="gcc -O1", help='the compiler and its flags (default "gcc -O1")')
    parser.add_argument("--sanitize", default="undefined", help="sanitizers, or none (default undefined)")
    parser.add_argument("--runner", default="", help="what runs the programs, such as qemu-arm")
    parser.add_argument("--batch", type=int, default=50, help="programs a C file (default 50)")
    options = parser.parse_args()
    command = options.cc.split()
    if options.sanitize != "none":
        command += [f"-fsanitize={options.sanitize}", "-fno-sanitize-recover=all"]
    start, failing = time.perf_counter(), 0
    stop = options.seed + options.cases
    for first in range(options.seed, stop, options.batch):
        cases = [_case(seed) for seed in range(first, min(first + options.batch, stop))]
        for case, problem in _failures(cases, Target(options.target), command, options.runner.split()):
            failing += 1
            print(f"{case.label}: {problem}\n", flush=True)
        done = min(first + options.batch, stop) - options.seed
        print(f"{done} programs, {failing} failing, {time.perf_counter() - start:.0f} s", flush=True)
    return 1 if failing else 0


def _case(seed: int) -> Case:
    function = random_function(seed)
    return Case(function, random_arguments(function, seed), f"seed {seed}")


def _failures(cases: list[Case], target: Target, command: list[str], runner: list[str]) -> list[tuple[Case, str]]:
    try:
        with tempfile.TemporaryDirectory() as directory:
            CBatch(cases, target).run(command, Path(directory), runner)
    except Exception as problem:  # anything a case brings up is its failure, and the campaign goes on
        if not isinstance(problem, Disagreement) and len(cases) > 1:
            print(f"{type(problem).__name__}: {problem}", flush=True)
        if len(cases) == 1:
            return [(cases[0], str(problem))]
        half = len(cases) // 2
        return [found for part in (cases[:half], cases[half:]) for found in _failures(part, target, command, runner)]
    return []


if __name__ == "__main__":
    sys.exit(main())
