"""Learners' errors on a tir schedule: each message says what went wrong, what became of things, and what would work."""

from __future__ import annotations

import pytest

from loopwright import te, tir
from loopwright.ir import assert_structural_equal
from loopwright.schedule import Schedule
from loopwright.schedule.engine.composites import composite, unregister
from loopwright.schedule.errors import (
    BadStepArgument,
    HandleGone,
    NoSuchBlock,
    NotSupported,
    WouldRace,
    WrongCall,
    WrongType,
)
from loopwright.schedule.handles import LoopRV
from loopwright.schedule.primitives.compute.blockize import TileNotWhole
from loopwright.schedule.primitives.loops.split import FactorsTooSmall
from loopwright.schedule.primitives.memory.cache_read import NotAConsumer
from loopwright.schedule.proof.loop_kinds import ThreadExtentsDiffer
from loopwright.schedule.proof.tensorized import IntrinsicMismatch
from loopwright.script import tir as T
from tests.schedule.saying import says
from tests.schedule.steps import matmul


def two_stages() -> Schedule:
    """B = A + 1, C = B * 2."""
    A = te.placeholder((16, 16), name="A")
    B = te.compute((16, 16), lambda i, j: A[i, j] + 1, name="B")
    C = te.compute((16, 16), lambda i, j: B[i, j] * 2, name="C")
    return Schedule(te.create_prim_func([A, C]))


def plus_one(size: int) -> Schedule:
    """B = A + 1."""
    A = te.placeholder((size,), name="A")
    B = te.compute((size,), lambda i: A[i] + 1.0, name="B")
    return Schedule(te.create_prim_func([A, B]))


def declare_eight_at_once() -> None:
    """An instruction that adds 1 to eight numbers."""

    @T.prim_func
    def desc(A: T.Buffer(8), B: T.Buffer(8)):
        with T.block("root"):
            for i in range(8):
                with T.block("B"):
                    vi = T.axis.spatial(8, i)
                    B[vi] = A[vi] + T.float32(1)

    @T.prim_func
    def impl(A: T.Buffer(8), B: T.Buffer(8)):
        with T.block("root"):
            for i in range(8):
                B[i] = A[i] + T.float32(1)

    tir.TensorIntrin.register("learn_plus_8", desc, impl)


@pytest.fixture(autouse=True, scope="module")
def eight_at_once():
    declare_eight_at_once()
    yield
    tir.TensorIntrin.known.pop("learn_plus_8")


@pytest.fixture(autouse=True)
def all_the_time(monkeypatch):
    """Messages do not depend on how fast the machine is."""
    monkeypatch.setattr("loopwright.schedule.diagnose.suggestions.TIME", 60.0)
    monkeypatch.setattr("loopwright.schedule.diagnose.suggestions.HOPELESS", 60.0)


# --- loops that are no loops any more -------------------------------------------------------------------------------


@says(HandleGone)
def test_reorder_a_loop_that_was_split():
    """loop i is no loop any more: it was split into i_0 and i_1 at line +9 [LW0202]
    call: sch.reorder(j, i) at line +10
    hint: use i_0 or i_1; sch.get_loops("C") gives i_0, i_1, j, k
    steps so far: split(i, [None, 8])
    """
    sch = Schedule(matmul(64, 64, 64))
    i, j, _ = sch.get_loops("C")
    sch.split(i, [None, 8])
    sch.reorder(j, i)


@says(HandleGone)
def test_reorder_a_loop_that_was_split_and_split_again():
    """loop i is no loop any more: it was split into i_0 and i_1 at line +10, and i_1 into i_1_0 and i_1_1 at line \
    +11 [LW0202]
    call: sch.reorder(j, i) at line +12
    hint: use i_0, i_1_0 or i_1_1; sch.get_loops("C") gives i_0, i_1_0, i_1_1, j, k
    steps so far: split(i, [None, 8]), split(i_1, [4, 2])
    """
    sch = Schedule(matmul(64, 64, 64))
    i, j, _ = sch.get_loops("C")
    _, inner = sch.split(i, [None, 8])
    sch.split(inner, [4, 2])
    sch.reorder(j, i)


@says(HandleGone)
def test_reorder_a_loop_that_was_split_and_fused():
    """loop i is no loop any more: it was split into i_0 and i_1 at line +10, and i_1 into i_1_j_fused at line +11 \
    [LW0202]
    call: sch.reorder(k, i) at line +12
    hint: use i_0 or i_1_j_fused; sch.get_loops("C") gives i_0, i_1_j_fused, k
    steps so far: split(i, [None, 8]), fuse(i_1, j)
    """
    sch = Schedule(matmul(64, 64, 64))
    i, j, k = sch.get_loops("C")
    _, inner = sch.split(i, [None, 8])
    sch.fuse(inner, j)
    sch.reorder(k, i)


@says(HandleGone)
def test_compute_at_a_loop_that_was_split():
    """loop i is no loop any more: it was split into i_0 and i_1 at line +9 [LW0202]
    call: sch.compute_at("B", i) at line +10
    hint: use i_0 or i_1; sch.get_loops("C") gives i_0, i_1, j
    steps so far: split(i, [4, 4])
    """
    sch = two_stages()
    i, _ = sch.get_loops("C")
    sch.split(i, [4, 4])
    sch.compute_at("B", i)


@says(HandleGone)
def test_compute_at_a_loop_that_was_fused():
    """loop j is no loop any more: it was fused into i_j_fused at line +9 [LW0202]
    call: sch.compute_at("B", j) at line +10
    hint: use i_j_fused; sch.get_loops("C") gives i_j_fused
    steps so far: fuse(i, j)
    """
    sch = two_stages()
    i, j = sch.get_loops("C")
    sch.fuse(i, j)
    sch.compute_at("B", j)


@says(HandleGone)
def test_a_loop_of_a_block_that_moved():
    """loop j is no loop any more: compute_at(B, i) at line +9 made the loops of B anew [LW0202]
    call: sch.vectorize(j) at line +10
    hint: sch.get_loops("B") gives i, ax0
    steps so far: compute_at(B, i)
    """
    sch = two_stages()
    _, j = sch.get_loops("B")
    sch.compute_at("B", sch.get_loops("C")[0])
    sch.vectorize(j)


@says(HandleGone)
def test_a_block_that_was_inlined():
    """block B is no longer in the program: compute_inline(B) at line +9 took it out [LW0202]
    call: sch.get_loops(block) at line +10
    hint: the blocks are now C
    steps so far: compute_inline(B)
    """
    sch = two_stages()
    block = sch.get_block("B")
    sch.compute_inline(block)
    sch.get_loops(block)


@says(HandleGone)
def test_a_loop_of_a_block_that_was_inlined():
    """loop i is no loop any more: compute_inline(B) at line +9 took it out [LW0202]
    call: sch.parallel(i) at line +10
    hint: the blocks are now C
    steps so far: compute_inline(B)
    """
    sch = two_stages()
    i, _ = sch.get_loops("B")
    sch.compute_inline("B")
    sch.parallel(i)


@says(HandleGone)
def test_a_loop_of_another_schedule():
    """loop i is not in the program: it comes from another schedule, or from a step that was taken back [LW0202]
    call: sch.split(other.get_loops("C")[0], [None, 8]) at line +7
    hint: sch.get_loops("B") gives i, j; sch.get_loops("C") gives i, j
    """
    sch, other = two_stages(), two_stages()
    sch.split(other.get_loops("C")[0], [None, 8])


@says(HandleGone)
def test_a_loop_of_a_step_that_was_taken_back():
    """loop i_1 is not in the program: it comes from another schedule, or from a step that was taken back [LW0202]
    call: sch.vectorize(inner) at line +9
    hint: sch.get_loops("B") gives i
    """
    sch = plus_one(64)
    _, inner = sch.split(sch.get_loops("B")[0], [None, 8])
    sch.undo()
    sch.vectorize(inner)


@says(HandleGone)
def test_looking_at_a_loop_that_is_gone():
    """loop i is no loop any more: it was split into i_0 and i_1 at line +8 [LW0202]
    call: sch.get(i) at line +9
    hint: use i_0 or i_1; sch.get_loops("B") gives i_0, i_1
    """
    sch = plus_one(64)
    (i,) = sch.get_loops("B")
    sch.split(i, [None, 8])
    sch.get(i)


def test_a_loop_that_is_gone_inside_a_step_of_the_users():
    @composite
    def learn_twice(sch: Schedule, loop: LoopRV) -> None:
        sch.split(loop, [None, 8])
        sch.parallel(loop)

    try:
        sch = plus_one(64)
        (i,) = sch.get_loops("B")
        with pytest.raises(HandleGone, match=r"loop i is no loop any more: it was split into i_0 and i_1 at test_"):
            sch.learn_twice(i)
        with pytest.raises(HandleGone, match=r"loop i is no loop any more: it was split into i_0 and i_1 at test_"):
            sch.split(i, [None, 4])
            sch.learn_twice(i)
    finally:
        unregister("learn_twice")


# --- names and kinds ------------------------------------------------------------------------------------------------


@says(NoSuchBlock)
def test_a_block_in_the_wrong_case():
    """get_block: no block is called 'c'; there are B, C, root [LW0201]
    call: two_stages().get_block("c") at line +6
    hint: did you mean 'C'?
    """
    two_stages().get_block("c")


@says(NoSuchBlock)
def test_a_misspelt_block():
    """get_block: no block is called 'matmull'; there are matmul, root [LW0201]
    call: Schedule(te.create_prim_func([A, B])).get_block("matmull") at line +8
    hint: did you mean 'matmul'?
    """
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1, name="matmul")
    Schedule(te.create_prim_func([A, B])).get_block("matmull")


@says(NoSuchBlock)
def test_a_block_that_is_nothing_like_the_others():
    """get_block: no block is called 'softmax'; there are B, C, root [LW0201]
    call: two_stages().get_block("softmax") at line +5
    """
    two_stages().get_block("softmax")


@says(WrongType)
def test_a_loop_by_name():
    """split: loop must be the handle of a loop, got str [LW0208]
    call: sch.split("i", [None, 8]) at line +7
    hint: loops are handles that the schedule gives: i, j = sch.get_loops(block)
    """
    sch = two_stages()
    sch.split("i", [None, 8])


@says(WrongType)
def test_a_block_in_place_of_a_loop():
    """parallel: loop must be the handle of a loop, got BlockRV [LW0208]
    call: sch.parallel(sch.get_block("C")) at line +7
    hint: loops are handles that the schedule gives: i, j = sch.get_loops(block)
    """
    sch = two_stages()
    sch.parallel(sch.get_block("C"))


@says(WrongType)
def test_a_loop_in_place_of_a_block():
    """schedule: block must be a block's handle or name, got LoopRV [LW0208]
    call: sch.compute_inline(sch.get_loops("B")[0]) at line +6
    """
    sch = two_stages()
    sch.compute_inline(sch.get_loops("B")[0])


@says(WrongType)
def test_nothing_in_place_of_a_loop():
    """tensorize: block_or_loop must be the handle of a block or loop, got NoneType [LW0208]
    call: plus_one(8).tensorize(None, "learn_plus_8") at line +5
    """
    plus_one(8).tensorize(None, "learn_plus_8")


@says(BadStepArgument)
def test_a_misspelt_thread_axis():
    """bind: there is no thread axis 'threadidx.x' [LW0203]
    call: sch.bind(sch.get_loops("C")[0], "threadidx.x") at line +8
    hint: did you mean 'threadIdx.x'? use one of blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, \
    threadIdx.z, vthread.x, vthread.y, vthread.z, vthread
    """
    sch = two_stages()
    sch.bind(sch.get_loops("C")[0], "threadidx.x")


# --- splitting, fusing, reordering ----------------------------------------------------------------------------------


@says(BadStepArgument)
def test_a_factor_of_zero():
    """split: factors [None, 0] are not all integers of at least 1 [LW0203]
    call: sch.split(sch.get_loops("B")[0], [None, 0]) at line +7
    hint: a factor says how often its loop runs: at least once; None has one of them inferred
    """
    sch = plus_one(64)
    sch.split(sch.get_loops("B")[0], [None, 0])


@says(BadStepArgument)
def test_a_negative_factor():
    """split: factors [-1, 8] are not all integers of at least 1 [LW0203]
    call: sch.split(sch.get_loops("B")[0], [-1, 8]) at line +7
    hint: a factor says how often its loop runs: at least once; None has one of them inferred
    """
    sch = plus_one(64)
    sch.split(sch.get_loops("B")[0], [-1, 8])


@says(BadStepArgument)
def test_a_factor_that_is_no_whole_number():
    """split: factors [None, 8.0] are not all integers of at least 1 [LW0203]
    call: sch.split(sch.get_loops("B")[0], [None, 64 / 8]) at line +7
    hint: 8.0 is a float: divide integers with //
    """
    sch = plus_one(64)
    sch.split(sch.get_loops("B")[0], [None, 64 / 8])


@says(BadStepArgument)
def test_two_factors_to_infer():
    """split: factors [None, None] leave more than one to be inferred [LW0203]
    call: sch.split(sch.get_loops("B")[0], [None, None]) at line +7
    hint: give None for one factor at most: it becomes the extent, divided by the others
    """
    sch = plus_one(64)
    sch.split(sch.get_loops("B")[0], [None, None])


@says(WrongType)
def test_a_factor_in_place_of_a_list():
    """split: factors must be a list, got int [LW0208]
    call: sch.split(sch.get_loops("B")[0], 8) at line +7
    hint: give one factor for each new loop: [None, 8]
    """
    sch = plus_one(64)
    sch.split(sch.get_loops("B")[0], 8)


@says(FactorsTooSmall)
def test_factors_that_do_not_reach():
    """split: factors [7, 8] make 56 iterations, but loop i has 64 [LW0211]
    call: sch.split(i, [7, 8]) at line +9
    hint: raise a factor, or give one as None to have it inferred
    what would work: sch.split(i, [None, 8]) (proved)
    """
    sch = plus_one(64)
    (i,) = sch.get_loops("B")
    sch.split(i, [7, 8])


@says(NotSupported)
def test_fuse_loops_with_one_between():
    """fuse: loop j stands between i and k [LW0204]
    call: sch.fuse(i, k) at line +9
    hint: fuse loops that stand directly in one another, outermost first
    what would work: sch.reorder(i, k, j); sch.fuse(i, k) (proved)
    """
    sch = Schedule(matmul(64, 64, 64))
    i, j, k = sch.get_loops("C")
    sch.fuse(i, k)


@says(NotSupported)
def test_fuse_loops_in_the_wrong_order():
    """fuse: loop i stands outside j, not inside it [LW0204]
    call: sch.fuse(j, i) at line +9
    hint: fuse loops that stand directly in one another, outermost first
    what would work: sch.reorder(j, i); sch.fuse(j, i) (proved)
    """
    sch = two_stages()
    i, j = sch.get_loops("C")
    sch.fuse(j, i)


@says(NotSupported)
def test_fuse_loops_of_two_nests():
    """fuse: loop j is in another nest than i [LW0204]
    call: sch.fuse(i, j) at line +8
    hint: fuse loops that stand directly in one another, outermost first
    """
    sch = two_stages()
    i, j = sch.get_loops("B")[0], sch.get_loops("C")[1]
    sch.fuse(i, j)


@says(NotSupported)
def test_reorder_loops_of_two_nests():
    """reorder: loop i is not in one nest with the others [LW0204]
    call: sch.reorder(j, i) at line +8
    hint: name loops of one nest: those around block C are i, j
    """
    sch = two_stages()
    i, j = sch.get_loops("B")[0], sch.get_loops("C")[1]
    sch.reorder(j, i)


@says(BadStepArgument)
def test_reorder_with_a_loop_twice():
    """reorder: a loop is named twice among i, i [LW0203]
    call: sch.reorder(i, i) at line +8
    hint: name each loop once
    """
    sch = two_stages()
    i, _ = sch.get_loops("C")
    sch.reorder(i, i)


# --- what runs at the same time -------------------------------------------------------------------------------------


@says(WouldRace)
def test_parallel_over_a_reduction():
    """parallel: loop k: iterations that run at the same time would touch the same cell [LW0207]
    call: sch.parallel(k) at line +12
    why: iterations k = 0 and k = 1 of the parallel loop k both touch C[0, 0]: block "C" reads it at i = 0, j = 0, \
    k = 0, and block "C" writes it at i = 0, j = 0, k = 1; a parallel loop runs them in any order
    hint: k runs over a reduction: split it, rfactor the outer part, then parallel that loop of the new block
    what would work: sch.parallel(i) (proved)
    what would work: sch.parallel(j) (proved)
    """
    sch = Schedule(matmul(64, 64, 64))
    i, j, k = sch.get_loops("C")
    sch.parallel(k)


@says(NotSupported)
def test_vectorize_a_loop_of_unknown_length():
    """vectorize: loop i has extent n: a vector has a constant number of lanes [LW0204]
    call: sch.vectorize(i) at line +11
    what would work: _, i_1 = sch.split(i, [None, 8]); sch.vectorize(i_1) (proved)
    """
    n = te.size_var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1, name="B")
    sch = Schedule(te.create_prim_func([A, B]))
    (i,) = sch.get_loops("B")
    sch.vectorize(i)


@says(ThreadExtentsDiffer)
def test_two_loops_on_one_thread_axis():
    """bind: threadIdx.x would have 16 threads for loop ax0 and 8 for loop j_1 [LW0261]
    call: sch.bind(inner, "threadIdx.x") at line +15
    why: threadIdx.x has one number of threads in the whole kernel
    hint: split ax0 into [None, 8] and bind its inner part, or bind ax0 to another axis
    what would work: sch.vectorize(inner) (proved)
    steps so far: bind(i, "blockIdx.x"), compute_at(B, i), bind(ax0, "threadIdx.x"), split(j, [None, 8])
    """
    sch = two_stages()
    i, j = sch.get_loops("C")
    sch.bind(i, "blockIdx.x")
    sch.compute_at("B", i)
    sch.bind(sch.get_loops("B")[-1], "threadIdx.x")
    _, inner = sch.split(j, [None, 8])
    sch.bind(inner, "threadIdx.x")


# --- caches and instructions ----------------------------------------------------------------------------------------


@says(NotAConsumer)
def test_cache_read_for_a_block_that_does_not_read_it():
    """cache_read: block 'C' does not read A; it reads B [LW0259]
    call: sch.cache_read("B", 0, "local", consumer_blocks=["C"]) at line +7
    hint: A is read by B
    """
    sch = two_stages()
    sch.cache_read("B", 0, "local", consumer_blocks=["C"])


@says(NotAConsumer)
def test_cache_write_for_a_block_that_does_not_read_it():
    """cache_write: block 'B' does not read C; it reads A [LW0259]
    call: sch.cache_write("C", 0, "local", consumer_blocks=["B"]) at line +7
    hint: C is read by no other block
    """
    sch = two_stages()
    sch.cache_write("C", 0, "local", consumer_blocks=["B"])


@says(IntrinsicMismatch)
def test_tensorize_a_loop_that_is_too_long():
    """tensorize: block 'B_o' is not what 'learn_plus_8' describes: loop i of the description has extent 8, here i_1 \
    has 16 [LW0290]
    call: sch.tensorize(inner, "learn_plus_8") at line +11
    hint: split i_1 into [None, 8], and have the tile hold its inner part only
    what would work: _, i_1_1 = sch.split(inner, [None, 8]); sch.tensorize(i_1_1, "learn_plus_8") (proved)
    steps so far: split(i, [None, 16])
    """
    sch = plus_one(64)
    _, inner = sch.split(sch.get_loops("B")[0], [None, 16])
    sch.tensorize(inner, "learn_plus_8")


@says(IntrinsicMismatch)
def test_tensorize_a_loop_that_is_too_short():
    """tensorize: block 'B_o' is not what 'learn_plus_8' describes: loop i of the description has extent 8, here i \
    has 6 [LW0290]
    call: sch.tensorize(sch.get_loops("B")[0], "learn_plus_8") at line +8
    hint: i needs 8 values: make its axis longer, or choose an intrinsic for 6
    """
    sch = plus_one(6)
    sch.tensorize(sch.get_loops("B")[0], "learn_plus_8")


@says(IntrinsicMismatch)
def test_tensorize_a_loop_that_is_no_multiple():
    """tensorize: block 'B_o' is not what 'learn_plus_8' describes: loop i of the description has extent 8, here i \
    has 12 [LW0290]
    call: sch.tensorize(sch.get_loops("B")[0], "learn_plus_8") at line +9
    hint: split i into [None, 8], and have the tile hold its inner part only; 12 is no multiple of 8, so pad it \
    first
    """
    sch = plus_one(12)
    sch.tensorize(sch.get_loops("B")[0], "learn_plus_8")


@says(TileNotWhole)
def test_tensorize_with_a_tail():
    """tensorize: the guard i_0 * 8 + i_1 < 60 of block 'B' cuts tiles over the loops i_1 short [LW0285]
    call: sch.tensorize(inner, "learn_plus_8") at line +9
    hint: split by a factor that divides the extent, or pad it, or keep the last tile apart (tail='peel')
    steps so far: split(i, [None, 8])
    """
    sch = plus_one(60)
    _, inner = sch.split(sch.get_loops("B")[0], [None, 8])
    sch.tensorize(inner, "learn_plus_8")


@says(IntrinsicMismatch)
def test_tensorize_a_tile_with_a_longer_loop_inside():
    """tensorize: block 'C_o' is not what 'dot_16x4_vnni' describes: loop i of the description has extent 16, here j \
    has 32 [LW0290]
    call: sch.tensorize(j, "dot_16x4_vnni") at line +15
    hint: split j into [None, 16], and have the tile hold its inner part only
    what would work: j_0, j_1 = sch.split(j, [None, 16]); sch.reorder(j_0, j_1, sch.get_loops("C")[3]); \
    sch.tensorize(j_1, "dot_16x4_vnni") (proved)
    """
    A = te.placeholder((8, 4), "uint8", name="A")
    B = te.placeholder((32, 4), "int8", name="B")
    k = te.reduce_axis((0, 4), name="k")
    C = te.compute((8, 32), lambda i, j: te.sum(A[i, k].astype("int32") * B[j, k].astype("int32"), axis=k), name="C")
    sch = Schedule(te.create_prim_func([A, B, C]))
    _, j, _ = sch.get_loops("C")
    sch.tensorize(j, "dot_16x4_vnni")


def test_what_would_work_does():
    """The split that a refused tensorize suggests is one that the schedule accepts."""
    sch = plus_one(64)
    (i,) = sch.get_loops("B")
    with pytest.raises(IntrinsicMismatch) as caught:
        sch.tensorize(i, "learn_plus_8")
    (found,) = caught.value.suggestions
    assert str(found) == '_, i_1 = sch.split(i, [None, 8]); sch.tensorize(i_1, "learn_plus_8")'
    found.apply(sch)
    assert sch.trace.relies_on == ["learn_plus_8"]


# --- calls and names ------------------------------------------------------------------------------------------------


def _doubled() -> Schedule:
    A = te.placeholder((8, 8), name="A")
    return Schedule(te.create_prim_func([A, te.compute((8, 8), lambda i, j: A[i, j] * 2, name="B")]))


def test_split_is_shown_how_it_is_written():
    sch = _doubled()
    i, _ = sch.get_loops("B")
    for call in (lambda: sch.split(i, factor=8), lambda: sch.split(i), lambda: sch.split(loop=i, nparts=2)):
        with pytest.raises(WrongCall, match=r"(?s)^Schedule\.split\(\) .*hint: write sch\.split\(loop, \[None, 8\]\)"):
            call()
    with pytest.raises(WrongType, match="factors must be a list"):
        sch.split(i, 8)
    assert len(sch.split(i, factors=[None, 4])) == 2


def test_python_names_the_methods_as_people_know_them():
    sch = _doubled()
    with pytest.raises(TypeError, match=r"^Schedule\.cache_read\(\) missing 1 required"):
        sch.cache_read("B")
    with pytest.raises(TypeError, match=r"^Schedule\.parallel\(\) got an unexpected keyword"):
        sch.parallel(loops=sch.get_loops("B"))


def test_copies_are_in_global_memory_unless_said_otherwise():
    sch = _doubled()
    sch.cache_read("B", "A")
    sch.cache_write("B", 0)
    other = _doubled()
    other.cache_read("B", "A", "global")
    other.cache_write("B", 0, "global")
    assert_structural_equal(sch.mod, other.mod)


@pytest.mark.parametrize("kind", ["parallel", "vectorize", "unroll"])
def test_a_loop_with_a_kind_is_shown_the_way_out(kind):
    sch = _doubled()
    _, j = sch.get_loops("B")
    getattr(sch, kind)(j)
    with pytest.raises(NotSupported, match=rf"hint: split before {kind}; sch\.undo\(\) takes the last step back"):
        sch.split(j, [None, 4])
    sch.undo()
    assert len(sch.split(j, [None, 4])) == 2


@pytest.mark.parametrize("name", ["P", "product"])
def test_the_update_of_a_decomposed_reduction_is_offered(name):
    A = te.placeholder((8, 8), name="A")
    k = te.reduce_axis((0, 8), "k")
    sch = Schedule(te.create_prim_func([A, te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name=name)]))
    sch.decompose_reduction(name, sch.get_loops(name)[1])
    with pytest.raises(NoSuchBlock, match=f"did you mean '{name}_update'"):
        sch.get_block(name)
