"""Stored values in the place of loads: what was loaded is data, and wraps; index arithmetic is exact.

    B[i] = n;  C[i] = B[i] * 2 // 2     →     C[i] = T.reinterpret("int32", T.reinterpret("uint32", n)) * 2 // 2

Where no number leaves its type there is no difference, and the value stays index arithmetic, which steps can read.
"""

from __future__ import annotations

from typing import Any

from loopwright.arith.analyzer import Analyzer
from loopwright.arith.data import holds_data
from loopwright.arith.index_arithmetic import EXACT_NODES, is_index_type
from loopwright.ir import BinaryExpr, Call, Expr, Let, LetStmt, Node, Op, Rewriter
from loopwright.runtime.dtype import DataType


def as_stored(value: Expr, facts: Analyzer) -> Expr:
    """What a load gives after `value` was stored: of an index that may leave its type, the low bits."""
    if not is_index_type(value.dtype) or holds_data(value) or _fits(value, facts):
        return value
    return as_data(value)


def as_data(value: Expr) -> Expr:
    """The low bits of index arithmetic, as a number that wraps from here on: reinterpreted bits are data."""
    reinterpret, dtype = Op.get("tir.reinterpret"), value.dtype
    bits = Call(DataType(f"uint{dtype.element.bits}").with_lanes(dtype.lanes), reinterpret, (value,))
    return Call(dtype, reinterpret, (bits,))


class LoadsReplaced(Rewriter):
    """A rewriter that puts stored values in the place of loads: what wrapped before does so afterwards.

    An operation on what was loaded becomes index arithmetic with an index in its place, and so exact. `facts` say what
    the variables of the new expression lie between.
    """

    facts: Analyzer

    def visit(self, node: Node) -> Any:
        result = super().visit(node)
        if result is node:
            return result
        if isinstance(node, EXACT_NODES):
            assert isinstance(result, BinaryExpr)
            if self._became_index(node, result) and not _fits(result, self.facts):
                return result.with_(a=as_data(result.a))
        elif isinstance(node, (Let, LetStmt)) and self._became_index(node.value, result.value):
            return result.with_(value=as_data(result.value))
        return result

    def _became_index(self, old: Expr, new: Expr) -> bool:
        return is_index_type(new.dtype) and holds_data(old) and not holds_data(new)


def _fits(value: Expr, facts: Analyzer) -> bool:
    low, high = facts.interval(value)
    return value.dtype.element.lowest <= low and high <= value.dtype.element.highest
