"""Errors of a search: what it was asked for does not exist, or cannot be done."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.runtime.errors import LoopwrightError


class UnknownName(LoopwrightError, ValueError):
    """A part of a search is asked for by a name that it does not have.

    For example:

        from loopwright.tune.model import cost_model

        cost_model("oracle")
    """

    code = "LW1500"

    def __init__(self, what: str, name: object, known: Sequence[str]) -> None:
        super().__init__(f"there is no {what} {name!r}", hint=f"choose one of {', '.join(known)}")


class NoTasks(LoopwrightError, ValueError):
    """A search is to begin, but there is nothing to tune.

    For example:

        from loopwright.tune import Measurer, Session

        Session([], Measurer("llvm"))
    """

    code = "LW1501"

    def __init__(self, what: str = "the list of tasks is empty", hint: str | None = None) -> None:
        hint = hint or "give a program or model with a kernel to schedule"
        super().__init__(f"there is nothing to tune: {what}", hint=hint)


class NothingToSpend(LoopwrightError, ValueError):
    """A search has no budget: no trials and no minutes, or none above 0.

    For example:

        from loopwright.tune import Budget

        Budget(trials=0).check()
    """

    code = "LW1502"

    def __init__(self, what: str) -> None:
        super().__init__(f"a search needs a budget: {what}", hint="give trials=64, or minutes=1, or both")


class BadTuneArgument(LoopwrightError, TypeError):
    """An argument of a search is of a type that it cannot be.

    For example:

        import loopwright as lw
        from loopwright import te

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
        lw.tune([A, B], trials=1, database=5)
    """

    code = "LW1503"

    def __init__(self, name: str, given: object, wanted: str) -> None:
        super().__init__(f"tune: {name} is {given!r:.80}, not {wanted}", hint=f"give {wanted}")


class WrongAnswer(LoopwrightError, ValueError, TypeError):
    """A strategy, model or scheduler of the user's returned what such a part cannot return.

    For example:

        from loopwright.tune.own_parts import CheckedScheduler

        class Mine:
            def next(self, standings):
                return 5

        CheckedScheduler(Mine()).next([])
    """

    code = "LW1504"

    def __init__(self, method: str, given: object, wanted: str) -> None:
        said = " ".join(repr(given).split())[:80]
        super().__init__(f"tune: {method} returned {said}, not {wanted}", hint=f"return {wanted}")
