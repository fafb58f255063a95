"""Every machine in the tables: random programs become objects, and 32-bit Arm code computes the right numbers."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from loopwright import ir
from loopwright.codegen.llvm.emit_module import emit_module
from loopwright.codegen.llvm.engine import compile_text
from loopwright.runtime.errors import LoopwrightError
from loopwright.target import Target, describe
from loopwright.target.architectures import AARCH64, ARM, RISCV32, RISCV64, X86_64, Architecture, normalized
from loopwright.transform.pipeline import lower, stages
from tests.agreement import assert_same, evaluated, write_out_math
from tests.random_programs import random_arguments, random_function

pytestmark = pytest.mark.optimized

# The target, its pointer width, and the machine number in the header of its objects.
MACHINES = {
    "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64": (64, 62),
    "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=core-avx2": (64, 62),
    "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=sapphirerapids": (64, 62),
    "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a53": (64, 183),
    "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-v2": (64, 183),
    "llvm -mtriple=riscv64-linux-gnu": (64, 243),
    "llvm -mtriple=riscv64-linux-gnu -mattr=+v": (64, 243),
    "llvm -mtriple=riscv64-unknown-elf -mcpu=sifive-x280": (64, 243),
    "llvm -mtriple=riscv32-unknown-elf -mattr=+m,+a,+c -mabi=ilp32": (32, 243),
    "llvm -mtriple=riscv32-unknown-elf -mcpu=sifive-e76 -mabi=ilp32f": (32, 243),
    "llvm -mtriple=thumbv7em-none-eabi -mcpu=cortex-m4 -mfloat-abi=soft": (32, 40),
    "llvm -mtriple=thumbv7em-none-eabi -mcpu=cortex-m7 -mfloat-abi=hard": (32, 40),
    "llvm -mtriple=thumbv8.1m.main-none-eabihf -mcpu=cortex-m55": (32, 40),
    "llvm -mtriple=thumbv6m-none-eabi -mcpu=cortex-m0": (32, 40),
    "llvm -mtriple=armv7a-linux-gnueabihf -mcpu=cortex-a9": (32, 40),
    "llvm -mtriple=i686-linux-gnu": (32, 3),
}


def compiled(functions: dict[str, ir.PrimFunc], target: str) -> tuple[str, bytes]:
    """The LLVM text and the object of lowered functions."""
    cpu = describe(Target(target))
    text = emit_module(ir.IRModule(functions), cpu)
    return text, compile_text(text, cpu).object_bytes


@pytest.mark.one_in(3)
@pytest.mark.parametrize("target", MACHINES)
def test_random_programs_become_objects(target):
    pointer_bits, machine = MACHINES[target]
    functions = {}
    for seed in range(4):
        functions[f"f{seed}"] = lower(random_function(seed).with_attr("global_symbol", f"f{seed}"), target)[f"f{seed}"]
    text, made = compiled(functions, target)
    assert describe(target).pointer_bits == pointer_bits
    assert made[:4] == b"\x7fELF"
    assert int.from_bytes(made[18:20], "little") == machine
    assert made[4] == (2 if pointer_bits == 64 else 1)
    if pointer_bits == 32:
        assert not re.search(r"getelementptr inbounds (?!i8)[^,]*, ptr %[apcs]\d+, i64", text)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(12))
def test_stages_agree_on_a_machine_with_32_bit_pointers(seed):
    function = random_function(seed)
    arguments = random_arguments(function, seed)
    results = [evaluated(stage, arguments) for name, stage in stages(function, "llvm -mtriple=thumbv6m-none-eabi")]
    assert_same(function, results[-1], results[0], "the evaluator after lowering for 32 bits", "before")


MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
void *lw_workspace_alloc(int64_t bytes) { return aligned_alloc(64, (size_t)((bytes + 63) / 64 * 64 + 64)); }
void lw_workspace_free(void *memory) { free(memory); }
"""


def harness(functions: dict[str, ir.PrimFunc]) -> str:
    """A C program that reads the arguments of the function its argument names, calls it, and writes them back."""
    lines = [MAIN]
    cases = []
    for name, function in functions.items():
        buffers = function.argument_buffers()
        lines.append(f"int32_t loopwright_{name}({', '.join(['void *'] * len(buffers))});")
        sizes = [int(np.prod([int(e) for e in b.shape], dtype=int)) * b.dtype.nbytes for b in buffers]
        body = [f"char *a{k} = aligned_alloc(64, {-(-size // 64) * 64 + 64});" for k, size in enumerate(sizes)]
        body += [f"if (fread(a{k}, 1, {size}, stdin) != {size}) return 3;" for k, size in enumerate(sizes)]
        body.append(f"if (loopwright_{name}({', '.join(f'a{k}' for k in range(len(sizes)))})) return 4;")
        body += [f"fwrite(a{k}, 1, {size}, stdout);" for k, size in enumerate(sizes)]
        cases.append(f'if (!strcmp(name[1], "{name}")) {{ {" ".join(body)} return 0; }}')
    return "\n".join([*lines, "int main(int count, char **name) {", "(void)count;", *cases, "return 5; }", ""])


@pytest.mark.skipif(
    not (shutil.which("qemu-arm") and shutil.which("arm-linux-gnueabihf-gcc")), reason="needs qemu-arm and a C compiler"
)
def test_32_bit_arm_code_computes_what_the_evaluator_does(tmp_path: Path):
    target = "llvm -mtriple=armv7a-linux-gnueabihf -mcpu=cortex-a15"
    originals = {f"f{seed}": random_function(seed).with_attr("global_symbol", f"f{seed}") for seed in range(20, 32)}
    functions = {name: lower(function, target)[name] for name, function in originals.items()}
    (tmp_path / "code.o").write_bytes(compiled(functions, target)[1])
    (tmp_path / "main.c").write_text(harness(functions))
    program = tmp_path / "program"
    command = ["arm-linux-gnueabihf-gcc", "-static", "-O1", str(tmp_path / "main.c"), str(tmp_path / "code.o"), "-lm"]
    subprocess.run([*command, "-o", str(program)], check=True, capture_output=True)
    for number, (name, function) in enumerate(functions.items()):
        arguments = random_arguments(originals[name], number)
        given = b"".join(np.ascontiguousarray(array).tobytes() for array in arguments)
        run = subprocess.run(["qemu-arm", str(program), name], input=given, capture_output=True, check=False)
        assert run.returncode == 0, name
        got, start = [], 0
        for array in arguments:
            got.append(np.frombuffer(run.stdout[start : start + array.nbytes], array.dtype).reshape(array.shape))
            start += array.nbytes
        wanted = evaluated(write_out_math(function), arguments)
        assert_same(originals[name], got, wanted, f"32-bit Arm code of {name}", "the evaluator on the same stage")


HALF = """define void @f(ptr %p, ptr %q) nounwind {
  %h = load half, ptr %p
  %x = fpext half %h to float
  store float %x, ptr %q
  %y = load float, ptr %q
  %z = fptrunc float %y to half
  store half %z, ptr %p
  ret void
}
"""
FMA = """declare float @llvm.fma.f32(float, float, float)
declare double @llvm.fma.f64(double, double, double)
define void @g(ptr %p, ptr %q) nounwind {
  %x = load float, ptr %p
  %y = call float @llvm.fma.f32(float %x, float %x, float %x)
  store float %y, ptr %p
  %a = load double, ptr %q
  %b = call double @llvm.fma.f64(double %a, double %a, double %a)
  store double %b, ptr %q
  ret void
}
"""


def triple_of(architecture: Architecture, cpu: str) -> str:
    if architecture is not ARM:
        return f"{architecture.name}-unknown-elf"
    if cpu in ("cortex-m0", "cortex-m0plus", "cortex-m1", "cortex-m23", "sc000"):
        return "thumbv6m-none-eabi"
    return "thumbv7em-none-eabihf" if cpu.startswith(("cortex-m", "sc", "star")) else "armv7-none-eabihf"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("architecture", [X86_64, AARCH64, ARM, RISCV64, RISCV32], ids=lambda a: a.name)
def test_what_the_tables_say_is_what_llvm_does(architecture):
    """A CPU that has an instruction calls no function for it, and one that lacks it does."""
    for cpu in architecture.cpus:
        described = describe(f"llvm -mtriple={triple_of(architecture, cpu)} -mcpu={cpu}")
        assert described.has_f16_convert == (not compile_text(HALF, described, 0).symbols.needed), cpu
        assert described.has_fma == (not compile_text(FMA, described, 0).symbols.needed), cpu


def test_soft_floats_are_computed_by_calls():
    soft = describe("llvm -mtriple=thumbv7em-none-eabihf -mcpu=cortex-m7 -mfloat-abi=soft")
    assert (soft.triple, soft.has_fma, soft.has_f16_convert) == ("thumbv7em-unknown-none-eabi", False, False)
    assert compile_text(FMA, soft, 1).symbols.needed
    hard = describe("llvm -mtriple=thumbv7em-none-eabi -mcpu=cortex-m7 -mfloat-abi=hard")
    assert (hard.triple, hard.has_fma) == ("thumbv7em-unknown-none-eabihf", True)
    with pytest.raises(ValueError, match="mfloat-abi is soft, softfp or hard, but got 'firm'"):
        describe("llvm -mtriple=thumbv7em-none-eabi -mfloat-abi=firm")
    with pytest.raises(ValueError, match="mfloat-abi is for 32-bit Arm, not for x86_64"):
        describe("llvm -mtriple=x86_64-linux-gnu -mfloat-abi=soft")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("aarch64-linux-gnu", "aarch64-unknown-linux-gnu"),
        ("arm64-linux-android", "arm64-unknown-linux-android"),
        ("armv7l-linux-gnueabihf", "armv7l-unknown-linux-gnueabihf"),
        ("thumbv7em-none-eabi", "thumbv7em-unknown-none-eabi"),
        ("arm-none-eabihf", "arm-unknown-none-eabihf"),
        ("wasm32-wasi", "wasm32-unknown-wasi"),
        ("x86_64-unknown-linux-gnu", "x86_64-unknown-linux-gnu"),
        ("riscv64-unknown-elf", "riscv64-unknown-elf"),
        ("arm64-apple-darwin", "arm64-apple-darwin"),
        ("x86_64-pc-windows-msvc", "x86_64-pc-windows-msvc"),
        ("hexagon", "hexagon"),
    ],
)
def test_triples_without_a_vendor_are_completed(written, meant):
    assert normalized(written) == normalized(meant) == meant


def test_hard_floats_are_passed_in_float_registers():
    text = "define float @f(float %x, float %y) {\n  %z = fadd float %x, %y\n  ret float %z\n}\n"
    assert "vadd.f32\ts0, s0, s1" in compile_text(text, describe("llvm -mtriple=armv7a-linux-gnueabihf")).asm()
    assert (
        "__aeabi_fadd"
        in compile_text(text, describe("llvm -mtriple=thumbv7em-none-eabi -mcpu=cortex-m4 -mfloat-abi=soft")).asm()
    )


def test_riscv_on_linux_means_rv64gc():
    assert describe("llvm -mtriple=riscv64-linux-gnu").features >= {"m", "a", "f", "d", "c"}
    assert "d" not in describe("llvm -mtriple=riscv64-unknown-elf").features
    assert "d" not in describe("llvm -mtriple=riscv64-linux-gnu -mattr=-d").features


def test_opt_level_reaches_llvm():
    assert describe("llvm").opt_level == 3
    function = lower(random_function(3), "llvm -opt-level=0")
    slow = compile_text(emit_module(function, describe("llvm -opt-level=0")), describe("llvm -opt-level=0"))
    assert slow.opt_level == 0
    with pytest.raises(ValueError, match="opt-level is 0, 1, 2 or 3, but got 7"):
        describe("llvm -opt-level=7")


def test_the_environment_says_how_hard_to_optimize_where_the_target_does_not(monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_OPT_LEVEL", "1")
    assert describe("llvm").opt_level == 1 and describe("llvm -opt-level=2").opt_level == 2
    monkeypatch.setenv("LOOPWRIGHT_OPT_LEVEL", "")
    assert describe("llvm").opt_level == 3
    monkeypatch.setenv("LOOPWRIGHT_OPT_LEVEL", "fast")
    with pytest.raises(LoopwrightError, match="the environment variable LOOPWRIGHT_OPT_LEVEL is 'fast'"):
        describe("llvm")


def test_cpus_that_are_not_listed_are_llvms_business():
    from loopwright.codegen.llvm.known_names import UnknownMachineName

    assert describe("llvm -mtriple=armv5te-none-eabi -mcpu=xscale").features == frozenset()
    with pytest.raises(UnknownMachineName, match="cortex-m99"):
        compile_text(HALF, describe("llvm -mtriple=thumbv7em-none-eabi -mcpu=cortex-m99"))
