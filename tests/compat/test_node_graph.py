"""Index maps as graphs of nodes in traces: read as others write them, written so that others can read them."""

from __future__ import annotations

import json

import pytest

from loopwright import te, tir
from loopwright.compat.node_graph import is_graph, read_map, write_map
from loopwright.ir import assert_structural_equal
from loopwright.schedule import Schedule, Trace
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.rewrite.index_map import LayoutMap
from loopwright.schedule.trace.trace_json import UnreadableMap
from tests.schedule.steps import check_replay

NONE = {"type_key": ""}


def text_of(name: str) -> dict:
    return {"type_key": "runtime.String", "repr_str": name}


def var_at(name: int) -> dict:
    return {"type_key": "tir.Var", "attrs": {"dtype": "int32", "name": str(name), "span": "0", "type_annotation": "4"}}


def number(value: int) -> dict:
    return {"type_key": "IntImm", "attrs": {"dtype": "int32", "span": "0", "value": str(value)}}


def binary(key: str, a: int, b: int) -> dict:
    return {"type_key": f"tir.{key}", "attrs": {"a": str(a), "b": str(b), "dtype": "int32", "span": "0"}}


def index_map(initial: int, final: int) -> dict:
    attrs = {"final_indices": str(final), "initial_indices": str(initial), "inverse_index_map": "0"}
    return {"type_key": "tir.IndexMap", "attrs": attrs}


def array(*rows: int) -> dict:
    return {"type_key": "Array", "data": list(rows)}


def graph(*rows: dict) -> str:
    data = {"root": 1, "nodes": [NONE, *rows], "b64ndarrays": [], "attrs": {"tvm_version": "0.15.0"}}
    return json.dumps(data, indent=2)


def blocked() -> str:
    """lambda i, j: (i // 4, j, i % 4), as another tool lays it out."""
    return graph(
        index_map(2, 8),
        array(3, 6),
        var_at(5),
        {"type_key": "PrimType", "attrs": {"dtype": "int32"}},
        text_of("i"),
        var_at(7),
        text_of("j"),
        array(9, 6, 11),
        binary("FloorDiv", 3, 10),
        number(4),
        binary("FloorMod", 3, 12),
        number(4),
    )


TEXTS = [
    "lambda i, j: (j, i)",
    "lambda i, j: (i // 4, j, i % 4)",
    "lambda i, j: (i * 8 + j,)",
    "lambda i: (i // 16, i % 16 // 4, i % 4)",
    "lambda i, j: (min(i, j), max(i - j, 0), i + 1)",
    "lambda i: (0, i)",
]


@pytest.mark.parametrize("text", TEXTS)
def test_written_and_read(text):
    made = LayoutMap.of(text)
    written = write_map(made)
    assert is_graph(written)
    assert read_map(written).text == made.text
    nodes = json.loads(written)["nodes"]
    assert nodes[0] == NONE and nodes[1]["type_key"] == "tir.IndexMap"
    for node in nodes[1:]:
        for name, value in node.get("attrs", {}).items():
            assert isinstance(value, str)  # numbers are texts as well
            if name in ("a", "b", "name", "type_annotation", "initial_indices", "final_indices"):
                assert 0 < int(value) < len(nodes)


def test_a_map_of_another_tool():
    assert read_map(blocked()).text == "lambda i, j: (i // 4, j, i % 4)"


def test_names_that_are_used_twice():
    rows = json.loads(blocked())
    rows["nodes"][7]["repr_str"] = "i"
    assert read_map(json.dumps(rows)).text == "lambda i0, i1: (i0 // 4, i1, i0 % 4)"


def test_wide_indices():
    rows = json.loads(blocked())
    rows["nodes"].append({"type_key": "tir.Cast", "attrs": {"dtype": "int64", "span": "0", "value": "3"}})
    rows["nodes"][9]["attrs"]["a"] = str(len(rows["nodes"]) - 1)
    assert read_map(json.dumps(rows)).text == "lambda i, j: (i // 4, j, i % 4)"


def broken(change) -> str:
    rows = json.loads(blocked())
    change(rows)
    return json.dumps(rows)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"nodes"', r"the graph of nodes is broken \(JSONDecodeError"),
        ("{}", r"the graph of nodes is broken \(KeyError: 'nodes'\)"),
        (graph(array()), "the graph holds a Array, not a tir.IndexMap"),
        (broken(lambda rows: rows["nodes"][9].update(type_key="tir.Call")), "a tir.Call is no part of an index"),
        (broken(lambda rows: rows["nodes"][9]["attrs"].update(a="99")), "is broken"),
        (broken(lambda rows: rows["nodes"][9]["attrs"].update(a="0")), "a row of nothing is no part of an index"),
        (broken(lambda rows: rows["nodes"][9]["attrs"].update(a="9")), "is broken"),
        (broken(lambda rows: rows["nodes"][2].update(data=[3])), "it uses j, which is none of its indices"),
        (broken(lambda rows: rows["nodes"][2].update(data=[3, 10])), "takes is a IntImm, not a variable"),
    ],
)
def test_what_cannot_be_read(text, message):
    with pytest.raises(UnreadableMap, match=message) as caught:
        read_map(text)
    assert "write the map as text: lambda i, j: (j, i)" in str(caught.value)


# --- in traces ------------------------------------------------------------------------------------------------------


def double() -> tir.PrimFunc:
    A = te.placeholder((16, 8), name="A")
    B = te.compute((16, 8), lambda i, j: A[i, j] + 1, name="B")
    return te.create_prim_func([A, te.compute((16, 8), lambda i, j: B[i, j] * 2, name="C")])


@pytest.mark.parametrize(
    ("inputs", "attrs"),
    [
        (["b0", blocked()], [0, 1, None, False]),  # others now
        (["b0"], [0, 1, blocked(), None]),  # others earlier
        (["b0"], [["write", 0], "lambda i, j: (i // 4, j, i % 4)", None]),  # ours earlier
        (["b0", blocked()], ["B", None]),  # by name
    ],
)
def test_transform_layout(inputs, attrs):
    wanted = Schedule(double())
    wanted.transform_layout("B", ("write", 0), lambda i, j: (i // 4, j, i % 4))
    sch = Schedule(double())
    steps = [["GetBlock", [], ["B", "main"], ["b0"]], ["TransformLayout", inputs, attrs, []]]
    Trace.apply_json_to_schedule(json.dumps([steps, []]), sch)
    assert_structural_equal(sch.mod["main"], wanted.mod["main"])


def test_what_is_written():
    sch = Schedule(double())
    sch.transform_layout("B", ("write", 0), lambda i, j: (i // 4, j, i % 4))
    kind, inputs, attrs, outputs = sch.trace.as_json()[0][-1]
    assert (kind, inputs[0], attrs, outputs) == ("TransformLayout", "b0", [0, 1, None, False], [])
    assert read_map(inputs[1]).text == "lambda i, j: (i // 4, j, i % 4)"
    check_replay(sch, double())


def test_buffers_by_name_and_separators():
    sch = Schedule(double())
    sch.transform_layout("B", "B", lambda i, j: (i // 4, tir.IndexMap.AXIS_SEPARATOR, j, i % 4))
    assert sch.trace.as_json()[0][-1][2] == ["B", "lambda i, j: (i // 4, AXIS_SEPARATOR, j, i % 4)", None]
    check_replay(sch, double())
    sch = Schedule(double())
    sch.transform_layout("B", "B", lambda i, j: (j, i))
    assert sch.trace.as_json()[0][-1][2] == ["B", None]
    check_replay(sch, double())


def test_other_steps_with_maps_and_sides():
    before = double()
    sch = Schedule(before)
    sch.transform_block_layout("C", lambda i, j: (i * 8 + j,))
    sch.reindex_cache_read("B", 0, "local", lambda i, j: (j, i))
    sch.reindex("C", ("read", 0))
    sch.set_axis_separator("B", ("write", 0), [1])
    kinds = {step[0]: step for step in sch.trace.as_json()[0]}
    assert kinds["TransformBlockLayout"][2] == [] and is_graph(kinds["TransformBlockLayout"][1][1])
    assert kinds["ReindexCacheRead"][2] == [0, "local"] and is_graph(kinds["ReindexCacheRead"][1][1])
    assert kinds["ReIndex"][2] == [0, 0]
    assert kinds["SetAxisSeparator"][2] == [0, 1, [1]]
    check_replay(sch, before)


def test_a_sampled_number_in_a_map():
    rows = json.loads(blocked())
    rows["nodes"] += [text_of("v1"), var_at(13)]
    rows["nodes"][9]["attrs"]["b"] = rows["nodes"][11]["attrs"]["b"] = "14"
    steps = [
        ["GetBlock", [], ["B", "main"], ["b0"]],
        ["SampleCategorical", [], [[2, 8], [0.5, 0.5]], ["v1"]],
        ["TransformLayout", ["b0", json.dumps(rows)], [0, 1, None, False], []],
    ]
    sch = Schedule(double())
    Trace.apply_json_to_schedule(json.dumps([steps, [[1, 1]]]), sch)
    wanted = Schedule(double())
    wanted.transform_layout("B", ("write", 0), lambda i, j: (i // 8, j, i % 8))
    assert_structural_equal(sch.mod["main"], wanted.mod["main"])


def test_consumers():
    """An empty list stands for all of them, as others write it."""
    sch = Schedule(double())
    sch.cache_read("C", 0, "local")
    sch.cache_read("B", 0, "local", [])
    steps = [step for step in sch.trace.as_json()[0] if step[0] == "CacheRead"]
    assert [step[1][1] for step in steps] == [[], "None"]
    check_replay(sch, double())


def test_a_map_that_cannot_be_read_in_a_trace():
    call = broken(lambda rows: rows["nodes"][9].update(type_key="tir.Call"))
    steps = [["GetBlock", [], ["B", "main"], ["b0"]], ["TransformLayout", ["b0", call], [0, 1, None, False], []]]
    with pytest.raises(UnreadableMap, match=r"a tir\.Call is no part of an index"):
        Trace.apply_json_to_schedule([steps, []], Schedule(double()))
    steps = [steps[0], ["TransformLayout", ["b0", blocked()], [0, 7, None, False], []]]
    with pytest.raises(BadStepArgument, match="entry 1 does not fit transform_layout"):
        Trace.apply_json_to_schedule([steps, []], Schedule(double()))
