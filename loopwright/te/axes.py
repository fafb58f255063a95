"""Axes: the iteration variables of computes, of reductions and of threads."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir import Expr, IntImm, IterType, IterVar, Range, Var, as_expr, match_types
from loopwright.runtime.errors import LoopwrightError


class DataVar(Var):
    """The variable of a data axis: defined in the body of its own compute only."""

    __slots__ = ()


class ReduceVar(Var):
    """The variable of a reduce axis: defined inside the reductions over that axis only."""

    __slots__ = ()


class BadDomain(LoopwrightError, TypeError):
    """The domain of an axis is not a pair of integers or a Range.

    `te.reduce_axis((begin, end), name="k")` runs from `begin` to `end - 1`.

    For example:

        from loopwright import te

        te.reduce_axis(8, name="k")  # (0, 8) is a domain
    """

    code = "LW0413"

    def __init__(self, asked: str, problem: str, hint: str = "write (0, n): from 0 to n - 1") -> None:
        super().__init__(f"{asked}: {problem}", hint=hint)


class NoThreadTag(LoopwrightError, ValueError):
    """A thread axis must say which threads it stands for.

    For example:

        from loopwright import te

        te.thread_axis((0, 32))
    """

    code = "LW0414"

    def __init__(self) -> None:
        super().__init__(
            "te.thread_axis: no thread tag is given",
            hint='name the threads, as in te.thread_axis((0, 32), "threadIdx.x") or te.thread_axis("blockIdx.y")',
        )


def data_axis(name: str, extent: Expr) -> IterVar:
    """An axis of a compute: from 0 to `extent` - 1, in the type of `extent`."""
    return IterVar(Range(extent), DataVar(name, extent.dtype), IterType.DataPar)


def reduce_axis(dom: object, name: str = "rv", thread_tag: str = "", span: object = None) -> IterVar:
    """An axis to reduce over: `dom` is `(begin, end)`, end excluded, or a Range.

    The axis may be used in as many computes as you like: each gets its own loop over it.
    """
    domain = _domain(dom, f"te.reduce_axis {name}")
    return IterVar(domain, ReduceVar(name, domain.extent.dtype), IterType.CommReduce, thread_tag, span)


def thread_axis(dom: object = None, tag: str = "", name: str = "", span: object = None) -> IterVar:
    """An axis that stands for threads; the first argument may be the tag. The name is the tag unless given."""
    if isinstance(dom, str):
        tag, dom = dom, None
    if not tag:
        raise NoThreadTag
    domain = None if dom is None else _domain(dom, f"te.thread_axis {tag}")
    return IterVar(domain, name or tag, IterType.ThreadIndex, tag, span)


def _domain(dom: object, asked: str) -> Range:
    if isinstance(dom, Range):
        return dom
    if isinstance(dom, str) or not isinstance(dom, Sequence):
        raise BadDomain(asked, f"the domain is {type(dom).__name__} {dom!r}")
    if len(dom) != 2:
        raise BadDomain(asked, f"the domain {tuple(dom)!r} has {len(dom)} entries, not a begin and an end")
    for bound in dom:
        if isinstance(bound, (bool, float, str)) or bound is None:
            raise BadDomain(asked, f"the bound {bound!r} is not an integer", "use integers; // divides them")
    begin, end = match_types(as_expr(dom[0]), as_expr(dom[1]))
    if not begin.dtype.is_int or begin.dtype.lanes != 1:
        raise BadDomain(asked, f"the bounds have type {begin.dtype}", "use integers; // divides them")
    extent = end if isinstance(begin, IntImm) and begin.value == 0 else end - begin
    if isinstance(extent, IntImm) and extent.value < 0:
        raise BadDomain(asked, f"the domain ({begin!r}, {end!r}) ends before it begins", "write (begin, end)")
    return Range.from_min_extent(begin, extent)
