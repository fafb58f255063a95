"""Nests: the plain loops and axes that steps write around blocks of their own making.

    for ax0, ax1 in T.grid(16, 32):
        with T.block("A_local"):
            v0, v1 = T.axis.remap("SS", [ax0, ax1])
            …

Loops are called ax0, ax1, … and axes v0, v1, …, whatever step wrote them.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir import Expr, For, ForKind, IterType, IterVar, Range, Stmt, Var, const


def nest(loops: Sequence[For], body: Stmt) -> Stmt:
    """`body` inside copies of `loops`, the first outermost."""
    for loop in reversed(loops):
        body = loop.with_(body=body)
    return body


def nest_over(counters: Sequence[Var], extents: Sequence[Expr], body: Stmt) -> Stmt:
    """`body` inside new loops that count from 0, the first outermost."""
    for var, extent in zip(reversed(counters), reversed(extents), strict=True):
        body = For(var, const(0, var.dtype), extent, ForKind.SERIAL, body)
    return body


def counters_over(sizes: Sequence[Expr]) -> list[Var]:
    """Variables for loops over something of these sizes: `ax0`, `ax1`, …"""
    return [Var(f"ax{position}", size.dtype) for position, size in enumerate(sizes)]


def axes_over(sizes: Sequence[Expr]) -> list[Var]:
    """Variables for the axes of a block over something of these sizes: `v0`, `v1`, …"""
    return [Var(f"v{position}", size.dtype) for position, size in enumerate(sizes)]


def axis_from_zero(var: Var, extent: Expr, kind: IterType = IterType.DataPar) -> IterVar:
    """An axis of a block that takes the values from 0 to `extent - 1`."""
    return IterVar(Range.from_min_extent(const(0, var.dtype), extent), var, kind)
