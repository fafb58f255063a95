"""Arithmetic on index expressions: simplification, bounds, remainders, proofs, iteration maps, integer sets.

Start with `analyzer.py` (the questions one can ask), then `simplify.py` (the walk) and `linear.py` (the normal form);
`divide.py`, `compare.py` and `rules.py` hold the mathematics, `isl.py` the exact sets.
"""

from loopwright.arith.analyzer import AlreadyBound, Analyzer, ProofStrength, const_bounds
from loopwright.arith.bounds import ConstIntBound
from loopwright.arith.iter_map import (
    IterMapResult,
    detect_iter_map,
    inverse_affine_iter_map,
    iter_map_simplify,
    normalize_iter_map_to_expr,
    normalize_to_iter_sum,
)
from loopwright.arith.iter_nodes import IterMapLevel, IterMark, IterSplitExpr, IterSumExpr
from loopwright.arith.linear import LinearForm
from loopwright.arith.loop_bounds import IntervalSet, detect_linear_equation, interval_of, linear_coefficients
from loopwright.arith.modular import ModularSet
