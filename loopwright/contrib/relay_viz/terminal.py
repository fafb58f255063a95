"""Graphs of relay as trees of text, uses before what they use; what was shown already is named by its number."""

from __future__ import annotations

from loopwright.contrib.relay_viz.interface import DefaultVizParser, Plotter, VizEdge, VizGraph, VizNode

TermVizParser = DefaultVizParser


class TermGraph(VizGraph):
    """A function as a tree."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: dict[str, VizNode] = {}
        self._inputs: dict[str, list[str]] = {}  # identity → those whose results it uses
        self._used: set[str] = set()

    def node(self, viz_node: VizNode) -> None:
        self._nodes[viz_node.identity] = viz_node

    def edge(self, viz_edge: VizEdge) -> None:
        self._inputs.setdefault(viz_edge.end, []).append(viz_edge.start)
        self._used.add(viz_edge.start)

    def render(self) -> str:
        """The text of the tree."""
        lines = [f"@{self._name}"]
        seen: dict[str, int] = {}
        roots = [identity for identity in self._nodes if identity not in self._used]
        waiting = [(root, "", k == len(roots) - 1) for k, root in enumerate(roots)][::-1]
        while waiting:  # a graph may be deeper than Python recurses
            identity, indent, is_last = waiting.pop()
            node = self._nodes.get(identity)
            if node is None:
                continue
            branch = f"{indent}{'`' if is_last else '|'}--"
            if identity in seen:
                lines.append(f"{branch}(same as {seen[identity]}) {node.type_name}")
                continue
            seen[identity] = len(seen)
            detail = f" {', '.join(node.detail.splitlines())}" if node.detail else ""
            lines.append(f"{branch}{seen[identity]} {node.type_name}{detail}")
            inputs = self._inputs.get(identity, [])
            below = f"{indent}{' ' if is_last else '|'}  "
            waiting += [(one, below, k == len(inputs) - 1) for k, one in enumerate(inputs)][::-1]
        return "\n".join(lines)


class TermPlotter(Plotter):
    """Prints the trees, or writes them to a file."""

    def __init__(self) -> None:
        self._name_to_graph: dict[str, TermGraph] = {}

    def create_graph(self, name: str) -> TermGraph:
        self._name_to_graph[name] = TermGraph(name)
        return self._name_to_graph[name]

    def render(self, filename: str | None = None) -> None:
        text = "\n".join([graph.render() for graph in self._name_to_graph.values()])
        if filename is None:
            print(text)
        else:
            with open(filename, "w", encoding="utf-8") as file:
                file.write(f"{text}\n")
