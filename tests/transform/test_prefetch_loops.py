from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright.evaluator import evaluate
from loopwright.script import from_source
from loopwright.transform import lower


def test_one_hint_a_cache_line():
    func = from_source(
        "@T.prim_func\ndef main(A: T.Buffer((8, 64)), n: T.int32):\n"
        "    T.prefetch(A, [T.Range(n, n + 4), T.Range(0, 40)])\n    A[0, 0] = 1.0"
    )
    text = lower(func, stop_after="flatten_buffers")["main"].script()
    assert "for row_0, line_1 in T.grid(4, 3):" in text
    assert 'T.call_intrin("int32", "tir.prefetch", T.address_of(A_1[(n + row_0) * 64 + line_1 * 16]), 0, 3, 1)' in text


@pytest.mark.parametrize("extent", [0, 1, 15, 16, 17])
def test_prefetch_changes_no_value(extent):
    func = from_source(
        f"@T.prim_func\ndef main(A: T.Buffer(({extent},))):\n"
        f"    T.prefetch(A, [T.Range(0, {extent})])\n    for i in range({extent}):\n        A[i] = A[i] + 1.0"
    )
    a, b = np.arange(extent, dtype="float32"), np.arange(extent, dtype="float32")
    evaluate(func, a)
    loopwright.build(func)(b)
    np.testing.assert_array_equal(a, b)
