"""A matmul in three steps: one thread for each element, tiles in shared memory, the same with tir.Schedule."""

import numpy as np
import tvm
from tvm import te
from tvm.script import tir as T
from tvm.testing import assert_allclose

N = 48
dev = tvm.cuda(0)
a_np, b_np = np.random.rand(N, N).astype("float32"), np.random.rand(N, N).astype("float32")
a, b = tvm.nd.array(a_np, dev), tvm.nd.array(b_np, dev)


def program():
    A, B = te.placeholder((N, N), name="A"), te.placeholder((N, N), name="B")
    k = te.reduce_axis((0, N), "k")
    C = te.compute((N, N), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return A, B, C


def check(func):
    c = tvm.nd.array(np.zeros((N, N), "float32"), dev)
    func(a, b, c)
    assert_allclose(c.numpy(), a_np @ b_np, rtol=1e-4)


def a_thread_for_each_element():
    A, B, C = program()
    s = te.create_schedule(C.op)
    bx, by, tx, ty = s[C].tile(*C.op.axis, 16, 16)
    for axis, name in ((bx, "blockIdx.y"), (by, "blockIdx.x"), (tx, "threadIdx.y"), (ty, "threadIdx.x")):
        s[C].bind(axis, te.thread_axis(name))
    with tvm.target.Target("cuda"):
        check(tvm.build(s, [A, B, C]))


def tiles_in_shared_memory():
    A, B, C = program()
    s = te.create_schedule(C.op)
    copies = [s.cache_read(A, "shared", [C]), s.cache_read(B, "shared", [C])]
    tx, ty = te.thread_axis((0, 16), "threadIdx.x"), te.thread_axis((0, 16), "threadIdx.y")
    bi, bj, i, j = s[C].tile(*C.op.axis, 16, 16)
    ko, ki = s[C].split(C.op.reduce_axis[0], factor=8)
    s[C].reorder(bi, bj, i, j, ko, ki)
    s[C].bind(bi, te.thread_axis("blockIdx.y"))
    s[C].bind(bj, te.thread_axis("blockIdx.x"))
    s[C].bind(i, ty)
    s[C].bind(j, tx)
    for copy in copies:
        s[copy].compute_at(s[C], ko)
        fused = s[copy].fuse(*s[copy].op.axis)
        fused, inner = s[copy].split(fused, factor=16)
        _, outer = s[copy].split(fused, factor=16)
        s[copy].bind(outer, ty)
        s[copy].bind(inner, tx)
    func = tvm.build(s, [A, B, C], target="cuda")
    assert func.imported_modules[0].get_source().count("__syncthreads()") == 2
    check(func)


@tvm.script.ir_module
class Matmul:
    @T.prim_func
    def main(A: T.Buffer((48, 48), "float32"), B: T.Buffer((48, 48), "float32"), C: T.Buffer((48, 48), "float32")):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j, k in T.grid(48, 48, 48):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def tensorir():
    sch = tvm.tir.Schedule(Matmul)
    block = sch.get_block("C")
    local = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    i0, i1, i2 = sch.split(i, factors=[None, 8, 3])
    j0, j1, j2 = sch.split(j, factors=[None, 8, 2])
    k0, k1 = sch.split(k, factors=[None, 8])
    sch.reorder(i0, j0, i1, j1, k0, k1, i2, j2)
    for loop, thread in ((i0, "blockIdx.y"), (j0, "blockIdx.x"), (i1, "threadIdx.y"), (j1, "threadIdx.x")):
        sch.bind(loop, thread)
    sch.reverse_compute_at(local, j1)
    for number in (0, 1):
        copy = sch.cache_read(block, number, "shared")
        sch.compute_at(copy, k0)
        fused = sch.fuse(*sch.get_loops(copy)[-2:])
        _, ty, tx = sch.split(fused, factors=[None, 8, 8])
        sch.bind(ty, "threadIdx.y")
        sch.bind(tx, "threadIdx.x")
    sch.decompose_reduction(block, k0)
    check(tvm.build(sch.mod, target="cuda"))


if __name__ == "__main__":
    a_thread_for_each_element()
    tiles_in_shared_memory()
    tensorir()
    print("ok")
