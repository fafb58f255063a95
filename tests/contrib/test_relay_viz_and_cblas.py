"""contrib.relay_viz draws modules of relay; contrib.cblas computes products by numpy's BLAS."""

from __future__ import annotations

import numpy as np

import loopwright as lw
from loopwright import ir, relay, te
from loopwright.contrib import cblas
from loopwright.contrib.relay_viz import DotPlotter, RelayVisualizer, TermPlotter, TermVizParser, VizNode


def module() -> ir.IRModule:
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
    y = relay.nn.dense(x, w)
    return ir.IRModule.from_expr(relay.Function([x, w], relay.add(y, y)))


class Plainer(TermVizParser):
    def get_node_edges(self, node, relay_param, node_to_id):
        if isinstance(node, relay.Var):
            return VizNode(node_to_id[node], "input", node.name_hint), []
        return super().get_node_edges(node, relay_param, node_to_id)


def test_a_tree_names_what_it_has_shown(capsys):
    RelayVisualizer(module(), {"w": None}, TermPlotter(), Plainer()).render()
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "@main" and shown[2].strip() == "`--1 Call add"
    assert shown[3].strip().startswith("|--2 Call nn.dense") and shown[4].endswith("input x")
    assert shown[-1].strip() == "`--(same as 2) Call nn.dense"


def test_a_drawing_is_text_for_graphviz(tmp_path):
    colours = DotPlotter(get_node_attr=lambda node: {"color": "red"} if "add" in node.type_name else {})
    RelayVisualizer(module(), plotter=colours).render(str(tmp_path / "graph"))
    text = (tmp_path / "graph.dot").read_text()
    assert text.count("->") == 5 and 'label="Call add", color="red"' in text


def test_blas_is_called_by_name():
    A, B = te.placeholder((3, 4), name="A"), te.placeholder((5, 4), name="B")
    C = cblas.matmul(A, B, transb=True)
    D = te.compute(C.shape, lambda i, j: C[i, j] + 1, name="D")
    rng = np.random.default_rng(0)
    a, b, d = rng.random((3, 4), "float32"), rng.random((5, 4), "float32"), np.zeros((3, 5), "float32")
    lw.build(te.create_schedule(D.op), [A, B, D])(a, b, d)
    assert np.allclose(d, a @ b.T + 1, rtol=1e-6)
