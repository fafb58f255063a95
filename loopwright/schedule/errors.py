"""ScheduleError: the base of every refusal. A refused step leaves the schedule exactly as it was.

The prose is computed when the message is read, not when the error is raised: a search meets thousands of refusals. So
are the suggestions: each was tried on a copy of the schedule as it was, and proved (see `suggestions.py`). What an
error holds of the proof and the engine it knows by what it asks of them, so that everything may import this file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from loopwright.runtime.errors import LoopwrightError

if TYPE_CHECKING:
    from loopwright.display.sheet import Markup, Sheet
    from loopwright.ir import Var


class SuggestionLike(Protocol):
    """A step, or a few, that the engine accepted where another was refused (`diagnose/suggestions.py`)."""

    @property
    def text(self) -> str:
        """As the user would write it."""

    @property
    def steps(self) -> Sequence[object]:
        """As instructions of the trace."""

    def apply(self, sch: Any) -> None:
        """Do it on the schedule that refused."""


class RefusalLike(Protocol):
    """A step that was refused, and the schedule as it was then (`diagnose/suggestions.py`)."""

    def suggestions(self, error: ScheduleError) -> Sequence[SuggestionLike]:
        """What was tried instead and proved."""

    def figure(self, error: ScheduleError) -> Markup | None:
        """The witness as a drawing; None when the error has none."""


class MismatchLike(Protocol):
    """The smallest case in which a step would change a value (`proof/mismatch.py`)."""

    def why(self) -> str:
        """The case in words."""

    def hint(self) -> str:
        """What may be done about it; empty where nothing is known."""


class HandleHistory(NamedTuple):
    """What became of a loop or block, and what there is now."""

    text: str
    hint: str
    parts: Sequence[str] = ()  # the loops that stand for it now


class ScheduleError(LoopwrightError):
    """A schedule step was refused: it does not apply here, or it would change a value.

    `steps` lists what was done so far, `suggestions` what was tried instead and proved. How much of the message is
    worked out is the schedule's `error_render_level`: "detail" says it all, "fast" one line, "none" nothing.

    The subclasses say why. The example raises `NotSupported`.

    For example:

        from loopwright import te, tir

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.fuse(sch.get_loops("B")[0], sch.get_loops("B")[0])
    """

    code = "LW0200"
    is_tried: ClassVar[bool] = True  # whether something else is tried; of no use where an argument makes no sense

    steps: tuple[object, ...] = ()  # what was done before, as instructions of the trace
    refusal: RefusalLike | None = None  # what was asked, of which program
    render_level: str = "detail"
    legend: Mapping[str, str] = MappingProxyType({})  # what loops are called on the surface that the user knows

    @cached_property
    def suggestions(self) -> list[SuggestionLike]:
        """What would work instead: tried when first asked for, and proved."""
        return list(self.refusal.suggestions(self)) if self.refusal is not None and self.is_tried else []

    @property
    def fields(self) -> Mapping[str, object]:
        """The facts of the message for programs; `suggestions` are those proved, as calls in the user's names."""
        return _Fields(self._fields, self)

    @fields.setter
    def fields(self, given: Mapping[str, object]) -> None:
        self._fields = given

    def __str__(self) -> str:
        if self.render_level == "none":
            return "ScheduleError: (not rendered)"
        if self.render_level == "fast":
            return f"ScheduleError: {self.problem} [{self.code}]"
        lines = [super().__str__()]
        lines += [f"  what would work: {suggestion} (proved)" for suggestion in self.suggestions]
        known = [f"{name} is {message}" for name, message in self.legend.items() if self._mentions(name)]
        if known:
            lines.append(f"  names: {', '.join(known)}")
        if self.steps:
            lines.append(f"  steps so far: {', '.join([str(step) for step in self.steps])}")
        return "\n".join(lines)

    def _sheet(self) -> Sheet:
        """The message, and the witness as a drawing."""
        from loopwright.display.error_sheet import error_sheet  # loaded when somebody looks
        from loopwright.display.sheet import Sheet

        figure = None if self.refusal is None else self.refusal.figure(self)
        return Sheet(*error_sheet(self).parts, *([] if figure is None else [figure]))

    def _mentions(self, name: str) -> bool:
        """Whether the message is about a loop of that name."""
        message = " ".join([self.problem, self.why or "", self.hint or ""])
        return re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", message) is not None


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Of the names that there are, the one that was probably meant; capitals do not count."""
    names = {other.casefold(): other for other in known}
    close = get_close_matches(name.casefold(), names, 1)
    return names[close[0]] if close else None


class _Fields(Mapping[str, object]):
    """Facts at hand, and the suggestions, which are worked out only when looked up."""

    def __init__(self, known: Mapping[str, object], error: ScheduleError) -> None:
        self.known, self.error = known, error

    def __getitem__(self, name: str) -> object:
        if name == "suggestions":
            return [str(suggestion) for suggestion in self.error.suggestions]
        return self.known[name]

    def __iter__(self) -> Iterator[str]:
        return iter([*self.known, "suggestions"])

    def __len__(self) -> int:
        return len(self.known) + 1

    def __repr__(self) -> str:
        return repr(dict(self))


def _made_of(name: str, names: Iterable[str]) -> str | None:
    """The block that steps have made of block `name`: the one that goes on with its work, such as P_update for P."""
    own = [other for other in names if other.startswith(f"{name}_")]
    return f"{name}_update" if f"{name}_update" in own else next(iter(own), None)


class NoSuchBlock(ScheduleError, ValueError):
    """A block was looked up by a name that no block, or more than one, has.

    For example:

        from loopwright import te, tir

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.get_block("C")
    """

    code = "LW0201"
    is_tried = False

    def __init__(self, name: str, names: list[str]) -> None:
        result = names.count(name)
        problem = f"no block is called {name!r}" if not result else f"{result} blocks are called {name!r}"
        near = (_made_of(name, names) or nearest(name, names)) if not result else None
        several = "rename them, or take a handle from get_child_blocks, get_producers or get_consumers"
        super().__init__(
            f"get_block: {problem}; there are {', '.join(sorted(set(names))) or 'none'}",
            hint=several if result else f"did you mean {near!r}?" if near else None,
            fields={"name": name, "names": sorted(set(names))},
        )


class HandleGone(ScheduleError, ValueError, IndexError):
    """A handle names a loop or block that an earlier step replaced.

    For example:

        from loopwright import te, tir

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        (i,) = sch.get_loops("B")
        sch.split(i, [2, 4])
        sch.parallel(i)  # the split has put two loops in its place
    """

    code = "LW0202"
    is_tried = False

    fate: Callable[[], HandleHistory] | None = None  # what became of it: the schedule that refuses knows

    def __init__(self, gone: Var | str, is_loop: bool) -> None:
        """`gone` is the loop's variable, or what the block was known by."""
        super().__init__(self._told, hint=self._hinted)
        self.gone, self.is_loop = gone, is_loop

    @cached_property
    def _fate(self) -> HandleHistory | None:
        return None if self.fate is None else self.fate()

    def _told(self) -> str:
        if self._fate is not None:
            return self._fate.text
        return f"{'loop' if self.is_loop else 'block'} {getattr(self.gone, 'name', self.gone)} is not in the program"

    def _hinted(self) -> str:
        return self._fate.hint if self._fate is not None else "take a fresh handle with get_loops or get_block"


class BadStepArgument(ScheduleError, ValueError):
    """An argument of a step has the wrong kind, number or value.

    For example:

        from loopwright import te, tir

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.split(sch.get_loops("B")[0], [None, 0])
    """

    code = "LW0203"
    is_tried = False

    def __init__(self, step: str, problem: str, at: object = None, hint: str | None = None) -> None:
        super().__init__(f"{step}: {problem}", at=at, hint=hint)


class WrongType(ScheduleError, TypeError):
    """An argument is of a type the step cannot use.

    For example:

        from loopwright import te, tir

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        tir.Schedule(B)  # a tensor is no program yet: te.create_prim_func([A, B]) makes one
    """

    code = "LW0208"
    is_tried = False

    def __init__(self, step: str, argument: str, expected: str, value: object, hint: str | None = None) -> None:
        super().__init__(f"{step}: {argument} must be {expected}, got {type(value).__name__}", hint=hint)


class WrongCall(ScheduleError, TypeError):
    """A step was called with arguments that it does not have, or without some that it needs.

    For example:

        from loopwright import te, tir

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.split(sch.get_loops("B")[0], factor=4)
    """

    code = "LW0209"
    is_tried = False

    def __init__(self, problem: str, example: str) -> None:
        super().__init__(problem, hint=f"write {example}")


class NotSupported(ScheduleError):
    """The step applies to loops or blocks of another shape than the one it was given.

    For example:

        from loopwright import te, tir

        A = te.placeholder((8, 8), name="A")
        B = te.compute((8, 8), lambda i, j: A[i, j] + 1, name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        i, j = sch.get_loops("B")
        sch.vectorize(j)
        sch.split(j, [2, 4])  # a loop gets its kind last
    """

    code = "LW0204"

    def __init__(self, step: str, problem: str, at: object = None, hint: str | None = None) -> None:
        super().__init__(f"{step}: {problem}", at=at, hint=hint)


class WouldChangeValues(ScheduleError):
    """The step would make an iteration read another value than before; the witness names the smallest such case.

    Legality is a proof about values: every read must see the write it saw before, and every output cell must be
    written last by the same iteration. The witness is a concrete counterexample, not a rule of thumb.

    For example:

        from loopwright import tir
        from loopwright.script import tir as T

        @T.prim_func
        def smooth(A: T.Buffer((8, 8))):
            for i, j in T.grid(7, 7):
                with T.block("A"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    A[vi + 1, vj] = A[vi, vj + 1]

        sch = tir.Schedule(smooth)
        sch.reorder(*reversed(sch.get_loops("A")))
    """

    code = "LW0205"

    def __init__(self, step: str, mismatch: MismatchLike, at: object = None) -> None:
        super().__init__(f"{step} would change a value", at=at, why=mismatch.why, hint=mismatch.hint)
        self.mismatch = mismatch


class NotProved(ScheduleError):
    """No proof was found that the step keeps every value, and no counterexample either: a subscript or bound is not
    affine, or the proof ran over its budget.

    For example:

        from loopwright import tir
        from loopwright.script import tir as T

        @T.prim_func
        def scatter(A: T.Buffer(8), I: T.Buffer(8, "int32"), B: T.Buffer(8)):
            for i in range(8):
                with T.block("B"):
                    vi = T.axis.spatial(8, i)
                    B[I[vi]] = A[vi]

        sch = tir.Schedule(scatter)
        sch.parallel(sch.get_loops("B")[0])  # nobody knows whether I names a cell twice
    """

    code = "LW0206"

    def __init__(self, step: str, reason: str, at: object = None, hint: str | None = None) -> None:
        super().__init__(f"{step} could not be proved to keep every value", at=at, why=reason, hint=hint)


class WouldRace(ScheduleError):
    """Iterations that run at the same time would touch one cell, and one of them writes it.

    Where the loop runs over a reduction, give each part a result of its own first: split the loop, call `rfactor` on
    the part that is to run at the same time, and make that loop of the new block parallel or vectorized.

        outer, inner = sch.split(k, [4, None])
        partial = sch.rfactor(outer, 0)
        sch.parallel(sch.get_loops(partial)[0])

    Where it runs over data, another loop of the nest may do; or the cells that the iterations share need a place for
    each of them, as `sink_alloc` gives it after `compute_at`. That comes before the loop is made parallel:

        sch.compute_at("P", j0)
        sch.sink_alloc("P", "P")
        sch.parallel(i0)

    For example:

        from loopwright import te, tir

        A = te.placeholder((8,), name="A")
        k = te.reduce_axis((0, 8), name="k")
        B = te.compute((1,), lambda i: te.sum(A[k], axis=k), name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.parallel(sch.get_loops("B")[1])
    """

    code = "LW0207"

    def __init__(
        self,
        step: str,
        why: Callable[[], str] | str,
        at: object = None,
        fields: Mapping[str, object] | None = None,
        hint: Callable[[], str] | str | None = None,
    ) -> None:
        super().__init__(
            f"{step}: iterations that run at the same time would touch the same cell",
            at=at,
            why=why,
            hint=hint,
            fields=fields,
        )
