"""contraction: products of matrices, batches and transposed operands among them, and the element-wise work after them.

Open `product.py` (what is a product), then `tiles.py` (the sizes, by a cost model), `steps.py` (the schedule) and
`rule.py`. Where packing does not pay, `streamed.py` reads a few rows of B at a time, and `dots.py` with `dot_steps.py`
does dot products. `turned_panels.py` packs a B that lies the other way, `turned_result.py` computes the transpose of a
result of few columns. `folding.py` makes the rows of a batch one axis, `prologue.py` is about what comes before a
product, `versions.py` and `few_rows.py` are about heights known when it runs, and `explain.py` says what was chosen.
"""

from loopwright.autosched.rules.contraction.rule import Contraction

__all__ = ["Contraction"]
