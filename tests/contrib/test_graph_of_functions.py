"""Graphs in JSON whose nodes are functions of a library."""

import json

import numpy as np
import pytest

import loopwright as lw
from loopwright.contrib import graph_executor
from loopwright.model.errors import BadModelInput
from loopwright.runtime import Module


def add(a, b, out):
    np.asarray(out)[...] = np.asarray(a) + np.asarray(b)


def graph(shape=(2, 3), function="my_add", flat="0"):
    """x + y, then the sum plus x; a reshape of that."""
    call = {"func_name": function, "num_inputs": "2", "num_outputs": "1", "flatten_data": flat}
    nodes = [
        {"op": "null", "name": "x", "inputs": []},
        {"op": "null", "name": "y", "inputs": []},
        {"op": "tvm_op", "name": "sum", "attrs": call, "inputs": [[0, 0, 0], [1, 0, 0]]},
        {"op": "tvm_op", "name": "again", "attrs": call, "inputs": [[2, 0, 0], [0, 0, 0]]},
        {"op": "tvm_op", "name": "row", "attrs": {**call, "func_name": "__nop", "num_inputs": "1"}, "inputs": [[3, 0]]},
    ]
    shapes = [list(shape)] * 4 + [[int(np.prod(shape))]]
    attrs = {"shape": ["list_shape", shapes], "dltype": ["list_str", ["float32"] * 5]}
    heads = [[4, 0, 0], [2, 0, 0]]
    return json.dumps(
        {"nodes": nodes, "arg_nodes": [0, 1], "heads": heads, "node_row_ptr": [0, 1, 2, 3, 4, 5], "attrs": attrs}
    )


@pytest.mark.parametrize("flat", ["0", "1"])
def test_nodes_run_in_order(flat):
    seen = []
    library = Module({"my_add": lambda *args: [seen.append(args[0].shape), add(*args)][1]}, "other")
    model = graph_executor.create(graph(flat=flat), library, lw.cpu())
    x = np.arange(6, dtype="float32").reshape(2, 3)
    model.run(x=x, y=x + 1)
    np.testing.assert_array_equal(model.get_output(0).numpy(), (3 * x + 1).ravel())
    np.testing.assert_array_equal(model.get_output(1).numpy(), 2 * x + 1)
    assert model.get_num_inputs() == 2 and set(seen) == {(6,) if flat == "1" else (2, 3)}
    assert model.module.time_evaluator("run", lw.cpu(), number=1)().mean > 0


def test_what_cannot_run_is_refused():
    library = Module({"my_add": add, "other": add})
    with pytest.raises(AttributeError, match="no function 'nothing'"):
        graph_executor.create(graph(function="nothing"), library, lw.cpu())
    with pytest.raises(BadModelInput, match="the graph cannot be read: KeyError 'nodes'"):
        graph_executor.create("{}", library, lw.cpu())
    model = graph_executor.create(graph(), library, lw.cpu())
    with pytest.raises(BadModelInput, match=r"input 'x' has shape \(3,\), expected \(2, 3\)"):
        model.set_input("x", np.zeros(3, "float32"))
    with pytest.raises(BadModelInput, match="input 'x' is not set"):
        model.run()
