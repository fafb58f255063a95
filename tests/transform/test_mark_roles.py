"""mark_roles: loops that a schedule gave to roles become the parts of these roles."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.analysis.warp_roles import NotARole
from loopwright.evaluator import evaluate
from loopwright.ir import PrimFunc
from loopwright.script import from_source
from loopwright.script import tir as T
from loopwright.transform.on_request.mark_roles import mark_roles
from tests.transform.before_after import check, unchanged


def test_loops_become_parts_as_wide_as_their_threads():
    @T.prim_func
    def before(A: T.Buffer((6, 32)), B: T.Buffer((6, 32))):
        for _ in T.thread_binding(1, thread="blockIdx.x"):
            for i in T.serial(6, annotations={"warp_role_stages": 2}):
                S = T.decl_buffer((32,), scope="shared")
                for j in T.serial(32, annotations={"warp_role": "load"}):
                    S[j] = A[i, j]
                for y in T.thread_binding(16, thread="threadIdx.y", annotations={"warp_role": "use", "kept": 1}):
                    for x in T.thread_binding(4, thread="threadIdx.x"):
                        if y < 8:
                            B[i, y * 4 + x] = S[y * 4 + x]

    @T.prim_func
    def after(A: T.Buffer((6, 32)), B: T.Buffer((6, 32))):
        for _ in T.thread_binding(1, thread="blockIdx.x"):
            for i in T.serial(6, annotations={"warp_role_stages": 2}):
                S = T.decl_buffer((32,), scope="shared")
                with T.attr("load", "warp_role", 32):  # a warp, of which one thread does everything
                    for j in range(32):
                        S[j] = A[i, j]
                with T.attr("use", "warp_role", 64):
                    for y in T.thread_binding(16, thread="threadIdx.y", annotations={"kept": 1}):
                        for x in T.thread_binding(4, thread="threadIdx.x"):
                            if y < 8:
                                B[i, y * 4 + x] = S[y * 4 + x]

    check(mark_roles, before, after)


def test_neighbours_of_one_role_are_one_part():
    @T.prim_func
    def before(A: T.Buffer((6, 64)), B: T.Buffer((6, 64)), C: T.Buffer((6, 64))):
        for _ in T.thread_binding(1, thread="blockIdx.x"):
            for i in T.serial(6, annotations={"warp_role_stages": 2}):
                for x in T.thread_binding(64, thread="threadIdx.x", annotations={"warp_role": "a"}):
                    B[i, x] = A[i, x]
                for j in T.serial(64, annotations={"warp_role": "a"}):
                    B[i, j] = B[i, j] + T.float32(1)
                for x in T.thread_binding(64, thread="threadIdx.x", annotations={"warp_role": "b"}):
                    C[i, x] = A[i, x]

    @T.prim_func
    def after(A: T.Buffer((6, 64)), B: T.Buffer((6, 64)), C: T.Buffer((6, 64))):
        for _ in T.thread_binding(1, thread="blockIdx.x"):
            for i in T.serial(6, annotations={"warp_role_stages": 2}):
                with T.attr("a", "warp_role", 64):
                    for x in T.thread_binding(64, thread="threadIdx.x"):
                        B[i, x] = A[i, x]
                    for j in range(64):
                        B[i, j] = B[i, j] + T.float32(1)
                with T.attr("b", "warp_role", 64):
                    for x in T.thread_binding(64, thread="threadIdx.x"):
                        C[i, x] = A[i, x]

    check(mark_roles, before, after)


def test_programs_without_roles_stay():
    @T.prim_func
    def plain(A: T.Buffer(8)):
        for i in T.serial(8, annotations={"other": "load"}):
            A[i] = T.float32(1)

    unchanged(mark_roles, plain)


def marked(annotation: str, extent: str = "32") -> PrimFunc:
    function = from_source(f"""
@T.prim_func
def main(A: T.Buffer(64), n: T.int32):
    for i in T.serial(1, annotations={{"warp_role_stages": 1}}):
        for x in T.thread_binding({extent}, thread="threadIdx.x", annotations={{"warp_role": {annotation}}}):
            A[x] = T.float32(1)
""")
    result: PrimFunc = mark_roles(function)
    return result


def test_a_role_has_a_name():
    with pytest.raises(NotARole, match="the role of loop x is 3"):
        marked("3")


def test_a_role_has_a_constant_number_of_threads():
    with pytest.raises(NotARole, match="loop x of role load is n"):
        marked('"load"', "n")


def doubled(rows: int) -> tir.Schedule:
    """Rows are staged in shared memory by one role, and doubled by another."""
    A = te.placeholder((rows, 64), name="A")
    B = te.compute((rows, 64), lambda i, j: A[i, j] * 2, name="B")
    sch = tir.Schedule(te.create_prim_func([A, B]))
    block = sch.get_block("B")
    load = sch.cache_read(block, 0, "shared")
    i, j = sch.get_loops(block)
    tile, pair, row = sch.split(i, [None, 2, 2])
    sch.compute_at(load, pair)
    sch.bind(tile, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    sch.annotate(pair, "warp_role_stages", 2)
    sch.annotate(sch.get_loops(load)[-2], "warp_role", "load")
    sch.annotate(row, "warp_role", "double")
    return sch


@pytest.mark.parametrize("rows", [1, 4, 7, 12])
def test_a_schedule_gives_its_loops_to_roles(rows):
    sch = doubled(rows)
    a = np.random.default_rng(0).integers(-9, 9, (rows, 64)).astype("float32")
    got = np.zeros_like(a)
    evaluate(sch.mod["main"], a, got)
    np.testing.assert_array_equal(got, a * 2)
    module = lw.build(sch.mod, target="cuda -model=emulated -arch=sm_90")
    assert ("tensor_copy" in module.get_source("cuda")) == (rows > 1)
    for order in ("forwards", "backwards", "random"):
        module.set_thread_order(order)
        got = np.zeros_like(a)
        module(a, got)
        np.testing.assert_array_equal(got, a * 2)
