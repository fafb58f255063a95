"""The reference semantics: programs at every stage of lowering, run in plain Python.

Start with `evaluate.py` (on numbers) and `terms.py` (on uninterpreted terms, to compare programs); `recording.py`
writes down what happens. A program is compiled to closures by one class in layers, each of which adds to the one
before: `expressions.py`, `calls.py`, `statements.py`, `lockstep.py` (vector lanes), `thread_memory.py`,
`thread_reductions.py`, `thread_groups.py` and `threads.py`. `arithmetic.py` and `functions.py` say what each operation
means (docs/semantics.md in words), `folds.py` and `commuting_terms.py` what a reduction is on terms, `memory.py` and
`places.py` what memory is, `arguments.py` what a caller gives.
"""

from loopwright.evaluator.evaluate import evaluate
from loopwright.evaluator.statements import Step
from loopwright.evaluator.term import Term
from loopwright.evaluator.terms import difference, evaluate_terms

__all__ = ["Step", "Term", "difference", "evaluate", "evaluate_terms"]
