"""ScheduleState, analysis helpers and test helpers: structure in the words that schedule scripts know."""

from __future__ import annotations

import pytest

from loopwright import tir
from loopwright.schedule.engine.state import NotInState
from loopwright.schedule.errors import BadStepArgument
from loopwright.script import tir as T
from loopwright.tir.schedule import DepKind, ScheduleState, StmtSRef
from loopwright.tir.schedule.analysis import has_block, is_output_block, suggest_index_map
from loopwright.tir.schedule.testing import assert_structural_equal_ignore_global_symbol, verify_trace_roundtrip
from tests.schedule.steps import chain, matmul


def test_places():
    sch = tir.Schedule(chain())
    block = sch.get_block("E")
    m, l = sch.get_loops(block)
    sref = sch.get_sref(block)
    assert sref.stmt is sch.get(block) and sch.get(sref) is sch.get(block)
    assert sref.parent == sch.get_sref(l) and sref.parent.parent == sch.get_sref(m)
    assert sref.seq_index == -1 and sch.get_sref(m).seq_index == 1
    assert sref.parent.parent.parent.stmt.name_hint == "root"
    assert sref.parent.parent.parent.parent is None
    assert repr(sref) == "StmtSRef(E)" and repr(StmtSRef.inline_mark()) == "StmtSRef(inline)"
    assert StmtSRef.inline_mark() != StmtSRef.root_mark() and StmtSRef.root_mark().stmt is None


def test_dependencies():
    sch = tir.Schedule(chain())
    state = sch.state
    root = state.get_sref(sch.get(sch.get_block("root")))
    scope = state.get_block_scope(root)
    d, e, f = (sch.get_sref(sch.get_block(name)) for name in "DEF")
    assert [(item.dst, item.kind) for item in scope.get_deps_by_src(d)] == [(e, DepKind.RAW)]
    assert [(item.src, item.kind) for item in scope.get_deps_by_dst(f)] == [(e, DepKind.RAW)]
    assert scope.get_deps_by_dst(d) == []
    sch.decompose_reduction("D", sch.get_loops("D")[0])
    state = sch.state
    root = state.get_sref(sch.get(sch.get_block("root")))
    update = sch.get_sref(sch.get_block("D_update"))
    kinds = [item.kind for item in state.get_block_scope(root).get_deps_by_dst(update)]
    assert kinds == [DepKind.RAW, DepKind.WAW]


@T.prim_func
def half_covered(C: T.Buffer(8)):
    B = T.alloc_buffer((8,))
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(8, i * 2)
            B[vi] = T.float32(1)
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]


def test_flags():
    sch = tir.Schedule(chain())
    state = sch.state
    for name in "DEF":
        assert state._get_cached_flags(sch.get_sref(sch.get_block(name))) == (True, True, True)
    assert state._get_cached_flags(state.get_sref(sch.get(sch.get_block("root")))).stage_pipeline
    state = ScheduleState(half_covered)
    sch = tir.Schedule(half_covered)
    b, c, root = (state.get_sref(sch.get(sch.get_block(name))) for name in ("B", "C", "root"))
    assert not state._get_cached_flags(b).affine_binding
    assert state._get_cached_flags(c) == (True, False, True)
    assert not state._get_cached_flags(root).stage_pipeline


def test_what_is_not_there():
    sch = tir.Schedule(matmul())
    block = sch.get_block("C")
    with pytest.raises(NotInState, match="is no loop or block"):
        sch.state.get_sref(matmul().body.block)
    with pytest.raises(BadStepArgument, match="is no block"):
        sch.state.get_block_scope(sch.get_sref(sch.get_loops(block)[0]))
    sch.remove_rv(block)
    with pytest.raises(IndexError, match="C is no loop or block of this schedule"):
        sch.get(block)
    assert sch.get(sch.get_block("C")).name_hint == "C"


def test_a_schedule_without_a_trace():
    sch = tir.Schedule._create_non_traced(matmul(), seed=3, debug_mask="all")
    assert sch.trace is None
    sch.split(sch.get_loops("C")[0], [None, 2])
    assert sch.trace is None and len(sch.get_loops("C")) == 4
    assert sch.copy().trace is None
    sch.undo()
    assert len(sch.get_loops("C")) == 3


def test_several_functions():
    mod = tir.Schedule(matmul()).mod
    mod = type(mod)({"one": matmul(), "two": chain()})
    sch = tir.Schedule(mod)
    assert sch.func_working_on is None
    with pytest.raises(ValueError, match="the module has several"):
        sch.get_block("C")
    sch.work_on("two")
    assert sch.func_working_on.name == "two"
    assert sch.get(sch.get_block("E")).name_hint == "E"
    with pytest.raises(BadStepArgument, match="there is no function 'three'; there are one, two"):
        sch.work_on("three")
    assert has_block(sch, "C") and has_block(sch, "E") and not has_block(sch, "Z")


def test_output_blocks():
    sch = tir.Schedule(chain())
    assert [is_output_block(sch, name) for name in "DEF"] == [False, False, True]
    assert is_output_block(sch, sch.get_block("F"))


def test_suggested_layouts():
    sch = tir.Schedule(matmul(8, 8, 8))
    i, j, k = sch.get_loops("C")
    i_0, i_1 = sch.split(i, [None, 4])
    sch.reorder(i_0, k, i_1, j)
    loops = [sch.get(loop) for loop in (i_0, k, i_1, j)]
    buffer = sch.get(sch.get_block("C")).reads[0].buffer
    row = loops[0].loop_var * 4 + loops[2].loop_var
    found = suggest_index_map(buffer, [row, loops[1].loop_var], loops, True)
    assert [str(index) for index in found.final_indices] == ["i0 // 4", "i1", "i0 % 4"]
    assert suggest_index_map(buffer, [row + 1, loops[1].loop_var], loops, True) is None
    assert suggest_index_map(buffer, [loops[0].loop_var, loops[1].loop_var], loops, True) is None


def test_round_trips():
    before = chain()
    sch = tir.Schedule(before)
    sch.compute_at("D", sch.get_loops("E")[0])
    sch.annotate(sch.get_block("E"), "note", "x")
    again = verify_trace_roundtrip(sch, before)
    assert_structural_equal_ignore_global_symbol(again.mod, sch.mod)
    verify_trace_roundtrip(sch, before, debug_mask="none", text_format="json")
    with pytest.raises(BadStepArgument, match="there is no format 'xml'"):
        verify_trace_roundtrip(sch, before, text_format="xml")
    with pytest.raises(AssertionError):
        assert_structural_equal_ignore_global_symbol(sch.mod["main"], before)


def test_replace():
    state = ScheduleState(matmul())
    (name,) = [name for name, _ in state.mod.functions_items()]
    root = state.mod[name].body
    loop = root.block.body
    sref = state.get_sref(loop)
    state.replace(sref, loop.with_(annotations={"note": 1}))
    assert state.mod[name].body.block.body.annotations["note"] == 1
    assert sref.stmt.annotations["note"] == 1  # it follows its loop
    block = state.get_sref(state.mod[name].body.block)
    with pytest.raises(BadStepArgument, match=r"StmtSRef\(root\) cannot become For(.|\n)*replace a block by a block"):
        state.replace(block, loop)
    state.replace(block, block.stmt.with_(annotations={"note": 2}))
    assert state.mod[name].body.block.annotations["note"] == 2
    inner = state.get_sref(state.mod[name].body.block.body)
    nothing = tir.BlockRealize((), tir.const(True), tir.Block((), (), (), "empty", tir.Evaluate(0)))
    state.replace(inner, nothing)
    assert state.mod[name].body.block.body.block.name_hint == "empty"
    assert inner.stmt is None
    with pytest.raises(NotInState):
        state.replace(inner, loop)  # of the program before
    with pytest.raises(NotInState):
        state.replace(StmtSRef.root_mark(), loop)
