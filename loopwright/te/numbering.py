"""Numbering: expressions written alike get one number, in linear time even where parts are shared or very deep.

`structural_equal` walks every path; the body of a compute, being Python code, easily has exponentially many.
"""

from __future__ import annotations

from collections.abc import Hashable

from loopwright.ir import Node, Var, deep
from loopwright.ir.node import FieldKind


class Numbering:
    """Gives equal numbers to expressions that are written alike; variables are alike only when they are one object."""

    def __init__(self) -> None:
        self._known: dict[Node, int] = {}
        self._by_shape: dict[tuple[object, ...], int] = {}

    @deep
    def of(self, node: Node) -> int:
        """The number of `node`."""
        return self._number(node)

    def _number(self, node: Node) -> int:
        result = self._known.get(node)
        if result is not None:
            return result
        shape: list[object] = [type(node)]
        if isinstance(node, Var):
            shape.append(node)
        else:
            for field in node.node_fields:
                value = getattr(node, field.name)
                if field.kind is FieldKind.DATA or field.binds:
                    shape.append(_plain(value))
            # Children come last, each as its number, so that the key stays flat however deep the expression is.
            node.each_child(lambda child: shape.append(self._number(child)))
        number = self._by_shape.setdefault(tuple(shape), len(self._by_shape))
        self._known[node] = number
        return number


def _plain(value: object) -> Hashable:
    """Data as a dictionary key: text and numbers by value, all else by identity. 0.0 and -0.0 are different.

    By id, since it may have no hash (a dict of attributes); its node, which is kept, keeps it alive.
    """
    if isinstance(value, float):
        return repr(value)
    return (type(value), value) if isinstance(value, (str, int)) else id(value)
