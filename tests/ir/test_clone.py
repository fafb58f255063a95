"""Copies that define variables and buffers of their own."""

from __future__ import annotations

from loopwright import ir, tir
from loopwright.ir.clone import Cloner
from loopwright.ir.verifier import verify
from loopwright.script import tir as T
from tests.ir.programs import two_stages

x = tir.Var("x", "float32")


def test_renewed_functions_are_equal_and_share_nothing():
    new = tir.stmt_functor.renew_defs(two_stages)
    ir.assert_structural_equal(new, two_stages)
    verify(new)

    def defined(func):
        found = set(map(id, func.params)) | {id(buffer) for buffer in func.buffer_map.values()}
        ir.post_order_visit(func.body, lambda node: found.add(id(node)) if isinstance(node, (ir.Var, ir.Buffer)) else 0)
        return found

    assert not defined(new) & defined(two_stages)
    merged = ir.IRModule({"one": two_stages, "two": new})
    assert len(merged) == 2


def test_renewing_lets_allocations_and_reductions():
    i, v, p = tir.Var("i"), tir.Var("v", "float32"), ir.pointer("p", "float32")
    buffer = tir.decl_buffer((4,), name="p", data=p)
    store = tir.LetStmt(v, tir.const(1.0), tir.BufferStore(buffer, tir.Let(x, v, x + x), [i]))
    loop = tir.For(i, 0, 4, 0, store)
    func = tir.PrimFunc([], tir.Allocate(p, "float32", [4], True, tir.DeclBuffer(buffer, loop)))
    new = tir.stmt_functor.renew_defs(func)
    ir.assert_structural_equal(new, func)
    assert new.body.buffer_var is not p and new.body.body.buffer.data is new.body.buffer_var


def test_attributes_and_launches_are_renewed_with_what_they_are_about():
    @T.prim_func
    def func(a: T.handle, n: T.int32):
        A = T.match_buffer(a, (n,), "float32")
        T.attr(A.data, "storage_alignment", 128)
        T.attr(A, "mark", 1)
        tx = T.launch_thread("threadIdx.x", 4)
        A[tx] = T.float32(1)

    new = tir.stmt_functor.renew_defs(func)
    assert new.script() == func.script()  # with the old nodes, their names would be taken
    (buffer,) = new.argument_buffers()
    assert new.body.node is buffer.data and new.body.body.node is buffer
    launch = new.body.body.body
    assert launch.node.var is not func.body.body.body.node.var and launch.body.indices[0] is launch.node.var


def test_a_match_renews_its_own_symbols_and_keeps_those_from_outside():
    @T.prim_func
    def func(a: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (4, n), "float32")
        for i in range(4):
            with T.block("b"):
                v = T.axis.spatial(4, i)
                B = T.match_buffer(A[v, 0:n], (1, n), strides=("s", 1), offset_factor=1)
                for j in range(n):
                    B[0, j] = T.float32(1)

    nest = func.body.block.body
    copy = Cloner().visit(nest)
    old, new = (loop.body.block.match_buffers[0].buffer for loop in (nest, copy))
    assert new.shape[1] is old.shape[1]
    assert new.strides[0] is not old.strides[0] and new.elem_offset is not old.elem_offset
    root = func.body.block
    verify(func.with_(body=func.body.with_(block=root.with_(body=ir.seq([nest, copy])))))


def test_a_symbol_used_in_a_size_before_the_size_that_it_is_stays_one():
    @T.prim_func
    def func(a: T.handle, b: T.handle, c: T.handle):
        n, m = T.int32(), T.int32()
        A = T.match_buffer(a, (n * 2, m * 3))
        B = T.match_buffer(b, (n,))
        C = T.match_buffer(c, (m * 3,))
        for i in range(n):
            A[i * 2, 0] = B[i] + C[0]

    new = tir.stmt_functor.renew_defs(func)
    ir.assert_structural_equal(new, func)
    verify(new)
    A, B, C = new.argument_buffers()
    assert A.shape[0].a is B.shape[0] is new.body.extent and A.shape[1].a is C.shape[0].a
    assert not {A.shape[0].a, A.shape[1].a} & {func.body.extent, func.argument_buffers()[2].shape[0].a}
