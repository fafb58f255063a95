"""Record what every example and benchmark is compiled to, and say what a change of the compiler has changed.

    python tools/same_code.py record /tmp/before.json           # a few minutes
    … the change …
    python tools/same_code.py compare /tmp/before.json          # exit status 1 when something differs

A program is three digests: its lowered text, the text given to LLVM, and the object code. Benchmarks and whole models
are scheduled by rule for three machines (two of x86, one of Arm) and not run; examples run as they are, for this
machine. A kernel of a model is its scheduled text and the text given to LLVM, under whatever symbol. LLVM's object
code of some programs differs from one process to the next: where only that differs, record twice before you blame it.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import io
import json
import os
import runpy
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ["LOOPWRIGHT_CACHE"] = "0"

from benchmarks.bench.cases import FAMILIES, cases_of
from benchmarks.models.raced import write_model
from loopwright import autosched
from loopwright.as_module import as_module
from loopwright.cli.compiled_model import Options, graph_context, kernel_context, lowered
from loopwright.cli.model_files import read_model
from loopwright.codegen.llvm.emit_module import emit_module
from loopwright.codegen.llvm.engine import compile_text
from loopwright.model.kernels import compile_kernels
from loopwright.target import Target, describe
from loopwright.transform import lower

TARGETS = {
    "avx512, 2 cores": "llvm -mtriple=x86_64-linux-gnu -mcpu=emeraldrapids -num-cores=2",
    "avx2, 16 cores": "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell -num-cores=16",
    "neon, 2 cores": "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1 -num-cores=2",
}
MODELS = ("resnet50", "mobilenet_v2", "encoder")
Record = dict[str, list[str]]


def digest(what: str | bytes) -> str:
    return hashlib.sha256(what.encode() if isinstance(what, str) else what).hexdigest()[:16]


def benchmarks(only: str) -> Iterator[tuple[str, list[str]]]:
    """The kernels of the benchmarks, one after the other; a shape that two families have is compiled twice."""
    for family in FAMILIES:
        for case in cases_of(family):
            if "batch 4" in case.name:
                continue  # the same rules as for one image
            wanted = {name: text for name, text in TARGETS.items() if only in f"{family} {case.name} ({name})"}
            module = as_module(case.make(*case.shape).program()) if wanted else None
            for machine, text in wanted.items():
                target = Target(text)
                lowered = lower(autosched.apply(module, target).mod, target)
                emitted = emit_module(lowered, describe(target))
                code = compile_text(emitted, describe(target)).object_bytes
                yield f"{family} {case.name} ({machine})", [digest(lowered.script()), digest(emitted), digest(code)]


def examples(only: str) -> Iterator[tuple[str, list[str]]]:
    """Everything that the examples compile, in order."""
    maker = importlib.import_module("loopwright.codegen.llvm.make_module")
    for path in sorted((ROOT / "examples").glob("*.py")):
        if only not in f"examples/{path.name}":
            continue
        seen: list[list[str]] = []

        def emit(module: Any, *rest: Any, seen: Any = seen) -> str:
            text = emit_module(module, *rest)
            seen.append([digest(module.script()), digest(text)])
            return text

        def compiled(*given: Any, seen: Any = seen, **options: Any) -> Any:
            made = compile_text(*given, **options)
            seen[-1].append(digest(made.object_bytes))
            return made

        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            mock.patch.multiple(maker, emit_module=emit, compile_text=compiled),
            mock.patch.object(sys, "argv", [str(path)]),
            tempfile.TemporaryDirectory() as folder,  # for what they write
            contextlib.chdir(folder),
            contextlib.suppress(SystemExit),
        ):
            runpy.run_path(str(path), run_name="__main__")
        for place, digests in enumerate(seen):
            yield f"examples/{path.name} [{place}]", digests


def models(only: str) -> Iterator[tuple[str, list[str]]]:
    """The kernels of whole models, in the order in which they are first launched."""
    for name in MODELS:
        wanted = {machine: text for machine, text in TARGETS.items() if only in f"models {name} ({machine})"}
        if not wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            model = read_model(str(write_model(name, Path(folder))))
        for machine, text in wanted.items():
            options = Options(target=text, name=name)
            with graph_context(options):
                _, program = lowered(model, options)
            with kernel_context(options):
                compiled = compile_kernels(
                    program.launches(), Target(text), constants=program.constants, winograd=options.winograd
                )
            distinct = {kernel.symbol: kernel for kernel in compiled.values()}
            for number, (symbol, kernel) in enumerate(distinct.items()):
                texts = [kernel.text.replace(symbol, "kernel"), kernel.ll.replace(symbol, "kernel")]
                yield f"models {name} ({machine}) [{number}]", [digest(text) for text in texts]


def record(only: str) -> Record:
    found: Record = {}
    for part in (examples(only), models(only), benchmarks(only)):
        for name, digests in part:
            found[name] = digests
            print(f"\r{len(found)} programs", end="", file=sys.stderr)
    print(file=sys.stderr)
    return found


def compare(before: Record, after: Record) -> int:
    """Print what differs; how many programs do."""
    stages = ("lowered text", "LLVM text", "object code")
    changed = [name for name in before if name in after and before[name] != after[name]]
    for name in changed:
        where = [stage for stage, old, new in zip(stages, before[name], after[name]) if old != new]
        print(f"{name}: other {', '.join(where)}")
    for word, names in (("gone", before.keys() - after.keys()), ("new", after.keys() - before.keys())):
        for name in sorted(names):
            print(f"{name}: {word}")
    print(f"{len(before.keys() & after.keys()) - len(changed)} programs are the same, {len(changed)} are not")
    return len(changed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["record", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="benchmarks and examples whose name contains this")
    chosen = parser.parse_args()
    if chosen.action == "record":
        chosen.file.write_text(json.dumps(record(chosen.only), indent=1) + "\n", encoding="utf-8")
        return 0
    before = {name: row for name, row in json.loads(chosen.file.read_text()).items() if chosen.only in name}
    return 1 if compare(before, record(chosen.only)) else 0


if __name__ == "__main__":
    sys.exit(main())
