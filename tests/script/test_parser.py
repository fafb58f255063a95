"""What scripts mean: each construct, read and shown again, or looked at as nodes."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from loopwright import ir, tir
from loopwright.ir import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    BlockRealize,
    Buffer,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    LetStmt,
    PrimFunc,
    SeqStmt,
    SizeVar,
    While,
    assert_structural_equal,
    diagnostics,
    structural_equal,
)
from loopwright.runtime import DiagnosticError
from loopwright.script import from_source
from loopwright.script import ir as I
from loopwright.script import tir as T


def body_text(func: PrimFunc) -> str:
    """The lines below the signature, without their common indentation."""
    lines = func.script().splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith("def ")) + 1
    return "\n".join(line[4:] for line in lines[start:])


# --- functions ---


def test_buffer_parameters_become_handles_with_buffers():
    @T.prim_func
    def func(A: T.Buffer((16, 16), "float16"), b: T.handle, n: T.int32, m: T.int64(is_size_var=True)):
        B = T.match_buffer(b, (n,), "int8")
        B[0] = T.int8(1)

    assert [param.name for param in func.params] == ["A_handle", "b", "n", "m"]
    assert [buffer.name for buffer in func.argument_buffers()] == ["A", "B"]
    assert func.argument_buffers()[0].dtype == "float16"
    assert func.argument_buffers()[1].shape[0] is func.params[2]
    assert isinstance(func.params[3], SizeVar) and func.params[3].dtype == "int64"
    assert func.attrs == {"global_symbol": "func"}
    assert func.name == "func"


def test_private_functions_have_no_global_symbol():
    @T.prim_func(private=True)
    def func(A: T.Buffer(4)):
        A[0] = 1.0

    assert func.attrs == {}
    assert func.script().splitlines()[2] == "@T.prim_func(private=True)"


def test_func_attr_may_name_the_symbol():
    @T.prim_func
    def func(A: T.Buffer(4)):
        T.func_attr({"global_symbol": "other", "tir.noalias": True})
        A[0] = 1.0

    assert func.attrs == {"global_symbol": "other", "tir.noalias": True}


def test_result_type_and_ret():
    @T.prim_func
    def func(x: T.int32) -> T.int32:
        T.ret(x + 1)

    assert func.ret_type.dtype == "int32"
    assert body_text(func) == "T.ret(x + 1)"


def test_annotations_may_use_variables_of_enclosing_functions():
    def make(n, dtype):
        @T.prim_func
        def func(A: T.Buffer((n, n * 2), dtype)):
            A[0, 0] = T.Cast(dtype, 0)

        return func

    assert [int(extent) for extent in make(3, "int8").argument_buffers()[0].shape] == [3, 6]


def test_docstring_and_pass_leave_nothing():
    @T.prim_func
    def func(A: T.Buffer(4)):
        """What it does."""
        pass

    assert isinstance(func.body, Evaluate)


def test_statements_carry_the_line_they_come_from():
    @T.prim_func
    def func(A: T.Buffer(4)):
        for i in range(4):
            A[i] = 1.0

    first = test_statements_carry_the_line_they_come_from.__code__.co_firstlineno
    assert func.body.span.line == first + 3
    assert func.body.body.span.line == first + 4
    assert func.body.body.span.text[func.body.body.span.column :] == "A[i] = 1.0"


# --- loops ---


def test_loops_of_every_kind():
    @T.prim_func
    def func(A: T.Buffer((2, 2, 2, 2, 2, 2))):
        for a in range(2):
            for b in T.serial(2, annotations={"note": 1}):
                for c in T.parallel(2):
                    for d in T.vectorized(2):
                        for e in T.unroll(2):
                            for f in T.thread_binding(2, thread="threadIdx.x"):
                                A[a, b, c, d, e, f] = 1.0

    kinds = []
    loop = func.body
    while isinstance(loop, For):
        kinds.append(loop.kind)
        loop = loop.body
    assert kinds == [
        ForKind.SERIAL,
        ForKind.SERIAL,
        ForKind.PARALLEL,
        ForKind.VECTORIZED,
        ForKind.UNROLLED,
        ForKind.THREAD_BINDING,
    ]
    assert func.body.body.annotations == {"note": 1}
    assert structural_equal(from_source(func.script()), func)


@pytest.mark.parametrize(
    ("written", "low", "extent", "dtype"),
    [
        ("range(7)", 0, 7, "int32"),
        ("range(2, 7)", 2, 5, "int32"),
        ("T.serial(T.int64(7))", 0, 7, "int64"),
        ("T.serial(2, T.int64(7))", 2, 5, "int64"),
        ("T.unroll(T.uint8(7))", 0, 7, "uint8"),
        ("T.thread_binding(1, 3, 'threadIdx.x')", 1, 2, "int32"),
        ("T.thread_binding(3, 'threadIdx.x')", 0, 3, "int32"),
    ],
)
def test_loop_bounds(written, low, extent, dtype):
    loop = from_source(f"@T.prim_func\ndef f(A: T.Buffer(8)):\n    for i in {written}:\n        T.evaluate(i)").body
    assert (int(loop.min), int(loop.extent), loop.loop_var.dtype) == (low, extent, dtype)
    assert loop.min.dtype == loop.extent.dtype == dtype


def test_symbolic_loop_bounds_are_simplified():
    @T.prim_func
    def func(n: T.int32):
        for i in T.serial(n * 4, (n + 1) * 4):
            T.evaluate(i)

    assert int(func.body.extent) == 4


def test_grid_targets():
    @T.prim_func
    def func(A: T.Buffer((2, 3, 4))):
        for i, *rest in T.grid(2, 3, 4):
            A[i, rest[0], rest[1]] = 1.0
        for ax in T.grid(2, 3, 4):
            A[ax[0], ax[1], ax[2]] = 2.0
        for (i,) in T.grid(2):
            A[i, 0, 0] = 3.0

    assert body_text(func) == (
        "for i, rest_0, rest_1 in T.grid(2, 3, 4):\n"
        "    A[i, rest_0, rest_1] = T.float32(1)\n"
        "for ax_0, ax_1, ax_2 in T.grid(2, 3, 4):\n"
        "    A[ax_0, ax_1, ax_2] = T.float32(2)\n"
        "for i in range(2):\n"
        "    A[i, 0, 0] = T.float32(3)"
    )


def test_while_and_conditionals():
    @T.prim_func
    def func(A: T.Buffer((4,), "int32")):
        while A[0] < 10:
            A[0] += 1
        if A[0] == 3:
            A[1] = 1
        elif A[0] != 4 and not A[1] > 2:
            A[1] = 2
        else:
            A[1] = 3
        if T.bool(True):
            A[2] = 1

    loop, chosen, always = func.body.seq
    assert isinstance(loop, While)
    assert isinstance(chosen, IfThenElse) and isinstance(chosen.else_case, IfThenElse)
    assert isinstance(always.condition, IntImm) and always.condition.dtype == "bool"
    assert body_text(func).splitlines()[4] == "elif A[0] != 4 and not A[1] > 2:"


# --- blocks ---


def test_regions_are_inferred():
    @T.prim_func
    def func(A: T.Buffer((16, 16)), B: T.Buffer((16, 16)), C: T.Buffer((16, 16)), D: T.Buffer((16,), "int32")):
        for io, j in T.grid(4, 16):
            with T.block("tile"):
                vio, vj = T.axis.remap("SS", [io, j])
                for ii in range(4):
                    C[vio * 4 + ii, vj] = A[vio * 4 + ii, vj] + B[D[vj], vj] + A[vio * 4 + ii, vj + 1]
        for i, j, k in T.grid(16, 16, 16):
            with T.block("matmul"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] += A[vi, vk] * B[vk, vj]

    text = body_text(func)
    assert "T.reads(A[vio * 4:vio * 4 + 4, vj:vj + 2], B[0:16, vj], D[vj])" in text
    assert "T.writes(C[vio * 4:vio * 4 + 4, vj])" in text
    assert "T.reads(A[vi, vk], B[vk, vj])\n" in text
    assert "T.writes(C[vi, vj])" in text


def test_regions_of_nested_blocks_lets_and_locals():
    @T.prim_func
    def func(A: T.Buffer((8, 8)), C: T.Buffer((8, 8))):
        for i in range(8):
            with T.block("outer"):
                vi = T.axis.spatial(8, i)
                D = T.alloc_buffer((8,))
                for j in range(8):
                    with T.block("inner"):
                        vj = T.axis.spatial(8, j)
                        D[vj] = A[vi, 7 - vj]
                for j in range(4):
                    k: T.int32 = j * 2
                    C[vi, k + 1] = D[k]
                    C[vi, k] = D[k % 3]

    text = body_text(func)
    assert "    T.reads(A[vi, 0:8])\n        T.writes(C[vi, 0:8])\n        D = T.alloc_buffer((8,))" in text
    assert "T.reads(A[vi, 7 - vj])" in text


def test_written_regions_are_kept():
    @T.prim_func
    def func(A: T.Buffer((8, 8)), C: T.Buffer(8)):
        with T.block("all"):
            T.reads([A[0:8, 0:8], C[3]])
            T.writes()
            C[0] = A[0, 0]

    block = func.body.block
    assert [region.buffer.name for region in block.reads] == ["A", "C"]
    assert block.writes == ()


def test_root_block_is_added_where_needed():
    @T.prim_func
    def no_blocks(A: T.Buffer(8)):
        A[0] = 1.0

    @T.prim_func
    def one_block(A: T.Buffer(8)):
        with T.block("only"):
            A[0] = 1.0

    @T.prim_func
    def allocates(A: T.Buffer(8)):
        B = T.alloc_buffer((8,))
        with T.block("only"):
            A[0] = B[0]

    @T.prim_func
    def two_blocks(A: T.Buffer(8)):
        with T.block("first"):
            A[0] = 1.0
        with T.block("second"):
            A[0] = A[1]

    assert isinstance(no_blocks.body, BufferStore)
    assert one_block.body.block.name_hint == "only" and one_block.body.block.writes == ()
    assert allocates.body.block.name_hint == "root" and len(allocates.body.block.alloc_buffers) == 1
    assert len(allocates.body.block.body.block.writes) == 1
    assert two_blocks.body.block.name_hint == "root"
    first, second = two_blocks.body.block.body.seq
    assert len(first.block.writes) == 1 and len(second.block.reads) == 1


def test_block_facts():
    @T.prim_func
    def func(A: T.Buffer((8, 8)), C: T.Buffer((8, 8))):
        for i, j in T.grid(8, 5):
            with T.block("b"):
                vi = T.axis.spatial((2, 10), i + 2)
                vj = T.axis.opaque(8, j)
                vk = T.axis.scan(T.Range(0, 3), j // 2)
                T.where(i < 7 and j > 0)
                T.block_attr({"note": [1, "two", {"three": 3.5}]})
                row = T.match_buffer(A[vi - 2, 0:8], (8,), offset_factor=1)
                C[vi - 2, vj] = row[vj]

    block = func.body.block.body.body.body.block
    assert [axis.iter_type.name for axis in block.iter_vars] == ["DataPar", "Opaque", "Ordered"]
    assert (int(block.iter_vars[0].dom.min), int(block.iter_vars[0].dom.extent)) == (2, 8)
    assert block.annotations == {"note": [1, "two", {"three": 3.5}]}
    assert isinstance(func.body.block.body.body.body.predicate, tir.And)
    assert block.match_buffers[0].buffer.name == "row"
    assert isinstance(block.match_buffers[0].buffer.elem_offset, tir.Var)
    assert [region.buffer.name for region in block.reads] == ["A"]
    assert structural_equal(from_source(func.script()), func)


def test_int64_axes():
    @T.prim_func
    def func(A: T.Buffer((T.int64(4),))):
        for i in range(T.int64(4)):
            with T.block("b"):
                vi = T.axis.spatial(T.int64(4), i)
                A[vi] = 1.0

    assert func.body.block.body.body.block.iter_vars[0].var.dtype == "int64"


# --- memory ---


def test_allocations():
    @T.prim_func
    def func(C: T.Buffer((4,), "float32")):
        p = T.allocate([16], "float32", "shared", annotations={"note": 1})
        P = T.decl_buffer((16,), data=p, scope="shared")
        Q = T.decl_buffer((4, 4), "int8")
        w = T.allocate_const([1, 2, 3, 4], "int32", [2, 2])
        W = T.Buffer((2, 2), "int32", data=w)
        C[0] = P[0] + T.Cast("float32", Q[0, 0]) + T.Cast("float32", W[1, 1])

    outer = func.body
    assert isinstance(outer, Allocate) and outer.annotations == {"note": 1}
    assert outer.buffer_var.type_annotation.storage_scope == "shared"
    declared = outer.body
    assert isinstance(declared, DeclBuffer) and declared.buffer.data is outer.buffer_var
    pair = declared.body
    assert isinstance(pair, Allocate) and pair.body.buffer.data is pair.buffer_var
    constant = pair.body.body
    assert isinstance(constant, AllocateConst)
    np.testing.assert_array_equal(constant.data, np.array([[1, 2], [3, 4]], "int32"))
    assert structural_equal(from_source(func.script()), func)


def test_scopes_written_with_with_or_flat_are_the_same():
    @T.prim_func
    def flat(C: T.Buffer(4)):
        T.attr(0, "note", 1)
        p = T.allocate([16], "float32", "global")
        P = T.decl_buffer((16,), data=p)
        assert P[0] > T.float32(0), "positive"
        x = P[0] * T.float32(2)
        C[0] = x

    @T.prim_func
    def deep(C: T.Buffer(4)):
        with T.attr(0, "note", 1):
            with T.allocate([16], "float32", "global") as p, T.decl_buffer((16,), data=p) as P:
                with T.Assert(P[0] > T.float32(0), "positive"):
                    with T.LetStmt(P[0] * T.float32(2)) as x:
                        C[0] = x

    assert structural_equal(flat.body, deep.body, map_free_vars=True)
    assert isinstance(flat.body, AttrStmt)


def test_match_buffer_with_symbolic_strides():
    @T.prim_func
    def func(a: T.handle):
        n = T.int32()
        off = T.int32()
        A = T.match_buffer(a, (n, 8), "float32", strides=("s0", 1), elem_offset=off, align=128, offset_factor=4)
        A[0, 0] = A[n - 1, 0] + T.Cast("float32", A.strides[0] + A.shape[0])

    buffer = func.argument_buffers()[0]
    assert buffer.strides[0].name == "s0" and buffer.data_alignment == 128 and buffer.offset_factor == 4
    assert structural_equal(from_source(func.script()), func)


# --- lets and names ---


def test_lets():
    @T.prim_func
    def func(A: T.Buffer((4,), "float32"), n: T.int32):
        x = n + 1
        y: T.int64 = 5
        z: T.handle("float32") = A.data
        w = T.meta_var(n * 2)
        shape = (w, 3)
        A[x] = T.Cast("float32", y) + T.Cast("float32", w + shape[1])

    let = func.body
    assert isinstance(let, LetStmt) and let.var.name == "x"
    assert let.body.value.dtype == "int64" and int(let.body.value) == 5
    assert let.body.body.var.dtype == "handle"
    assert body_text(func).splitlines()[-1] == 'A[x] = T.Cast("float32", y) + T.Cast("float32", n * 2 + 3)'


def test_let_expressions():
    @T.prim_func
    def func(A: T.Buffer((4,), "int32")):
        v = T.int32()
        A[0] = T.Let(v * v, where={v: A[1]})
        u = T.int32()
        A[1] = T.let(u, A[2], u + u)

    assert isinstance(func.body.seq[0].value, tir.Let)
    assert structural_equal(from_source(func.script()), func)


def test_inner_scopes_may_reuse_names():
    @T.prim_func
    def func(A: T.Buffer((4,), "int32")):
        for i in range(4):
            x = i + 1
            A[i] = x
        for i in range(4):
            x = i + 2
            if x > 3:
                x = x + 1
                A[i] = x
            A[i] = x

    assert structural_equal(from_source(func.script()), func)


# --- expressions ---


def test_vectors():
    @T.prim_func
    def func(A: T.Buffer(16), B: T.Buffer(16)):
        for i in range(2):
            A[i * 8 : i * 8 + 8] = B[i * 8 : i * 8 + 8] * T.float32(2)
            A[0:8:2] = T.Broadcast(T.float32(1), 4)
            A[T.Ramp(0, 3, 4)] = T.exp(B[i : i + 4])
            A[i : i + 1] = B[i]

    stores = func.body.body.seq
    assert [store.value.dtype for store in stores] == ["float32x8", "float32x4", "float32x4", "float32"]
    assert int(stores[1].indices[0].stride) == 2
    assert structural_equal(from_source(func.script()), func)


def test_python_expressions_are_evaluated_as_python():
    sizes = [2, 3]
    table = {"scale": 4}

    @T.prim_func
    def func(A: T.Buffer((sizes[0], sizes[1]), "int32")):
        T.func_attr({f"note_{len(sizes)}": [n * 2 for n in sizes], "best": max(sizes), "f": (lambda a, b: a + b)(1, 2)})
        for i, j in T.grid(*sizes):
            A[i, j] = i * table["scale"] + (1 if sizes[0] == 2 else 5) + sum(sizes)

    assert func.attrs == {"global_symbol": "func", "note_2": [4, 6], "best": 3, "f": 3}
    assert body_text(func).splitlines()[-1] == "    A[i, j] = i * 4 + 1 + 5"


def test_operators():
    @T.prim_func
    def func(A: T.Buffer((32,), "int32"), x: T.int32, y: T.int32, f: T.float32):
        A[0] = x + y - x * y // 2 % 3
        A[1] = x << 2 >> 1
        A[2] = (x & y | 7) ^ ~x
        A[3] = -x
        A[4] = T.if_then_else(x > 0 and x < 10, x, y)
        A[5] = x if x > 3 or y > 3 else y
        A[6] = T.truncdiv(x, y) + T.truncmod(x, y) + T.floordiv(x, 3)
        A[7] = T.Cast("int32", f / 2.0)
        A[8] = T.min(T.max(x, 1), 2) + T.Select(x == y, 1, 2)

    assert body_text(func) == (
        "A[0] = x + y - x * y // 2 % 3\n"
        "A[1] = T.shift_right(T.shift_left(x, 2), 1)\n"
        "A[2] = T.bitwise_xor(T.bitwise_or(T.bitwise_and(x, y), 7), T.bitwise_not(x))\n"
        "A[3] = x * -1\n"
        "A[4] = T.if_then_else(x > 0 and x < 10, x, y)\n"
        "A[5] = T.if_then_else(x > 3 or y > 3, x, y)\n"
        "A[6] = T.Div(x, y) + T.truncmod(x, y) + x // 3\n"
        'A[7] = T.Cast("int32", f / T.float32(2))\n'
        "A[8] = T.min(T.max(x, 1), 2) + T.Select(x == y, 1, 2)"
    )


def test_comparisons_keep_the_order_written():
    @T.prim_func
    def func(x: T.int32):
        T.evaluate(0 < x <= 10)
        T.evaluate(3 == x)

    first, second = func.body.seq[0].value, func.body.seq[1].value
    assert isinstance(first, tir.And) and isinstance(first.a, tir.LT) and isinstance(first.b, tir.LE)
    assert first.a.b is func.params[0] and first.b.a is func.params[0]
    assert isinstance(second, tir.EQ) and second.b is func.params[0]
    assert structural_equal(from_source(func.script()), func)


def test_literals_take_the_type_they_are_given():
    @T.prim_func
    def func(A: T.Buffer((8,), "float16"), B: T.Buffer((8,), "uint8"), C: T.Buffer((2,), "bool")):
        A[0] = 1
        A[1] = T.float16("-inf")
        A[2] = T.float32(0.1)
        B[0] = 255
        B[1] = T.int32(7)
        C[0] = True

    stores = func.body.seq
    assert [store.value.dtype for store in stores] == ["float16"] * 3 + ["uint8"] * 2 + ["bool"]
    assert stores[1].value.value == float("-inf")
    assert stores[2].value.value == float(np.float16(0.1))


def test_every_data_type_is_a_word():
    for dtype in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64".split():
        assert getattr(T, dtype)(1).dtype == dtype
        assert getattr(T, dtype)().dtype == dtype
        assert getattr(T, f"{dtype}x4")(1).dtype == f"{dtype}x4"
    assert T.boolean(True).dtype == "bool"
    assert T.handle("float32", "shared").type_annotation.storage_scope == "shared"


def test_calls():
    @T.prim_func
    def func(A: T.Buffer((8,), "float32")):
        T.evaluate(T.call_extern("int32", "f", A.data, T.address_of(A[1])))
        T.call_packed("g", A, 3)
        T.call_intrin("void", "tir.tvm_storage_sync", "shared")
        A[0] = T.call_pure_extern("float32", "h", A[0]) + T.call_llvm_pure_intrin("float32", "llvm.sqrt.f32", A[1])
        A[1] = T.exp(A[0]) + T.pow(A[0], 2.0) + T.reinterpret("float32", T.int32(1))
        T.evaluate(0)

    assert all(isinstance(one, Evaluate) for one in func.body.seq[:3])
    assert func.body.seq[1].value.args[1].op.name == "tir.tvm_stack_make_array"
    assert len(func.body.seq) == 6
    assert structural_equal(from_source(func.script()), func)


def test_threads():
    @T.prim_func
    def func(A: T.Buffer((64,), "float32")):
        bx = T.env_thread("blockIdx.x")
        with T.launch_thread(bx, 4):
            tx = T.launch_thread("threadIdx.x", 16)
            A[bx * 16 + tx] = 1.0
        with T.launch_thread(bx, 4):
            A[bx] = 2.0

    first, second = func.body.seq
    assert first.attr_key == "thread_extent" and first.node is second.node
    assert first.body.node.thread_tag == "threadIdx.x"
    assert structural_equal(from_source(func.script()), func)


# --- modules, macros, text ---


def test_a_module_may_end_as_old_printers_ended_it():
    @I.ir_module
    class Module:
        @T.prim_func
        def main():
            T.evaluate(0)

        __tvm_meta__ = None

    assert [var.name for var in Module] == ["main"]


def test_functions_of_a_module_call_each_other_in_any_order():
    @I.ir_module
    class Module:
        I.module_attrs({"note": 1})

        @T.prim_func
        def main(A: T.Buffer((4,), "int32")):
            for i in range(4):
                A[i] = Module.twice(i)
            Module.show(A)

        @T.prim_func(private=True)
        def twice(x: T.int32) -> T.int32:
            T.ret(x * 2)

        @T.prim_func
        def show(a: T.handle):
            T.evaluate(T.isnan(T.float32(0)))

    assert [var.name for var in Module.get_global_vars()] == ["main", "twice", "show"]
    assert Module.attrs == {"note": 1}
    call = Module["main"].body.seq[0].body.value
    assert call.op is Module.get_global_var("twice") and call.dtype == "int32"
    assert Module["main"].body.seq[1].value.dtype == "void"
    assert "global_symbol" not in Module["twice"].attrs
    again = from_source(Module.script())
    assert again.script() == Module.script()


def test_modules_from_a_decorator_with_parentheses_and_from_a_class():
    @I.ir_module()
    class Empty:
        pass

    assert len(Empty) == 0
    module = from_source(Plain)
    assert [var.name for var in module.get_global_vars()] == ["f"]


class Plain:
    @T.prim_func
    def f(x: T.int32) -> T.int32:
        T.ret(x)


def test_functions_in_other_classes_are_read_at_once():
    class Programs:
        @T.prim_func
        def func(A: T.Buffer(4)):
            A[0] = 1.0

    assert isinstance(Programs.func, PrimFunc)


def test_macros():
    scale = T.float32(3)

    @T.macro
    def store(A, i, *, by=1.0):
        A[i] = A[i] * scale + by

    @T.macro(hygienic=False)
    def fill(A):
        A[n] = 5.0

    @T.prim_func
    def func(A: T.Buffer(8), n: T.int32):
        for i in range(8):
            store(A, i, by=2.0)
        fill(A)

    assert body_text(func) == ("for i in range(8):\n    A[i] = A[i] * T.float32(3) + T.float32(2)\nA[n] = T.float32(5)")


def test_from_source():
    text = """
        # from tvm.script import tir as T
        from tvm.script import tir as TT

        @TT.prim_func
        def f(A: T.Buffer((SIZE,), "float32")):
            for i in range(SIZE):
                A[i] = tir.exp(A[i]) + T.Cast("float32", ir.const(1))
    """
    func = from_source(text, extra_vars={"SIZE": 3})
    assert int(func.argument_buffers()[0].shape[0]) == 3

    def plain(A: T.Buffer(4)):
        A[0] = 1.0

    assert from_source(plain).name == "plain"


def test_comprehensions_and_lambdas_see_names_of_the_script():
    @T.prim_func
    def func(A: T.Buffer((4,), "int32"), n: T.int32):
        total = T.meta_var([n + k for k in range(3)])
        A[0] = total[0] + total[2]
        A[1] = (lambda x: x * n)(2)

    assert body_text(func) == "A[0] = n + (n + 2)\nA[1] = 2 * n"


# --- size ---


def test_long_chains_and_many_statements():
    terms = " + ".join(["x"] * 10_000)
    func = from_source(f"@T.prim_func\ndef f(A: T.Buffer((1,), 'int32'), x: T.int32):\n    A[0] = {terms}")
    depth, value = 0, func.body.value
    while isinstance(value, tir.Add):
        depth, value = depth + 1, value.a
    assert depth == 9_999
    assert func.script().count("+") == 9_999

    lines = "\n".join(f"    x{k} = x{k - 1} + 1" for k in range(1, 5_000))
    lets = from_source(f"@T.prim_func\ndef f(x0: T.int32):\n{lines}\n    T.evaluate(x4999)")
    assert isinstance(lets.body, LetStmt)


def test_long_chains_where_pythons_parser_gives_up(monkeypatch):
    """Python 3.12 and later read about 1,000 terms."""
    parse = ast.parse

    def limited(text, *args, **kwargs):
        if any(line.count("+") > 900 for line in text.replace(";", "\n").splitlines()):
            raise RecursionError("maximum recursion depth exceeded during ast construction")
        return parse(text, *args, **kwargs)

    inner = " * ".join(["y"] * 500)
    text = "@T.prim_func\ndef f(A: T.Buffer((1,), 'int32'), x: T.int32, y: T.int32):\n"
    text += f"    A[0] = T.max({' + '.join(['x', 'A[x + y]'] * 700 + [inner, 'y'])}, -y) - 1"
    expected = from_source(text)
    monkeypatch.setattr(ast, "parse", limited)
    assert_structural_equal(from_source(text), expected)


def test_a_block_with_a_deep_expression_has_its_regions_inferred():
    terms = " + ".join(["A[v]"] * 10_000)
    func = from_source(
        "@T.prim_func\ndef f(A: T.Buffer(4), B: T.Buffer(4)):\n    for i in range(4):\n        with T.block('b'):\n"
        f"            v = T.axis.spatial(4, i)\n            B[v] = {terms}"
    )
    block = func.body.block.body.body.block
    assert len(block.reads) == 1


def test_the_namespaces_agree_with_the_facade():
    assert tir.PrimExpr is ir.Expr and tir.Any is ir.Any_
    for (
        name
    ) in "Add Select Cast Ramp Broadcast Call Let BufferLoad BufferStore For Block PrimFunc exp if_then_else".split():
        assert hasattr(tir, name)


def test_sequences_keep_written_no_ops():
    @T.prim_func
    def func(A: T.Buffer(4)):
        T.evaluate(0)
        A[0] = 1.0
        T.evaluate(0)

    assert isinstance(func.body, SeqStmt) and len(func.body) == 3


def test_bare_blocks():
    @T.prim_func
    def func(A: T.Buffer(4)):
        with T.block("bare", no_realize=True):
            T.reads()
            T.writes(A[0])
            A[0] = 1.0

    assert isinstance(func.body, ir.Block)


def test_assertions_and_prefetch():
    @T.prim_func
    def func(A: T.Buffer((4,)), n: T.int32):
        T.prefetch(A, [T.Range(0, 4)])
        assert n > 0, "n is positive"
        A[n] = 1.0

    assert isinstance(func.body.seq[1], AssertStmt)
    assert structural_equal(from_source(func.script()), func)
    assert not isinstance(func.body, BlockRealize)


def test_range_takes_annotations():
    @T.prim_func
    def func(A: T.Buffer((8,), "int32")):
        for i in range(2, 8, annotations={"unroll_hint": 4}):
            A[i] = i

    assert body_text(func).startswith('for i in T.serial(2, 8, annotations={"unroll_hint": 4}):')


def test_python_decides_conditions_that_it_knows():
    def copy(doubled):
        @T.prim_func
        def func(A: T.Buffer((4,), "int32")):
            if doubled:
                A[0] = A[1] * 2
            elif A[2] > 0:
                A[0] = A[1]
            if not doubled and A[1] is None:
                A[3] = 1

        return func

    assert body_text(copy(True)) == "A[0] = A[1] * 2"
    assert body_text(copy(False)) == "if A[2] > 0:\n    A[0] = A[1]"


def test_buffers_outside_scripts():
    pattern = T.Buffer((4, 8), "int8")
    assert isinstance(pattern, Buffer) and pattern.dtype == "int8" and [int(n) for n in pattern.shape] == [4, 8]

    @T.prim_func
    def func(A: pattern, B: pattern):
        A[0, 0] = B[1, 1]

    (a, b) = func.argument_buffers()
    assert a.name == "A" and a.data is not b.data and func.__name__ == "func"


def test_a_method_may_be_a_macro():
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        @T.macro
        def apply(self, A, i):
            A[i] = A[i] * self.factor

    twice = Scale(2)

    @T.prim_func
    def func(A: T.Buffer((4,), "int32")):
        twice.apply(A, 3)

    assert body_text(func) == "A[3] = A[3] * 2"


def test_a_renderer_of_ones_own_sees_what_is_wrong():
    seen = []
    diagnostics.override_renderer(lambda context: seen.extend(context.diagnostics))
    try:
        with pytest.raises(DiagnosticError):
            from_source("@T.prim_func\ndef f(A: T.Buffer(4)):\n    for i in range(4):\n        A[i] = lost\n")
    finally:
        diagnostics.override_renderer(None)
    assert [(one.span.line, one.message) for one in seen] == [(4, "name 'lost' is not defined")]
    assert diagnostics.get_renderer() is None


def test_a_tuple_of_loop_variables_is_an_index():
    @T.prim_func(check_well_formed=False)
    def func(A: T.Buffer((4, 4), "int32")):
        for point in T.grid(4, 4):
            A[point] = A[point] + 1

    assert body_text(func) == (
        "for point_0, point_1 in T.grid(4, 4):\n    A[point_0, point_1] = A[point_0, point_1] + 1"
    )


def test_functions_call_their_module_by_an_alias():
    text = """
    @I.ir_module
    class M:
        @T.prim_func
        def main(n: T.int32):
            M.other(n)

        @T.prim_func
        def other(n: T.int32):
            T.evaluate(n)
    """
    module = from_source(text)
    shown = module.script(module_alias="cls")
    assert "cls.other(n)" in shown and structural_equal(from_source(shown), module)
