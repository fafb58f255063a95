"""`contrib.relay_viz`: graphs of relay as trees in the terminal, or as text for Graphviz.

`interface.py` has what a parser, a graph and a plotter are; `terminal.py` and `dot.py` are two of each;
`visualizer.py` walks a module and hands its expressions to them.
"""

from loopwright.contrib.relay_viz.dot import DotPlotter, DotVizParser
from loopwright.contrib.relay_viz.interface import Plotter, VizEdge, VizGraph, VizNode, VizParser
from loopwright.contrib.relay_viz.terminal import TermGraph, TermPlotter, TermVizParser
from loopwright.contrib.relay_viz.visualizer import RelayVisualizer

__all__ = [
    "DotPlotter",
    "DotVizParser",
    "Plotter",
    "RelayVisualizer",
    "TermGraph",
    "TermPlotter",
    "TermVizParser",
    "VizEdge",
    "VizGraph",
    "VizNode",
    "VizParser",
]
