from __future__ import annotations

import itertools
import re
from types import SimpleNamespace

from loopwright.cli import graph_drawing
from loopwright.cli.graph_drawing import Box
from loopwright.cli.graph_drawing import graph_drawing as drawn
from loopwright.model.program import Body, Branch, Launch, Program, Value, View


def value(name):
    return Value(name, (2, 3), "float32")


def kernel(name):
    return SimpleNamespace(name=name, params=(), buffer_map={})


def launch(name, *arguments):
    return Launch(kernel(name), arguments, 1, (), name)


def diamond():
    x, a, b, c, v, y = map(value, "xabcvy")
    steps = [launch("first", x, a), View(v, a), launch("left", v, b), launch("right", a, c), launch("sum", b, c, x, y)]
    return Program("net", [x], [y], {}, steps)


def test_boxes_lines_and_titles():
    svg = drawn(diamond(), lambda launch: "#123456" if launch.name == "sum" else "#abcdef")
    names = re.findall(r'class="name">([^<]*)<', svg)
    assert sorted(names) == ["first", "left", "right", "sum", "x", "y"]
    assert svg.count("<path") == 7  # x→first, first→left (by a view), first→right, left→sum, right→sum, x→sum, sum→y
    assert svg.count('fill="#123456"') == 1 and svg.count('fill="#abcdef"') == 3
    assert "float32[2, 3]" in svg


def test_boxes_of_a_row_do_not_overlap():
    x = value("x")
    outputs = [value(f"y{k}") for k in range(9)]
    steps = [launch(f"k{k}", x, y) for k, y in enumerate(outputs)]
    boxes, edges = graph_drawing._boxes(Program("wide", [x], outputs, {}, steps))
    rows, _ = graph_drawing._rows(boxes, edges)
    graph_drawing._place(rows)
    assert [len(row) for row in rows] == [1, 9, 9]
    for row in rows:
        for left, right in itertools.pairwise(row):
            assert right.x - left.x >= (left.width + right.width) / 2


def test_a_long_chain_needs_no_recursion_and_a_huge_one_is_not_drawn():
    values = [value(f"v{k}") for k in range(3000)]
    steps = [launch(f"k{k}", a, b) for k, (a, b) in enumerate(itertools.pairwise(values))]
    assert "<svg" in drawn(Program("deep", values[:1], [values[1000]], {}, steps[:1000]))
    assert "would show nothing" in drawn(Program("huge", values[:1], values[-1:], {}, steps))


def test_branches_are_one_box_and_names_are_escaped():
    x, condition, a, b, y = map(value, ("x<&", "c", "a", "b", "y"))
    then, otherwise = Body((launch("one", x, a),), (a,)), Body((launch("two", x, b),), (b,))
    svg = drawn(Program("if", [x, condition], [y], {}, [Branch(condition, then, otherwise, (y,))]))
    assert "x&lt;&amp;" in svg and ">if<" in svg and "2 kernels" in svg
    assert svg.count("<path") == 3
    assert drawn(Program("none", [], [], {}, [])) == ""


def test_a_lane_is_narrow():
    assert Box(kind="lane").width < Box().width
