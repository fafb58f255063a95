"""Padding: with a number, by reflection, by the nearest element, round the end."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright import relay
from loopwright.frontends.pytorch.node import Node
from loopwright.frontends.pytorch.registry import converter
from loopwright.relay.expr import Expr
from loopwright.relay.op.sizes import apply, minus
from loopwright.relay.types import Dim


def _widths(node: Node, x: Expr, pad: Sequence[Dim]) -> list[tuple[Dim, Dim]]:
    """Pads before and after each axis; torch names them from the last axis on."""
    rank = node.rank(x)
    widths: list[tuple[Dim, Dim]] = [(0, 0)] * rank
    for k in range(len(pad) // 2):
        widths[rank - 1 - k] = (pad[2 * k], pad[2 * k + 1])
    return widths


def _cut(node: Node, x: Expr, widths: Sequence[tuple[Dim, Dim]]) -> tuple[Expr, list[tuple[Dim, Dim]]]:
    """A negative pad cuts off; what is left pads."""
    for axis, (before, after) in enumerate(widths):
        low = -before if isinstance(before, int) and before < 0 else 0
        high = -after if isinstance(after, int) and after < 0 else 0
        if low or high:
            end = apply(lambda a, n: a + n, low, minus(node.shape(x)[axis], low + high))
            x = relay.strided_slice(x, begin=[low], end=[end], axes=[axis])
    kept = [tuple(0 if isinstance(one, int) and one < 0 else one for one in pair) for pair in widths]
    return x, kept  # type: ignore[return-value]


def _pads(widths: Sequence[tuple[Dim, Dim]]) -> bool:
    return any(not isinstance(one, int) or one > 0 for pair in widths for one in pair)


@converter("constant_pad_nd")
def constant_pad(node: Node, x: Expr, pad: Sequence[Dim], value: float = 0) -> Expr:
    x, widths = _cut(node, x, _widths(node, x, pad))
    if not _pads(widths):
        return x
    if node.dtype(x).is_bool:
        return relay.cast(relay.nn.pad(relay.cast(x, "uint8"), widths, pad_value=int(bool(value))), "bool")
    return relay.nn.pad(x, widths, pad_value=value)


@converter("pad")
def pad_by_mode(node: Node, x: Expr, pad: Sequence[Dim], mode: str = "constant", value: float | None = None) -> Expr:
    if mode == "constant":
        return constant_pad(node, x, pad, 0 if value is None else value)
    if mode == "circular":
        return _circular(node, x, _widths(node, x, pad))
    return _by_elements(node, x, pad, mode)


@converter("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(node: Node, x: Expr, pad: Sequence[Dim]) -> Expr:
    return _by_elements(node, x, pad, "reflect")


@converter("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(node: Node, x: Expr, pad: Sequence[Dim]) -> Expr:
    return _by_elements(node, x, pad, "replicate")


def _by_elements(node: Node, x: Expr, pad: Sequence[Dim], mode: str) -> Expr:
    x, widths = _cut(node, x, _widths(node, x, pad))
    if not _pads(widths):
        return x
    return relay.nn.pad(x, widths, pad_mode="reflect" if mode == "reflect" else "edge")


def _circular(node: Node, x: Expr, widths: Sequence[tuple[Dim, Dim]]) -> Expr:
    for axis, (before, after) in enumerate(widths):
        size = node.shape(x)[axis]
        parts = [x]
        if before:
            start = minus(size, before)
            end = apply(lambda a, n: a + n, start, before)
            parts.insert(0, relay.strided_slice(x, begin=[start], end=[end], axes=[axis]))
        if after:
            parts.append(relay.strided_slice(x, begin=[0], end=[after], axes=[axis]))
        x = parts[0] if len(parts) == 1 else relay.concatenate(parts, axis=axis)
    return x
