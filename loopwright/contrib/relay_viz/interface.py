"""What a parser, a graph and a plotter of relay programs are; scripts derive their own from these."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from loopwright import relay
from loopwright.relay.expr import Expr
from loopwright.relay.op.registry import Op

UNKNOWN_TYPE: Final = "unknown"


@dataclass(frozen=True)
class VizNode:
    """One expression: an identity, a word for its kind, and what else there is to say."""

    identity: str
    type_name: str
    detail: str


@dataclass(frozen=True)
class VizEdge:
    """From an expression to one that uses it, by their identities."""

    start: str
    end: str


class VizParser(abc.ABC):
    """Turns expressions into nodes and edges."""

    @abc.abstractmethod
    def get_node_edges(
        self, node: Expr, relay_param: Mapping[str, Any], node_to_id: Mapping[Expr, str]
    ) -> tuple[VizNode | None, list[VizEdge]]:
        """The node of an expression, and the edges that end at it; None for one that is not shown."""


class VizGraph(abc.ABC):
    """The nodes and edges of one function."""

    @abc.abstractmethod
    def node(self, viz_node: VizNode) -> None:
        """Add a node."""

    @abc.abstractmethod
    def edge(self, viz_edge: VizEdge) -> None:
        """Add an edge."""


class Plotter(abc.ABC):
    """Makes graphs, and shows them."""

    @abc.abstractmethod
    def create_graph(self, name: str) -> VizGraph:
        """An empty graph for the function `name`."""

    @abc.abstractmethod
    def render(self, filename: str | None) -> None:
        """Show all graphs, or write them to a file."""


class DefaultVizParser(VizParser):
    """Every kind of expression by its own word, with its attributes or its type."""

    def get_node_edges(
        self, node: Expr, relay_param: Mapping[str, Any], node_to_id: Mapping[Expr, str]
    ) -> tuple[VizNode | None, list[VizEdge]]:
        own = node_to_id.get(node, "")
        inputs = [node_to_id[child] for child in _inputs(node) if child in node_to_id]
        title, detail = _words(node, relay_param)
        if isinstance(node, relay.Call) and isinstance(node.op, relay.Function) and node.op in node_to_id:
            inputs.append(node_to_id[node.op])
        if title is None:
            return None, []
        return VizNode(own, title, detail), [VizEdge(start, own) for start in inputs]


def _inputs(node: Expr) -> list[Expr]:
    if isinstance(node, relay.Call):
        return list(node.args)
    if isinstance(node, relay.Function):
        return [node.body]
    if isinstance(node, relay.Tuple):
        return list(node.fields)
    if isinstance(node, relay.TupleGetItem):
        return [node.tuple_value]
    if isinstance(node, relay.Let):
        return [node.value, node.body]
    if isinstance(node, relay.If):
        return [node.cond, node.true_branch, node.false_branch]
    return []


def _words(node: Expr, parameters: Mapping[str, Any]) -> tuple[str | None, str]:
    """What an expression is called, and what else there is to say; no word for what is not shown."""
    if isinstance(node, relay.Var):
        known = node.name_hint in parameters
        kind = "Param" if known else "Input"
        typed = node.type_annotation
        shown = "" if typed is None else f"\nshape: {getattr(typed, 'shape', '')}\ndtype: {getattr(typed, 'dtype', '')}"
        return f"Var({kind})", f"name_hint: {node.name_hint}{shown}"
    if isinstance(node, relay.Function):
        named = node.attrs.get("Composite", "") if hasattr(node.attrs, "get") else ""
        return (f"Function {named}".rstrip(), "")
    if isinstance(node, relay.GlobalVar):
        return "GlobalVar", node.name_hint
    if isinstance(node, relay.Call):
        callee = node.op
        name = getattr(callee, "name", None) or getattr(callee, "name_hint", None) or "Function"
        attrs = [f"{key}: {value}" for key, value in node.attrs.items()] if hasattr(node.attrs, "items") else []
        return f"Call {name}", "\n".join(attrs)
    if isinstance(node, relay.Constant):
        data = node.data
        return "Const", f"shape: {tuple(data.shape)}, dtype: {data.dtype}" if data.shape else str(data.numpy())
    if isinstance(node, relay.TupleGetItem):
        return "TupleGetItem", f"index: {node.index}"
    return (None, "") if isinstance(node, Op) else (type(node).__name__, "")
