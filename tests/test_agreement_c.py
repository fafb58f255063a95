"""Random programs as C agree bit for bit with the evaluator, without a warning and without undefined behaviour.

`python benchmarks/fuzz_c.py` runs more of them, and with other compilers and sanitizers.
"""

from __future__ import annotations

import shutil
import subprocess

import pytest

from loopwright.target import Target
from tests.agreement import _compare_stages
from tests.c_programs import UNDEFINED, Case, CBatch
from tests.campaign import programs
from tests.random_limits import limit_arguments, limit_function, runs
from tests.random_programs import random_arguments, random_function

PROGRAMS = programs(16, 48)
SMALL_MACHINE = "c -mtriple=arm-linux-gnueabihf"
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc here")


def cases(first: int, count: int) -> list[Case]:
    functions = [(seed, random_function(seed)) for seed in range(first, first + count)]
    return [Case(function, random_arguments(function, seed), f"seed {seed}") for seed, function in functions]


def limit_cases(first: int, count: int) -> list[Case]:
    found = []
    for seed in range(first, first + count):
        function = limit_function(seed)
        arguments = limit_arguments(function, seed)
        if runs(function, arguments):
            found.append(Case(function, arguments, f"limits, seed {seed}"))
    return found


def can_build_for_32_bits() -> bool:
    command = ["gcc", "-m32", "-x", "c", "-", "-o", "/dev/null", "-lm", "-lubsan"]
    program = "#include <stdint.h>\n#include <math.h>\nint main(void) { return 0; }\n"
    return (
        shutil.which("gcc") is not None
        and not subprocess.run(command, input=program.encode(), capture_output=True, check=False).returncode
    )


@needs_gcc
@pytest.mark.parametrize("target", ["c", "c -mtriple=x86_64-linux-gnu -mcpu=x86-64"], ids=["fma", "no-fma"])
def test_random_programs_as_c(target, tmp_path):
    first = 5000 if target == "c" else 6000
    CBatch(cases(first, PROGRAMS // 2), Target(target)).run(["gcc", "-O1", *UNDEFINED], tmp_path)


@needs_gcc
def test_random_programs_near_the_limits_of_integers_as_c(tmp_path):
    CBatch(limit_cases(5000, PROGRAMS), Target("c")).run(["gcc", "-O1", *UNDEFINED], tmp_path)


@needs_gcc
def test_random_programs_stay_inside_their_memory(tmp_path):
    flags = ["-fsanitize=undefined,address", "-fno-sanitize-recover=all"]
    CBatch(cases(7000, PROGRAMS // 4), Target("c")).run(["gcc", "-O1", *flags], tmp_path)


def test_random_programs_on_a_32_bit_machine(tmp_path):
    if not can_build_for_32_bits():
        pytest.skip("gcc -m32 does not work here (apt-get install gcc-multilib)")
    command = ["gcc", "-m32", "-msse2", "-mfpmath=sse", "-O1", *UNDEFINED]
    CBatch(cases(8000, PROGRAMS // 4), Target(SMALL_MACHINE)).run(command, tmp_path)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(9000, 9000 + PROGRAMS // 4))
def test_every_stage_of_lowering_for_c_agrees(seed):
    function = random_function(seed)
    for target in ("c -mtriple=x86_64-linux-gnu -mcpu=x86-64", SMALL_MACHINE):
        _compare_stages(function, random_arguments(function, seed), Target(target))


@pytest.mark.parametrize("first", range(8000, 8000 + programs(20, 80), 20))
def test_c_stages_keep_every_bit_near_the_limits_of_integers(first):
    for case in limit_cases(first, 20):
        _compare_stages(case.function, case.arguments, Target(SMALL_MACHINE))
