"""Graphs of relay as text for Graphviz, a cluster for each function."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from loopwright.contrib.relay_viz.interface import DefaultVizParser, Plotter, VizEdge, VizGraph, VizNode

DotVizParser = DefaultVizParser


class DotGraph(VizGraph):
    """A function as a cluster of nodes."""

    def __init__(self, name: str, attributes: Callable[[VizNode], Mapping[str, str]]) -> None:
        self.name, self._attributes = name, attributes
        self._lines: list[str] = []

    def node(self, viz_node: VizNode) -> None:
        label = viz_node.type_name + (f"\n{viz_node.detail}" if viz_node.detail else "")
        more = "".join([f", {key}={_quoted(str(value))}" for key, value in self._attributes(viz_node).items()])
        self._lines.append(f"    {self._of(viz_node.identity)} [label={_quoted(label)}{more}];")

    def edge(self, viz_edge: VizEdge) -> None:
        self._lines.append(f"    {self._of(viz_edge.start)} -> {self._of(viz_edge.end)};")

    def _of(self, identity: str) -> str:
        return _quoted(f"{self.name}/{identity}")

    def text(self) -> str:
        """The cluster."""
        head = f"  subgraph {_quoted('cluster_' + self.name)} {{\n    label={_quoted(self.name)};"
        return "\n".join([head, *self._lines, "  }"])


class DotPlotter(Plotter):
    """Writes the graphs to a `.dot` file, which Graphviz draws: `dot -Tpdf graph.dot -o graph.pdf`."""

    def __init__(
        self,
        graph_attr: Mapping[str, str] | None = None,
        node_attr: Mapping[str, str] | None = None,
        edge_attr: Mapping[str, str] | None = None,
        get_node_attr: Callable[[VizNode], Mapping[str, str]] | None = None,
        render_kwargs: Mapping[str, object] | None = None,
    ) -> None:
        self._attributes = {"graph": graph_attr or {}, "node": {"shape": "box", **(node_attr or {})}}
        self._attributes["edge"] = edge_attr or {}
        self._get_node_attr = get_node_attr or (lambda _: {})
        self._name_to_graph: dict[str, DotGraph] = {}

    def create_graph(self, name: str) -> DotGraph:
        self._name_to_graph[name] = DotGraph(name, self._get_node_attr)
        return self._name_to_graph[name]

    def render(self, filename: str | None = None) -> None:
        lines = ["digraph {"]
        for what, attributes in self._attributes.items():
            lines += [f"  {what} [{key}={_quoted(str(value))}];" for key, value in attributes.items()]
        lines += [graph.text() for graph in self._name_to_graph.values()]
        name = filename or "graph"
        with open(name if name.endswith(".dot") else f"{name}.dot", "w", encoding="utf-8") as file:
            file.write("\n".join([*lines, "}", ""]))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
