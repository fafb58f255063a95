"""lanes_agree: whether a comparison has the same outcome for all lanes of a vector.

i * 4 + j < 64        for j in range(4): yes, for the sum passes 64 between two vectors
i * 4 + j < 62        no
"""

from __future__ import annotations

from loopwright.arith import Analyzer, linear_coefficients
from loopwright.ir import GE, GT, LE, LT, Expr, IntImm, Sub, Var


def lanes_agree(comparison: Expr, lane: Var, count: int, facts: Analyzer) -> bool:
    """Whether the difference of the two sides passes its threshold between two vectors, if at all."""
    if not isinstance(comparison, (LT, LE, GT, GE)) or count < 1:
        return False
    linear = linear_coefficients(Sub(comparison.a, comparison.b), [lane], facts)
    if linear is None or not isinstance(linear[0][0], IntImm):
        return False
    step, base = linear[0][0].value, linear[1]
    # a < b and a >= b ask whether the difference is below 0, the others whether it is below 1.
    threshold = 0 if isinstance(comparison, (LT, GE)) else 1
    modulus, first = facts.modular_set(base - threshold)
    if step not in (1, -1) or modulus % count:
        return False
    return first % count == (0 if step == 1 else count - 1)
