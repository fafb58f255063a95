"""Facts about programs that schedules, lowering and the evaluator share.

Start with `reduction_init.py`: where the start value of a reduction is written.
"""

from loopwright.analysis.reduction_init import InitUsesReduction, write_inits

__all__ = ["InitUsesReduction", "write_inits"]
