"""SpecializedCondition: facts under which an implementation is chosen, such as "the batch is 1"."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar, Token

from loopwright.ir import Expr, as_expr
from loopwright.runtime.errors import LoopwrightError


class BadCondition(LoopwrightError, TypeError, ValueError):
    """A specialized condition is not made of truth values.

    For example:

        from loopwright import te
        te.SpecializedCondition(te.var("n") + 1)
    """

    code = "LW0440"

    def __init__(self, position: int, given: object) -> None:
        super().__init__(
            f"SpecializedCondition: condition {position} is {given!r}, which is no truth value",
            hint="compare something, as in te.var('n') > 128",
        )


class SpecializedCondition:
    """All of `conditions` hold, for what is chosen inside `with SpecializedCondition(…):`."""

    def __init__(self, conditions: Expr | bool | Sequence[Expr | bool]) -> None:
        listed = list(conditions) if isinstance(conditions, (list, tuple)) else [conditions]
        clauses: list[Expr] = []
        for position, condition in enumerate(listed):
            if isinstance(condition, (int, float, str)) and not isinstance(condition, bool):
                raise BadCondition(position, condition)
            clause = as_expr(condition)
            if not clause.dtype.is_bool:
                raise BadCondition(position, condition)
            clauses.append(clause)
        self.clauses = tuple(clauses)
        self._tokens: list[Token[tuple[SpecializedCondition, ...]]] = []

    @staticmethod
    def current() -> SpecializedCondition | None:
        """The innermost condition, or None outside of all."""
        stack = _stack.get()
        return stack[-1] if stack else None

    def __enter__(self) -> SpecializedCondition:
        self._tokens.append(_stack.set((*_stack.get(), self)))
        return self

    def __exit__(self, *_: object) -> None:
        _stack.reset(self._tokens.pop())

    def __repr__(self) -> str:
        return f"SpecializedCondition({', '.join([repr(clause) for clause in self.clauses])})"


_stack: ContextVar[tuple[SpecializedCondition, ...]] = ContextVar("loopwright_te_conditions", default=())
