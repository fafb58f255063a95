"""Seeded bugs of kernels by hand, which the emulation shows: the check refuses those of synchronisation.

What it does not refuse computes something else in the order in which it should: another tile, a wrong swizzle, a step.
"""

from __future__ import annotations

import pytest

from loopwright.analysis.async_order import AsyncOrderError, check_async_order
from loopwright.script import from_source
from loopwright.target import Target
from loopwright.transform.errors import LoweringError
from loopwright.transform.pipeline import stages
from tests.codegen.source.cuda import test_async_copies as bulk
from tests.codegen.source.cuda import test_group_copies as groups
from tests.codegen.source.cuda import test_tensor_copies as boxes
from tests.codegen.source.cuda import test_warpgroups as warpgroups

EMULATED = "cuda -model=emulated -arch=sm_90a"
OTHER = {
    "bulk": [
        "a copy of the wrong tile",
        "a thread writes over an mbarrier",
        "a thread writes where a copy is under way",
    ],
    "boxes": [
        "readers that know no swizzle",
        "readers that know another swizzle",
        "rows and columns exchanged",
        "all threads store one after the other",
    ],
    "groups": ["a copy of the wrong tile", "a copy that is not aligned"],
    "warpgroups": [
        "the leading step of B",
        "both steps of B",
        "steps beyond the memory",
        "the swizzle of A",
        "the second call begins anew",
        "every slab begins anew",
        "a step along K of 8",
        "a step along K of B in columns",
        "rows of the other warpgroup",
        "different limits of registers",
    ],
}
KERNELS = {
    "bulk": (bulk.ring(), bulk.BUGS),
    "boxes": (boxes.RING, boxes.BUGS),
    "groups": (groups.pipeline(), groups.BUGS),
    "warpgroups": (warpgroups.STAGES, warpgroups.BUGS),
}
CASES = [(kernel, name) for kernel, (_, bugs) in KERNELS.items() for name in bugs]


def is_refused(kernel: str, name: str) -> bool:
    """Whether a build says something of the kernel with the bug, before it is compiled."""
    text, bugs = KERNELS[kernel]
    function = from_source(text.replace(bugs[name].old, bugs[name].new, 1))
    try:
        for stage, result in stages(function, Target(EMULATED)):
            if stage == "insert_barriers":
                check_async_order(result)
                return False
    except (AsyncOrderError, LoweringError):
        return True
    raise AssertionError("insert_barriers has not run")


@pytest.mark.parametrize(("kernel", "name"), CASES)
def test_bugs_of_synchronisation_are_refused(kernel: str, name: str):
    assert is_refused(kernel, name) is (name not in OTHER[kernel])
