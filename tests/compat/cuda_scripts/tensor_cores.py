"""Tensor cores: a matmul by te.decl_tensor_intrin on fragments, and one by tir.Schedule on mma.sync and ldmatrix."""

import numpy as np
import tvm
from tvm import te
from tvm.contrib import nvcc
from tvm.testing import assert_allclose
from tvm.tir.tensor_intrin.cuda import get_mma_intrin_group, shared_16x16_to_ldmatrix_32x8_layout

M, N, K = 64, 64, 96
dev = tvm.cuda(0)
assert nvcc.have_tensorcore(dev.compute_version)
a_np = np.random.uniform(-1, 1, (M, K)).astype("float16")
b_np = np.random.uniform(-1, 1, (K, N)).astype("float16")


def program():
    A, B = te.placeholder((M, K), "float16", name="A"), te.placeholder((K, N), "float16", name="B")
    k = te.reduce_axis((0, K), "k")
    to = "float32"
    C = te.compute((M, N), lambda i, j: te.sum(A[i, k].astype(to) * B[k, j].astype(to), axis=k), name="C")
    return A, B, C


def check(func):
    a, b = tvm.nd.array(a_np, dev), tvm.nd.array(b_np, dev)
    c = tvm.nd.array(np.zeros((M, N), "float32"), dev)
    func(a, b, c)
    assert_allclose(c.numpy(), a_np.astype("float32") @ b_np.astype("float32"), rtol=1e-3, atol=1e-3)


def index_of(buffer):
    row = buffer.strides[0]
    return buffer.elem_offset // row // 16 * (row // 16) + buffer.elem_offset % row // 16


def operand(tensor, scope, factor=16):
    row = te.var("row")
    return tvm.tir.decl_buffer(
        tensor.shape, tensor.dtype, tensor.op.name, scope=scope, offset_factor=factor, strides=[row, 1]
    )


def load(scope):
    A = te.placeholder((16, 16), "float16", name="A")
    C = te.compute((16, 16), lambda i, j: A[i, j], name="C")
    BA, BC = operand(A, "shared", 8), operand(C, scope)

    def lowered(ins, outs):
        (source,), (target,) = ins, outs
        sizes, where = (16, 16, 16), source.access_ptr("r")
        args = (target.data, *sizes, index_of(target), where, source.strides[0], "row_major")
        return tvm.tir.call_intrin("handle", "tir.tvm_load_matrix_sync", *args)

    return te.decl_tensor_intrin(C.op, lowered, binds={A: BA, C: BC})


def multiply_and_add():
    A, B = te.placeholder((16, 16), "float16", name="A"), te.placeholder((16, 16), "float16", name="B")
    k = te.reduce_axis((0, 16), "k")
    to = "float32"
    C = te.compute((16, 16), lambda i, j: te.sum(A[i, k].astype(to) * B[k, j].astype(to), axis=k), name="C")
    scopes = {A: "wmma.matrix_a", B: "wmma.matrix_b", C: "wmma.accumulator"}

    def lowered(ins, outs):
        (a, b), (c,) = ins, outs
        fill = tvm.tir.call_intrin("handle", "tir.tvm_fill_fragment", c.data, 16, 16, 16, index_of(c), 0.0)
        args = [value for tile in (c, a, b, c) for value in (tile.data, index_of(tile))]
        update = tvm.tir.call_intrin("handle", "tir.tvm_mma_sync", *args)
        return update, fill, update

    binds = {tensor: operand(tensor, scope) for tensor, scope in scopes.items()}
    return te.decl_tensor_intrin(C.op, lowered, binds=binds)


def store():
    A = te.placeholder((16, 16), "float32", name="A")
    C = te.compute((16, 16), lambda i, j: A[i, j], name="C")

    def lowered(ins, outs):
        (source,), (target,) = ins, outs
        sizes, where = (16, 16, 16), target.access_ptr("w")
        args = (source.data, *sizes, index_of(source), where, target.strides[0], "row_major")
        return tvm.tir.call_intrin("handle", "tir.tvm_store_matrix_sync", *args)

    return te.decl_tensor_intrin(C.op, lowered, binds={A: operand(A, "wmma.accumulator"), C: operand(C, "global", 1)})


def fragments():
    A, B, C = program()
    s = te.create_schedule(C.op)
    shared = [s.cache_read(tensor, "shared", [C]) for tensor in (A, B)]
    held = [s.cache_read(copy, f"wmma.matrix_{x}", [C]) for copy, x in zip(shared, "ab")]
    CF = s.cache_write(C, "wmma.accumulator")

    bi, bj, i, j = s[C].tile(*C.op.axis, 32, 32)
    i, j, ii, jj = s[C].tile(i, j, 16, 16)
    for axis, name in ((bi, "blockIdx.y"), (bj, "blockIdx.x"), (i, "threadIdx.y"), (j, "threadIdx.z")):
        s[C].bind(axis, te.thread_axis(name))
    s[CF].compute_at(s[C], j)
    i, j = CF.op.axis
    k, kk = s[CF].split(CF.op.reduce_axis[0], factor=16)
    s[CF].reorder(k, i, j, kk)
    for copy in held:
        s[copy].compute_at(s[CF], k)
    for copy in shared:
        s[copy].compute_at(s[CF], k)
        fused = s[copy].fuse(*s[copy].op.axis)
        for name, threads in (("threadIdx.x", 32), ("threadIdx.y", 2), ("threadIdx.z", 2)):
            fused, inner = s[copy].split(fused, factor=threads)
            s[copy].bind(inner, te.thread_axis((0, threads), name))
    for copy, x in zip(held, "ab"):
        s[copy].tensorize(s[copy].op.axis[0], load(f"wmma.matrix_{x}"))
    s[C].tensorize(ii, store())
    s[CF].tensorize(i, multiply_and_add())
    func = tvm.build(s, [A, B, C], "cuda")
    assert "mma.sync" in func.imported_modules[0].get_source()
    check(func)


def tiles_in_registers():
    group = get_mma_intrin_group("shared", "global", "float16", "float32", False, False, False)
    sch = tvm.tir.Schedule(te.create_prim_func(program()))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i, i1 = sch.split(i, factors=[None, 16])
    j, j1 = sch.split(j, factors=[None, 16])
    k, k1 = sch.split(k, factors=[None, 16])
    bi, i = sch.split(i, factors=[None, 2])
    bj, j = sch.split(j, factors=[None, 2])
    sch.reorder(bi, bj, i, j, k, i1, j1, k1)
    for loop, name in ((bi, "blockIdx.y"), (bj, "blockIdx.x"), (i, "threadIdx.y"), (j, "threadIdx.z")):
        sch.bind(loop, name)

    def layout(i, j):
        return [i // 16, j // 16, *shared_16x16_to_ldmatrix_32x8_layout(i % 16, j % 16)]

    for number in (0, 1):
        copy = sch.cache_read(block, number, "shared")
        sch.compute_at(copy, k)
        fused = sch.fuse(*sch.get_loops(copy)[-2:])
        _, y, z, x = sch.split(fused, factors=[None, 2, 2, 32])
        for loop, name in ((y, "threadIdx.y"), (z, "threadIdx.z"), (x, "threadIdx.x")):
            sch.bind(loop, name)
    for number, x in enumerate("ab"):
        held = sch.cache_read(block, number, "warp")
        sch.compute_at(held, k)
        sch.transform_layout(held, ("write", 0), layout)
        sch.tensorize(sch.get_loops(held)[-2], group[f"load_{x}"])
    result = sch.cache_write(block, 0, "warp")
    sch.reverse_compute_at(result, j)
    sch.transform_layout(result, ("read", 0), layout)
    sch.tensorize(sch.get_loops(result)[-2], group["store"])
    init = sch.decompose_reduction(block, k)
    sch.tensorize(sch.get_loops(init)[-2], group["init"])
    sch.tensorize(i1, group["compute"])
    check(tvm.build(sch.mod, target="cuda"))


if __name__ == "__main__":
    fragments()
    tiles_in_registers()
    print("ok")
