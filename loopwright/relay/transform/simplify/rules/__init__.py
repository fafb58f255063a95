"""The rules of SimplifyExpr, a file for each kind; a rule takes a call and gives what it becomes.

`rule.py` says how one is written, `simplify_expr.py` (one folder up) applies them until none does.
"""
