"""`rewrite_simplify` and `canonical_simplify`: rewriting by rows of mathematics, to the form that scripts expect.

`rewriter.py` walks an expression, `pattern.py` says how a row is written and matched; the rows are in `sums.py`,
`divisions.py`, `extrema.py` and `comparisons.py`, and `vectors.py` has ramps and broadcasts; `canonical.py` orders the
terms of sums. Our own passes use `simplify`, which works on linear forms and is faster.
"""

from loopwright.arith.rewrite.canonical import canonical
from loopwright.arith.rewrite.rewriter import ROWS, rewrite
