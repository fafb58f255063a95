"""One rung: built by us and by the C compiler, checked, then timed side by side on one thread."""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import loopwright as lw
from benchmarks.bench.case import Array, Bounded, Run, aligned
from benchmarks.bench.measure import Effort, measure
from benchmarks.bench.ours import call as our_call
from benchmarks.bench.row import AGAIN, OURS, summary
from benchmarks.bench.verify import Wrong, require_within
from benchmarks.loops import c_compiler
from benchmarks.loops.rung import Loops, Rung
from loopwright.runtime import threads

C, PLAIN_C = "C", "plain C"  # the schedule's C text, and the same loops all serial, where that is another text


def run_rung(rung: Rung, effort: Effort, keep: Path | None = None) -> dict[str, Any]:
    """Everything found out about a rung; `status` is ok, wrong or error. `keep` is a folder for sources."""
    row: dict[str, Any] = {"name": rung.name, "shape": list(rung.shape), "status": "error"}
    try:
        with tempfile.TemporaryDirectory() as folder:
            _race(rung, effort, keep or Path(folder), row)
    except Wrong as error:
        row.update(status="wrong", message=str(error))
    except Exception as error:  # the row's trouble, whatever it is, is not its neighbours'
        row.update(message=f"{type(error).__name__}: {error}", traceback=traceback.format_exc())
    return row


def _race(rung: Rung, effort: Effort, folder: Path, row: dict[str, Any]) -> None:
    loops = rung.make(*rung.shape)
    row["flops"] = loops.flops
    with threads(1):
        runs, same = contenders(loops, folder, row)
        row["same_bits"] = same
        samples = measure({**runs, AGAIN: runs[OURS]}, effort)
    row.update(summary(samples))
    row["gcc"] = min([name for name in runs if name != OURS], key=lambda name: row["contenders"][name]["seconds"])
    row["ratio"] = row["ratios"][row["gcc"]]
    row["status"] = "ok"


def contenders(loops: Loops, folder: Path, row: dict[str, Any] | None = None) -> tuple[dict[str, Run], bool]:
    """A checked call for each contender, and whether all of them gave the same bits; raises Wrong."""
    function = loops.function.with_attr("global_symbol", "main")
    start = perf_counter()
    module = lw.build(function, target="llvm")
    if row is not None:
        row["build_seconds"] = perf_counter() - start
    (folder / "ours.s").write_text(module.get_source("asm"))
    (folder / "ours.ll").write_text(module.get_source("ll"))
    texts = {C: c_compiler.c_text(function)}
    plain = c_compiler.plain_c_text(function)
    if plain != texts[C]:
        texts[PLAIN_C] = plain
    reference = loops.reference()
    found: dict[str, Run] = {}
    results: list[list[Array]] = []
    outputs = [aligned(x.shape, str(x.dtype)) for x in loops.outputs]
    found[OURS] = our_call(module, [*loops.inputs, *outputs])
    results.append(_checked(OURS, found[OURS], outputs, reference))
    for number, (name, text) in enumerate(texts.items()):
        outputs = [aligned(x.shape, str(x.dtype)) for x in loops.outputs]
        library = c_compiler.compiled(text, folder, f"loops_{number}")
        found[name] = c_compiler.call(library, [*loops.inputs, *outputs])
        results.append(_checked(name, found[name], outputs, reference))
    first = results[0]
    return found, all(x.tobytes() == y.tobytes() for other in results[1:] for x, y in zip(first, other, strict=True))


def _checked(name: str, run: Run, outputs: Sequence[Array], reference: Sequence[Bounded]) -> list[Array]:
    """Copies of what a call leaves in its outputs, all within their bounds."""
    for out in outputs:
        out.reshape(-1).view(np.uint8).fill(0xA5)  # what no kernel leaves there: an element never written is found
    run()
    try:
        require_within(outputs, reference)
    except Wrong as error:
        raise Wrong(f"{name}: {error}") from None
    return [out.copy() for out in outputs]
