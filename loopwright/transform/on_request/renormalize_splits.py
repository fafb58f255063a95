"""renormalize_splits: quotients and remainders of split and fused loops in the form that is cheapest to compute.

    B[(i * 4 + j) // 4 * 8 + (i * 4 + j) % 4] = A[i * 4 + j]    →    B[i * 8 + j] = A[i * 4 + j]      # j < 4

That is part of what `simplify` does, so the pipeline does not run it by itself. It has a name of its own so that
leaving it out (`disabled_pass`) does not leave out the rest.

Needs: nothing.  Leaves: indices in their simplest form.
"""

from __future__ import annotations

from loopwright.ir import PrimFunc
from loopwright.ir.passes import function_pass
from loopwright.transform.passes.simplify import simplified


@function_pass
def renormalize_splits(func: PrimFunc) -> PrimFunc:
    """Quotients and remainders in the form that is cheapest to compute."""
    return simplified(func)
