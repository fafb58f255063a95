"""Run random programs as AArch64 code under an emulator and compare them, bit for bit, with the evaluator.

    python tools/check_aarch64.py 0 100          # seeds from 0 to 99

Needs `qemu-aarch64` and `aarch64-linux-gnu-gcc` (on Debian: qemu-user and gcc-aarch64-linux-gnu).
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

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
TARGET = Target("llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=neoverse-n1")


def run(function: ir.PrimFunc, arguments: Sequence[np.ndarray], folder: Path) -> list[np.ndarray]:
    """The arguments after one call of the lowered function on the emulated machine."""
    cpu = describe(TARGET)
    compiled = compile_text(emit_module(ir.IRModule({function.name: function}), cpu), cpu)
    (folder / "kernel.o").write_bytes(compiled.object_bytes)
    subprocess.run(
        [COMPILER, "-static", "-o", folder / "kernel", folder / "caller.o", folder / "kernel.o", "-lm"], check=True
    )
    with open(folder / "in", "wb") as file:
        file.write(struct.pack("q", len(arguments)))
        for buffer, array in zip(function.argument_buffers(), arguments, strict=True):
            code, bits, _ = dlpack_type(buffer.dtype)
            file.write(struct.pack("4q", array.ndim, code, bits, array.nbytes))
            file.write(struct.pack(f"{array.ndim}q", *array.shape) + np.ascontiguousarray(array).tobytes())
    done = subprocess.run([EMULATOR, "kernel", "in", "out"], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise Disagreement(f"the program failed: {done.stderr}")
    raw, results = (folder / "out").read_bytes(), []
    for array in arguments:
        results.append(np.frombuffer(raw[: array.nbytes], array.dtype).reshape(array.shape))
        raw = raw[array.nbytes :]
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int, help="the first seed not tried")
    options = parser.parse_args()
    for tool in (COMPILER, EMULATOR):
        if shutil.which(tool) is None:
            sys.exit(f"{tool} is not installed (on Debian: apt install qemu-user gcc-aarch64-linux-gnu)")
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([COMPILER, "-O1", "-c", "-o", folder / "caller.o", ROOT / "tools" / "call_kernel.c"], check=True)
        for seed in range(options.first, options.last):
            function = random_function(seed)
            arguments = [np.array(array) for array in random_arguments(function, seed)]
            *_, (_, lowered) = stages(function, TARGET)
            try:
                got = run(lowered, arguments, folder)
                assert_same(function, got, evaluated(write_out_math(lowered), arguments), "AArch64", "the evaluator")
            except Disagreement as error:
                wrong += 1
                print(f"seed {seed}: {error}")
    print(f"{options.last - options.first} programs, {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
