"""The engine: copies, undo, handles, refusals that leave no trace, unproved schedules."""

from __future__ import annotations

import random

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.ir import IRModule, Var, assert_structural_equal
from loopwright.runtime.errors import InternalError
from loopwright.schedule import Schedule, ScheduleError, primitives
from loopwright.schedule.errors import BadStepArgument, WouldChangeValues, WrongType
from loopwright.schedule.step import LoopResult, Proof, Step
from loopwright.script import tir as T
from tests.schedule.steps import chain, check, matmul, refused


def test_the_facade():
    assert tir.Schedule is Schedule
    assert tir.ScheduleError is ScheduleError
    assert tir.schedule.Schedule is Schedule


def test_copy_shares_and_goes_its_own_way():
    func = matmul()
    sch = tir.Schedule(func)
    i, j, k = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, 2])
    other = sch.copy()
    assert other.mod["main"] is sch.mod["main"]
    other.reorder(k, i0)
    sch.unroll(i1)
    assert [loop.name for loop in other.get_loops("C")] == ["k", "i_1", "j", "i_0"]
    assert [loop.name for loop in sch.get_loops("C")] == ["i_0", "i_1", "j", "k"]
    assert [inst.kind for inst in other.trace.insts][-3:] == ["Reorder", "GetBlock", "GetLoops"]
    check(sch, func)
    check(other, func)
    other.undo()
    other.undo()
    assert [inst.kind for inst in sch.trace.insts][-3:] == ["Unroll", "GetBlock", "GetLoops"]
    assert_structural_equal(other.mod["main"], func)


def test_undo():
    func = matmul()
    sch = tir.Schedule(func)
    versions = [sch.mod["main"]]
    traces = [[]]
    i, j, k = sch.get_loops("C")
    for step in (lambda: sch.split(i, [None, 4]), lambda: sch.unroll(j), lambda: sch.reorder(k, j)):
        traces.append(list(sch.trace.insts))
        step()
        versions.append(sch.mod["main"])
        sch.get_block("C")
    for version, trace in zip(reversed(versions[:-1]), reversed(traces), strict=False):
        sch.undo()
        assert sch.mod["main"] is version
        assert sch.trace.insts == trace
    with pytest.raises(BadStepArgument, match="there is no step to take back"):
        sch.undo()


def test_undo_takes_back_the_look_up_of_a_name():
    sch = tir.Schedule(matmul())
    loop = sch.get_loops("C")[2]
    asked = len(sch.trace.insts)
    sch.decompose_reduction("C", loop)
    assert len(sch.trace.insts) == asked + 2
    sch.undo()
    assert len(sch.trace.insts) == asked


def test_handles_survive_steps():
    func = chain()
    sch = tir.Schedule(func)
    d, e = sch.get_block("D"), sch.get_block("E")
    m, l, k = sch.get_loops(d)
    em, _ = sch.get_loops(e)
    m0, m1 = sch.split(m, [2, 2])
    sch.reorder(m0, l, k, m1)
    sch.parallel(m0)
    for loop in (m0, l, k, m1, em):
        assert sch.get(loop).loop_var is loop.var
    assert sch.get(d).name_hint == "D"
    sch.unroll(m1)
    sch.vectorize(sch.get_loops(e)[1])
    check(sch, func)


STEPS = [
    ("split", lambda s: (s.get_loops("D")[0], [0, 2])),
    ("fuse", lambda s: (s.get_loops("D")[0], s.get_loops("D")[2])),
    ("reorder", lambda s: (s.get_loops("D")[0], s.get_loops("E")[0])),
    ("merge", lambda s: (s.get_loops("D")[0], s.get_loops("E")[1])),
    ("fission", lambda s: (s.get_loops("D")[0],)),
    ("add_unit_loop", lambda s: (s.get_block("root"),)),
    ("parallel", lambda s: (s.get_loops("D")[2],)),
    ("vectorize", lambda s: (s.get_loops("D")[2],)),
    ("bind", lambda s: (s.get_loops("D")[0], "nowhere")),
    ("annotate", lambda s: (s.get_loops("D")[0], "key", object())),
    ("unannotate", lambda s: (s.get_loops("D")[0], "key")),
    ("sample_perfect_tile", lambda s: (s.get_loops("D")[0], 0)),
    ("sample_categorical", lambda s: ([1], [])),
    ("get_block", lambda s: ("nowhere",)),
    ("get_loops", lambda s: ("nowhere",)),
    ("compute_at", lambda s: ("F", s.get_loops("D")[0])),
    ("reverse_compute_at", lambda s: ("D", s.get_loops("F")[2])),
    ("compute_inline", lambda s: ("F",)),
    ("reverse_compute_inline", lambda s: ("D",)),
    ("decompose_reduction", lambda s: ("E", s.get_loops("E")[0])),
    ("cache_read", lambda s: ("D", 7, "global")),
    ("cache_write", lambda s: ("D", 7, "global")),
    ("stage", lambda s: ("D", s.get_loops("D")[0], "nothing")),
    ("transform_layout", lambda s: ("D", ("read", 9), lambda i, j: (j, i))),
    ("set_scope", lambda s: ("D", 5, "local")),
    ("storage_align", lambda s: ("D", 0, 9, 4, 1)),
    ("lift_alloc", lambda s: ("D", "nothing")),
    ("sink_alloc", lambda s: ("D", "nothing")),
    ("prefetch", lambda s: ("D", s.get_loops("D")[0], "nothing")),
]


@pytest.mark.parametrize(("step", "arguments"), STEPS, ids=[step for step, _ in STEPS])
def test_a_refused_step_leaves_the_schedule_as_it_was(step, arguments):
    sch = tir.Schedule(chain())
    sch.unroll(sch.get_loops("F")[1])
    refused(sch, ScheduleError, r"\[LW02\d\d\]", step, *arguments(sch))


def test_an_error_shows_the_users_line_and_the_steps_so_far():
    sch = tir.Schedule(matmul())
    i, j, k = sch.get_loops("C")
    sch.split(i, [None, 2])
    sch.reorder(k, j)
    with pytest.raises(ScheduleError) as caught:
        sch.parallel(k)  # a reduction
    text = str(caught.value)
    assert "steps so far: split(i, [None, 2]), reorder(k, j)" in text
    assert "sch.parallel(k)  # a reduction at test_schedule.py:" in text
    assert "> " in text
    assert "for k" in text


def test_unproved_schedules_say_so():
    @T.prim_func
    def func(A: T.Buffer((5, 5))):
        for i, j in T.grid(4, 4):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi + 1, vj] = A[vi, vj + 1] + 1.0

    proved = tir.Schedule(func)
    assert proved.is_proved
    i, j = proved.get_loops("A")
    refused(proved, WouldChangeValues, "reorder would change a value", "reorder", j, i)
    unproved = tir.Schedule(func, enable_check=False)
    assert not unproved.is_proved
    i, j = unproved.get_loops("A")
    unproved.reorder(j, i)
    assert not unproved.copy().is_proved


def test_what_is_not_proved_stays_marked():
    func = matmul()
    plain = tir.Schedule(func)
    assert plain.mod["main"] is func
    assert lw.build(plain.mod).is_proved
    sch = tir.Schedule(func, enable_check=False)
    sch.unroll(sch.get_loops("C")[0])
    assert sch.mod["main"].attrs["loopwright.unproved"]
    assert '"loopwright.unproved": True' in sch.mod["main"].script()
    assert not lw.build(sch.mod).is_proved
    # Proving what comes later does not prove what came before.
    again = tir.Schedule(sch.mod)
    again.unroll(again.get_loops("C")[1])
    assert not again.is_proved
    assert not lw.build(again.mod).is_proved
    assert again.trace.is_proved


def test_an_unsafe_step_marks_the_program_and_undo_takes_the_mark_back(monkeypatch):
    def unsafe_forget(view, loop):
        return Step(view.replaced(view.loop_path(loop.loop_var), loop), Proof.GIVEN)

    row = primitives.Primitive("UnsafeForget", ("loop",))
    vars(row)["function"] = unsafe_forget
    monkeypatch.setitem(primitives.PRIMITIVES, "UnsafeForget", row)
    sch = tir.Schedule(matmul())
    loop = sch.get_loops("C")[0]
    sch.unroll(loop)
    assert sch.is_proved
    sch.run_instruction("UnsafeForget", {"loop": loop}, {})
    assert not sch.is_proved
    assert not sch.trace.is_proved
    sch.undo()
    assert sch.is_proved
    assert sch.trace.is_proved


def racing(**options):
    @T.prim_func
    def func(A: T.Buffer(9)):
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi + 1] = A[vi]

    sch = tir.Schedule(func, **options)
    with pytest.raises(ScheduleError) as caught:
        sch.parallel(sch.get_loops("A")[0])
    return caught.value


def test_how_much_a_refusal_tells(with_suggestions):
    detail, fast, none = (racing(error_render_level=level) for level in ("detail", "fast", "none"))
    assert str(detail).splitlines()[0] == f"{detail.problem} [LW0207]"
    assert "of the parallel loop i both touch A[1]" in detail.why
    assert f"  why: {detail.why}" in str(detail)
    assert "  > for i in T.parallel(8):" in str(detail)
    problem = "parallel: loop i: iterations that run at the same time would touch the same cell"
    assert str(fast) == f"ScheduleError: {problem} [LW0207]"
    assert str(none) == "ScheduleError: (not rendered)"
    for error in (fast, none):  # the facts are there all the same
        assert error.fields["buffer"] == "A"
        assert error.problem == problem


def test_how_much_the_refusal_of_a_program_tells():
    @T.prim_func
    def func(A: T.Buffer(9)):
        for i in T.parallel(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi + 1] = A[vi]

    with pytest.raises(ScheduleError, match=r"^ScheduleError: Schedule: loop i: iterations .* \[LW0207\]$"):
        tir.Schedule(func, error_render_level="fast")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("mask", ["all", "none", 0, 1, 2, 3])
def test_debug_mask_accepts_what_is_right(mask):
    func = chain()
    sch = tir.Schedule(func, debug_mask=mask)
    m, l, k = sch.get_loops("D")
    sch.reorder(k, m, l)
    sch.parallel(sch.merge(*[sch.get_loops(name)[0] for name in "EF"]))
    sch.compute_inline("E")
    sch.stage("D", m, "A")
    sch.split(l, [None, 2], tail="peel")
    sch.cache_write("F", 0, "local")
    check(sch, func)


def test_debug_mask_finds_a_step_that_kept_no_order(monkeypatch):
    monkeypatch.setattr("loopwright.schedule.primitives.loops.reorder.permutation_is_free", lambda *args: True)

    @T.prim_func
    def func(A: T.Buffer((5, 5))):
        for i, j in T.grid(4, 4):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi + 1, vj] = A[vi, vj + 1] + 1.0

    for mask in ("none", 1):
        sch = tir.Schedule(func, debug_mask=mask)
        i, j = sch.get_loops("A")
        sch.reorder(j, i)
    for mask in ("all", 2):
        sch = tir.Schedule(func, debug_mask=mask)
        i, j = sch.get_loops("A")
        with pytest.raises(InternalError, match=r"reorder was accepted, but would change a value: iteration \(vi=1"):
            sch.reorder(j, i)
        assert sch.mod["main"] is func
        assert [inst.kind for inst in sch.trace.insts] == ["GetBlock", "GetLoops"]


def test_debug_mask_finds_a_handle_of_nothing(monkeypatch):
    def unroll(view, loop):
        return Step(view.function, Proof.ORDER_KEPT, results=[LoopResult(Var("lost"))])

    monkeypatch.setitem(vars(primitives.PRIMITIVES["Unroll"]), "function", unroll)
    for mask in ("all", 1):
        sch = tir.Schedule(matmul(), debug_mask=mask)
        with pytest.raises(InternalError, match="unroll gives a handle of loop lost, which is not in the program"):
            sch.unroll(sch.get_loops("C")[0])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"seed": 0}, ValueError, "seed is 0"),
        ({"seed": 2**31}, ValueError, "seed is 2147483648"),
        ({"seed": "one"}, TypeError, "seed must be an int, got str"),
        ({"enable_check": 1}, TypeError, "enable_check must be a bool, got int"),
        ({"debug_mask": "some"}, ValueError, "debug_mask is 'some'"),
        ({"debug_mask": True}, ValueError, "debug_mask is True"),
        ({"debug_mask": np.array([1, 2])}, ValueError, r"debug_mask is array\(\[1, 2\]\)"),
        ({"error_render_level": "loud"}, ValueError, "error_render_level is 'loud'"),
        ({"error_render_level": np.array([1, 2])}, ValueError, r"error_render_level is array\(\[1, 2\]\)"),
    ],
)
def test_options_are_checked(options, error, message):
    with pytest.raises(error, match=message):
        tir.Schedule(matmul(), **options)


def test_a_schedule_needs_a_program():
    with pytest.raises(WrongType, match="mod must be a PrimFunc or an IRModule, got int"):
        tir.Schedule(3)


def test_a_module_keeps_its_names_and_attributes():
    mod = IRModule({"f": matmul()}, attrs={"note": 1})
    sch = tir.Schedule(mod)
    assert sch.mod.get_global_var("f") is mod.get_global_var("f")
    assert sch.mod.attrs == {"note": 1}
    assert sch.func_working_on.name == "f"


def test_seeds():
    one, two = tir.Schedule(matmul(), seed=4), tir.Schedule(matmul(), seed=4)
    assert one.fork_seed() == two.fork_seed()
    one.seed(9)
    two.seed(9)
    assert one.fork_seed() == two.fork_seed()
    assert tir.Schedule(one.mod["main"]).fork_seed() in range(1, 2**31)


def test_show(capsys):
    sch = tir.Schedule(matmul())
    sch.unroll(sch.get_loops("C")[0])
    sch.show()
    printed = capsys.readouterr().out
    assert "unroll" in printed


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(12))
def test_random_steps_keep_every_value_and_replay(seed):
    """Whatever is accepted keeps the values; whatever is refused changes nothing."""
    chosen = random.Random(seed)
    func = chain(chosen.choice([1, 3, 4]), chosen.choice([2, 5]), chosen.choice([1, 3]), 2)
    sch = tir.Schedule(func)
    for _ in range(8):
        names = sch.view().block_names()[1:]
        loops = sch.get_loops(chosen.choice(names))
        others = sch.get_loops(chosen.choice(names))
        if not loops or not others:
            continue
        loop = chosen.choice(loops)
        step, *arguments = chosen.choice(
            [
                ("split", loop, [None, chosen.choice([1, 2, 3])]),
                ("split", loop, [None, 2], True, "peel"),
                ("fuse", *loops[:2]),
                ("reorder", *chosen.sample(loops, len(loops))),
                ("merge", loops[0], others[0]),
                ("fission", loop),
                ("add_unit_loop", loop),
                ("parallel", loop),
            ]
        )
        before = sch.mod["main"]
        try:
            getattr(sch, step)(*arguments)
        except ScheduleError:
            assert sch.mod["main"] is before
    check(sch, func)


def test_a_function_goes_by_what_callers_know_it_by():
    A = te.placeholder((4,), name="A")
    func = te.create_prim_func([A, te.compute((4,), lambda i: A[i] + 1.0, name="B")]).with_attr("global_symbol", "nv12")
    sch = Schedule(func)
    sch.work_on("nv12")
    sch.vectorize(sch.get_loops(sch.get_block("B", "nv12"))[0])
    assert sch.mod["nv12"] is sch.mod["main"]
    with pytest.raises(ScheduleError, match="there is no function 'nv13'; there are main"):
        sch.work_on("nv13")


def test_dependencies_between_blocks():
    @T.prim_func
    def twice(A: T.Buffer((8,)), C: T.Buffer((8,))):
        B = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] * 2.0
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi] * 2.0

    info = tir.BlockDependenceInfo(twice)
    first, second = [info.get_sref(loop.body.block) for loop in twice.body.block.body.seq]
    assert first.parent.stmt is twice.body.block  # loops do not count
    (found,) = info.get_block_scope(first.parent).get_deps_by_src(first)
    assert found.dst == second and found.kind.name == "RAW"
