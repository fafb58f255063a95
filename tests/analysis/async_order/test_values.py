"""values: integers, one number a thread, or not known; bounds of what is not known."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import tir
from loopwright.analysis.async_order.values import Env, upper_bound
from loopwright.ir import Expr, Var, decl_buffer

I, TX, N = Var("i", "int32"), Var("tx", "int32"), Var("n", "int32")


def env() -> Env:
    result = Env()
    result.vars.update({I: 7, TX: np.arange(4)})
    return result


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (I % 3 + I // 3 * 10, 21),
        (TX // 2 * 8 + I, [7, 7, 15, 15]),
        (tir.truncdiv(I - 10, 2), -1),
        (tir.truncmod(I - 10, 2), -1),
        (tir.Min(TX, I - 5), [0, 1, 2, 2]),
        (tir.Max(I, 9), 9),
        (tir.if_then_else(TX < 2, I, TX), [7, 7, 2, 3]),
        (tir.if_then_else(I < 2, N, TX), [0, 1, 2, 3]),
        (tir.Select(I < 2, I, I + 1), 8),
        (tir.bitwise_xor(TX, 1), [1, 0, 3, 2]),
        (tir.shift_left(I, 2), 28),
        ((TX + I).astype("int64") * 2, [14, 16, 18, 20]),
        (tir.And(TX < 2, I > 3), [True, True, False, False]),
        (tir.And(N > 3, I < 3), False),  # one side is enough
        (tir.Or(N > 3, I > 3), True),
        (tir.Not(TX > 1), [True, True, False, False]),
        (tir.Let(N, I + 1, N * N), 64),
        (N + I, None),
        (tir.And(N > 3, TX < 2), None),
        (I // (I - 7), None),
        (I.astype("float32").astype("int32"), None),
    ],
)
def test_values(expr: Expr, wanted: object):
    result = env().value(expr)
    if isinstance(wanted, list):
        np.testing.assert_array_equal(result, wanted)
    else:
        assert result == wanted


def test_what_is_counted_in_local_integers_is_known():
    counter, shared = decl_buffer((2,), "int32", scope="local"), decl_buffer((2,), "int32", scope="shared")
    known = env()
    known.cells[counter.data] = {0: 3}
    assert known.value(counter[0] + 1) == 4
    assert known.value(counter[1]) is None and known.value(counter[TX]) is None and known.value(shared[0]) is None


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (tir.Min(256, N - 3) * 4, 1024),
        (tir.Min(N, I) * N, None),
        (tir.if_then_else(N > 0, tir.Min(I, N), 3), 7),
        (tir.Max(N, 3), None),
        (tir.Min(N, 5).astype("int64"), 5),
    ],
)
def test_upper_bounds(expr: Expr, wanted: int | None):
    assert upper_bound(expr, env()) == wanted
