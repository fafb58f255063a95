"""FastMath: shorter formulas, for float32 alone."""

from __future__ import annotations

from loopwright.relay.transform import FastMath
from tests.relay.pass_check import check, check_unchanged, results_not_compared


def test_functions_by_shorter_formulas():
    check(
        FastMath(),
        "fn (%x: Tensor[(3, 4), float32]) { nn.softmax(erf(tanh(exp(%x))), axis=0) }",
        "fn (%x: Tensor[(3, 4), float32]) { nn.fast_softmax(fast_erf(fast_tanh(fast_exp(%x))), axis=0) }",
        compare=results_not_compared,  # other formulas: their errors are those of the operators, tested there
    )


def test_other_types_stay():
    check_unchanged(FastMath(), "fn (%x: Tensor[(3, 4), float64]) { exp(%x) }")
