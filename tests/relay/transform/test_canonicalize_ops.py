"""CanonicalizeOps: bias_add is a sum."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import relay
from loopwright.relay.transform import CanonicalizeOps
from tests.relay.transform.graphs import assert_becomes


@pytest.mark.parametrize(("axis", "after"), [(1, 2), (-1, 0), (0, 3), (-3, 2)])
def test_bias_add_is_a_sum(axis: int, after: int):
    x = relay.var("x", shape=(2, 3, 4, 5))
    size = (2, 3, 4, 5)[axis]
    b = relay.var("b", shape=(size,))
    spread = relay.expand_dims(b, 1, after) if after else b
    assert_becomes(CanonicalizeOps(), relay.nn.bias_add(x, b, axis), x + spread)


def test_a_constant_bias_stays_a_constant():
    x = relay.var("x", shape=(2, 3, 4))
    b = np.arange(3, dtype="float32")
    assert_becomes(CanonicalizeOps(), relay.nn.bias_add(x, relay.const(b)), x + relay.const(b.reshape(3, 1)))
