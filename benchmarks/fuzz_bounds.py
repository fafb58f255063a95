"""Random index expressions against guard pages: an access outside its buffer is refused, raises, or does not happen.

    python -m benchmarks.fuzz_bounds --cases 2000 --seed 0

Each program loads and stores through random indices: products, shifts, masks, quotients by scalars, minima, choices,
loaded data, lets, under random conditions. It is built and run on arrays that end at a page nobody may touch, then on
arrays that start right behind one. The evaluator says what is right: where it finds an access outside, the program must
have been refused or raise; where it finds none, results must be the same. Near the ends of int32, where indices wrap
around, only the guard pages count. Cases run in child processes: a signal is a failure that shows its seed.
"""

from __future__ import annotations

import argparse
import ctypes
import mmap
import random
import subprocess
import sys

import numpy as np

PAGE = mmap.PAGESIZE


class Guarded:
    """An int32 array with a page behind it (or before it) that must not be touched."""

    def __init__(self, values: np.ndarray, behind: bool) -> None:
        pages = -(-values.nbytes // PAGE) or 1
        self.memory = mmap.mmap(-1, (pages + 2) * PAGE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        for at in (start, start + (pages + 1) * PAGE):
            if ctypes.CDLL(None).mprotect(ctypes.c_void_p(at), ctypes.c_size_t(PAGE), 0) != 0:
                raise OSError("mprotect failed")
        offset = PAGE + (pages * PAGE - values.nbytes if behind else 0)
        self.array = np.frombuffer(self.memory, "int32", values.size, offset).reshape(values.shape)
        self.array[...] = values


class Program:
    """A random program and its arguments."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.sizes = [self.random.choice([1, 2, 5, 8, 13]) for _ in range(3)]
        self.loops = [self.random.choice([1, 2, 4, 7]) for _ in range(2)]
        self.names = ["i", "j", "n", "k"]
        self.text = self._text()
        near = np.random.default_rng(seed)
        # Numbers near the ends of int32: indices wrap around then, and only their staying inside counts.
        wide = self.random.random() < 0.3
        self.wraps = wide
        ends = (-(2**31), 2**31 - 1) if wide else (-3, 16)
        self.arrays = [near.integers(*ends, size).astype("int32") for size in self.sizes]
        far = [2**31 - 1, -(2**31), 2**30] if wide else []
        self.scalars = [self.random.choice([0, 1, 2, 3, 5, -1, *far]) for _ in range(2)]

    def index(self, depth: int) -> str:
        """A random integer expression."""
        pick = self.random
        if depth == 0 or pick.random() < 0.2:
            return pick.choice([*self.names, str(pick.randint(-2, 9))])
        a, b = self.index(depth - 1), self.index(depth - 1)
        return pick.choice(
            [
                f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} * {b} + {pick.choice(self.names)})",
                f"({a} // {pick.randint(1, 5)})", f"({a} % {pick.randint(1, 9)})", f"T.min({a}, {b})",
                f"T.max({a}, {b})", f"T.Select({a} < {b}, {a}, {b})", f"T.if_then_else({a} >= 0, {a}, {b})",
                f"T.shift_right({a}, {pick.randint(0, 3)})", f"T.shift_left({a}, {pick.randint(0, 2)})",
                f"T.bitwise_and({a}, {pick.choice([1, 7, 15, -1])})", f"T.bitwise_xor({a}, {b})",
                f"T.Cast('int32', T.Cast('int8', {a}))", self.load(depth - 1),
            ]
        )  # fmt: skip

    def load(self, depth: int) -> str:
        """A load, guarded or not."""
        which = self.random.randrange(2)
        index = self.index(depth)
        if self.random.random() < 0.4:
            low = "0 <= " if self.random.random() < 0.8 else ""
            holds = f"{low}{index}" if low else f"{index} != 77"
            bound = self.sizes[which] + self.random.choice([0, 0, 0, 1])
            return f"T.if_then_else({holds} and {index} < {bound}, X{which}[{index}], 3)"
        return f"X{which}[{index}]"

    def _text(self) -> str:
        head = ", ".join([f'X{k}: T.Buffer(({size},), "int32")' for k, size in enumerate(self.sizes)])
        lines = [f"def f({head}, n: T.int32, k: T.int32):"]
        bounds = [str(self.loops[0]), self.random.choice([str(self.loops[1]), "i + 1", "X0[0] % 4", "n % 5"])]
        kind = self.random.choice(["range", "range", "T.vectorized"]) if bounds[1].isdigit() else "range"
        lines.append(f"    for i in range({bounds[0]}):")
        lines.append(f"        for j in {kind}({bounds[1]}):")
        space = " " * 12
        if self.random.random() < 0.3:
            lines.append(f"{space}v: T.int32 = {self.index(2)}")
            self.names = [*self.names, "v"]
        index = self.index(self.random.randint(1, 3))
        if self.random.random() < 0.4:
            lines.append(f"{space}if {index} >= 0 and {index} < {self.sizes[2] + self.random.choice([0, 0, 1])}:")
            space += "    "
        lines.append(f"{space}X2[{index}] = {self.index(self.random.randint(0, 3))}")
        return "@T.prim_func\n" + "\n".join(lines) + "\n"


def run_case(seed: int) -> str:
    """What became of one program; raises where the outcome is wrong."""
    import loopwright as lw
    from loopwright.evaluator import evaluate
    from loopwright.evaluator.errors import OutOfBounds
    from loopwright.runtime.errors import InternalError, LoopwrightError
    from loopwright.script import from_source

    program = Program(seed)
    function = from_source(program.text)
    right = [array.copy() for array in program.arrays]
    try:
        evaluate(function, *right, *program.scalars)
        inside = True
    except OutOfBounds:
        inside = False
    except LoopwrightError:
        return "evaluator refuses"
    try:
        module = lw.build(function, target="llvm")
    except InternalError:
        raise
    except LoopwrightError:
        return "refused at build"
    outcome = ""
    for behind in (True, False):
        guarded = [Guarded(array, behind) for array in program.arrays]
        try:
            module(*[item.array for item in guarded], *program.scalars)
            outcome = "ran"
            if program.wraps:
                continue
            if not inside:
                raise AssertionError(f"seed {seed}: an access outside went unnoticed\n{program.text}")
            for got, wanted in zip(guarded, right, strict=True):
                if not np.array_equal(got.array, wanted):
                    raise AssertionError(f"seed {seed}: results differ\n{program.text}")
        except IndexError:
            outcome = "raised"
            if inside:
                outcome = "raised although inside"
    return outcome


def main() -> int:
    """Run it; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        for seed in range(options.seed, options.seed + options.cases):
            print(f"{seed}", end=" ", flush=True)
            print(run_case(seed), flush=True)
        return 0
    counts: dict[str, int] = {}
    failed, seed, end = 0, options.seed, options.seed + options.cases
    while seed < end:
        which = ["--child", "--seed", str(seed), "--cases", str(end - seed)]
        done = subprocess.run([sys.executable, "-m", "benchmarks.fuzz_bounds", *which], capture_output=True, text=True)
        lines = done.stdout.splitlines()
        for line in lines:
            number, _, what = line.partition(" ")
            seed = int(number)
            if what:
                counts[what] = counts.get(what, 0) + 1
        if done.returncode != 0:
            failed += 1
            print(f"seed {seed}: status {done.returncode}\n{done.stderr.strip()[-600:]}\n{Program(seed).text}")
        seed += 1
    print(counts, f"{failed} failures")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
