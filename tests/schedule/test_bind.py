"""bind: iterations on the threads of an axis."""

from __future__ import annotations

import pytest

from loopwright import tir
from loopwright.ir import ForKind
from loopwright.schedule.errors import BadStepArgument, NotSupported, ScheduleError, WouldChangeValues, WouldRace
from loopwright.schedule.proof.loop_kinds import ThreadExtentsDiffer
from loopwright.script import from_source
from loopwright.script import tir as T
from tests.schedule.steps import check, matmul, refused


@T.prim_func
def copy(A: T.Buffer(8), B: T.Buffer(8)):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]


def test_text():
    sch = tir.Schedule(copy)
    sch.bind(sch.get_loops("B")[0], "threadIdx.x")

    @T.prim_func
    def expected(A: T.Buffer(8), B: T.Buffer(8)):
        for i in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]

    check(sch, copy, expected)


AXES = [f"{kind}.{axis}" for kind in ("blockIdx", "threadIdx", "vthread") for axis in "xyz"]


@pytest.mark.parametrize("axis", [*AXES, "vthread"])
def test_every_axis(axis):
    sch = tir.Schedule(copy)
    (loop,) = sch.get_loops("B")
    sch.bind(loop, axis)
    assert sch.get(loop).kind is ForKind.THREAD_BINDING
    assert sch.get(loop).thread_binding.thread_tag == axis
    check(sch, copy)


@pytest.mark.parametrize("axis", ["threadIdx.w", "threadIdx", "vthread.w", "", "nowhere"])
def test_unknown_axes(axis):
    sch = tir.Schedule(copy)
    error = refused(sch, BadStepArgument, f"there is no thread axis '{axis}'", "bind", sch.get_loops("B")[0], axis)
    assert "use one of blockIdx.x, " in str(error)


def test_a_reduction():
    sch = tir.Schedule(matmul())
    i, j, k = sch.get_loops("C")
    refused(sch, WouldRace, "bind: loop k", "bind", k, "blockIdx.x")
    refused(sch, WouldRace, "bind: loop k", "bind", k, "vthread")
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    check(sch, matmul())


def test_a_reduction_over_threads():
    """Its threads take turns."""
    sch = tir.Schedule(matmul())
    i, j, k = sch.get_loops("C")
    sch.bind(k, "threadIdx.x")
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.y")
    check(sch, matmul())


def test_a_reduction_over_threads_inside_which_others_run():
    """Loops inside the turns, and a turn for each of two axes."""
    sch = tir.Schedule(matmul())
    i, j, k = sch.get_loops("C")
    k0, k1, k2 = sch.split(k, [2, 2, None])
    sch.reorder(k0, k1, i, j, k2)
    sch.bind(k0, "threadIdx.x")
    sch.bind(k1, "threadIdx.y")
    check(sch, matmul())


def test_an_update_that_keeps_its_order_over_threads():
    """Another block beside it cuts the loop over k: all threads take their turns at k = 0, then at k = 1."""

    @T.prim_func
    def horner(A: T.Buffer((2, 3), "int32"), C: T.Buffer(1, "int32"), D: T.Buffer((2, 3), "int32")):
        for t in range(2):
            for k in range(3):
                with T.block("C"):
                    vt, vk = T.axis.remap("RR", [t, k])
                    with T.init():
                        C[0] = 0
                    C[0] = C[0] * 2 + A[vt, vk]
                with T.block("D"):
                    vt, vk = T.axis.remap("SS", [t, k])
                    D[vt, vk] = A[vt, vk] + 1

    sch = tir.Schedule(horner)
    why = r"iteration \(vt=0, vk=1\) of C reads C\[0\] after iteration \(vt=1, vk=0\) of C has overwritten"
    refused(sch, WouldChangeValues, why, "bind", sch.get_loops("C")[0], "threadIdx.x")
    sch.fission(sch.get_loops("C")[1], 1)
    sch.fission(sch.get_loops("C")[0], 1)
    sch.bind(sch.get_loops("C")[0], "threadIdx.x")
    check(sch, horner)


def test_an_axis_of_data_and_reduction():
    """A thread that begins a cell while another one adds to it: no turns."""
    sch = tir.Schedule(matmul())
    i, j, k = sch.get_loops("C")
    refused(sch, WouldRace, "bind: loop", "bind", sch.fuse(j, k), "threadIdx.x")


def test_a_barrier_in_blocks_inside_threads():
    sch = tir.Schedule(matmul())
    i, j, k = sch.get_loops("C")
    sch.bind(k, "threadIdx.x")
    sch.bind(j, "blockIdx.x")
    reason = "loop k over threadIdx.x is in loop j over blockIdx.x, and that in loop i over threadIdx.y"
    refused(sch, NotSupported, reason, "bind", i, "threadIdx.y")


# --- memory of blocks and threads -----------------------------------------------------------------------------------


@T.prim_func
def through(A: T.Buffer(8), B: T.Buffer(8)):
    S = T.alloc_buffer(8, scope="shared")
    for i in range(8):
        with T.block("S"):
            vi = T.axis.spatial(8, i)
            S[vi] = A[vi]
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = S[7 - vi]


def test_threads_share_what_blocks_do_not():
    sch = tir.Schedule(through)
    sch.bind(sch.get_loops("S")[0], "threadIdx.x")
    sch.bind(sch.get_loops("B")[0], "threadIdx.x")
    check(sch, through)

    sch = tir.Schedule(through)
    sch.bind(sch.get_loops("S")[0], "blockIdx.x")
    error = refused(sch, WouldChangeValues, "bind would change a value", "bind", sch.get_loops("B")[0], "blockIdx.x")
    assert "iteration (vi=0) of B reads S[7]" in str(error)


def test_private_memory():
    sch = tir.Schedule(through)
    sch.set_scope("S", 0, "local")
    sch.bind(sch.get_loops("S")[0], "threadIdx.x")
    refused(sch, WouldChangeValues, "bind would change a value", "bind", sch.get_loops("B")[0], "threadIdx.x")


def test_a_loop_under_another_of_the_same_axis():
    """The threads run one iteration each, and meet before and after."""
    sch = tir.Schedule(through)
    (i,) = sch.get_loops("B")
    sch.bind(i, "threadIdx.x")
    sch.compute_at("S", i)  # all that the threads need: the whole of S
    (_, inner) = sch.get_loops("S")
    sch.bind(inner, "threadIdx.x")

    @T.prim_func
    def expected(A: T.Buffer(8), B: T.Buffer(8)):
        S = T.alloc_buffer(8, scope="shared")
        for i in T.thread_binding(8, thread="threadIdx.x"):
            for ax0 in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("S"):
                    vi = T.axis.spatial(8, ax0)
                    S[vi] = A[vi]
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = S[7 - vi]

    check(sch, through, expected)


def test_two_lengths_of_one_axis():
    @T.prim_func
    def func(A: T.Buffer((2, 8)), B: T.Buffer((2, 4))):
        for b in range(2):
            for i in range(8):
                with T.block("A"):
                    vb, vi = T.axis.remap("SS", [b, i])
                    A[vb, vi] = T.float32(1)
            for j in range(4):
                with T.block("B"):
                    vb, vj = T.axis.remap("SS", [b, j])
                    B[vb, vj] = T.float32(2)

    sch = tir.Schedule(func)
    sch.bind(sch.get_loops("A")[0], "blockIdx.x")
    sch.bind(sch.get_loops("A")[1], "threadIdx.x")
    error = refused(
        sch,
        ThreadExtentsDiffer,
        "bind: threadIdx.x would have 8 threads for loop i and 4 for loop j",
        "bind",
        sch.get_loops("B")[1],
        "threadIdx.x",
    )
    assert "hint: split i into [None, 4] and bind its inner part, or bind i to another axis" in str(error)
    sch.bind(sch.get_loops("B")[1], "threadIdx.y")
    check(sch, func)


def test_a_schedule_of_a_program_with_two_lengths():
    @T.prim_func
    def func(A: T.Buffer(8), B: T.Buffer(4)):
        for _bx in T.thread_binding(1, thread="blockIdx.x"):
            for i in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("A"):
                    vi = T.axis.spatial(8, i)
                    A[vi] = T.float32(1)
            for j in T.thread_binding(4, thread="threadIdx.x"):
                with T.block("B"):
                    vj = T.axis.spatial(4, j)
                    B[vj] = T.float32(2)

    with pytest.raises(ThreadExtentsDiffer, match=r"Schedule: threadIdx.x would have 8 threads for loop i and 4 for"):
        tir.Schedule(func)


def test_a_missing_barrier_in_a_program_by_hand():
    source = """
@T.prim_func
def main(A: T.Buffer(8), B: T.Buffer(8)):
    S = T.alloc_buffer(8, scope="shared")
    for i in T.thread_binding(8, thread="threadIdx.x"):
        with T.block("S"):
            vi = T.axis.spatial(8, i)
            S[vi] = A[vi]
        T.evaluate(T.tvm_storage_sync("shared"))
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = S[7 - vi]
"""
    func = from_source(source)
    check(tir.Schedule(func), func)
    with pytest.raises(WouldRace, match="Schedule: loop i") as caught:
        tir.Schedule(from_source(source.replace('        T.evaluate(T.tvm_storage_sync("shared"))\n', "")))
    assert "both touch S[0]" in str(caught.value)


@pytest.mark.parametrize("condition, is_tied", [("i + j < 3", True), ("j > 0", False)])
def test_threads_of_a_reduction_do_not_all_start_a_cell(condition, is_tied):
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer((2, 3)), C: T.Buffer((2,))):
    for i, j in T.grid(2, 3):
        with T.block("C"):
            vi, vj = T.axis.remap("SR", [i, j])
            T.where({condition})
            with T.init():
                C[vi] = 0.0
            C[vi] = C[vi] + A[vi, vj]
""")
    sch = tir.Schedule(program)
    loop = sch.get_loops("C")[1]
    if not is_tied:
        sch.bind(loop, "threadIdx.x")
        return
    # A condition that ties j to i says for which cells there are updates: each thread would start them.
    with pytest.raises(WouldRace, match=r'block "C_init" writes it at i = 0, j = 0, and .* at i = 0, j = 1'):
        sch.bind(loop, "threadIdx.x")


@pytest.mark.parametrize("step", ["unroll", "parallel", "vectorize"])
@pytest.mark.parametrize("loop", [("C", 1), ("D", 0)])
def test_freeing_a_bound_loop_makes_the_memory_of_threads_one(step, loop):
    """Each of three threads sums into memory of its own; without them, one memory is summed into three times."""
    program = from_source("""
from loopwright.script import tir as T

@T.prim_func
def main(A: T.Buffer((2, 3), "int32"), D: T.Buffer((2,), "int32")):
    C = T.alloc_buffer((2,), "int32", scope="local")
    for i in range(2):
        for t in T.thread_binding(3, thread="threadIdx.x"):
            for j in range(3):
                with T.block("C"):
                    vi, vj = T.axis.remap("SR", [i, j])
                    with T.init():
                        C[vi] = 0
                    C[vi] = C[vi] + A[vi, vj]
    for i in T.thread_binding(2, thread="threadIdx.x"):
        with T.block("D"):
            vi = T.axis.spatial(2, i)
            D[vi] = C[vi] * 2
""")
    sch = tir.Schedule(program)
    with pytest.raises(ScheduleError, match=r"would change a value|touch the same cell|could not be proved"):
        getattr(sch, step)(sch.get_loops(loop[0])[loop[1]])
