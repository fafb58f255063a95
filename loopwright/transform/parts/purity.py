"""purity: what an expression reads and does beside giving a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from loopwright.analysis.effects import is_pure_call
from loopwright.codegen.expression_facts import division_can_fail
from loopwright.ir import BinaryExpr, BufferLoad, Call, Expr, Var, Visitor, structural_equal


class _Found(Exception):
    pass


class _FindEffect(Visitor):
    """Stops at the first call that is not pure."""

    def visit_Call(self, call: Call) -> None:
        if not is_pure_call(call):
            raise _Found
        self.visit_children(call)


class _FindData(_FindEffect):
    """Stops also at the first load."""

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        raise _Found


class _FindHazard(_FindData):
    """Stops also at an integer division that may have no result."""

    def visit_BinaryExpr(self, expr: BinaryExpr) -> None:
        if division_can_fail(expr):
            raise _Found
        self.visit_children(expr)


class _FindNewHazard(_FindHazard):
    """Stops at a hazard that is not a load of the given ones, which happen in any case, nor one that is safe."""

    def __init__(self, sure: Sequence[BufferLoad], is_safe: Callable[[BufferLoad], bool]) -> None:
        self.sure, self.is_safe = sure, is_safe

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        if any(structural_equal(load, known) for known in self.sure):
            return
        if not self.is_safe(load):
            raise _Found
        self.visit_children(load)


class _FindLoad(Visitor):
    def __init__(self, data: Var) -> None:
        self.data = data

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        if load.buffer.data is self.data:
            raise _Found
        self.visit_children(load)


_effect: Final = _FindEffect()
_data: Final = _FindData()
_hazard: Final = _FindHazard()


def _finds(finder: Visitor, expr: Expr) -> bool:
    try:
        finder.visit(expr)
    except _Found:
        return True
    return False


def is_pure(expr: Expr) -> bool:
    """Whether leaving it out changes nothing."""
    return not _finds(_effect, expr)


def has_data(expr: Expr) -> bool:
    """Whether it reads memory or calls something with an effect: then its value is data, not index arithmetic."""
    return _finds(_data, expr)


def can_fail(expr: Expr) -> bool:
    """Whether evaluating it where the program would not could do harm: loads, integer division, impure calls."""
    return _finds(_hazard, expr)


def can_fail_beyond(expr: Expr, sure: Sequence[BufferLoad], is_safe: Callable[[BufferLoad], bool]) -> bool:
    """Whether evaluating it could do harm although the loads in `sure` are evaluated anyway, and some are safe."""
    return _finds(_FindNewHazard(sure, is_safe), expr)


def loads_from(expr: Expr, data: Var) -> bool:
    """Whether it reads the memory at `data`."""
    return _finds(_FindLoad(data), expr)
