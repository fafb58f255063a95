"""isl text: how affine forms and conditions are written for isl.

    {i: 4, (j mod 8): 1} - 1                   (-1 + 4*i + ((j) mod 8))
    all of [i ≥ 0, n - i - 1 ≥ 0]              (i >= 0 and (-1 + n + -1*i) >= 0)

Names of variables come from the caller: most from a table, others from a function that may give new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from loopwright.arith.affine import AllOf, Condition, Eq, Form, Ge, NoForm, Part
from loopwright.ir import Var


def form_text(form: Form, names: Mapping[Var, str], other: Callable[[Var], str]) -> str:
    """The form as isl text; `other` names what is not in `names`. Raises NoForm for a loose form, which has no text."""
    parts = [str(form.const)] if form.const or not form.terms else []
    for term, k in form.terms.items():
        text = _part_text(term, names, other) if isinstance(term, Part) else names.get(term) or other(term)
        parts.append(text if k == 1 else f"{k}*{text}")
    return parts[0] if len(parts) == 1 else f"({' + '.join(parts)})"


def _part_text(part: Part, names: Mapping[Var, str], other: Callable[[Var], str]) -> str:
    if part.symbol is not None:
        return names.get(part.symbol) or other(part.symbol)
    args = [form_text(arg, names, other) for arg in part.args]
    x, d = args[0], part.divisor
    if part.op == "floor":
        return f"floor(({x})/{d})"
    if part.op == "mod":
        return f"(({x}) mod {d})"
    if part.op == "trunc":
        return f"max(floor(({x})/{d}), min(ceil(({x})/{d}), 0))"
    if part.op not in ("min", "max"):
        raise NoForm
    return f"{part.op}({', '.join(args)})"


def constraint_text(condition: Condition, names: Mapping[Var, str], other: Callable[[Var], str]) -> str:
    """The condition as isl text. Raises NoForm as `form_text` does."""
    if isinstance(condition, Ge):
        return f"{form_text(condition.form, names, other)} >= 0"
    if isinstance(condition, Eq):
        return f"{form_text(condition.form, names, other)} = 0"
    if not condition.items:
        return "0 = 0" if isinstance(condition, AllOf) else "0 = 1"
    joint = " and " if isinstance(condition, AllOf) else " or "
    return f"({joint.join([constraint_text(item, names, other) for item in condition.items])})"
