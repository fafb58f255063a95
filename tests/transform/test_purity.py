"""purity: what an expression reads and does beside giving a value."""

from __future__ import annotations

import pytest

from loopwright.ir import Broadcast, Div, FloorDiv, FloorMod, Mod, Var, const
from loopwright.transform.parts.purity import can_fail


@pytest.mark.parametrize("node", [Div, Mod, FloorDiv, FloorMod])
def test_divisions_that_may_have_no_result(node):
    x, y = Var("x", "int32"), Var("y", "int32")
    assert can_fail(node(x, y))
    assert can_fail(node(x, const(0))) and can_fail(node(x, const(-1)))  # the least number by -1 has none either
    assert not can_fail(node(x, const(2))) and not can_fail(node(x, const(-2)))
    lanes = Broadcast(x, 4)
    assert can_fail(node(lanes, Broadcast(const(0), 4))) and not can_fail(node(lanes, Broadcast(const(3), 4)))
    a = Var("a", "float32")
    assert not can_fail(node(a, Var("b", "float32")))
