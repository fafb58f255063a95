"""split_host_device: launches become kernels that the host calls; what else the pipeline for GPUs leaves."""

from __future__ import annotations

import pytest

from loopwright import te
from loopwright.as_module import as_module
from loopwright.ir import BufferLoad, For, ForKind, collect, collect_statements
from loopwright.ir.annotations import LAUNCH_PARAMS
from loopwright.script import ir as I
from loopwright.script import tir as T
from loopwright.transform import lower, split_host_device
from loopwright.transform.on_request.split_host_device import NotInAKernel


@I.ir_module
class Scaled:
    @T.prim_func
    def main(a: T.handle, B: T.Buffer(64), s: T.float32):
        T.func_attr({"tir.noalias": True, "global_symbol": "main"})
        n = T.int32()
        A = T.match_buffer(a, (n,))
        blocks = T.launch_thread("blockIdx.x", n)
        tx = T.launch_thread("threadIdx.x", 64)
        B[tx] = A[blocks] * s


def test_a_kernel_takes_pointers_and_then_scalars():
    module = split_host_device(Scaled)
    kernel = module["main_kernel"]
    assert [param.name for param in kernel.params] == ["A", "B", "n", "s"]
    assert [param.dtype.kind for param in kernel.params] == ["handle", "handle", "int", "float"]
    assert list(kernel.attrs[LAUNCH_PARAMS]) == ["blockIdx.x", "threadIdx.x"]

    call = module["main"].body.value
    assert call.op.name == "main_kernel"
    assert [getattr(argument, "name", argument) for argument in call.args[:5]] == ["A", "B", "n", "s", "n"]
    assert int(call.args[5]) == 64


def test_each_launch_has_a_name_of_its_own():
    @I.ir_module
    class Two:
        @T.prim_func
        def main(A: T.Buffer(64)):
            with T.launch_thread("threadIdx.x", 64) as tx:
                A[tx] = T.float32(1)
            for k in range(3):
                with T.launch_thread("threadIdx.x", 32) as tx:
                    A[tx] = A[tx] + T.float32(k)

        @T.prim_func
        def main_kernel(A: T.Buffer(64)):
            with T.launch_thread("threadIdx.x", 64) as tx:
                A[tx] = T.float32(1)

    names = {name for name, _ in split_host_device(Two).functions_items()}
    assert names == {"main", "main_kernel", "main_kernel_1", "main_kernel_2", "main_kernel_kernel"}


def test_what_the_host_cannot_reach():
    @I.ir_module
    class Reads:
        @T.prim_func
        def main(A: T.Buffer(64), N: T.Buffer(1, "int32")):
            if N[0] > 0:
                with T.launch_thread("threadIdx.x", 64) as tx:
                    A[tx] = T.float32(1)

    with pytest.raises(NotInAKernel, match="N is used outside"):
        split_host_device(Reads)


def indices(shape: tuple[object, ...]) -> set[str]:
    """The types of the indices of a copy, lowered for a GPU."""
    A = te.placeholder(shape, name="A")
    B = te.compute(shape, lambda *i: A[i] + 1, name="B")
    s = te.create_schedule(B.op)
    fused = s[B].fuse(*B.op.axis)
    block, thread = s[B].split(fused, factor=128)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    lowered = lower(as_module(s, [A, B], "main", None), "cuda")
    return {str(load.indices[0].dtype) for load in collect(lowered["main"].body, BufferLoad)}


def test_indices_have_32_bits_where_that_is_enough():
    assert indices((1000, 70)) == {"int32"}
    assert indices((te.var("n"),)) == {"int32"}
    assert indices((1 << 20, 1 << 13)) == {"int64"}
    assert indices((te.var("n"), te.var("m"))) == {"int64"}


def test_no_bound_loop_is_left():
    A = te.placeholder((256,), name="A")
    B = te.compute((256,), lambda i: A[i] + 1, name="B")
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    lowered = lower(as_module(s, [A, B], "main", None), "cuda")
    assert not [loop for loop in collect_statements(lowered["main"].body, For) if loop.kind is ForKind.THREAD_BINDING]
