"""C text of a scheduled program, compiled by the C compiler of this machine and called through ctypes.

The text is what `target="c"` gives, in two forms. `c_text` is the schedule's own: loops over lanes, short unrolled
loops written out. `plain_c_text` has vectorized, unrolled and parallel loops as serial ones: where the compiler does
not put lanes together again, this is what somebody would write in C for the same order of loops.

The flags let both compilers do the same. Multiply-adds are `fma` calls in the text already; gcc may form more. Neither
side may reassociate floating point, neither keeps errno or traps.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.bench.c_loops import compiler
from benchmarks.bench.case import Array, Run
from loopwright.codegen.source import emit_c
from loopwright.ir import ForKind, PrimFunc
from loopwright.target import Target, describe
from loopwright.transform import lower
from loopwright.transform.on_request.convert_for_loops_to_serial import run_serially

FLAGS = "-O3 -std=c99 -ffp-contract=fast -fno-math-errno -fno-trapping-math -shared -fPIC".split()
NAME = "loops"


class NoCompiler(Exception):
    """There is no C compiler here, so there is nobody to race against."""


def c_text(function: PrimFunc) -> str:
    """The C text of the program as it is scheduled."""
    lowered = lower(function.with_attr("global_symbol", NAME), Target("c"))
    return emit_c(lowered, NAME).code


def plain_c_text(function: PrimFunc) -> str:
    """The C text of the same loops, all of them serial."""
    body = function.body
    for kind in (ForKind.VECTORIZED, ForKind.UNROLLED, ForKind.PARALLEL):
        body = run_serially(body, kind)
    return c_text(function.with_(body=body))


def command() -> list[str]:
    """The compiler and its flags for this machine."""
    found = compiler()
    if found is None:
        raise NoCompiler("no C compiler was found: set CC")
    native = "-mcpu=native" if describe("llvm").triple.startswith(("aarch64", "arm64")) else "-march=native"
    return [*found.split(), native, *FLAGS]


def version() -> str:
    """The first line of what the compiler says about itself."""
    done = subprocess.run([*command()[:1], "--version"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]


def compiled(text: str, folder: Path, name: str) -> ctypes.CDLL:
    """The library made of the text; both files stay in `folder`."""
    source, library = folder / f"{name}.c", folder / f"{name}.so"
    source.write_text(text)
    subprocess.run([*command(), str(source), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def call(library: ctypes.CDLL, arrays: Sequence[Array]) -> Run:
    """A call of the compiled function on those arrays."""
    function = getattr(library, NAME)
    function.restype = ctypes.c_int32
    pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in arrays]  # each keeps its array alive
    function.argtypes = [ctypes.c_void_p] * len(pointers)

    def run() -> None:
        code = function(*pointers)
        if code:
            raise RuntimeError(f"{library._name} returned {code}")

    return run
