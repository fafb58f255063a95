"""Caches inside a block that stands for a tile hold the tile; copies stand beside those that use them."""

from loopwright.schedule import Schedule
from loopwright.script import tir as T
from tests.schedule.steps import assert_same_numbers


@T.prim_func
def tiles(A: T.Buffer((32,), "float32"), C: T.Buffer((32,), "float32")):
    for i in range(4):
        with T.block("tile"):
            vi = T.axis.spatial(4, i)
            T.reads(A[vi * 8 : vi * 8 + 8])
            T.writes(C[vi * 8 : vi * 8 + 8])
            for x in range(8):
                with T.block("C"):
                    vx = T.axis.spatial(8, x)
                    C[vi * 8 + vx] = A[vi * 8 + vx] * T.float32(2)


def test_a_cache_of_what_a_tile_reads():
    sch = Schedule(tiles)
    sch.cache_read("C", 0, "local")
    (cache,) = sch.get(sch.get_block("tile")).alloc_buffers
    assert [int(extent) for extent in cache.shape] == [8]
    assert [str(region) for region in sch.get(sch.get_block("C")).reads] == ["A_local[vx]"]
    assert_same_numbers(sch.mod["main"], tiles)


def test_a_cache_of_what_a_tile_writes():
    sch = Schedule(tiles)
    sch.cache_write("C", 0, "local")
    (cache,) = sch.get(sch.get_block("tile")).alloc_buffers
    assert [int(extent) for extent in cache.shape] == [8]
    assert [str(region) for region in sch.get(sch.get_block("C")).writes] == ["C_local[vx]"]
    assert_same_numbers(sch.mod["main"], tiles)


@T.prim_func
def chain(D: T.Buffer((8,), "float32"), E: T.Buffer((8,), "float32"), F: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            D[vi] = T.float32(1)
    for i in range(8):
        with T.block("E"):
            vi = T.axis.spatial(8, i)
            E[vi] = D[vi] + T.float32(1)
    for i in range(8):
        with T.block("F"):
            vi = T.axis.spatial(8, i)
            F[vi] = D[vi] + E[vi]


def names(sch):
    return [realize.block.name_hint for realize in sch.view().blocks_below(sch.view().root.block.body)]


def test_a_copy_stands_before_its_consumer():
    sch = Schedule(chain)
    sch.cache_read("F", 0, "global", consumer_blocks=["F"])
    assert names(sch) == ["D", "E", "D_global", "F"]
    assert_same_numbers(sch.mod["main"], chain)


def test_a_copy_stands_behind_the_consumers_of_the_cache():
    sch = Schedule(chain)
    sch.cache_write("D", 0, "global", consumer_blocks=["E", "F"])
    assert names(sch) == ["D", "E", "F", "D_global"]
    sch = Schedule(chain)
    sch.cache_write("D", 0, "global", consumer_blocks=["E"])
    assert names(sch) == ["D", "E", "D_global", "F"]
    assert_same_numbers(sch.mod["main"], chain)


def test_reindex_copies_beside_the_one_that_reads():
    sch = Schedule(tiles_after_others)
    sch.reindex("C", ("read", 0))
    assert names(sch) == ["B", "A_reindex", "C"]


@T.prim_func
def tiles_after_others(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = T.float32(1)
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[7 - vi]
