"""te.gradient: the derivative of a tensor by others, as tensor expressions again.

    dA, dB = te.gradient(C, [A, B], head=dC)

Start with `gradient.py`, which walks the graph from the output back. `derivatives.py` differentiates one expression,
`solve_indices.py` finds the elements that read a given one, `reductions.py` handles reductions that are no sums.
"""

from loopwright.te.autodiff.derivatives import NotDifferentiable
from loopwright.te.autodiff.gradient import WrongGradientArgument, WrongHead, gradient

__all__ = ["NotDifferentiable", "WrongGradientArgument", "WrongHead", "gradient"]
