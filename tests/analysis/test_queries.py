"""Questions that scripts ask through tir.analysis, and what programs cost."""

from __future__ import annotations

import pytest

from loopwright import ir, te, tir
from loopwright.analysis.costs import CostUnknown
from loopwright.analysis.gpu_limits import UnknownLimit
from loopwright.analysis.queries import OutsideThreads, require_threads
from loopwright.script import tir as T
from loopwright.tir import analysis


def product(m=8, n=4, depth=16):
    X, Y = te.placeholder((m, depth), name="X"), te.placeholder((depth, n), name="Y")
    k = te.reduce_axis((0, depth), "k")
    Z = te.compute((m, n), lambda i, j: te.sum(X[i, k] * Y[k, j], axis=k), name="Z")
    return te.create_prim_func([X, Y, te.compute((m, n), lambda i, j: tir.exp(Z[i, j]), name="W")])


@pytest.mark.parametrize(("m", "n", "depth"), [(8, 4, 16), (1, 1, 1), (3, 5, 7), (2, 2, 0)])
def test_flops(m, n, depth):
    func = product(m, n, depth)
    wanted = 2 * m * n * depth + m * n
    assert analysis.estimate_tir_flops(func) == wanted
    assert analysis.estimate_tir_flops(ir.IRModule({"f": func, "g": func})) == 2 * wanted


def test_flops_of_branches_vectors_and_statements_that_say_it_themselves():
    x = tir.Var("x", "float32")
    count = analysis.estimate_tir_flops
    assert count(tir.Evaluate(tir.if_then_else(tir.Var("c") > 0, x * x + x, x))) == 2
    assert count(tir.IfThenElse(tir.Var("c") > 0, tir.Evaluate(x + x), tir.Evaluate(x * x * x))) == 2
    assert count(tir.Evaluate(tir.Broadcast(x, 4) * tir.Broadcast(x, 4))) == 4
    assert count(tir.Evaluate(tir.Var("i") * 3 + 1)) == 0 and count(tir.Evaluate(tir.fma(x, x, x))) == 2
    loop = tir.For(tir.Var("i"), 0, tir.Var("n"), 0, tir.Evaluate(x + x))
    with pytest.raises(CostUnknown, match="the extent n of loop i is not a constant"):
        count(loop)
    assert count(loop.with_(annotations={"estimated_flops": 77})) == 77


def test_bytes():
    @T.prim_func
    def func(A: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("a"):
                vi = T.axis.spatial(16, i)
                x = T.alloc_buffer((3,), "float32")
                y = T.alloc_buffer((5,), "int8", scope="local")
                x[0] = T.float32(0)
                y[0] = T.int8(0)
                A[vi] = x[0]
        for i in range(16):
            with T.block("b"):
                vi = T.axis.spatial(16, i)
                z = T.alloc_buffer((100,), "float64")
                z[0] = T.float64(0)
                A[vi] = T.float32(0)

    assert analysis.calculate_allocated_bytes(func)["main"] == {"global": 812, "local": 5}
    assert analysis.calculate_allocated_bytes(ir.IRModule({"f": func})) == {"f": {"global": 812, "local": 5}}
    assert analysis.calculate_workspace_bytes(func) == 800  # never both at a time
    assert analysis.calculate_workspace_bytes(func, 64) == 832
    assert analysis.calculate_constant_bytes(func) == 0


def test_variables_without_definition():
    i, n, v = tir.Var("i"), tir.Var("n"), tir.Var("v")
    A = tir.decl_buffer((n,), name="A")
    loop = tir.For(i, 0, 8, 0, tir.LetStmt(v, i + 1, tir.BufferStore(A, 1.0, [v])))
    assert analysis.undefined_vars(loop) == [A.data, n]
    assert analysis.undefined_vars(loop, [n]) == [A.data]
    assert analysis.undefined_vars(tir.PrimFunc([A], loop)) == []
    assert analysis.undefined_vars(v + v * i) == [v, i]


def test_regions_of_blocks():
    block = analysis.find_anchor_block(product())
    assert block.name_hint == "Z"
    reads, writes, opaque = analysis.get_block_access_region(block, {})
    assert (repr(reads), repr(writes), opaque) == ("[X[v_i, v_k], Y[v_k, v_j]]", "[Z[v_i, v_j]]", [])

    @T.prim_func
    def func(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        with T.block("call"):
            T.reads(A[0:8])
            T.writes(B[0:8])
            T.evaluate(T.call_extern("int32", "f", T.address_of(A[0]), B.data))

    A, B = func.argument_buffers()
    inner = func.body.block.body.block if isinstance(func.body.block.body, tir.BlockRealize) else func.body.block
    both = analysis.get_block_read_write_region(inner, {B.data: B})
    assert [[region.buffer for region in part] for part in both] == [[A, B], [A, B]]


def test_where_buffers_are_used():
    func = product()
    found = {buffer.name: stmt for buffer, stmt in analysis.detect_buffer_access_lca(func).items()}
    assert found["Z"].name_hint == "root" and found["X"].name_hint == "Z" and found["W"].name_hint == "W"


def test_small_questions():
    x, y = tir.Var("x"), tir.Var("y")
    assert analysis.expr_deep_equal(x + 1, x + 1) and not analysis.expr_deep_equal(x + 1, y + 1)
    assert analysis.has_if_then_else(tir.Evaluate(tir.if_then_else(x > 0, x, y)))
    assert not analysis.has_if_then_else(tir.Evaluate(x))
    twice = tir.For(x, 0, 4, 0, tir.For(x, 0, 4, 0, tir.Evaluate(x)))
    assert analysis.verify_ssa(product()) and not analysis.verify_ssa(tir.PrimFunc([], twice))
    assert analysis.verify_memory(product()) and not analysis.verify_memory(product().with_attr("target", "cuda"))
    with pytest.raises(OutsideThreads, match=r"outside a thread nest(.|\n)*did you forget to bind"):
        require_threads(product().with_attr("target", "cuda"))
    assert analysis.OOBChecker()(product()) is not None


def test_variables_that_blocks_and_allocations_define():
    @T.prim_func
    def rows(A: T.Buffer((8, 8)), B: T.Buffer(8)):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                s = T.int32()
                a = T.match_buffer(A[vi, 0:8], (8,), strides=(s,), offset_factor=1)
                B[vi] = a[0]

    assert analysis.undefined_vars(rows) == []
    n, v, A = tir.Var("n"), tir.Var("v"), tir.decl_buffer((4,), name="A")
    store = tir.BufferStore(A, tir.const(0.0, "float32"), [v])
    block = tir.Block([tir.IterVar(ir.Range(0, n), v, 0)], [], [], "block", store)
    assert analysis.undefined_vars(tir.BlockRealize([0], True, block)) == [n, A.data]  # the domain of the axis counts
    assert analysis.undefined_vars(tir.BufferRealize(A, [ir.Range(0, n)], True, store)) == [n, v]


def test_copies_of_memory():
    @T.prim_func
    def rows(A: T.Buffer((1024,)), B: T.Buffer((32, 32))):
        for i, j in T.grid(32, 32):
            B[i, j] = A[i * 32 + j]

    @T.prim_func
    def transposed(A: T.Buffer((32, 32)), B: T.Buffer((32, 32))):
        for i, j in T.grid(32, 32):
            B[j, i] = A[i, j]

    outer, inner = analysis.identify_memcpy(rows.body)
    assert [str(region) for region in outer] == ["A[0:1024]", "B[0:32, 0:32]"]
    assert [str(region) for region in inner] == ["A[i * 32:i * 32 + 32]", "B[i, 0:32]"]
    outer, inner = analysis.identify_memcpy(transposed.body)
    assert "different source" in outer.value and "dst indices touched (993)" in inner.value


def test_limits_of_a_gpu():
    @T.prim_func
    def kernel(A: T.Buffer((64,))):
        for b in T.thread_binding(2, "blockIdx.x"):
            for t in T.thread_binding(32, "threadIdx.x"):
                with T.block("a"):
                    S = T.alloc_buffer((32,), scope="shared")
                    S[t] = A[b * 32 + t]
                    A[b * 32 + t] = S[t]

    for name, needed in (("max_threads_per_block", 32), ("max_shared_memory_per_block", 128), ("max_kernels", 1)):
        assert analysis.verify_gpu_code(kernel, {name: needed})
        assert not analysis.verify_gpu_code(kernel, {name: needed - 1})
    with pytest.raises(UnknownLimit, match="no limit is called 'max_thread'"):
        analysis.verify_gpu_code(kernel, {"max_thread": 1})


def test_lca_of_a_matched_buffer_and_of_memory_that_blocks_share():
    @T.prim_func
    def func(A: T.Buffer((8, 8)), B: T.Buffer((8,))):
        for i in T.thread_binding(8, "blockIdx.x"):
            for j in T.thread_binding(8, "threadIdx.x"):
                with T.block("b"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    a = T.match_buffer(A[vi, vj], ())
                    a[()] = T.float32(0)

    found = analysis.detect_buffer_access_lca(func)
    (A,) = [buffer for buffer in func.buffer_map.values() if buffer.name == "A"]
    assert found[A] is func.body.block.body  # global memory: the loop over blocks
