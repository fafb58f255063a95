"""witness_figure: why a step was refused, drawn."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from loopwright import te
from loopwright.schedule import Schedule, ScheduleError
from loopwright.schedule.diagnose.witness import witness_drawing, witness_figure
from loopwright.schedule.errors import WouldChangeValues
from loopwright.script import from_source
from loopwright.script import tir as T
from tests.schedule.page.ladder import reversed_copy
from tests.schedule.steps import matmul


def refusal(sch, step, *arguments):
    with pytest.raises(ScheduleError) as caught:
        getattr(sch, step)(*arguments)
    return caught.value


def points(figure):
    """For each panel: its role, its caption, the number of its squares and which one is the point."""
    found = []
    for panel in ET.fromstring(figure).iter("figure"):
        squares = list(panel.iter("rect"))
        chosen = [k for k, square in enumerate(squares) if square.get("class") == "point"]
        found.append((panel.get("class"), panel.find("figcaption").text, len(squares), chosen))
    return found


def test_a_read_before_its_write():
    sch = Schedule(reversed_copy())
    error = refusal(sch, "merge", sch.get_loops("B")[0], sch.get_loops("C")[0])
    assert points(witness_figure(error, sch.views())) == [
        ("panel first", "iteration (v_i=0) of C", 8, [0]),
        ("panel cell", "B[7]", 8, [7]),
        ("panel second", "iteration (v_i=7) of B", 8, [7]),
    ]
    drawing = witness_drawing(error, sch.views())
    assert (drawing.deed, drawing.other_deed) == ("reads", "writes, too late")


def test_a_value_that_is_overwritten_too_early():
    @T.prim_func
    def smooth(A: T.Buffer((8, 8))):
        for i, j in T.grid(7, 7):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi + 1, vj] = A[vi, vj + 1]

    sch = Schedule(smooth)
    error = refusal(sch, "reorder", *reversed(sch.get_loops("A")))
    drawing = witness_drawing(error, sch.views())
    found = points(witness_figure(error, sch.views()))
    assert [panel for panel, *_ in found] == ["panel first", "panel cell", "panel second"]
    assert found[1][2] == 64 and len(found[1][3]) == 1
    assert {drawing.deed, drawing.other_deed} == {"reads", "writes, too late"}


def test_a_race():
    sch = Schedule(matmul())
    error = refusal(sch, "parallel", sch.get_loops("C")[2])
    drawing = witness_drawing(error, sch.views())
    assert drawing.first.title == "C at k=0" and drawing.second.title == "C at k=1"
    assert drawing.first.names[-1] == "k" and drawing.first.extents[-1] == 4
    assert drawing.cell.title == "C[0, 0]"
    assert {drawing.deed, drawing.other_deed.split(",")[0]} <= {"reads", "writes"}


def test_large_spaces_show_what_is_around_the_point():
    sch = Schedule(reversed_copy(1000))
    error = refusal(sch, "merge", sch.get_loops("B")[0], sch.get_loops("C")[0])
    _, cell, writer = points(witness_figure(error, sch.views()))
    assert cell == ("panel cell", "B[999]", 12, [11])
    assert writer == ("panel second", "iteration (v_i=999) of B", 12, [11])


def test_symbolic_sizes():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((n,), lambda i: B[n - 1 - i] * 2.0, name="C")
    sch = Schedule(te.create_prim_func([A, C]))
    error = refusal(sch, "merge", sch.get_loops("B")[0], sch.get_loops("C")[0])
    _, cell, _ = points(witness_figure(error, sch.views()))
    assert cell[:2] == ("panel cell", "B[1]") and cell[2] == 2


def test_no_witness_no_drawing():
    sch = Schedule(matmul())
    error = refusal(sch, "reorder", *[sch.get_loops("C")[0]] * 2)
    assert witness_figure(error, sch.views()) is None


def test_a_parameter_that_only_the_writer_fixes():
    func = from_source("""
        @T.prim_func
        def main(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32"), n: T.int32):
            B = T.alloc_buffer((8,), "int32")
            for i in range(8):
                with T.block("B"):
                    vi = T.axis.spatial(8, i)
                    B[vi] = A[vi] + 1
            for i in range(8):
                x: T.int32 = i + n
                for k in range(8):
                    with T.block("C"):
                        vi, vk = T.axis.remap("SR", [i, k])
                        with T.init():
                            C[vi] = x
                        C[vi] = C[vi] + B[vk]
        """)
    sch = Schedule(func)
    with pytest.raises(WouldChangeValues, match=r"of C reads B\[0\] before iteration \(vi=0\) of B writes it"):
        sch.compute_at("B", sch.get_loops("C")[0], index=1)
