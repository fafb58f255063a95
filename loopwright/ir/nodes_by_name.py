"""make_node: a node by the name of its class."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from loopwright.ir.attributes import as_attributes
from loopwright.ir.expr import Range
from loopwright.ir.node import NODE_TYPES, when_used
from loopwright.runtime.errors import LoopwrightError

_operator_attributes = when_used("loopwright.relay.op.op_attrs", "make")  # a later layer's


class NoSuchNode(LoopwrightError, ValueError):
    """`make_node` was asked for a node class that does not exist.

    For example:

        from loopwright import ir

        ir.make_node("tir.IntIm", dtype="int32", value=1)
    """

    code = "LW0546"

    def __init__(self, type_key: str) -> None:
        near = get_close_matches(type_key.rpartition(".")[2], NODE_TYPES, 3)
        super().__init__(f"no node is called {type_key!r}", hint=f"did you mean {', '.join(near)}?" if near else None)


def make_node(type_key: str, **kwargs: object) -> Any:
    """A node from the name of its class (`"IntImm"`, `"tir.For"`) and its fields; or attributes (`"DictAttrs"`)."""
    if type_key.startswith("relay.attrs."):
        try:
            return _operator_attributes(type_key, kwargs)
        except AttributeError:
            raise NoSuchNode(type_key) from None
    if type_key == "DictAttrs":
        return as_attributes(kwargs)
    cls = NODE_TYPES.get(type_key.rpartition(".")[2])
    if cls is None:
        raise NoSuchNode(type_key)
    if cls.__name__ == "Range" and "extent" in kwargs:
        return Range.from_min_extent(**kwargs)
    return cls(**kwargs)
