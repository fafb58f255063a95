"""Programs of loops and blocks, written by hand and scheduled step by step."""

import numpy as np
import tvm
from tvm.ir.module import IRModule
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.testing import assert_allclose


@I.ir_module
class MatmulRelu:
    @T.prim_func
    def main(
        A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"), C: T.Buffer((128, 128), "float32")
    ):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        Y = T.alloc_buffer((128, 128), dtype="float32")
        for i, j, k in T.grid(128, 128, 128):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))


def check(mod):
    rt_lib = tvm.build(mod, target="llvm")
    a = np.random.randn(128, 128).astype("float32")
    b = np.random.randn(128, 128).astype("float32")
    c = tvm.nd.array(np.zeros((128, 128), "float32"))
    func_matmul_relu = rt_lib["main"]
    func_matmul_relu(tvm.nd.array(a), tvm.nd.array(b), c)
    bound = 128 * 2**-23 * (np.abs(a).astype("float64") @ np.abs(b)).max()
    assert_allclose(c.numpy(), np.maximum(a.astype("float64") @ b, 0), rtol=0, atol=bound)


def transformed(jfactor):
    sch = tvm.tir.Schedule(MatmulRelu)
    block_Y = sch.get_block("Y", func_name="main")
    i, j, k = sch.get_loops(block_Y)
    j0, j1 = sch.split(j, factors=[None, jfactor])
    sch.reorder(j0, k, j1)
    block_C = sch.get_block("C", "main")
    sch.reverse_compute_at(block_C, j0)
    sch.decompose_reduction(block_Y, k)
    sch.vectorize(j1)
    sch.parallel(i)
    return sch


def symbolic_sizes():
    @T.prim_func
    def add(a: T.handle, b: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        C = T.match_buffer(c, (n,), "float32")
        for i in T.serial(n):
            with T.block("C"):
                vi = T.axis.spatial(n, i)
                C[vi] = A[vi] + B[vi]

    func = tvm.build(add, target="llvm")
    for size in (0, 1, 5, 1000):
        x, y = np.random.rand(size).astype("float32"), np.random.rand(size).astype("float32")
        z = tvm.nd.array(np.zeros(size, "float32"))
        func(tvm.nd.array(x), tvm.nd.array(y), z)
        np.testing.assert_array_equal(z.numpy(), x + y)


if __name__ == "__main__":
    np.random.seed(6)
    assert isinstance(MatmulRelu, IRModule) and isinstance(MatmulRelu["main"], tvm.tir.PrimFunc)
    check(MatmulRelu)
    for factor in (4, 8, 32):
        sch = transformed(factor)
        check(sch.mod)
        assert "T.vectorized" in sch.mod.script()
        assert sch.trace is not None and "split" in str(sch.trace)
    again = tvm.script.from_source(MatmulRelu.script())
    tvm.ir.assert_structural_equal(again, MatmulRelu)
    symbolic_sizes()
    print("ok")
