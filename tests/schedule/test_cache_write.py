"""cache_write: a block writes a new buffer, which is copied out after it."""

from __future__ import annotations

import pytest

from loopwright import te, tir
from loopwright.schedule.primitives.memory.cache_read import NotAConsumer
from loopwright.schedule.primitives.memory.cache_write import SeveralWriters
from loopwright.schedule.rewrite.buffers import NoSuchBuffer
from loopwright.script import tir as T
from tests.schedule.steps import chain, check, matmul, refused
from tests.schedule.test_cache_read import shared_loop


def test_the_block_writes_the_copy_and_its_init_too():
    before = matmul(4, 3, 2)
    sch = tir.Schedule(before)
    copy = sch.cache_write("C", 0, "local")

    @T.prim_func
    def expected(A: T.Buffer((4, 2)), B: T.Buffer((2, 3)), C: T.Buffer((4, 3))):
        T.func_attr({"tir.noalias": True})
        C_local = T.alloc_buffer((4, 3), scope="local")
        for i, j, k in T.grid(4, 3, 2):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C_local[vi, vj] = T.float32(0)
                C_local[vi, vj] = C_local[vi, vj] + A[vi, vk] * B[vk, vj]
        for ax0, ax1 in T.grid(4, 3):
            with T.block("C_local"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                C[v0, v1] = C_local[v0, v1]

    assert sch.get(copy).name_hint == "C_local"
    check(sch, before, expected)


def test_a_buffer_of_unknown_size_is_copied_as_far_as_it_goes():
    n = te.var("n")
    A = te.placeholder((n, 3), name="A")
    B = te.compute(((n + 4095) // 4096, 3), lambda i, j: A[i * 4096, j], name="B")
    sch = tir.Schedule(te.create_prim_func([A, B]))
    copy = sch.cache_write("B", 0, "local")
    assert [str(sch.get(loop).extent) for loop in sch.get_loops(copy)] == ["(n + 4095) // 4096", "3"]


def test_consumers_keep_the_original_unless_listed():
    before = chain()
    sch = tir.Schedule(before)
    sch.cache_write("D", 0, "global")
    assert sch.get(sch.get_block("E")).reads[0].buffer.name == "D"
    check(sch, before)

    sch = tir.Schedule(before)
    sch.cache_write("D", 0, "global", consumer_blocks=["E"])
    assert sch.get(sch.get_block("E")).reads[0].buffer.name == "D_global"
    check(sch, before)


def test_the_copy_stands_where_readers_in_the_same_loop_see_it():
    before = chain()
    sch = tir.Schedule(before)
    m = sch.get_loops("E")[0]
    sch.compute_at("D", m)
    copy = sch.cache_write("D", 0, "local")
    assert sch.get_loops(copy)[0].name == m.name
    check(sch, before)


def test_guarded_tiles_are_copied_out_whole():
    before = matmul(7, 5, 3)
    sch = tir.Schedule(before)
    i, j, k = sch.get_loops("C")
    sch.split(i, [None, 4])
    sch.split(j, [None, 4])
    sch.cache_write("C", "C", "global")
    check(sch, before)


@pytest.mark.parametrize("extent", [1, 2, 7])
def test_boundary_shapes(extent):
    before = matmul(extent, 1, extent)
    sch = tir.Schedule(before)
    sch.cache_write("C", 0, "local")
    check(sch, before)


def test_several_writers_are_refused_with_what_would_work(with_suggestions):
    sch = tir.Schedule(matmul())
    i = sch.get_loops("C")[0]
    sch.decompose_reduction("C", i)
    update = sch.get_block("C_update")
    error = refused(
        sch, SeveralWriters, r"C is written by block 'C_update' and also by 'C_init'", "cache_write", update, 0, "local"
    )
    assert any(str(text).startswith('sch.stage("C_update"') for text in error.suggestions)


def test_what_is_not_there_is_refused():
    sch = tir.Schedule(matmul())
    refused(sch, NoSuchBuffer, r"block 'C' writes no buffer 'A'", "cache_write", "C", "A", "local")


@T.prim_func
def nested(A: T.Buffer((4, 3)), C: T.Buffer(4), D: T.Buffer(4)):
    for i in range(4):
        with T.block("rows"):
            vi = T.axis.spatial(4, i)
            for k in range(3):
                with T.block("C"):
                    vk = T.axis.reduce(3, k)
                    with T.init():
                        C[vi] = T.float32(0)
                    C[vi] = C[vi] + A[vi, vk]
    for i in range(4):
        with T.block("D"):
            vi = T.axis.spatial(4, i)
            D[vi] = C[vi]


def test_consumers_outside_the_block_around_are_refused():
    sch = tir.Schedule(nested)
    problem = r"block 'D' is not in block 'rows', where the new buffer would live(.|\n)*in block 'rows', C is read"
    refused(sch, NotAConsumer, problem, "cache_write", "C", 0, "local", consumer_blocks=["D"])


def test_a_size_is_no_larger_than_its_type_holds():
    n = te.var("n")
    A, B = te.placeholder((n, 8), name="A"), te.placeholder((8, 4), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((n, 4), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    D = te.compute((n, 4), lambda i, j: C[i, j] + 1.0, name="D")
    sch = tir.Schedule(te.create_prim_func([A, B, D]))
    sch.cache_write("C", 0, "global")
    assert sch.is_proved


@pytest.mark.parametrize("listed", [None, ["C"], ["D"], ["C", "D"]])
def test_a_reader_in_a_shared_loop_and_one_behind_it(listed):
    sch = tir.Schedule(shared_loop)
    copy = sch.cache_write("B", 0, "global", consumer_blocks=listed)
    in_the_loop = listed is None or "C" not in listed  # C reads the old buffer, in the iteration that writes it
    assert [loop.name for loop in sch.get_loops(copy)] == (["i", "ax0"] if in_the_loop else ["ax0"])
    check(sch, shared_loop)
    assert sch.is_proved
