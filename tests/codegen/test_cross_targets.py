"""Objects for other machines: recognised by their headers, and run under an emulator where there is one."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

import loopwright
from loopwright.runtime.elf import Elf
from loopwright.script import tir as T

ROOT = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("check_emulated", ROOT / "tools" / "check_emulated.py")
emulated = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(emulated)


@T.prim_func
def main(a: T.handle, b: T.handle, by: T.float32):
    n = T.int32()
    A = T.match_buffer(a, (n, 4))
    B = T.match_buffer(b, (n, 4))
    for i in T.parallel(n):
        for j in T.vectorized(4):
            B[i, j] = T.exp(A[i, j]) * by + T.cast(T.float16(0.5), "float32")


TARGETS = [
    ("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v3", 62, True),
    ("llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=cortex-a72", 183, True),
    ("llvm -mtriple=riscv64-unknown-linux-gnu", 243, True),
    ('{"kind": "llvm", "mtriple": "thumbv7em-none-eabihf", "mcpu": "cortex-m7"}', 40, False),
    ("llvm -mtriple=thumbv7em-none-eabi -mcpu=cortex-m4", 40, False),
]


@pytest.mark.parametrize(("target", "machine", "is_64"), TARGETS)
def test_objects_are_recognised_by_their_headers(target, machine, is_64, tmp_path):
    module = loopwright.build(main, target=target)
    elf = Elf(Path(module.export_library(tmp_path / "main.o")).read_bytes())
    assert (elf.machine, elf.is_64, elf.kind) == (machine, is_64, 1)
    defined = {symbol.name for symbol in elf.symbols() if symbol.home and symbol.binding}
    assert defined == ({"loopwright_main", "__tvm_ffi_main"} if is_64 else {"loopwright_main"})
    needed = {symbol.name for symbol in elf.symbols() if not symbol.home and symbol.binding == 1}
    assert needed <= {"snprintf", "expf", "fmaf"}  # the rest is weak: a program without tvm-ffi links as it is
    assert "int32_t loopwright_main(const float *A, float *B, float by, int32_t n);" in module.get_source("h")


@pytest.mark.parametrize("name", emulated.MACHINES)
def test_random_programs_under_an_emulator(name, tmp_path):
    machine = emulated.MACHINES[name]
    if machine.missing:
        pytest.skip(f"needs {', '.join(machine.missing)}")
    emulated.prepare(machine, tmp_path)
    for seed in range(3):
        emulated.check(machine, seed, tmp_path)


CALLER = """
#include <stdio.h>
#include "main.h"

int main(void) {
  float a[8] = {0}, b[8];
  int status = loopwright_main(a, b, 2.0f, 2);
  printf("%d %g %g\\n", status, b[0], b[7]);
  return 0;
}
"""


@pytest.mark.parametrize("name", emulated.MACHINES)
def test_an_exported_object_runs_in_a_c_program_of_that_machine(name, tmp_path):
    machine = emulated.MACHINES[name]
    if machine.missing:
        pytest.skip(f"needs {', '.join(machine.missing)}")
    module = loopwright.build(main, target=machine.target)
    module.export_library(tmp_path / "main.o")
    module.export_library(tmp_path / "main.h")
    (tmp_path / "caller.c").write_text(CALLER)
    compile_it = [machine.compiler, "-static", "-o", "caller", "caller.c", "main.o", "-lm"]
    subprocess.run(compile_it, cwd=tmp_path, check=True)
    done = subprocess.run([*machine.emulator, "./caller"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout == "0 2.5 2.5\n"


@pytest.mark.skipif(shutil.which("riscv64-linux-gnu-gcc") is None, reason="needs a cross compiler")
def test_a_library_for_another_machine_is_linked_with_its_compiler(tmp_path):
    module = loopwright.build(main, target="llvm -mtriple=riscv64-unknown-linux-gnu")
    elf = Elf(Path(module.export_library(tmp_path / "main.so")).read_bytes())
    assert (elf.machine, elf.kind) == (243, 3)
