"""Kernels that specialize_warps derived, with seeded bugs: what the check says, and what the emulation shows.

The check refuses all of `BUGS`; those that are not `is_emulated` compute what they should in every order that we try.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import loopwright as lw
from loopwright import ir
from loopwright.analysis import async_order
from loopwright.analysis.async_order import AsyncOrderError, check_async_order
from loopwright.runtime.errors import LoopwrightError
from loopwright.script import from_source
from tests.analysis.async_order.derived_bugs import BUGS, with_bug
from tests.analysis.async_order.derived_kernels import GEMM, ROLES

EMULATED = "cuda -model=emulated -arch=sm_90a"
RUNS = [("forwards", 0), ("backwards", 0), *[("random", seed) for seed in range(5)]]
SILENT = [name for name, bug in BUGS.items() if not bug.is_emulated]


@pytest.mark.parametrize("text", [ROLES, GEMM], ids=["roles", "gemm"])
def test_without_bugs_they_are_proved(text: str):
    assert check_async_order(from_source(text)) == (1, ())


@pytest.mark.parametrize("name", BUGS)
def test_every_bug_is_refused(name: str):
    with pytest.raises(AsyncOrderError) as caught:
        check_async_order(from_source(with_bug(BUGS[name])))
    assert type(caught.value) is getattr(async_order, BUGS[name].error)
    assert BUGS[name].message in caught.value.problem


# --- the emulation --------------------------------------------------------------------------------------------------


@functools.cache
def emulated() -> Any:
    """All kernels in one module, with the barriers that they have."""
    texts = {"roles": ROLES, "gemm": GEMM}
    for k, bug in enumerate(BUGS.values()):
        texts[f"{bug.kernel}_{k}"] = with_bug(bug).replace(f"def {bug.kernel}(", f"def {bug.kernel}_{k}(")
    programs = ir.IRModule({name: from_source(text) for name, text in texts.items()})
    # They are lowered already: what is proved of programs does not know who waits for whom.
    with patch.object(importlib.import_module("loopwright.analysis"), "check_program", lambda module: module):
        with lw.PassContext(disabled_pass=["insert_barriers", "check_async_order"]):
            return lw.build(programs, target=EMULATED)


def outcomes(name: str) -> list[str]:
    """What goes wrong in some order."""
    rng, found = np.random.default_rng(0), []
    if name.startswith("roles"):
        given = [rng.integers(-9, 9, (10, 128)).astype("float32")]
        wanted = given[0][:, ::-1] - given[0].sum(1, keepdims=True)
    else:
        given = [rng.integers(-2, 3, (64, 384)).astype("float16") for _ in range(2)]
        wanted = (given[0].astype("float32") @ given[1].astype("float32").T).astype("float16")
    for order, seed in RUNS:
        emulated().set_thread_order(order, seed)
        got = np.zeros_like(wanted)
        try:
            emulated()[name](*given, got)
        except LoopwrightError as error:
            found.append(str(error))
        else:
            if not np.array_equal(got, wanted):
                found.append("wrong results")
    return found


@pytest.mark.parametrize("name", ["roles", "gemm"])
def test_without_bugs_they_are_right(name: str):
    assert outcomes(name) == []


@pytest.mark.parametrize("name", [name for name in BUGS if name not in SILENT])
def test_the_emulation_shows_most_bugs(name: str):
    assert outcomes(f"{BUGS[name].kernel}_{list(BUGS).index(name)}")


@pytest.mark.parametrize("name", SILENT)
def test_of_some_bugs_only_the_check_knows(name: str):
    assert outcomes(f"{BUGS[name].kernel}_{list(BUGS).index(name)}") == []
