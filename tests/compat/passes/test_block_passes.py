"""Passes that scripts call by hand on functions with blocks, in the forms they expect."""

from __future__ import annotations

import pytest

from loopwright import tir
from loopwright.compat.passes.device_passes import DeviceWorkLeft
from loopwright.compat.passes.kernel_checks import TooMuchMemory
from loopwright.compat.passes.unify_thread_bindings import ThreadExtentsDiffer
from loopwright.ir import AttrStmt, IRModule, assert_structural_equal, collect
from loopwright.script import tir as T
from loopwright.target import Target
from tests.transform.before_after import same_results


@T.prim_func(private=True)
def row_sums(A: T.Buffer((4, 8)), C: T.Buffer((4,))):
    for i, k in T.grid(4, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]


def test_an_init_becomes_a_branch():
    @T.prim_func(private=True)
    def expected(A: T.Buffer((4, 8)), C: T.Buffer((4,))):
        for i, k in T.grid(4, 8):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.reads(A[vi, vk])
                T.writes(C[vi])
                if vk == 0:
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]

    assert_structural_equal(tir.transform.LowerInitBlock()(row_sums), expected)


def test_an_init_that_comes_first_in_no_iteration_becomes_a_nest():
    sch = tir.Schedule(row_sums)
    i, k = sch.get_loops("C")
    outer, inner = sch.split(sch.fuse(i, k), [None, 3])
    sch.reorder(inner, outer)  # the first update of a cell is not that of vk == 0
    lowered = tir.transform.LowerInitBlock()(sch.mod["main"])
    assert "C_init" in str(lowered)


def test_a_buffer_moves_to_the_loop_that_uses_it():
    @T.prim_func(private=True)
    def two_steps(A: T.Buffer((4, 8)), C: T.Buffer((4, 8))):
        B = T.alloc_buffer((4, 8))
        for i in range(4):
            for j in range(8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] + T.float32(1)
            for j in range(8):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = B[vi, vj]

    moved = tir.transform.PlanAndUpdateBufferAllocationLocation()(two_steps)
    inner = moved.body.block.body.body.block
    assert not moved.body.block.alloc_buffers and inner.alloc_buffers[0].name == "B"
    assert [str(region) for region in (*inner.reads, *inner.writes)] == ["A[i, 0:8]", "C[i, 0:8]"]


def test_a_buffer_stays_above_a_loop_that_carries_its_values():
    @T.prim_func(private=True)
    def carried(C: T.Buffer((4,))):
        B = T.alloc_buffer((5,))
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi + 1] = T.float32(1)
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = T.if_then_else(vi > 0, B[vi], T.float32(0))

    moved = tir.transform.PlanAndUpdateBufferAllocationLocation()(carried)
    assert moved.body.block.alloc_buffers[0].name == "B"


def test_opaque_blocks_become_statements():
    @T.prim_func(private=True)
    def before(C: T.Buffer((8,))):
        for i in T.thread_binding(4, thread="threadIdx.x"):
            for j in T.serial(1):
                with T.block(""):
                    T.where(i < 3)
                    B = T.alloc_buffer((2,), scope="local")
                    B[0] = T.float32(1)
                    C[i + j] = B[0]

    @T.prim_func(private=True)
    def expected(C: T.Buffer((8,))):
        i = T.launch_thread("threadIdx.x", 4)
        B = T.decl_buffer((2,), scope="local")
        if i < 3:
            B[0] = T.float32(1)
            C[i] = B[0]

    assert_structural_equal(tir.transform.LowerOpaqueBlock()(before), expected, map_free_vars=True)


def test_flat_memory_keeps_blocks_and_axis_separators():
    @T.prim_func(private=True)
    def before(A: T.Buffer((4, 8), "bool")):
        B = T.alloc_buffer((2, 3, 5), axis_separators=[1])
        for i, j in T.grid(4, 8):
            with T.block("a"):
                T.reads(A[i, j])
                T.writes(B[0, 0, j])
                B[0, 0, j] = T.if_then_else(A[i, j], T.float32(1), T.float32(0))

    @T.prim_func(private=True)
    def expected(a: T.Buffer((4, 8), "bool")):
        B = T.alloc_buffer((2, 15), axis_separators=[1])
        A = T.Buffer((32,), "int8", data=a.data)
        for i, j in T.grid(4, 8):
            with T.block("a"):
                T.reads(A[i * 8 + j])
                T.writes(B[0, j])
                B[0, j] = T.if_then_else(T.Cast("bool", A[i * 8 + j]), T.float32(1), T.float32(0))

    assert_structural_equal(tir.transform.FlattenBuffer()(before), expected)


def test_loops_of_one_thread_axis_become_one():
    @T.prim_func(private=True)
    def before(A: T.Buffer((2, 4)), B: T.Buffer((2, 4))):
        for i in T.thread_binding(2, "blockIdx.x"):
            for j in T.thread_binding(4, "threadIdx.x"):
                A[i, j] = T.float32(1)
            for k in T.thread_binding(4, "threadIdx.x"):
                B[i, k] = A[i, k]

    @T.prim_func(private=True)
    def expected(A: T.Buffer((2, 4)), B: T.Buffer((2, 4))):
        for bx in T.thread_binding(2, "blockIdx.x"):
            for tx in T.thread_binding(4, "threadIdx.x"):
                A[bx, tx] = T.float32(1)
                B[bx, tx] = A[bx, tx]

    assert_structural_equal(tir.transform.UnifyThreadBinding()(before), expected)


def test_loops_of_one_thread_axis_have_one_extent():
    @T.prim_func
    def before(A: T.Buffer((8,))):
        for _ in T.thread_binding(1, "blockIdx.x"):
            for j in T.thread_binding(4, "threadIdx.x"):
                A[j] = T.float32(1)
            for k in T.thread_binding(2, "threadIdx.x"):
                A[4 + k] = T.float32(1)

    with pytest.raises(ThreadExtentsDiffer, match=r"bound to threadIdx.x with the extents 4 and 2"):
        tir.transform.UnifyThreadBinding()(before)


def test_a_device_region_becomes_a_kernel():
    @T.prim_func
    def main(A: T.Buffer((16,)), n: T.int32):
        i = T.launch_thread("threadIdx.x", 16)
        A[i] = T.Cast("float32", n)

    func = main.with_attr("target", Target("cuda", host="llvm"))
    marked = tir.transform.AnnotateDeviceRegions()(IRModule({"main": func}))
    assert collect(marked["main"].body, AttrStmt)[0].attr_key == "target"
    split = tir.transform.SplitHostDevice()(marked)
    kernel = split["main_kernel"]
    assert [param.name for param in kernel.params] == ["A", "n"] and kernel.attrs["target"].kind.name == "cuda"
    assert "main_kernel" in str(split["main"])


def test_a_pass_for_a_device_refuses_its_work():
    @T.prim_func
    def copies():
        with T.block("copy"):
            T.block_attr({"auto_copy": 1})
            T.evaluate(0)

    with pytest.raises(DeviceWorkLeft, match="LowerAutoCopy is not built, and there is work for it: an automatic copy"):
        tir.transform.LowerAutoCopy()(copies)


def test_vtcm_limit():
    @T.prim_func
    def uses():
        A = T.decl_buffer((64,), "int8", scope="global.vtcm")
        A[0] = T.int8(0)

    tir.transform.VerifyVTCMLimit(64)(uses)
    with pytest.raises(TooMuchMemory, match=r"64 bytes in global.vtcm at a time, and there are 63"):
        tir.transform.VerifyVTCMLimit(63)(uses)


def test_a_buffer_of_a_block_shrinks_to_what_conditions_leave():
    @T.prim_func(private=True)
    def before(A: T.Buffer((16, 16)), C: T.Buffer((16, 16))):
        for i in range(16):
            with T.block(""):
                B = T.alloc_buffer((16, 16))
                for j in range(16):
                    with T.block("B"):
                        vj = T.axis.spatial(16, j)
                        if 4 <= vj and vj < 12:
                            B[i, vj] = A[i, vj]
                            C[i, vj] = B[i, vj]

    @T.prim_func(private=True)
    def expected(A: T.Buffer((16, 16)), C: T.Buffer((16, 16))):
        for i in range(16):
            with T.block(""):
                T.reads(A[i, 0:16])
                T.writes(C[i, 0:16])
                B = T.alloc_buffer((1, 8))
                for j in range(16):
                    with T.block("B"):
                        vj = T.axis.spatial(16, j)
                        T.reads(A[i, vj], B[0, vj - 4])
                        T.writes(B[0, vj - 4], C[i, vj])
                        if 4 <= vj and vj < 12:
                            B[0, vj - 4] = A[i, vj]
                            C[i, vj] = B[0, vj - 4]

    assert_structural_equal(tir.transform.CompactBufferAllocation()(before), expected)


def test_a_software_pipeline_of_blocks():
    @T.prim_func
    def before(A: T.Buffer((16, 4)), C: T.Buffer((16, 4))):
        for i in T.serial(16, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
            with T.block("both"):
                T.reads(A[i, 0:4])
                T.writes(C[i, 0:4])
                B = T.alloc_buffer((16, 4))
                for j in range(4):
                    with T.block("B"):
                        B[i, j] = A[i, j] * T.float32(2)
                for j in range(4):
                    with T.block("C"):
                        C[i, j] = B[i, j] + T.float32(1)

    run = tir.transform.InjectSoftwarePipeline()
    pipelined = run(before)
    assert "T.alloc_buffer((2, 16, 4))" in str(pipelined) and "range(15)" in str(pipelined)
    same_results(before, pipelined)
