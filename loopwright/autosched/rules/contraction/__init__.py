"""contraction: products of matrices, batches and transposed operands among them, and the element-wise work after them.

Open `product.py` (what is a product), then `tiles.py` (the sizes, by a cost model), `steps.py` (the schedule) and
`rule.py`; `prologue.py` is about what comes before a product, `versions.py` about heights known when it runs, and
`explain.py` says what was chosen.
"""

from loopwright.autosched.rules.contraction.rule import Contraction

__all__ = ["Contraction"]
