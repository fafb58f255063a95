"""Run random programs as code for another machine under an emulator, and compare them with the evaluator, bit for bit.

    python tools/check_emulated.py aarch64 0 100          # seeds from 0 to 99
    python tools/check_emulated.py riscv64 0 100

Needs the machine's emulator and C compiler (on Debian: qemu-user, gcc-aarch64-linux-gnu, gcc-riscv64-linux-gnu).
"""

from __future__ import annotations

import argparse
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from loopwright import ir
from loopwright.codegen.llvm.emit_module import emit_module
from loopwright.codegen.llvm.engine import compile_text
from loopwright.runtime.dlpack import dlpack_type
from loopwright.target import Target, describe
from loopwright.transform.pipeline import stages
from tests.agreement import Disagreement, assert_same, evaluated, write_out_math
from tests.random_programs import random_arguments, random_function


class Machine(NamedTuple):
    """A machine, and the tools that stand in for it."""

    target: str
    compiler: str
    emulator: tuple[str, ...]

    @property
    def missing(self) -> list[str]:
        """The tools that are not installed."""
        return [tool for tool in (self.compiler, self.emulator[0]) if shutil.which(tool) is None]


MACHINES = {
    "aarch64": Machine(
        "llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=neoverse-n1", "aarch64-linux-gnu-gcc", ("qemu-aarch64",)
    ),
    "riscv64": Machine("llvm -mtriple=riscv64-unknown-linux-gnu", "riscv64-linux-gnu-gcc", ("qemu-riscv64",)),
}


def prepare(machine: Machine, folder: Path) -> None:
    """Compile the caller; once for any number of kernels in the same folder."""
    caller = ROOT / "tools" / "call_kernel.c"
    subprocess.run([machine.compiler, "-O1", "-c", "-o", folder / "caller.o", caller], check=True)


def run(machine: Machine, function: ir.PrimFunc, arguments: Sequence[np.ndarray], folder: Path) -> list[np.ndarray]:
    """The arguments after one call of the lowered function on the emulated machine."""
    cpu = describe(Target(machine.target))
    compiled = compile_text(emit_module(ir.IRModule({function.name: function}), cpu), cpu)
    (folder / "kernel.o").write_bytes(compiled.object_bytes)
    command = [machine.compiler, "-static", "-o", "kernel", "caller.o", "kernel.o", "-lm"]
    subprocess.run(command, check=True, cwd=folder)
    with open(folder / "in", "wb") as file:
        file.write(struct.pack("q", len(arguments)))
        for buffer, array in zip(function.argument_buffers(), arguments, strict=True):
            code, bits, _ = dlpack_type(buffer.dtype)
            file.write(struct.pack("4q", array.ndim, code, bits, array.nbytes))
            file.write(struct.pack(f"{array.ndim}q", *array.shape) + np.ascontiguousarray(array).tobytes())
    done = subprocess.run([*machine.emulator, "kernel", "in", "out"], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise Disagreement(f"the program failed: {done.stderr}")
    raw, results = (folder / "out").read_bytes(), []
    for array in arguments:
        results.append(np.frombuffer(raw[: array.nbytes], array.dtype).reshape(array.shape))
        raw = raw[array.nbytes :]
    return results


def check(machine: Machine, seed: int, folder: Path) -> None:
    """Raise `Disagreement` unless the machine computes what the evaluator does for the program of that seed."""
    function = random_function(seed)
    arguments = [np.array(array) for array in random_arguments(function, seed)]
    *_, (_, lowered) = stages(function, Target(machine.target))
    got = run(machine, lowered, arguments, folder)
    assert_same(function, got, evaluated(write_out_math(lowered), arguments), machine.target, "the evaluator")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("machine", choices=MACHINES)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int, help="the first seed not tried")
    options = parser.parse_args()
    machine = MACHINES[options.machine]
    if machine.missing:
        packages = f"qemu-user gcc-{options.machine}-linux-gnu"
        sys.exit(f"{', '.join(machine.missing)} is not installed (on Debian: {packages})")
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(machine, folder)
        for seed in range(options.first, options.last):
            try:
                check(machine, seed, folder)
            except Disagreement as error:
                wrong += 1
                print(f"seed {seed}: {error}")
    print(f"{options.last - options.first} programs, {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
