"""The reference semantics: programs at every stage of lowering, run in plain Python.

Start with `evaluate.py` (on numbers) and `terms.py` (on uninterpreted terms, to compare programs). Below them,
`statements.py`, `lockstep.py` (vector lanes), `threads.py` (threads and barriers), `calls.py` and `expressions.py`
compile a program to closures; `arithmetic.py` and `functions.py` say what each operation means (docs/semantics.md in
words), `memory.py` what memory is.
"""

from loopwright.evaluator.evaluate import evaluate
from loopwright.evaluator.statements import Step
from loopwright.evaluator.term import Term
from loopwright.evaluator.terms import difference, evaluate_terms

__all__ = ["Step", "Term", "difference", "evaluate", "evaluate_terms"]
