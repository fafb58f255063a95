"""Random programs as emulated kernels give the bits of native code; random schedules for GPUs keep all values."""

from __future__ import annotations

import pytest

import loopwright as lw
from tests.agreement import assert_same, copies
from tests.campaign import programs
from tests.check_kernels import check
from tests.random_programs import random_arguments, random_function


@pytest.mark.parametrize("seed", range(200, 200 + programs(4, 60)))
def test_random_programs_as_kernels(seed):
    function = random_function(seed)
    arguments = random_arguments(function, seed)
    with lw.transform.PassContext(disabled_pass=["form_fma"]):  # GPUs always have it
        module = lw.build(function, target="cuda -model=emulated")
        native = lw.build(function, target="llvm")
    wanted = copies(arguments)
    native(*wanted)
    for order in ("forwards", "backwards"):
        module.set_thread_order(order)
        got = copies(arguments)
        module(*got)
        assert_same(function, got, wanted, f"the emulated kernel, {order},", "native code")


@pytest.mark.parametrize("seed", range(41, 41 + programs(4, 100)))
def test_random_schedules_for_gpus(seed):
    """`benchmarks/fuzz_gpu.py` is the campaign."""
    verdict = check(seed)
    assert verdict.kind in ("right", "refused"), verdict.why
