"""lower_blocks: a block becomes the statements it stands for."""

from __future__ import annotations

import pytest

from loopwright.script import from_source
from loopwright.script import tir as T
from loopwright.transform import BlockStateLeft, RegionDoesNotMatch, lower_blocks, resolve_matches
from tests.transform.before_after import check, unchanged


def test_iterators_become_their_bindings_and_the_predicate_an_if():
    @T.prim_func
    def before(A: T.Buffer((10,)), B: T.Buffer((10,))):
        for i_0, i_1 in T.grid(3, 4):
            with T.block("B"):
                vi = T.axis.spatial(10, i_0 * 4 + i_1)
                T.where(i_0 * 4 + i_1 < 10)
                B[vi] = A[9 - vi]

    @T.prim_func
    def after(A: T.Buffer((10,)), B: T.Buffer((10,))):
        for i_0, i_1 in T.grid(3, 4):
            if i_0 * 4 + i_1 < 10:
                B[i_0 * 4 + i_1] = A[9 - (i_0 * 4 + i_1)]

    check(lower_blocks, before, after)


def test_nested_blocks():
    @T.prim_func
    def before(A: T.Buffer((4, 8)), B: T.Buffer((4, 8))):
        for i in range(4):
            with T.block("outer"):
                vi = T.axis.spatial(4, i)
                for j in range(8):
                    with T.block("inner"):
                        vj = T.axis.spatial(8, j)
                        B[vi, vj] = A[vi, 7 - vj]

    @T.prim_func
    def after(A: T.Buffer((4, 8)), B: T.Buffer((4, 8))):
        for i in range(4):
            for j in range(8):
                B[i, j] = A[i, 7 - j]

    check(lower_blocks, before, after)


def test_a_matched_region_is_replaced_by_its_buffer():
    @T.prim_func
    def before(A: T.Buffer((8, 16)), B: T.Buffer((8, 16))):
        for i, j in T.grid(2, 4):
            with T.block("tile"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4])
                T.writes(B[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4])
                a = T.match_buffer(A[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4], (4, 4), strides=(16, 1))
                b = T.match_buffer(B[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4], (4, 4), strides=(16, 1))
                for y, x in T.grid(4, 4):
                    b[y, x] = a[x, y]

    @T.prim_func
    def after(A: T.Buffer((8, 16)), B: T.Buffer((8, 16))):
        for i, j in T.grid(2, 4):
            for y, x in T.grid(4, 4):
                B[i * 4 + y, j * 4 + x] = A[i * 4 + x, j * 4 + y]

    check(lower_blocks, before, after)


def test_leading_unit_dimensions_may_be_dropped():
    @T.prim_func
    def before(A: T.Buffer((3, 4)), B: T.Buffer((3, 4))):
        for i in range(3):
            with T.block("row"):
                vi = T.axis.spatial(3, i)
                T.reads(A[vi, 0:4])
                T.writes(B[vi, 0:4])
                a = T.match_buffer(A[vi, 0:4], (4,))
                b = T.match_buffer(B[vi, 0:4], (4,))
                for j in range(4):
                    b[j] = a[3 - j]

    @T.prim_func
    def after(A: T.Buffer((3, 4)), B: T.Buffer((3, 4))):
        for i in range(3):
            for j in range(4):
                B[i, j] = A[i, 3 - j]

    check(lower_blocks, before, after)


def test_a_match_of_a_match():
    @T.prim_func
    def before(A: T.Buffer((8, 8)), B: T.Buffer((2,))):
        for i in range(2):
            with T.block("outer"):
                vi = T.axis.spatial(2, i)
                T.reads(A[vi * 4 : vi * 4 + 4, 2:6])
                T.writes(B[vi])
                a = T.match_buffer(A[vi * 4 : vi * 4 + 4, 2:6], (4, 4), strides=(8, 1))
                with T.block("inner"):
                    T.reads(a[1, 1:3])
                    T.writes(B[vi])
                    c = T.match_buffer(a[1, 1:3], (2,))
                    B[vi] = c[0] + c[1]

    @T.prim_func
    def after(A: T.Buffer((8, 8)), B: T.Buffer((2,))):
        for i in range(2):
            B[i] = A[i * 4 + 1, 3] + A[i * 4 + 1, 4]

    check(lower_blocks, before, after)


def test_symbolic_strides_are_filled_in():
    @T.prim_func
    def before(A: T.Buffer((4, 6)), B: T.Buffer((4,), "int32")):
        for i in range(4):
            with T.block("row"):
                vi = T.axis.spatial(4, i)
                s0 = T.int32()
                s1 = T.int32()
                T.reads(A[vi, 0:6])
                T.writes(B[vi])
                a = T.match_buffer(A[vi, 0:6], (1, 6), strides=(s0, s1), offset_factor=1)
                B[vi] = s0 + s1 + a.elem_offset

    @T.prim_func
    def after(A: T.Buffer((4, 6)), B: T.Buffer((4,), "int32")):
        for i in range(4):
            B[i] = 7 + i * 6

    check(lower_blocks, before, after)


def test_a_promised_stride_must_be_true():
    @T.prim_func
    def func(A: T.Buffer((8, 16)), B: T.Buffer((2,))):
        for i in range(2):
            with T.block("tile"):
                vi = T.axis.spatial(2, i)
                T.reads(A[vi * 4 : vi * 4 + 4, 0:4])
                T.writes(B[vi])
                a = T.match_buffer(A[vi * 4 : vi * 4 + 4, 0:4], (4, 4), strides=(4, 1), offset_factor=1)
                B[vi] = a[0, 0]

    with pytest.raises(RegionDoesNotMatch, match="match_buffer a: declared stride 4, but the region of A has 16"):
        lower_blocks(func)


def test_what_stands_before_must_have_run():
    @T.prim_func
    def with_buffer(A: T.Buffer((4,))):
        B = T.alloc_buffer((4,))
        for i in range(4):
            with T.block("A"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi]

    @T.prim_func
    def with_init(A: T.Buffer((4, 4)), B: T.Buffer((4,))):
        for i, k in T.grid(4, 4):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]

    with pytest.raises(BlockStateLeft, match=r"block root still has alloc_buffers[\s\S]*run write_allocations before"):
        lower_blocks(with_buffer)
    with pytest.raises(BlockStateLeft, match=r"block B still has an init[\s\S]*run write_inits before"):
        lower_blocks(with_init)


def test_without_blocks_nothing_changes():
    @T.prim_func
    def func(A: T.Buffer((4,)), n: T.int32):
        for i in range(4):
            if i < n:
                A[i] = T.float32(0)

    unchanged(lower_blocks, lower_blocks(func))


@pytest.mark.parametrize(
    ("promise", "use", "problem"),
    [
        ("offset_factor=8", "a[0] = 1.0", None),
        ("offset_factor=16", "a[0] = 1.0", r"declared offset_factor 16, but the region of A has an offset of v?i \* 8"),
        ("align=32", "a[0] = 1.0", r"declared align 32, but the region of A has memory aligned to 4 bytes"),
        ('scope="shared"', "a[0] = 1.0", r'declared scope "shared", but the region of A has scope "global"'),
        ("offset_factor=1", 'T.evaluate(T.call_extern("int32", "f", a.access_ptr("w")))', None),
        ("", "a[0] = 1.0", None),
        ("", 'T.evaluate(T.call_extern("int32", "f", a.access_ptr("w")))', "declared elem_offset 0, but the region"),
        ("", 'T.evaluate(T.call_extern("int32", "f", a.data))', r"elem_offset 0, but the region of A has an offset"),
    ],
)
def test_what_a_matched_buffer_promises(promise, use, problem):
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer(64)):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            T.reads()
            T.writes(A[vi * 8 : vi * 8 + 8])
            a = T.match_buffer(A[vi * 8 : vi * 8 + 8], (8,), {promise})
            {use}
""")
    for run in (lower_blocks, resolve_matches):
        if problem is None:
            run(func)
        else:
            with pytest.raises(RegionDoesNotMatch, match=problem):
                run(func)
