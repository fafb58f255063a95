"""Arithmetic on index expressions: simplification, bounds, remainders, proofs, iteration maps, integer sets.

Start with `analyzer.py` (the questions one can ask), then `simplify.py` (the walk) and `linear.py` (the normal form);
`divide.py`, `compare.py` and `rules.py` hold the mathematics. Exact sets are asked of isl, in one way:
`affine_reader.py` reads expressions as the forms and conditions of `affine.py`, `isl_text.py` writes these for isl, and
`isl.py` asks, under a budget. What stands on the analyzer: `int_set.py` (intervals), `deduce.py` (what a condition says
of a variable), `linear_equations.py` and `linear_inequalities.py` (systems), `iter_map.py` and `subspace.py` (iteration
maps), `regions.py`, `index_map.py` and `layout.py`.
"""

from loopwright.arith.analyzer import AlreadyBound, Analyzer, Extension, ProofStrength, RewriteStats, const_bounds
from loopwright.arith.bounds import ConstIntBound
from loopwright.arith.common_subexpr import detect_common_subexpr
from loopwright.arith.deduce import deduce_bound, detect_clip_bound
from loopwright.arith.int_constraints import IntConstraints, IntConstraintsTransform, IntGroupBounds
from loopwright.arith.int_set import IntervalSet, IntSet, neg_inf, pos_inf
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
from loopwright.arith.linear_equations import solve_linear_equations
from loopwright.arith.linear_inequalities import solve_linear_inequalities
from loopwright.arith.loop_bounds import detect_linear_equation, interval_of, linear_coefficients
from loopwright.arith.modular import ModularSet
from loopwright.arith.regions import (
    estimate_region_lower_bound,
    estimate_region_strict_bound,
    estimate_region_upper_bound,
    hull_while_running,
    reduced_ranges,
)
from loopwright.arith.sizes import simplified_size
from loopwright.arith.stored_values import LoadsReplaced, as_stored
from loopwright.arith.subspace import subspace_divide

RewriteSimplifierExtension = Extension  # the name that older scripts know
IterMapExpr = IterSplitExpr | IterSumExpr
