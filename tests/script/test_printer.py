"""The printer, node by node: the text on the right is what people read and the parser reads back."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from loopwright import ir
from loopwright.ir import Op, const, intrinsics
from loopwright.runtime.errors import LoopwrightError
from loopwright.script.printer import render_node, script_text
from loopwright.script.printer.options import UnknownOption
from loopwright.script.printer.paths import NoSuchPart

i, j, n = ir.Var("i"), ir.Var("j"), ir.SizeVar("n")
l, x, p = ir.Var("l", "int64"), ir.Var("x", "float32"), ir.Var("p", "bool")
A = ir.decl_buffer((16, 16), "float32", "A")
B = ir.decl_buffer((16,), "int32", "B")
S = ir.decl_buffer((), "float32", "S")
NOP = ir.Evaluate(const(0))


def call(dtype, name, *args):
    return ir.Call(dtype, Op.get(f"tir.{name}"), args)


EXPRESSIONS = [
    (const(5), "5"),
    (const(-5), "-5"),
    (const(5, "int64"), "T.int64(5)"),
    (const(5, "uint8"), "T.uint8(5)"),
    (const(True), "T.bool(True)"),
    (const(0.5), "T.float32(0.5)"),
    (const(0.0), "T.float32(0)"),
    (const(-0.0), "T.float32(-0.0)"),
    (const(0.1), "T.float32(0.1)"),
    (const(0.1, "float64"), "T.float64(0.1)"),
    (const(0.1, "float16"), "T.float16(0.1)"),
    (const(0.1, "bfloat16"), "T.bfloat16(0.1)"),
    (const(1e-7), "T.float32(1e-07)"),
    (const(3.4028234663852886e38), "T.float32(3.4028235e+38)"),
    (const(float("inf")), 'T.float32("inf")'),
    (const(float("-inf"), "float16"), 'T.float16("-inf")'),
    (const(float("nan")), 'T.float32("nan")'),
    (ir.StringImm('say "hi"\n'), '"say \\"hi\\"\\n"'),
    (i + j * 2, "i + j * 2"),
    ((i + j) * 2, "(i + j) * 2"),
    (i - (j - 1), "i - (j - 1)"),
    (i - j - 1, "i - j - 1"),
    (i * (j // 3), "i * (j // 3)"),
    (i // 4 % 2, "i // 4 % 2"),
    (x / (x * x), "x / (x * x)"),
    (i - -1, "i - -1"),
    (ir.Add(const(1), const(2)), "T.Add(1, 2)"),
    (ir.Div(i, j), "T.Div(i, j)"),
    (ir.FloorDiv(i, const(0)), "T.FloorDiv(i, 0)"),
    (ir.Mod(i, j), "T.truncmod(i, j)"),
    (ir.Mod(const(7), const(2)), "T.Mod(7, 2)"),
    (ir.Min(i, j), "T.min(i, j)"),
    (ir.Max(const(1), const(2)), "T.Max(1, 2)"),
    (ir.Add(p, p), "T.Add(p, p)"),
    (ir.LT(i, j), "i < j"),
    (ir.LT(ir.Cast("int32", ir.LT(i, j)), j), 'T.Cast("int32", i < j) < j'),
    (ir.EQ(ir.LT(i, j), p), "(i < j) == p"),
    # Python would turn these around; the parser keeps 5 < i, but not i < n, because a SizeVar is a Var.
    (ir.LT(const(5), i), "5 < i"),
    (ir.LT(i, n), "T.LT(i, n)"),
    (ir.And(ir.And(p, i < j), p), "p and i < j and p"),
    (ir.And(p, ir.And(p, p)), "p and (p and p)"),
    (ir.And(ir.Or(p, p), p), "(p or p) and p"),
    (ir.And(p, const(True)), "T.And(p, T.bool(True))"),
    (ir.Not(p), "not p"),
    (ir.Not(ir.And(p, p)), "not (p and p)"),
    (ir.EQ(ir.Not(p), p), "(not p) == p"),
    (ir.Not(const(True)), "T.Not(T.bool(True))"),
    (ir.Select(p, i, const(0)), "T.Select(p, i, 0)"),
    (ir.Cast("float16", x), 'T.Cast("float16", x)'),
    (ir.Let(i, j, i + 1), "T.Let(i + 1, where={i: j})"),
    (ir.Ramp(i, const(1), 4), "T.Ramp(i, 1, 4)"),
    (ir.Broadcast(x, 4), "T.Broadcast(x, 4)"),
    (ir.Shuffle((ir.Broadcast(x, 2),), (const(1), const(0))), "T.Shuffle([T.Broadcast(x, 2)], [1, 0])"),
    (A[i, j], "A[i, j]"),
    (S[()], "S[()]"),
    (ir.BufferLoad(B, (ir.Ramp(i, const(1), 4),)), "B[i:i + 4]"),
    (ir.BufferLoad(B, (ir.Ramp(const(2), const(2), 4),)), "B[2:10:2]"),
    (ir.BufferLoad(B, (ir.Ramp(i, const(-1), 4),)), "B[T.Ramp(i, -1, 4)]"),
    (ir.BufferLoad(B, (ir.Ramp(i, j, 4),)), "B[T.Ramp(i, j, 4)]"),
    (intrinsics.exp(x), "T.exp(x)"),
    (intrinsics.if_then_else(p, i, 0), "T.if_then_else(p, i, 0)"),
    (i & 3, "T.bitwise_and(i, 3)"),
    (intrinsics.reinterpret("int32", x), 'T.reinterpret("int32", x)'),
    (intrinsics.call_extern("int32", "f", i, x), 'T.call_extern("int32", "f", i, x)'),
    (intrinsics.call_packed("f", i), 'T.call_packed("f", i)'),
    (call("float64", "exp", x), 'T.call_intrin("float64", "tir.exp", x)'),
    (call("int32", "bitwise_and", const(1), const(2)), 'T.call_intrin("int32", "tir.bitwise_and", 1, 2)'),
    (call("void", "prefetch", ir.StringImm("s")), 'T.call_intrin("void", "tir.prefetch", "s")'),
    (ir.Call("void", ir.GlobalVar("f"), (i,)), 'T.Call("void", I.GlobalVar("f"), [i])'),
    (ir.Range(0, 10), "T.Range(0, 10)"),
    (ir.Range.from_min_extent(i, const(4)), "T.Range(i, i + 4)"),
    (ir.Range.from_min_extent(const(2), const(4)), "T.Range(2, 6)"),
    (ir.BufferRegion(A, (ir.Range(0, 8), ir.Range.from_min_extent(j, const(1)))), "A[0:8, j]"),
    (ir.BufferRegion(S, ()), "S[()]"),
    (ir.IterVar(ir.Range(8), i, 2), 'T.iter_var(i, T.Range(0, 8), "CommReduce", "")'),
    (
        ir.CommReducer((i,), (j,), (i + j,), (const(0),)),
        "T.comm_reducer(lambda i, j: i + j, [0])",
    ),
    (ir.PrimType(ir.DataType("int32")), "T.int32"),
    (ir.PointerType(ir.PrimType(ir.DataType("float32")), "shared"), 'T.handle("float32", "shared")'),
]


@pytest.mark.parametrize(("node", "text"), EXPRESSIONS, ids=[text for _, text in EXPRESSIONS])
def test_expression(node, text):
    assert node.script() == text
    assert repr(node) == text


def check(node, text, **options):
    assert node.script(**options) == textwrap.dedent(text).strip()


def main(body, params=(A, B), **fields):
    return ir.PrimFunc(params, body, attrs={"global_symbol": "main"}, **fields)


def inside(func) -> str:
    """The lines of a function below its signature."""
    lines = func.script().splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith("def ")) + 1
    return textwrap.dedent("\n".join(lines[start:]))


def check_body(body, text, params=(A, B)):
    assert inside(main(body, params)) == textwrap.dedent(text).strip()


def test_header_and_parameters():
    result, attrs = ir.PrimType(ir.DataType("int32")), {"global_symbol": "f", "z": 1, "a": "s"}
    func = ir.PrimFunc([A, ir.Var("k", "int64"), x], NOP, result, attrs=attrs)
    check(
        func,
        """
        # from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((16, 16), "float32"), k: T.int64, x: T.float32) -> T.int32:
            T.func_attr({"a": "s", "z": 1})
            T.evaluate(0)
        """,
    )


def test_private_function_and_other_name():
    assert "@T.prim_func(private=True)\ndef main(" in ir.PrimFunc([A], NOP).script()
    text = main(NOP).script(name="other")
    assert "def other(" in text and 'T.func_attr({"global_symbol": "main"})' in text


def test_module():
    first = main(ir.Evaluate(ir.Call("void", ir.GlobalVar("sub"), (i,))), [i])
    second = ir.PrimFunc([i], NOP)
    check(
        ir.IRModule({"main": first, "sub": second}, attrs={"k": 1}),
        """
        # from loopwright.script import ir as I
        # from loopwright.script import tir as T

        @I.ir_module
        class Module:
            I.module_attrs({"k": 1})

            @T.prim_func(private=True)
            def sub(i: T.int32):
                T.evaluate(0)

            @T.prim_func
            def main(i: T.int32):
                Module.sub(i)
        """,
    )
    check(ir.IRModule(), "# from loopwright.script import ir as I\n\n@I.ir_module\nclass Module:\n    pass")


def test_symbolic_shapes_strides_and_offsets():
    m = ir.Var("m")
    sized = ir.decl_buffer((n, m), "float16", "X")
    strided = ir.decl_buffer((n, 4), "float32", "Y", strides=[ir.Var("s"), const(1)], offset_factor=8)
    uses = strided.strides[0] + strided.elem_offset, call("handle", "isnullptr", strided.data)
    func = main(ir.SeqStmt(tuple(ir.Evaluate(use) for use in uses)), [sized, strided])
    assert inside(func) == textwrap.dedent(
        """\
        n, m = T.int32(is_size_var=True), T.int32()
        X = T.match_buffer(X_handle, (n, m), "float16")
        Y = T.match_buffer(Y_handle, (n, 4), strides=("s", 1), offset_factor=8)
        T.evaluate(Y.strides[0] + Y.elem_offset)
        T.call_intrin("handle", "tir.isnullptr", Y.data)"""
    )


def test_every_keyword_of_a_buffer():
    buffer = ir.decl_buffer(
        (4, 4), "int8", "Z", strides=[8, 1], elem_offset=const(2), scope="shared", data_alignment=128,
        offset_factor=4, buffer_type="auto_broadcast", axis_separators=[1],
    )  # fmt: skip
    assert buffer.script() == (
        'Z = T.Buffer((4, 4), "int8", strides=(8, 1), elem_offset=2, scope="shared", align=128, '
        'offset_factor=4, buffer_type="auto_broadcast", axis_separators=[1])'
    )


def test_handle_used_by_the_body_is_a_parameter_of_its_own():
    handle = ir.Var("a", "handle")
    func = ir.PrimFunc([handle], ir.Evaluate(call("bool", "isnullptr", handle)), buffer_map={handle: A})
    assert "def main(a: T.handle):\n    A = T.match_buffer(a, (16, 16))\n" in func.script()


def test_buffers_that_share_memory():
    other = ir.decl_buffer((256,), "float32", "F", data=A.data)
    assert "F = T.match_buffer(F_handle, (256,), data=A.data)" in main(NOP, [A, other]).script()


def test_undeclared_buffer_is_declared_behind_its_pointer():
    pointer = ir.pointer("ptr", "float32")
    flat = ir.decl_buffer((64,), "float32", "flat", data=pointer)
    store = ir.BufferStore(flat, const(0.0), (const(0),))
    loop = ir.For(i, 0, 4, ir.ForKind.SERIAL, store)
    check_body(
        ir.Allocate(pointer, "float32", (const(64),), const(True), ir.SeqStmt((loop, store))),
        """
        ptr = T.allocate([64], "float32", "global")
        flat = T.Buffer((64,), data=ptr)
        for i in range(4):
            flat[0] = T.float32(0)
        flat[0] = T.float32(0)
        """,
    )


LOOPS = [
    ({}, "range(8)"),
    ({"low": 2}, "T.serial(2, 10)"),
    ({"low": i, "extent": n}, "T.serial(i, i + n)"),
    ({"kind": ir.ForKind.PARALLEL}, "T.parallel(8)"),
    ({"kind": ir.ForKind.VECTORIZED}, "T.vectorized(8)"),
    (
        {"kind": ir.ForKind.UNROLLED, "notes": {"b": [1, i], "a": "s"}},
        'T.unroll(8, annotations={"a": "s", "b": [1, i]})',
    ),
    ({"notes": {"k": const(1, "int64")}}, 'T.serial(8, annotations={"k": T.int64(1)})'),
    ({"kind": ir.ForKind.THREAD_BINDING}, 'T.thread_binding(8, thread="threadIdx.x")'),
]


@pytest.mark.parametrize(("given", "text"), LOOPS, ids=[text for _, text in LOOPS])
def test_loop(given, text):
    kind = given.get("kind", ir.ForKind.SERIAL)
    thread = ir.IterVar(None, ir.Var("t"), 1, "threadIdx.x") if kind is ir.ForKind.THREAD_BINDING else None
    low = ir.as_expr(given.get("low", 0))
    loop = ir.For(ir.Var("k"), low, given.get("extent", const(8)), kind, NOP, thread, given.get("notes", {}))
    assert repr(loop) == f"for k in {text}:\n    T.evaluate(0)"


def test_plain_nests_become_a_grid():
    inner = ir.For(j, 0, i + 1, ir.ForKind.SERIAL, NOP)
    assert repr(ir.For(i, 0, 4, ir.ForKind.SERIAL, inner)).startswith("for i in range(4):\n    for j in range(i + 1):")
    inner = ir.For(j, const(0, "int64"), const(5, "int64"), ir.ForKind.SERIAL, NOP)
    nest = ir.For(i, 0, 4, ir.ForKind.SERIAL, inner)
    assert repr(nest).startswith("for i, j in T.grid(4, T.int64(5)):\n    T.evaluate(0)")
    full = "for i in T.serial(0, 4):\n    for j in T.serial(T.int64(0), T.int64(5)):"
    assert nest.script(syntax_sugar=False).startswith(full)


def block(axes, values, body=NOP, predicate=True, **fields):
    regions = fields.pop("reads", ()), fields.pop("writes", ())
    made = ir.Block(tuple(axes), *regions, fields.pop("name", "C"), body, **fields)
    return ir.BlockRealize(tuple(values), const(predicate) if isinstance(predicate, bool) else predicate, made)


def test_block_with_everything_in_order():
    vi, vk, vs = ir.Var("vi"), ir.Var("vk"), ir.Var("vs")
    axes = [ir.IterVar(ir.Range(16), vi, 0), ir.IterVar(ir.Range(8), vk, 2), ir.IterVar(ir.Range(2, 6), vs, 3)]
    temp = ir.decl_buffer((4,), "float16", "temp", scope="local")
    region = ir.BufferRegion(A, (ir.Range.from_min_extent(vi, const(1)), ir.Range(0, 16)))
    row = ir.decl_buffer((16,), "float32", "row", strides=[ir.Var("s")], offset_factor=1)
    realize = block(
        axes,
        [i, j, i + 1],
        ir.BufferStore(A, A[vi, vk] + row[vk], (vi, vk)),
        i < 15,
        reads=(region,),
        writes=(region,),
        init=ir.BufferStore(A, const(0.0), (vi, vk)),
        alloc_buffers=(temp,),
        match_buffers=(ir.MatchBufferRegion(row, region),),
        annotations={"k": 1},
    )
    nest = ir.For(i, 0, 16, ir.ForKind.SERIAL, ir.For(j, 0, 8, ir.ForKind.SERIAL, realize))
    check_body(
        ir.BlockRealize((), const(True), ir.Block((), (), (), "root", nest)),
        """
        # with T.block("root"):
        for i, j in T.grid(16, 8):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, j])
                vs = T.axis.scan((2, 6), i + 1)
                T.where(i < 15)
                T.reads(A[vi, 0:16])
                T.writes(A[vi, 0:16])
                T.block_attr({"k": 1})
                temp = T.alloc_buffer((4,), "float16", scope="local")
                row = T.match_buffer(A[vi, 0:16], (16,), strides=("s",), offset_factor=1)
                with T.init():
                    A[vi, vk] = T.float32(0)
                A[vi, vk] = A[vi, vk] + row[vk]
        """,
    )


def test_root_block():
    temp = ir.decl_buffer((4,), "float32", "temp")
    root = block([], [], name="root", alloc_buffers=(temp,))
    check_body(root, '# with T.block("root"):\ntemp = T.alloc_buffer((4,))\nT.evaluate(0)')
    # Without blocks inside, the parser would not add a root: it is written out.
    check_body(block([], [], name="root"), 'with T.block("root"):\n    T.reads()\n    T.writes()\n    T.evaluate(0)')
    assert '\n    with T.block("root"):' in main(block([], [], name="root", annotations={"k": 1})).script()


def test_axis_that_is_not_its_loop():
    v = ir.Var("v")
    body = block([ir.IterVar(ir.Range(8), v, 0)], [i])
    assert "v = T.axis.spatial(8, i)" in repr(ir.For(i, 0, 9, ir.ForKind.SERIAL, body))


def test_statements():
    check_body(ir.IfThenElse(p, NOP, ir.IfThenElse(i < j, NOP, NOP)), """
        if p:
            T.evaluate(0)
        elif i < j:
            T.evaluate(0)
        else:
            T.evaluate(0)
        """, [p, i, j])  # fmt: skip
    check_body(ir.While(i < j, NOP), "while i < j:\n    T.evaluate(0)", [i, j])
    check_body(ir.Evaluate(intrinsics.call_extern("int32", "f")), 'T.call_extern("int32", "f")', [])
    check_body(ir.Evaluate(i + 1), "T.evaluate(i + 1)", [i])
    check_body(ir.BufferStore(S, const(1.0), ()), "S[()] = T.float32(1)", [S])
    check_body(ir.Prefetch(B, (ir.Range(0, 4),)), "T.prefetch(B, [T.Range(0, 4)])", [B])
    check_body(ir.BufferRealize(A, (ir.Range(0, 4), ir.Range(0, 4)), const(True), NOP),
               'T.realize(A[0:4, 0:4], "global")\nT.evaluate(0)')  # fmt: skip


def test_scopes_are_flat_at_the_end_and_nested_before():
    y = ir.Var("y", "int64")
    let = ir.LetStmt(y, const(3, "int64"), ir.Evaluate(y))
    check_body(
        ir.SeqStmt((let, let)),
        """
        with T.LetStmt(T.int64(3)) as y:
            T.evaluate(y)
        y: T.int64 = T.int64(3)
        T.evaluate(y)
        """,
    )
    check_body(ir.AssertStmt(p, ir.StringImm("no"), NOP), 'assert p, "no"\nT.evaluate(0)', [p])
    assert ir.AssertStmt(p, ir.StringImm("no"), NOP).script().endswith('with T.Assert(p, "no"):\n    T.evaluate(0)')
    check_body(ir.AttrStmt({"a": [1]}, "k", const(2), NOP), 'T.attr({"a": [1]}, "k", 2)\nT.evaluate(0)')
    size = ir.SizeVar("k")
    declared = "k = T.int32(is_size_var=True)\n"
    check_body(ir.LetStmt(size, const(3), NOP), declared + "with T.LetStmt(3, var=k):\n    T.evaluate(0)")
    typed = ir.pointer("q", "float32", "shared")
    check_body(ir.LetStmt(typed, A.data, NOP), 'q: T.handle("float32", "shared") = A.data\nT.evaluate(0)')


def test_allocations():
    pointer = ir.pointer("ptr", "int8", "local")
    check_body(
        ir.Allocate(pointer, "int8", (const(4), i), p, NOP, {"k": 1}),
        'ptr = T.allocate([4, i], "int8", "local", condition=p, annotations={"k": 1})\nT.evaluate(0)',
        [i, p],
    )
    pair = ir.decl_buffer((4,), "float32", "P", scope="local")
    check_body(
        ir.Allocate(pair.data, "float32", pair.shape, const(True), ir.DeclBuffer(pair, ir.BufferStore(pair, x, (i,)))),
        'P = T.decl_buffer((4,), scope="local")\nP[i] = x',
        [x, i],
    )
    view = ir.decl_buffer((256,), "float32", "V", data=A.data)
    check_body(ir.DeclBuffer(view, NOP), "V = T.decl_buffer((256,), data=A.data)\nT.evaluate(0)")
    data = np.array([0.1, np.inf, -0.0], "float32")
    check_body(
        ir.AllocateConst(ir.pointer("c", "float32"), "float32", (const(3),), data, NOP),
        'c = T.allocate_const([0.1, float("inf"), -0.0], "float32", [3])\nT.evaluate(0)',
    )


def test_threads():
    axis = ir.IterVar(ir.Range(32), ir.Var("tx"), 1, "threadIdx.x")
    launch = ir.AttrStmt(axis, "thread_extent", const(32), ir.Evaluate(axis.var))
    check_body(launch, 'tx = T.launch_thread("threadIdx.x", 32)\nT.evaluate(tx)')
    check_body(
        ir.SeqStmt((launch, launch)),
        """
        tx = T.env_thread("threadIdx.x")
        with T.launch_thread(tx, 32):
            T.evaluate(tx)
        T.launch_thread(tx, 32)
        T.evaluate(tx)
        """,
    )
    virtual = ir.IterVar(ir.Range(2), ir.Var("v"), 1, "vthread.x")
    launch = ir.AttrStmt(virtual, "virtual_thread", const(2), NOP)
    check_body(launch, 'v = T.launch_thread("vthread.x", 2)\nT.evaluate(0)')


def test_names_are_identifiers_unique_where_visible_and_free_again_after_their_scope():
    a, b, c, odd = ir.Var("a"), ir.Var("a"), ir.Var("a"), ir.Var("for")
    inner = ir.For(b, 0, 3, ir.ForKind.SERIAL, ir.Evaluate(a + b))
    nested = ir.For(a, 0, 2, ir.ForKind.SERIAL, ir.SeqStmt((inner, NOP)))
    check_body(
        ir.SeqStmt((nested, ir.For(c, 0, 4, ir.ForKind.SERIAL, ir.Evaluate(c + odd)))),
        """
        for a in range(2):
            for a_1 in range(3):
                T.evaluate(a + a_1)
            T.evaluate(0)
        for a in range(4):
            T.evaluate(a + for_1)
        """,
        [odd],
    )
    for hint, name in [("T", "T_1"), ("a.b", "a_b"), ("1x", "_1x"), ("", "v"), ("range", "range_1")]:
        assert f"def main({name}: T.int32)" in main(NOP, [ir.Var(hint)]).script()


def test_free_variables_are_declared_for_scripts_but_not_for_repr():
    stmt = ir.Evaluate(i + A[i, 0].astype("int32"))
    assert stmt.script() == 'i = T.int32()\nA = T.Buffer((16, 16))\nT.evaluate(i + T.Cast("int32", A[i, 0]))'
    assert repr(stmt) == 'T.evaluate(i + T.Cast("int32", A[i, 0]))'
    assert (i + 1).script(verbose_expr=True) == "i = T.int32()\ni + 1"


def test_options():
    assert (l + 1).script(int_dtype="int64") == "l + 1"
    assert const(0.5).script(float_dtype="float32") == "0.5"
    assert intrinsics.exp(x).script(tir_prefix="P") == "P.exp(x)"
    assert 'A = T.Buffer((16, 16), "float32")' == A.script(buffer_dtype="float16")
    loop = ir.For(i, 0, 4, ir.ForKind.SERIAL, NOP)
    assert loop.script(indent_spaces=2) == "for i in range(4):\n  T.evaluate(0)"
    assert loop.script(print_line_numbers=True) == "1 for i in range(4):\n2     T.evaluate(0)"
    with pytest.raises(UnknownOption, match="no option 'indent_space'") as caught:
        loop.script(indent_space=2)
    assert caught.value.hint == "did you mean 'indent_spaces'?"
    assert f"i_{id(i):#x}" in loop.script(show_object_address=True)


def test_paths_lead_to_what_is_marked():
    value = i + 1
    loop = ir.For(i, 0, 4, ir.ForKind.SERIAL, ir.Evaluate(value))
    func = ir.PrimFunc([], loop, attrs={"global_symbol": "main"})
    underlined = "    T.evaluate(i + 1)\n               ^^^^^"
    assert loop.script(path_to_underline=["body.value"]).endswith(underlined)
    assert loop.script(path_to_underline=["body.value.b.value"]).endswith("^") and "  # why" in loop.script(
        path_to_annotate={"body": "why"}
    )
    assert "^^^^^" in func.script(path_to_underline=["body.body.value"])
    assert "^^^^^" in ir.IRModule({"main": func}).script(path_to_underline=['["main"].body.body.value'])
    with pytest.raises(NoSuchPart, match=r"the path 'body\.extent' leads nowhere: Evaluate has no 'extent'"):
        loop.script(path_to_underline=["body.extent"])


def test_underline_and_annotate():
    value = i + 1
    stmt = ir.For(i, 0, 4, ir.ForKind.SERIAL, ir.For(j, 0, 4, ir.ForKind.SERIAL, ir.Evaluate(value)))
    check(
        stmt,
        """
        for i in range(4):
            for j in range(4):  # here
                T.evaluate(i + 1)
                           ^^^^^
        """,
        obj_to_underline=[value],
        obj_to_annotate={stmt.body: "here"},
    )
    near = stmt.script(obj_to_underline=[value], num_context_lines=0)
    assert near == "(... 1 line skipped ...)\n    T.evaluate(i + 1)\n               ^^^^^"


def test_values_without_a_spelling():
    func = main(NOP).with_attr("k", object())
    assert 'T.func_attr({"k": metadata["object"][0]})' in func.script()
    assert func.script().endswith("# Metadata omitted. Use show_meta=True in script() method to show it.")
    assert "<object object at" in func.script(show_meta=True)


def test_error_excerpt_marks_the_node_and_is_short():
    body = ir.SeqStmt(tuple(ir.Evaluate(const(k)) for k in range(100)))
    loop = ir.For(i, 0, 4, ir.ForKind.SERIAL, body)
    text = render_node(loop)
    assert text.startswith("  > for i in range(4):\n    T.evaluate(0)\n")
    assert text.endswith("\n…") and len(text.splitlines()) == 9
    shown = str(LoopwrightError("bad loop", at=loop))
    assert "\n  > for i in range(4):\n        T.evaluate(0)\n" in shown


def test_deep_expressions():
    chain, nested = i, i
    for k in range(10_000):
        chain, nested = chain + k, ir.Add(const(k), nested)
    assert "(" not in chain.script() and chain.script().endswith("+ 9998 + 9999")
    assert nested.script().count("(") == 9_999


def test_equal_programs_print_to_equal_text():
    def make():
        k = ir.Var("k")
        buffer = ir.decl_buffer((8,), "float32", "A")
        return main(ir.For(k, 0, 8, ir.ForKind.SERIAL, ir.BufferStore(buffer, const(1.0), (k,))), [buffer])

    assert make().script() == make().script() == script_text(make())
