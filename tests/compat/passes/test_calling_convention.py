"""MakePackedAPI, MakeUnpackedAPI and LowerDeviceKernelLaunch."""

from __future__ import annotations

import pytest

from loopwright import tir
from loopwright.compat.passes.calling_convention import NotAnArgument, NoTarget
from loopwright.ir import AssertStmt, Call, IRModule, LetStmt, collect
from loopwright.ir.verifier import verify
from loopwright.script import tir as T
from loopwright.target import Target


@T.prim_func
def main(a: T.handle, B: T.Buffer((4,), "float32"), m: T.int32, x: T.float32):
    n = T.int32()
    A = T.match_buffer(a, (n, 4), "float32")
    for i in range(n):
        A[i, 0] = B[m] + x


ON_CPU = main.with_attr("target", Target("cuda", host="llvm"))


def test_packed_arguments_are_unpacked_and_checked():
    packed = tir.transform.MakePackedAPI()(ON_CPU)
    verify(packed)
    assert [param.name for param in packed.params][:3] == ["args", "arg_type_ids", "num_args"]
    assert len(packed.params) == 6
    assert not packed.buffer_map and packed.attrs["calling_conv"] == 1 and packed.attrs["target"].kind.name == "llvm"
    lets = {let.var.name: str(let.value) for let in collect(packed.body, LetStmt)}
    assert lets["m"] == 'T.Cast("int32", T.tvm_struct_get(args, 2, 12, "int64"))' and "main_a_shape" in lets["n"]
    messages = [check.message.value for check in collect(packed.body, AssertStmt)]
    assert messages[0] == "main: num_args should be 4" and "main: Expect arg[3] to be float" in messages
    assert "Argument main.a.shape[1] is expected to equal 4" in messages


def test_unpacked_arguments():
    @T.prim_func
    def scale(A: T.Buffer((4,)), x: T.float32):
        for i in range(4):
            A[i] = A[i] * x

    func = scale.with_attr("target", Target("llvm"))
    unpacked = tir.transform.MakeUnpackedAPI()(func)
    verify(unpacked)
    assert [param.name for param in unpacked.params] == ["A", "x"] and not unpacked.buffer_map
    assert tir.transform.MakeUnpackedAPI()(func.without_attr("global_symbol")).params == func.params
    with pytest.raises(NotAnArgument, match="main uses n, not given by any argument"):
        tir.transform.MakeUnpackedAPI()(ON_CPU)


def test_a_target_is_needed():
    with pytest.raises(NoTarget, match="MakePackedAPI: function main requires the target attribute"):
        tir.transform.MakePackedAPI()(main)


def test_a_kernel_is_launched_with_its_threads():
    @T.prim_func
    def fill(A: T.Buffer((16,)), n: T.int32):
        i = T.launch_thread("threadIdx.x", n)
        A[i] = T.float32(1)

    mod = IRModule({"fill": fill.with_attr("target", Target("cuda", host="llvm"))})
    for name in ("AnnotateDeviceRegions", "SplitHostDevice", "LowerDeviceKernelLaunch"):
        mod = getattr(tir.transform, name)()(mod)
    (call,) = [call for call in collect(mod["fill"].body, Call) if "packed" in call.op.name]
    assert [str(arg) for arg in call.args] == ['"fill_kernel"', "A", "n", "n"]
    kernel = mod["fill_kernel"]
    assert list(map(str, kernel.attrs["tir.kernel_launch_params"])) == ["threadIdx.x"]
    assert kernel.attrs["calling_conv"] == 2 and kernel.attrs["global_symbol"] == "fill_kernel"
