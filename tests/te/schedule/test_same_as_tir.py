"""The schedules of `examples/te_schedules.py` and `examples/tir_schedules.py` lower to the same program, up to names.

The rungs of the textbook ladder are compared in `test_te_ladder.py`.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

import loopwright as lw
from loopwright.ir import PrimFunc, StructuralMismatch, assert_structural_equal

PATH = Path(__file__).resolve().parents[3] / "examples" / "tir_schedules.py"
spec = importlib.util.spec_from_file_location("tir_schedules_example", PATH)
assert spec is not None and spec.loader is not None
example = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = example
spec.loader.exec_module(example)

# At a length that the lanes do not divide, the te schedule skips the update where `k >= 37`. The step on the program
# keeps the form of a reduction, which later steps can read: it combines with the reducer's identity there.
DIFFERENT = ["argmax"]


def lowered(case) -> tuple[PrimFunc, PrimFunc]:
    """The program through te and through tir; what tells only where it came from is taken off."""
    (through_te,) = lw.lower(case.same.schedule, case.same.args).functions.values()
    (through_tir,) = lw.lower(case.schedule.mod).functions.values()
    for attr in ("from_legacy_te_schedule", "global_symbol"):
        through_te, through_tir = through_te.without_attr(attr), through_tir.without_attr(attr)
    return through_te, through_tir


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", [name for name in example.CASES if name not in DIFFERENT])
def test_the_same_program(name):
    assert_structural_equal(*lowered(example.CASES[name]()))


def test_argmax_differs_only_in_its_tail():
    assert_structural_equal(*lowered(example.argmax(5, 40, lanes=8)))
    with pytest.raises(StructuralMismatch):
        assert_structural_equal(*lowered(example.argmax(5, 37, lanes=8)))


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("conv2d", (2, 3, 4, 4)),  # one whole tile
        ("conv2d", (1, 1, 5, 5)),  # a tile and one row
        ("depthwise_conv2d", (1, 1, 4, 3)),
        ("max_pool_batch_norm", (1, 2)),
        ("softmax", (1, 1)),
        ("softmax", (3, 4)),
        ("softmax", (2, 5)),
        ("argmax", (1, 8)),
        ("lstm", (2, 1, 4)),
    ],
)
def test_the_same_program_at_other_sizes(name, sizes):
    assert_structural_equal(*lowered(getattr(example, name)(*sizes)))
