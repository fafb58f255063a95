"""Every pass that scripts know by another name, and that we have, runs under that name."""

from __future__ import annotations

import pytest

from loopwright import tir
from loopwright.compat.pass_names import DEVICE_PASSES, PEER_FORMS, PEER_PASSES
from loopwright.ir import IRModule
from loopwright.ir.passes import Sequential
from loopwright.ir.verifier import verify
from loopwright.runtime.errors import NotBuilt
from loopwright.script import tir as T
from loopwright.target import Target
from loopwright.transform import lower
from tests.transform.before_after import PLAIN, same_results


@T.prim_func
def small(A: T.Buffer((8, 10)), C: T.Buffer((8, 10))):
    B = T.alloc_buffer((8, 10))
    for i in T.parallel(8):
        for j_0 in range(3):
            for j_1 in T.vectorized(4):
                with T.block("B"):
                    vi = T.axis.spatial(8, i)
                    vj = T.axis.spatial(10, j_0 * 4 + j_1)
                    T.where(j_0 * 4 + j_1 < 10)
                    B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j, k in T.grid(8, 10, 3):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + B[vi, vj]


BUILT = [name for name, ours in PEER_PASSES.items() if ours]
ARGUMENTS = {"NarrowDataType": (32,), "BindTarget": (Target("llvm"),)}
# What has to be gone before a pass runs; the others take the program as it is written.
AFTER_BLOCKS = ["CompactBufferAllocation", "FlattenBuffer", "StorageFlatten", "InjectVirtualThread", "StorageRewrite"]
AFTER_FLAT = ["VectorizeLoop", "LoopPartition", "NarrowDataType"]


@pytest.mark.parametrize("name", BUILT)
def test_it_runs_and_keeps_the_values(name):
    run = getattr(tir.transform, name)(*ARGUMENTS.get(name, ()))
    stage = small
    if name in AFTER_BLOCKS:
        stage = lower(small, PLAIN, stop_after="lower_blocks")["small"]
    elif name in AFTER_FLAT:
        stage = lower(small, PLAIN, stop_after="flatten_buffers")["small"]
    elif name in ("LowerOpaqueBlock", "PlanAndUpdateBufferAllocationLocation", "ConvertBlocksToOpaque"):
        stage = lower(small, PLAIN, stop_after="write_inits")["small"]
        if name == "LowerOpaqueBlock":
            stage = lower(small, PLAIN, stop_after="write_allocations")["small"]
    with PLAIN:
        got = run(IRModule({"small": stage}))["small"]
    verify(got)
    same_results(small, got)


MISSING = [name for name, ours in PEER_PASSES.items() if not ours and name not in (*PEER_FORMS, *DEVICE_PASSES)]


@pytest.mark.parametrize("name", MISSING)
def test_the_others_say_that_they_are_not_built(name):
    with pytest.raises(NotBuilt, match=f"tir.transform.{name}"):
        getattr(tir.transform, name)()


@pytest.mark.parametrize("name", DEVICE_PASSES)
def test_a_pass_for_a_device_keeps_a_program_without_work_for_it(name):
    assert getattr(tir.transform, name)()(small) is small


def test_a_pipeline_of_names():
    """The order that lowering scripts write down by hand."""
    names = (
        "LowerInitBlock PlanAndUpdateBufferAllocationLocation LowerOpaqueBlock CompactBufferAllocation Simplify "
        "InjectSoftwarePipeline FlattenBuffer LoopPartition VectorizeLoop InjectVirtualThread InjectDoubleBuffer "
        "StorageRewrite UnrollLoop RenormalizeSplitPattern RemoveNoOp RewriteUnsafeSelect HoistIfThenElse "
        "CommonSubexprElimTIR"
    ).split()
    run = Sequential([getattr(tir.transform, name)() for name in names])
    with PLAIN:
        got = run(IRModule({"small": small}))["small"]
    verify(got)
    same_results(small, got)
