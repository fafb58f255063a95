"""Passes that replace operators and expressions by simpler ones, or by what the target has; a file for each pass.

`simplify_expr.py` applies the rules of `rules/`. The `fold_*` passes move constants, factors and padding into the
operator beside them.
"""
