"""Building `loops.c`: once with OpenMP, once without, by whatever C compiler is there."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).with_name("loops.c")
# Not -ffast-math: linked into a library, it would flush denormals to zero for the whole process. And no loop turns into
# a call of memcpy, which has a row of its own.
_FLAGS = (
    "-O3 -fno-math-errno -fno-trapping-math -ffinite-math-only -fno-signed-zeros -fassociative-math -ffp-contract=fast "
    "-shared -fPIC"
).split()
_FOR_THIS_MACHINE: list[list[str]] = [["-march=native"], ["-mcpu=native"], []]
_PLAIN_LOOPS: list[list[str]] = [["-fno-tree-loop-distribute-patterns"], ["-fno-builtin-memcpy"], []]


class CLoops(NamedTuple):
    """The libraries' paths, for one thread and for many; where one is None, `missing` says why."""

    serial: str | None
    parallel: str | None
    missing: str
    compiler: str


def compiler() -> str | None:
    """The C compiler: `CC`, or the first that is found."""
    named = os.environ.get("CC")
    return next((name for name in (named, "cc", "gcc", "clang") if name and shutil.which(name.split()[0])), None)


def build(folder: Path) -> CLoops:
    """Compile the loops into `folder`."""
    cc = compiler()
    if cc is None:
        return CLoops(None, None, "no C compiler was found", "")
    serial, why = _compile(cc, folder / "loops_serial.so", "-fopenmp-simd")
    if serial is None:
        return CLoops(None, None, why, cc)
    parallel, why = _compile(cc, folder / "loops_parallel.so", "-fopenmp")
    return CLoops(serial, parallel, f"no OpenMP: {why}" if parallel is None else "", _version(cc))


def _compile(cc: str, path: Path, threads: str) -> tuple[str | None, str]:
    why = ""
    for machine in _FOR_THIS_MACHINE:
        for plain in _PLAIN_LOOPS:
            command = [*cc.split(), *_FLAGS, *machine, *plain, threads, "-o", str(path), str(SOURCE)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == 0:
                return str(path), ""
            why = (done.stderr.strip().splitlines() or ["the compiler failed"])[-1]
    return None, f"{cc}: {why[:160]}"


def _version(cc: str) -> str:
    done = subprocess.run([*cc.split(), "--version"], capture_output=True, text=True)
    return (done.stdout.splitlines() or [cc])[0]
