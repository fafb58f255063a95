"""Random programs as C: one file for many of them, compiled with warnings as errors, run in a process of its own.

    batch = CBatch(cases, Target("c"))
    batch.run(["gcc", "-O1", "-fsanitize=undefined"], directory)      raises unless every result is right, bit for bit

What is right is what the evaluator computes on the very stage that the C was made from. The C program reads arguments
from a file, calls every function, and writes them back; arguments lie in memory of exactly their size, so that the
address sanitizer sees a step outside.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from loopwright import ir
from loopwright.codegen.source import emit_c
from loopwright.runtime.dtype import DataType
from loopwright.target import Target
from loopwright.transform.pipeline import stages
from tests.agreement import Disagreement, assert_same, evaluated, write_out_math

WARNINGS = ["-Wall", "-Wextra", "-Werror", "-std=c99", "-pedantic", "-ffp-contract=off"]
UNDEFINED = ["-fsanitize=undefined", "-fno-sanitize-recover=all"]


class Case(NamedTuple):
    """A program, its arguments, and what says how to make it again."""

    function: ir.PrimFunc
    arguments: Sequence[np.ndarray]  # and then numbers
    label: str

    @property
    def arrays(self) -> list[np.ndarray]:
        return [item for item in self.arguments if isinstance(item, np.ndarray)]


_MAIN = """\
#include <stdio.h>
#include <stdlib.h>
#include "programs.h"

static void *take(FILE *file, size_t size) {
    void *memory = malloc(size ? size : 1);
    if (memory == NULL || fread(memory, 1, size, file) != size) { exit(3); }
    return memory;
}

static void give(FILE *file, void *memory, size_t size) {
    if (fwrite(memory, 1, size, file) != size) { exit(3); }
    free(memory);
}

int main(int argc, char **argv) {
    FILE *in = argc == 3 ? fopen(argv[1], "rb") : NULL, *out = in ? fopen(argv[2], "wb") : NULL;
    if (out == NULL) { return 3; }
%s
    return fclose(out) == 0 && fclose(in) == 0 ? 0 : 3;
}
"""


class CBatch:
    """Programs lowered for one target, in one C file; what each of them should compute is found when it is compared."""

    def __init__(self, cases: Sequence[Case], target: Target) -> None:
        self.cases = list(cases)
        self.lowered: list[ir.PrimFunc] = []
        for number, case in enumerate(cases):
            *_, (_, lowered) = stages(case.function.with_attr("global_symbol", f"program_{number}"), target)
            self.lowered.append(lowered)
        self.source = emit_c(ir.IRModule({function.name: function for function in self.lowered}), "programs")

    def run(self, command: Sequence[str], directory: Path, runner: Sequence[str] = ()) -> None:
        """Compile with `command` and more flags, run, compare. `runner` runs programs for another machine."""
        (directory / "programs.c").write_text(self.source.code)
        (directory / "programs.h").write_text(self.source.header)
        calls = "\n".join(_call(number, case) for number, case in enumerate(self.cases))
        (directory / "main.c").write_text(_MAIN % calls)
        made = directory / "programs"
        files = [str(directory / name) for name in ("programs.c", "main.c")]
        _must_succeed([*command, *WARNINGS, *files, "-o", str(made), "-lm"])
        given, answers = directory / "arguments", directory / "answers"
        given.write_bytes(b"".join(np.ascontiguousarray(a).tobytes() for case in self.cases for a in case.arrays))
        _must_succeed([*runner, str(made), str(given), str(answers)])
        self._compare(answers.read_bytes(), " ".join(command))

    def _compare(self, answers: bytes, who: str) -> None:
        position = 0
        for case, lowered in zip(self.cases, self.lowered, strict=True):
            got = []
            for array in case.arrays:
                cells = np.frombuffer(answers, np.uint8, array.nbytes, position).view(array.dtype)
                got.append(cells.reshape(array.shape))
                position += array.nbytes
            wanted = evaluated(write_out_math(lowered), case.arguments)
            assert_same(case.function, got, wanted, f"{case.label}: C ({who})", "the evaluator on the same stage")
        assert position == len(answers)


def _must_succeed(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, check=False, timeout=900, errors="replace")
    if done.returncode != 0 or "runtime error" in done.stderr or "Sanitizer" in done.stderr:
        said = done.stderr if len(done.stderr) < 6000 else f"{done.stderr[:3000]}\n...\n{done.stderr[-3000:]}"
        raise Disagreement(f"exit status {done.returncode} of {' '.join(map(str, command))}\n{said}")


def _call(number: int, case: Case) -> str:
    name = f"program_{number}"
    lines = [f'    {{ fprintf(stderr, "{name} = {case.label}\\n");']
    names = []
    for position, (buffer, array) in enumerate(zip(case.function.argument_buffers(), case.arrays, strict=True)):
        names.append(f"a{position}")
        lines.append(f"      {_c_type(buffer.dtype)} *a{position} = take(in, {array.nbytes});")
    names += [_c_number(item) for item in case.arguments[len(case.arrays) :]]
    lines.append(f"      if ({name}({', '.join(names)}) != 0) {{ return 4; }}")
    lines += [f"      give(out, a{k}, {array.nbytes});" for k, array in enumerate(case.arrays)]
    return "\n".join([*lines, "    }"])


def _c_number(value: int) -> str:
    return f"({value + 1} - 1)" if value < 0 else str(value)  # the least number has no literal


def _c_type(dtype: DataType) -> str:
    from loopwright.codegen.source.types import memory_type

    return memory_type(dtype)
