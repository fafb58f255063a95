"""RelayVisualizer: every function of a module, expression by expression, to a parser and a plotter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loopwright import relay
from loopwright.contrib.relay_viz.interface import Plotter, VizParser
from loopwright.contrib.relay_viz.terminal import TermPlotter, TermVizParser
from loopwright.ir import IRModule
from loopwright.relay.analysis import post_order_visit
from loopwright.relay.expr import Expr
from loopwright.relay.op.registry import Op


class RelayVisualizer:
    """Shows the functions of `relay_mod`; `relay_param` are arrays by the names of variables that are weights."""

    def __init__(
        self,
        relay_mod: IRModule,
        relay_param: Mapping[str, Any] | None = None,
        plotter: Plotter | None = None,
        parser: VizParser | None = None,
    ) -> None:
        self._plotter = plotter or TermPlotter()
        parser = parser or TermVizParser()
        for var, function in sorted(relay_mod.functions.items(), key=lambda item: item[0].name_hint != "main"):
            graph = self._plotter.create_graph(var.name_hint)
            order: list[Expr] = []
            if isinstance(function, relay.Function):  # a function of loops is no graph
                post_order_visit(function, order.append)
            identities = {node: str(k) for k, node in enumerate(order) if not isinstance(node, Op)}
            for node in identities:
                shown, edges = parser.get_node_edges(node, relay_param or {}, identities)
                if shown is not None:
                    graph.node(shown)
                for edge in edges:
                    graph.edge(edge)

    def render(self, filename: str | None = None) -> None:
        """Show what was read, or write it to a file."""
        self._plotter.render(filename=filename)
