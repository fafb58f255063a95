"""Passes of a few lines: selects, serial loops, promises, constants, targets, entries, blocks, matches, definitions."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright.ir import (
    Allocate,
    AllocateConst,
    Block,
    BlockRealize,
    BufferStore,
    For,
    ForKind,
    IRModule,
    IterType,
    IterVar,
    Let,
    LetStmt,
    PointerType,
    PrimFunc,
    PrimType,
    Range,
    SeqStmt,
    Var,
    const,
    decl_buffer,
    pre_order_visit,
)
from loopwright.ir.verifier import NotWellFormed, verify
from loopwright.script import tir as T
from loopwright.target import Target
from loopwright.transform import (
    BlockStateLeft,
    UndefinedValueUsed,
    annotate_entry,
    bind_target,
    convert_for_loops_to_serial,
    convert_ssa,
    extract_constants,
    make_blocks_opaque,
    remove_assume,
    remove_store_undef,
    renormalize_splits,
    resolve_matches,
    rewrite_unsafe_select,
    simplify,
    write_prefetches,
)
from tests.transform.before_after import check, check_all, same_native, same_results, unchanged


def test_a_select_between_loads_becomes_lazy():
    @T.prim_func
    def before(A: T.Buffer((16,)), B: T.Buffer((16,)), n: T.int32):
        for i in range(16):
            B[i] = T.Select(i < n, A[i], T.Select(i < 3, T.float32(1), T.float32(2)))

    @T.prim_func
    def after(A: T.Buffer((16,)), B: T.Buffer((16,)), n: T.int32):
        for i in range(16):
            B[i] = T.if_then_else(i < n, A[i], T.Select(i < 3, T.float32(1), T.float32(2)))

    check_all(rewrite_unsafe_select, before, after)


def test_parallel_loops_become_serial():
    @T.prim_func
    def before(A: T.Buffer((8, 8)), B: T.Buffer((8, 8))):
        for i in T.parallel(8):
            for j in T.vectorized(8):
                B[i, j] = A[i, j]

    @T.prim_func
    def after(A: T.Buffer((8, 8)), B: T.Buffer((8, 8))):
        for i in range(8):
            for j in T.vectorized(8):
                B[i, j] = A[i, j]

    check_all(convert_for_loops_to_serial, before, after)


def test_promises_help_and_then_go():
    @T.prim_func
    def before(B: T.Buffer((8,)), n: T.int32):
        T.evaluate(T.assume(n < 6))
        if n < 8:
            for i in range(8):
                B[i] = T.float32(1)
        B[0] = T.float32(2)

    @T.prim_func
    def known(B: T.Buffer((8,)), n: T.int32):
        T.evaluate(T.assume(n < 6))
        for i in range(8):
            B[i] = T.float32(1)
        B[0] = T.float32(2)

    @T.prim_func
    def after(B: T.Buffer((8,)), n: T.int32):
        for i in range(8):
            B[i] = T.float32(1)
        B[0] = T.float32(2)

    check_all(simplify, before, known)
    check_all(remove_assume, known, after)


def test_a_promise_about_memory_says_nothing_once_it_is_written():
    @T.prim_func
    def func(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        T.evaluate(T.assume(A[0] < 6))
        A[0] = 9
        if A[0] < 6:
            B[0] = 1

    unchanged(simplify, func)


def test_stores_of_no_value_go():
    @T.prim_func
    def before(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i in range(8):
            B[i] = T.undef(dtype="float32")
        for i in range(8):
            B[i] = A[i]

    @T.prim_func
    def after(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for _ in range(8):
            T.evaluate(0)
        for i in range(8):
            B[i] = A[i]

    check(remove_store_undef, before, after)
    same_native(before, after)

    @T.prim_func
    def wrong(B: T.Buffer((8,))):
        B[T.undef(dtype="int32")] = T.float32(1)

    with pytest.raises(UndefinedValueUsed, match="undef is used in a computation"):
        remove_store_undef(wrong)


def test_constants_are_listed_once():
    @T.prim_func
    def one(B: T.Buffer((2,), "int32")):
        K = T.allocate_const([3, 4], "int32", [2])
        K_1 = T.decl_buffer((2,), "int32", data=K)
        for i in range(2):
            B[i] = K_1[i]

    mod = IRModule({"one": one, "two": one})
    got = extract_constants(mod)
    assert [list(array) for array in got.attrs["constants"]] == [[3, 4]]
    assert '"irmod_storage_idx": 0' in got["two"].script()
    same_results(one, got["one"])
    same_native(one, got["one"])
    assert [list(array) for array in extract_constants(got).attrs["constants"]] == [[3, 4]]
    empty = IRModule({"none": PrimFunc([], BufferStore(decl_buffer((1,)), 1.0, [0]))})
    assert extract_constants(empty) is empty


def test_a_target_for_those_without_one():
    @T.prim_func
    def func(B: T.Buffer((2,))):
        B[0] = T.float32(1)

    arm = Target("llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=neoverse-n1")
    bound = bind_target(arm)(func)
    assert bound.attrs["target"] == arm
    assert bind_target("llvm")(bound) is bound
    same_results(func, bound)


def test_the_entry():
    @T.prim_func
    def func(B: T.Buffer((2,))):
        B[0] = T.float32(1)

    bare = func.without_attr("global_symbol")
    alone = annotate_entry(IRModule({"f": bare}))
    assert alone["f"].attrs["tir.is_entry_func"] and annotate_entry(alone) is alone
    named = annotate_entry(IRModule({"f": bare, "g": func.with_attr("global_symbol", "g")}))
    assert named["g"].attrs["tir.is_entry_func"] and "tir.is_entry_func" not in named["f"].attrs
    two = IRModule({"f": func.with_attr("global_symbol", "f"), "g": func.with_attr("global_symbol", "g")})
    assert annotate_entry(two) is two


def test_blocks_without_axes():
    @T.prim_func
    def before(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, 7 - i)
                T.where(i < 5)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[vi]

    @T.prim_func
    def after(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i in range(8):
            with T.block("B"):
                T.where(i < 5)
                T.reads(A[7 - i])
                T.writes(B[7 - i])
                B[7 - i] = A[7 - i]

    check_all(make_blocks_opaque, before, after)

    @T.prim_func
    def reduction(A: T.Buffer((8,)), B: T.Buffer((1,))):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.reduce(8, i)
                with T.init():
                    B[0] = T.float32(0)
                B[0] = B[0] + A[vi]

    with pytest.raises(BlockStateLeft, match="block B still has an init"):
        make_blocks_opaque(reduction)


def test_matched_buffers_are_what_they_name():
    @T.prim_func
    def before(A: T.Buffer((8, 8)), B: T.Buffer((8,))):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                T.reads(A[vi + 2, 0:8])
                T.writes(B[vi])
                a = T.match_buffer(A[vi + 2, 0:8], (8,), offset_factor=1)
                B[vi] = a[3]

    got = resolve_matches(before)
    verify(got)
    assert "match_buffer" not in got.script() and "B[vi] = A[vi + 2, 3]" in got.script()
    same_results(before, got)
    same_native(before, got)


def test_regions_of_matched_buffers_are_what_they_name():
    @T.prim_func
    def before(A: T.Buffer((8, 8)), B: T.Buffer((8, 8))):
        for i in range(4):
            with T.block("row"):
                vi = T.axis.spatial(4, i)
                T.reads(A[vi + 2, 1:7])
                T.writes(B[vi, 0:6])
                a = T.match_buffer(A[vi + 2, 1:7], (6,), offset_factor=1)
                for j in range(3):
                    with T.block("B"):
                        vj = T.axis.spatial(3, j)
                        T.reads(a[vj * 2 : vj * 2 + 2])
                        T.writes(B[vi, vj])
                        B[vi, vj] = a[vj * 2] + a[vj * 2 + 1]

    @T.prim_func
    def after(A: T.Buffer((8, 8)), B: T.Buffer((8, 8))):
        for i in range(4):
            with T.block("row"):
                vi = T.axis.spatial(4, i)
                T.reads(A[vi + 2, 1:7])
                T.writes(B[vi, 0:6])
                for j in range(3):
                    with T.block("B"):
                        vj = T.axis.spatial(3, j)
                        T.reads(A[vi + 2, 1 + vj * 2 : 1 + vj * 2 + 2])
                        T.writes(B[vi, vj])
                        B[vi, vj] = A[vi + 2, 1 + vj * 2] + A[vi + 2, 1 + (vj * 2 + 1)]

    check_all(resolve_matches, before, after)


def _let_statements(A, var):
    return [LetStmt(var, const(k), BufferStore(A, 1.0 * k, [var])) for k in (1, 2)]


def _lets(A, var):
    return [BufferStore(A, Let(var, A[k] + 1, var * var), [k]) for k in (1, 2)]


def _allocations(A, var):
    local = decl_buffer((1,), "float32", "X", data=var)
    return [
        Allocate(
            var, "float32", (1,), const(True), SeqStmt((BufferStore(local, 1.0 * k, [0]), A.vstore([k], local[0])))
        )
        for k in (1, 2)
    ]


def _constants(A, var):
    table = decl_buffer((1,), "float32", "X", data=var)
    return [
        AllocateConst(var, "float32", (1,), np.array([k], "float32"), BufferStore(A, table[0], [k])) for k in (1, 2)
    ]


def _definitions(func):
    found = []

    def look(node):
        if isinstance(node, (Let, LetStmt)):
            found.append(node.var)
        elif isinstance(node, (Allocate, AllocateConst)):
            found.append(node.buffer_var)

    pre_order_visit(func.body, look)
    return found


@pytest.mark.parametrize(
    ("twice", "kind"),
    [
        (_let_statements, "int32"),
        (_lets, "float32"),
        (_allocations, PointerType(PrimType("float32"))),
        (_constants, PointerType(PrimType("float32"))),
    ],
)
def test_whatever_is_defined_twice_gets_a_second_name(twice, kind):
    A, var = decl_buffer((4,), name="A"), Var("x", kind)
    func = PrimFunc([A], SeqStmt(tuple(twice(A, var))))
    assert _definitions(func) == [var, var]
    got = convert_ssa(func)
    verify(got)
    assert len(set(_definitions(got))) == 2
    assert convert_ssa(got) is got
    same_results(func, got)


def test_a_variable_that_two_loops_share():
    A = decl_buffer((8,), name="A")
    i = Var("i")
    first = For(i, 0, 4, ForKind.SERIAL, BufferStore(A, 1.0, [i]))
    second = For(i, 0, 4, ForKind.SERIAL, BufferStore(A, 2.0, [i + 4]))
    func = PrimFunc([A], SeqStmt((first, second)))
    got = convert_ssa(func)
    assert got.body.seq[0].loop_var is i and got.body.seq[1].loop_var is not i
    assert convert_ssa(got) is got
    same_results(func, got)
    verify(got)
    same_native(got, convert_ssa(func))


def test_quotients_of_fused_loops():
    @T.prim_func
    def before(A: T.Buffer((32,)), B: T.Buffer((64,))):
        for i, j in T.grid(8, 4):
            B[(i * 4 + j) // 4 * 8 + (i * 4 + j) % 4] = A[i * 4 + j]

    @T.prim_func
    def after(A: T.Buffer((32,)), B: T.Buffer((64,))):
        for i, j in T.grid(8, 4):
            B[i * 8 + j] = A[i * 4 + j]

    check_all(renormalize_splits, before, after)


def test_prefetches_written_out():
    @T.prim_func
    def func(A: T.Buffer((8, 64)), n: T.int32):
        T.prefetch(A, [T.Range(n, n + 4), T.Range(0, 40)])
        A[0, 0] = T.float32(1)

    got = write_prefetches(func)
    assert "for row_0, line_1 in T.grid(4, 3):" in got.script()
    same_results(func, got)


def test_a_block_that_two_loops_share():
    A, v = decl_buffer((4,), name="A"), Var("v")
    axis = IterVar(Range(0, 4), v, IterType.DataPar)
    block = Block((axis,), (), (), "A", BufferStore(A, const(0.0, "float32"), [v]))
    loops = [For(i, 0, 4, ForKind.SERIAL, BlockRealize((i,), const(True), block)) for i in (Var("i"), Var("j"))]
    func = PrimFunc([A], SeqStmt(loops))
    with pytest.raises(NotWellFormed, match="variable v is defined twice"):
        verify(func)
    verify(convert_ssa(func))
    same_results(func, convert_ssa(func))
