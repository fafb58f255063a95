"""Samples: seeded draws, recorded decisions."""

from __future__ import annotations

from collections import Counter
from math import prod

import pytest

from loopwright import te, tir
from loopwright.ir import structural_equal
from loopwright.schedule.errors import BadStepArgument, HandleGone
from loopwright.schedule.primitives.sample import sample_compute_location as location
from loopwright.script import from_source
from loopwright.script import tir as T
from tests.schedule.steps import chain, check, check_replay, matmul, refused


def copy_of(extent):
    A = te.placeholder((extent,), name="A")
    return te.create_prim_func([A, te.compute((extent,), lambda i: A[i], name="B")])


@pytest.mark.parametrize("extent", [1, 2, 7, 12, 64, 97, 360])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_perfect_tile(extent, n):
    sch = tir.Schedule(copy_of(extent), seed=7)
    (loop,) = sch.get_loops("B")
    for _ in range(20):
        factors = sch.sample_perfect_tile(loop, n, 16)
        assert len(factors) == n
        assert prod(factors) == extent
        assert n == 1 or factors[-1] <= 16


def test_perfect_tile_draws_every_tiling_alike():
    sch = tir.Schedule(copy_of(12), seed=1)
    (loop,) = sch.get_loops("B")
    seen = Counter(tuple(sch.sample_perfect_tile(loop, 3, -1)) for _ in range(1800))
    assert len(seen) == 18  # the ways to write 12 as a product of three factors in order
    assert all(50 < count < 160 for count in seen.values())


def test_equal_seeds_give_equal_samples():
    drawn = []
    for seed in (5, 5, 6):
        sch = tir.Schedule(copy_of(720), seed=seed)
        (loop,) = sch.get_loops("B")
        drawn.append([tuple(sch.sample_perfect_tile(loop, 4)) for _ in range(10)])
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_decision_is_recorded_and_replayed():
    func = copy_of(24)
    sch = tir.Schedule(func, seed=2)
    (loop,) = sch.get_loops("B")
    factors = sch.sample_perfect_tile(loop, 3, 16)
    sch.split(loop, factors)
    assert sch.trace.decisions == {2: [int(factor) for factor in factors]}
    assert f"decision={[int(factor) for factor in factors]}" in sch.trace.as_python()[2]
    assert "factors=[v2, v3, v4]" in sch.trace.as_python()[3]
    check(sch, func)


def test_a_stale_decision_is_repaired_from_the_inside_out():
    sch = tir.Schedule(copy_of(12))
    (loop,) = sch.get_loops("B")
    assert sch.sample_perfect_tile(loop, 3, 16, decision=[2, 4, 8]) == [1, 2, 6]
    assert sch.sample_perfect_tile(loop, 2, 4, decision=[1, 24]) == [3, 4]
    assert sch.sample_perfect_tile(loop, 2, 4, decision=[1, 12]) == [1, 12]  # it fits the loop: it is taken as it is
    assert sch.sample_perfect_tile(loop, 2, 16, decision=[3, 4]) == [3, 4]
    assert sch.trace.decisions[2] == [1, 2, 6]


def test_a_trace_of_another_size_is_repaired():
    sch = tir.Schedule(copy_of(24), seed=1)
    (loop,) = sch.get_loops("B")
    sch.split(loop, sch.sample_perfect_tile(loop, 2, 16, decision=[3, 8]))
    smaller = copy_of(20)
    other = tir.Schedule(smaller)
    sch.trace.apply_to_schedule(other)
    assert other.trace.decisions[2] == [4, 5]
    check(other, smaller)


def test_symbolic_extent():
    @T.prim_func
    def func(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n,))
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi]

    sch = tir.Schedule(func)
    assert sch.sample_perfect_tile(sch.get_loops("B")[0], 3) == [-1, 1, 1]


def test_categorical():
    sch = tir.Schedule(copy_of(4), seed=9)
    drawn = Counter(int(sch.sample_categorical([10, 20, 30], [0.0, 0.25, 0.75])) for _ in range(400))
    assert set(drawn) == {20, 30}
    assert drawn[30] > 2 * drawn[20]
    assert sch.sample_categorical([10, 20], [0.5, 0.5], decision=1) == 20
    assert sch.trace.decisions[400] == 1


def test_with_decision_changes_one_sample():
    func = copy_of(8)
    sch = tir.Schedule(func, seed=1)
    (loop,) = sch.get_loops("B")
    sch.split(loop, [None, sch.sample_categorical([2, 4], [0.5, 0.5], decision=0)])
    inst = sch.trace.insts[2]
    assert sch.trace.get_decision(inst) == 0
    other = tir.Schedule(func)
    sch.trace.with_decision(inst, 1).apply_to_schedule(other)
    assert other.get(other.get_loops("B")[1]).extent.value == 4
    assert sch.trace.get_decision(inst) == 0


def test_sampling_refuses():
    sch = tir.Schedule(copy_of(8))
    (loop,) = sch.get_loops("B")
    refused(sch, BadStepArgument, "2 candidates and 1 probabilities", "sample_categorical", [1, 2], [1.0])
    refused(sch, BadStepArgument, "the decision 2 is not the position", "sample_categorical", [1, 2], [0.5, 0.5], 2)
    refused(sch, BadStepArgument, "are not those of a choice", "sample_categorical", [1, 2], [0.0, 0.0])
    refused(sch, BadStepArgument, "n is 0", "sample_perfect_tile", loop, 0)
    refused(sch, BadStepArgument, "max_innermost_factor is 0", "sample_perfect_tile", loop, 2, 0)
    refused(
        sch, BadStepArgument, r"the decision \[2, 4\] has 2 factors, not 3", "sample_perfect_tile", loop, 3, 16, [2, 4]
    )


# --- partitioned tiles and compute locations ----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(1, 9))
def test_a_partitioned_tile(seed):
    sch = tir.Schedule(matmul(48, 6, 4), seed=seed)
    i, j, _ = sch.get_loops("C")
    factors = sch.sample_partitioned_tile(i, 4, partition_pos=2, innerpart_factor=4)
    assert prod(factors) == 48 and prod(factors[2:]) % 4 == 0
    assert prod(sch.sample_partitioned_tile(j, 2, 0, 6)) == 6
    sch.split(i, factors)
    check_replay(sch, matmul(48, 6, 4))


def test_a_partitioned_tile_repairs_a_stale_decision():
    sch = tir.Schedule(matmul(48, 6, 4))
    i = sch.get_loops("C")[0]
    assert sch.sample_partitioned_tile(i, 3, 1, 4, decision=[3, 4, 4]) == [3, 4, 4]
    repaired = sch.sample_partitioned_tile(i, 3, 1, 4, decision=[5, 3, 3])
    assert prod(repaired) == 48 and prod(repaired[1:]) % 4 == 0
    assert sch.sample_partitioned_tile(i, 1, 1, 1) == [48]


def test_wrong_partitions():
    sch = tir.Schedule(matmul(6, 5, 4))
    i = sch.get_loops("C")[0]
    refused(sch, BadStepArgument, "no inner part is a multiple of 4", "sample_partitioned_tile", i, 2, 1, 4)
    refused(sch, BadStepArgument, "partition_pos 3", "sample_partitioned_tile", i, 2, 3)
    refused(sch, BadStepArgument, "has 1 factors, not 2", "sample_partitioned_tile", i, 2, decision=[6])


@pytest.mark.long
def test_compute_locations():
    before = chain()
    seen = set()
    for seed in range(1, 30):
        sch = tir.Schedule(before, seed=seed)
        loop = sch.sample_compute_location("E")
        seen.add(sch.trace.decisions[1])
        sch.compute_at("E", loop)
        check_replay(sch, before)
    assert seen == {-2, -1, 0, 1}  # inlined, where it stands, and the data loops of F


@pytest.mark.parametrize(("decision", "expected"), [(-2, -2), (-1, -1), (0, 0), (1, 1), (2, 1), (9, 1)])
def test_a_stale_location_falls_to_the_one_before(decision, expected):
    sch = tir.Schedule(chain())
    loop = sch.sample_compute_location("E", decision=decision)
    assert sch.trace.decisions[1] == expected
    assert (sch.get_sref(loop) == tir.schedule.StmtSRef.inline_mark()) == (expected == -2)
    assert (sch.get_sref(loop) == tir.schedule.StmtSRef.root_mark()) == (expected == -1)


def test_a_replay_proves_a_location_with_its_other_steps(monkeypatch):
    sch = tir.Schedule(chain())
    sch.compute_at("E", sch.sample_compute_location("E", decision=1))
    monkeypatch.setattr(location, "find_mismatch", lambda *_: pytest.fail("the sample is proved by itself"))
    again = tir.Schedule(chain())
    sch.trace.apply_to_schedule(again)
    assert again.trace.decisions == {1: 1}
    assert again.is_proved
    assert structural_equal(again.mod["main"], sch.mod["main"])


@T.prim_func
def overwritten(A: T.Buffer(8, "int32"), B: T.Buffer(8, "int32")):
    C = T.alloc_buffer(8, "int32")
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = A[v] + 1
    for i in range(8):
        with T.block("A"):
            v = T.axis.spatial(8, i)
            A[v] = 0
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = C[v]


def test_a_replay_leaves_a_location_that_is_wrong():
    """The step can be built, and only its proof says that it is wrong."""
    sch = tir.Schedule(overwritten)
    sch.sample_compute_location("C", decision=-1)
    sch.trace.decisions[1] = 0
    sch.compute_at("C", sch.trace.insts[1].outputs[0])
    again = tir.Schedule(overwritten)
    sch.trace.apply_to_schedule(again)
    assert again.trace.decisions == {1: -1}
    assert again.is_proved
    assert structural_equal(again.mod["main"], overwritten)


def test_a_block_without_consumers_stays():
    sch = tir.Schedule(chain())
    loop = sch.sample_compute_location("F")
    assert sch.trace.decisions[1] == -1
    sch.compute_at("F", loop)
    refused(sch, HandleGone, "root_mark is no loop, but a place: where a block stands now", "unroll", loop)


def test_an_extent_of_very_many_divisors_is_distributed_prime_by_prime():
    extent = 897612484786617600  # 103680 divisors
    program = from_source(f"""
from loopwright.script import tir as T

@T.prim_func
def main(A: T.Buffer(1, "int32")):
    for i in range(T.int64({extent})):
        with T.block("A"):
            v = T.axis.reduce(T.int64({extent}), i)
            with T.init():
                A[0] = 0
            A[0] = A[0] + T.Cast("int32", v)
""")
    for n in (1, 2, 64):
        sch = tir.Schedule(program, seed=n)
        factors = [int(factor) for factor in sch.sample_perfect_tile(sch.get_loops("A")[0], n, 64)]
        assert len(factors) == n and prod(factors) == extent
        assert n == 1 or factors[-1] <= 64
