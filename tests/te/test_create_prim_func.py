"""create_prim_func: names, structure, types and errors. Values are in test_values.py."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import ir, te
from loopwright.analysis.queries import get_block_access_region
from loopwright.arith import Analyzer
from loopwright.evaluator import evaluate
from loopwright.ir.structural import assert_structural_equal
from loopwright.script import tir as T


def _statements(func, kind):
    found = []

    def look(node):
        if isinstance(node, kind):
            found.append(node)
        return not isinstance(node, ir.Expr)  # shared expressions have far more paths than nodes

    ir.pre_order_visit(func.body, look)
    return found


def _blocks(func):
    """The blocks of the function in order, root first."""
    return _statements(func, ir.Block)


def _loops(func):
    return _statements(func, ir.For)


def _index(expr):
    """A simple index as text."""
    if isinstance(expr, ir.Var):
        return expr.name
    if isinstance(expr, ir.IntImm):
        return str(expr.value)
    signs = {ir.Add: "+", ir.Sub: "-", ir.Mul: "*", ir.FloorDiv: "//", ir.FloorMod: "%"}
    return f"({_index(expr.a)} {signs[type(expr)]} {_index(expr.b)})"


def _regions(regions):
    def part(span):
        length = _index(span.extent)
        return _index(span.min) if length == "1" else f"{_index(span.min)}:+{length}"

    return [f"{each.buffer.name}[{', '.join([part(span) for span in each.region])}]" for each in regions]


def _matmul(n=4, m=5, l=6, **options):
    A, B = te.placeholder((n, l), name="A"), te.placeholder((l, m), name="B")
    k = te.reduce_axis((0, l), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C", **options)
    return A, B, C


def test_matmul():
    func = te.create_prim_func(list(_matmul()))
    assert [param.name for param in func.params] == ["var_A", "var_B", "var_C"]
    assert [param.dtype for param in func.params] == ["handle"] * 3
    assert [func.buffer_map[param].name for param in func.params] == ["A", "B", "C"]
    assert func.attrs == {"global_symbol": "main", "tir.noalias": True}

    assert isinstance(func.body, ir.BlockRealize)
    assert func.body.iter_values == ()
    root, block = _blocks(func)
    assert (root.name_hint, root.iter_vars, root.reads, root.writes, root.alloc_buffers) == ("root", (), (), (), ())
    loops = _loops(func)
    assert [(loop.loop_var.name, int(loop.min), int(loop.extent)) for loop in loops] == [
        ("i", 0, 4),
        ("j", 0, 5),
        ("k", 0, 6),
    ]
    realize = loops[-1].body
    assert isinstance(realize, ir.BlockRealize)
    assert realize.iter_values == tuple(loop.loop_var for loop in loops)
    assert bool(realize.predicate)

    assert block.name_hint == "C"
    assert [(axis.var.name, axis.iter_type, int(axis.dom.extent)) for axis in block.iter_vars] == [
        ("v_i", ir.IterType.DataPar, 4),
        ("v_j", ir.IterType.DataPar, 5),
        ("v_k", ir.IterType.CommReduce, 6),
    ]
    assert _regions(block.reads) == ["A[v_i, v_k]", "B[v_k, v_j]"]
    assert _regions(block.writes) == ["C[v_i, v_j]"]
    assert isinstance(block.init, ir.BufferStore)
    assert block.init.value.value == 0
    assert isinstance(block.body, ir.BufferStore)
    assert isinstance(block.body.value, ir.Add)
    assert isinstance(block.body.value.a, ir.BufferLoad)
    assert block.body.value.a.buffer.name == "C"
    assert isinstance(block.body.value.b, ir.Mul)


def test_arguments_may_come_in_any_order():
    A, B, C = _matmul()
    func = te.create_prim_func([C, B, A])
    assert [func.buffer_map[param].name for param in func.params] == ["C", "B", "A"]


def test_intermediate_tensors_live_in_the_root_block():
    A, B, C = _matmul()
    D = te.compute(C.shape, lambda i, j: C[i, j] + 1, name="D")
    func = te.create_prim_func([A, B, D])
    root, *blocks = _blocks(func)
    assert [buffer.name for buffer in root.alloc_buffers] == ["C"]
    assert [block.name_hint for block in blocks] == ["C", "D"]
    listed = te.create_prim_func([A, B, C, D])
    assert _blocks(listed)[0].alloc_buffers == ()


def test_names_are_made_unique():
    A = te.placeholder((4,))
    B = te.placeholder((4,))
    C = te.compute((4,), lambda i: A[i] + B[i], name="X")
    D = te.compute((4,), lambda i: C[i] + 1, name="X")
    E = te.compute((4,), lambda i: D[i] + 1, name="root")
    func = te.create_prim_func([A, B, E])
    assert [buffer.name for buffer in func.argument_buffers()] == ["placeholder", "placeholder_1", "root"]
    assert [block.name_hint for block in _blocks(func)] == ["root", "X", "X_1", "root_1"]
    assert [buffer.name for buffer in _blocks(func)[0].alloc_buffers] == ["X", "X_1"]


def test_loop_names_within_a_nest_are_unique():
    A = te.placeholder((4, 8), name="A")
    i = te.reduce_axis((0, 8), name="i")
    func = te.create_prim_func([A, te.compute((4,), lambda j: te.sum(A[j, i], i))])
    assert [loop.loop_var.name for loop in _loops(func)] == ["j", "i"]
    same = te.compute((4, 4), lambda i0, *rest: A[i0, rest[0]])
    assert [loop.loop_var.name for loop in _loops(te.create_prim_func([A, same]))] == ["i0", "i0_1"]


def test_one_reduce_axis_in_several_computes():
    A = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((4,), lambda i: te.max(A[i, k] - B[i], axis=k), name="C")
    D = te.compute((4,), lambda i: te.min(A[i, k] * C[i], axis=[k]), name="D")
    func = te.create_prim_func([A, D])
    variables = [loop.loop_var for loop in _loops(func)]
    for block in _blocks(func):
        variables += [axis.var for axis in block.iter_vars]
    assert len(set(variables)) == len(variables) == 12
    assert k.var not in variables
    # and once more: nothing was used up
    assert len(_blocks(te.create_prim_func([A, D]))) == 4


def test_a_shared_subexpression_in_several_computes():
    A = te.placeholder((8,), name="A")
    k = te.reduce_axis((0, 8), name="k")
    square = (A[k] * A[k]).astype("float64")
    B = te.compute((), lambda: te.sum(square, axis=k), name="B")
    C = te.compute((), lambda: te.max(square, axis=k), name="C")
    b, c = _blocks(te.create_prim_func([A, B, C]))[1:]
    assert b.body.value.b is not c.body.value.b
    assert b.iter_vars[0].var is not c.iter_vars[0].var


def test_rank_0():
    z = te.placeholder((), name="z")
    func = te.create_prim_func([z, te.compute((), lambda: z + 1, name="w")])
    block = _blocks(func)[1]
    assert [(axis.var.name, int(axis.dom.extent)) for axis in block.iter_vars] == [("vi", 1)]
    assert _regions(block.reads) == ["z[]"]
    assert _regions(block.writes) == ["w[]"]
    assert _loops(func) == []


def test_reduction_to_rank_0():
    A = te.placeholder((8,), name="A")
    k = te.reduce_axis((0, 8), name="k")
    block = _blocks(te.create_prim_func([A, te.compute((), lambda: te.sum(A[k], axis=k), name="S")]))[1]
    assert [(axis.var.name, axis.iter_type) for axis in block.iter_vars] == [("v_k", ir.IterType.CommReduce)]


def test_several_outputs_share_one_nest():
    A = te.placeholder((4,), name="A")
    p, q = te.compute((4,), lambda i: (A[i] + 1, A[i] * 2), name="T")
    func = te.create_prim_func([A, p, q])
    assert [buffer.name for buffer in func.argument_buffers()] == ["A", "T_v0", "T_v1"]
    assert [block.name_hint for block in _blocks(func)] == ["root", "T.v0", "T.v1"]
    assert len(_loops(func)) == 1
    first, second = _blocks(func)[1:]
    assert first.iter_vars[0].var is not second.iter_vars[0].var


def test_an_output_that_is_not_asked_for_is_allocated():
    A = te.placeholder((4,), name="A")
    p, q = te.compute((4,), lambda i: (A[i] + 1, A[i] * 2), name="T")
    func = te.create_prim_func([A, q])
    assert [buffer.name for buffer in _blocks(func)[0].alloc_buffers] == ["T_v0"]


def _argmax():
    return te.comm_reducer(
        lambda x, y: (ir.Select(x[1] >= y[1], x[0], y[0]), ir.Select(x[1] >= y[1], x[1], y[1])),
        lambda index, value: (ir.const(-1, index), te.min_value(value)),
        name="argmax",
    )


def test_tuple_reduction_combines_before_it_stores():
    idx, val = te.placeholder((4, 8), "int32", name="idx"), te.placeholder((4, 8), name="val")
    k = te.reduce_axis((0, 8), name="k")
    best, most = te.compute((4,), lambda i: _argmax()((idx[i, k], val[i, k]), axis=k), name="argmax")
    block = _blocks(te.create_prim_func([idx, val, best, most]))[1]
    assert block.name_hint == "argmax"
    assert _regions(block.reads) == ["val[v_i, v_k]", "idx[v_i, v_k]"]
    assert _regions(block.writes) == ["argmax_v0[v_i]", "argmax_v1[v_i]"]
    assert [store.value.value for store in block.init.seq] == [-1, ir.DataType("float32").min_value()]
    outer = block.body
    assert isinstance(outer, ir.LetStmt)
    inner = outer.body
    assert (outer.var.name, inner.var.name) == ("v_argmax_v0", "v_argmax_v1")
    assert [store.value for store in inner.body.seq] == [outer.var, inner.var]


def test_fields_may_come_in_any_order():
    idx, val = te.placeholder((4, 8), "int32", name="idx"), te.placeholder((4, 8), name="val")
    k = te.reduce_axis((0, 8), name="k")
    most, best = te.compute((4,), lambda i: _argmax()((idx[i, k], val[i, k]), axis=k)[::-1], name="R")
    assert (most.dtype, best.dtype) == ("float32", "int32")
    block = _blocks(te.create_prim_func([idx, val, most, best]))[1]
    assert [store.value.dtype for store in block.init.seq] == ["float32", "int32"]


def test_where_guards_the_update_and_init_replaces_the_identity():
    A, S = te.placeholder((4, 8), name="A"), te.placeholder((4,), name="S")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k, where=A[i, k] > 0, init=S[i]), name="B")
    block = _blocks(te.create_prim_func([A, S, B]))[1]
    assert isinstance(block.body, ir.IfThenElse)
    assert block.body.else_case is None
    assert isinstance(block.init.value, ir.BufferLoad)
    assert block.init.value.buffer.name == "S"
    assert _regions(block.reads) == ["S[v_i]", "A[v_i, v_k]"]


def test_regions_join_the_accesses_of_a_buffer():
    n = te.size_var("n")
    A = te.placeholder((n + 2,), name="A")
    X = te.placeholder((n,), "int32", name="X")
    B = te.compute((n,), lambda i: A[i + 2] + A[i] + A[i + 1], name="B")
    C = te.compute((n,), lambda i: A[i] + A[X[i]], name="C")
    D = te.compute((n,), lambda i: A[i] + A[2 * i], name="D")
    b, c, d = _blocks(te.create_prim_func([A, X, B, C, D]))[1:]
    assert _regions(b.reads) == ["A[v_i:+3]"]
    assert _regions(c.reads) == ["A[0:+(n + 2)]", "X[v_i]"]
    assert _regions(d.reads) == ["A[0:+(n + 2)]"]


@pytest.mark.parametrize(
    ("read", "regions"),
    [
        (lambda P, i, j, d, e: P[i + d, j + e] - P[i + 2, j + 2], "P[v_i:+5, v_j:+3]"),
        (lambda P, i, j, d, e: P[i, j + 7] + P[i, j + d + e], "P[v_i, v_j:+8]"),
        (lambda P, i, j, d, e: P[i + d, j] - P[i, j + d], "P[v_i:+5, v_j:+5]"),
        (lambda P, i, j, d, e: P[i - d, j] + P[i + e, j], "P[(v_i - 4):+7, v_j]"),
        (lambda P, i, j, d, e: P[i + d + e, j] + P[i + d + 2, j], "P[(v_i + v_d):+3, v_j]"),  # d moves both
        (lambda P, i, j, d, e: P[i + d, j] + P[2 * i, j] + P[i, j], "P[0:+64, v_j]"),
        (lambda P, i, j, d, e: P[i * d, j] + P[i, j], "P[0:+64, v_j]"),
    ],
)
def test_regions_of_a_window_and_a_place_in_it(read, regions):
    P = te.placeholder((64, 64), name="P")
    d, e = te.reduce_axis((0, 5), name="d"), te.reduce_axis((0, 3), name="e")
    B = te.compute((8, 8), lambda i, j: te.sum(read(P, i, j, d, e), axis=[d, e]), name="B")
    func = te.create_prim_func([P, B])
    made = _blocks(func)[-1]
    assert _regions(made.reads) == [regions]
    inferred = get_block_access_region(made, {})[0]  # the same without te
    simplify = Analyzer().simplify
    for one, other in zip(made.reads[0].region, inferred[0].region, strict=True):
        assert simplify(one.min - other.min).value == 0 and simplify(one.extent - other.extent).value == 0


def test_indices_are_simplified_and_unit_axes_stay():
    A = te.placeholder((64,), name="A")
    B = te.compute((8, 8), lambda i, j: A[(i * 8 + j) // 8 + 0 * j], name="B")
    C = te.compute((1, 8), lambda i, j: A[i + j], name="C")
    b, c = _blocks(te.create_prim_func([A, B, C]))[1:]
    assert _regions(b.reads) == ["A[v_i]"]
    assert _regions(c.reads) == ["A[(v_i + v_j)]"]


def test_int64_shapes_give_int64_loops():
    n = te.var("n", "int64")
    A = te.placeholder((n, te.const(4, "int64")), name="A")
    k = te.reduce_axis((0, te.const(4, "int64")), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    func = te.create_prim_func([A, B])
    assert {loop.loop_var.dtype for loop in _loops(func)} == {"int64"}
    assert {loop.min.dtype for loop in _loops(func)} == {"int64"}
    assert {axis.var.dtype for axis in _blocks(func)[1].iter_vars} == {"int64"}


def test_index_dtype_override():
    n = te.size_var("n")
    A = te.placeholder((n, 4), name="A")
    X = te.placeholder((n,), "int32", name="X")
    k = te.reduce_axis((0, 4), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i + 0, k], axis=k, where=k < i), name="B")
    C = te.compute((n,), lambda i: te.if_then_else(i < 3, A[X[i], 1] + i, A[te.max(i - 1, 0), 0]), name="C")
    I = te.compute((n,), lambda i: i, name="I")
    func = te.create_prim_func([A, X, B, C, I], index_dtype_override="int64")
    assert {loop.loop_var.dtype for loop in _loops(func)} == {"int64"}
    (size,) = {buffer.shape[0] for buffer in func.argument_buffers()}
    assert (size.name, size.dtype, type(size)) == ("n", "int64", ir.SizeVar)

    def look(node):
        if isinstance(node, (ir.BufferLoad, ir.BufferStore)):
            assert [index.dtype for index in node.indices] == ["int64"] * len(node.indices)

    ir.post_order_visit(func.body, look)
    b, _, i = _blocks(func)[1:]
    assert isinstance(b.body.condition, ir.LT)
    assert b.body.condition.a.dtype == "int64"
    assert isinstance(i.body.value, ir.Cast)  # the value keeps its type
    assert i.body.value.dtype == "int32"


def test_symbols_and_scalar_parameters():
    n, alpha = te.size_var("n"), te.var("alpha", "float32")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * alpha, name="B")
    func = te.create_prim_func([A, alpha, B])
    assert func.params[1] is alpha
    assert func.buffer_map[func.params[0]].shape[0] is n
    with pytest.raises(te.UndefinedVariable, match=r"B uses the variable alpha, which has no value(.|\n)*add alpha to"):
        te.create_prim_func([A, B])


def test_a_symbol_that_no_parameter_gives():
    n = te.size_var("n")
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + n, name="B")
    with pytest.raises(te.UndefinedVariable, match=r"uses the variable n, .*no parameter has it in its shape"):
        te.create_prim_func([A, B])
    assert te.create_prim_func([n, A, B]).params[0] is n


def test_a_size_is_solved_for_its_symbol():
    n = te.var("n")
    A = te.placeholder((n * 2,), name="A")
    B = te.compute((n * 2,), lambda i: A[i] + n, name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], 2)
    bounds = te.schedule.InferBound(s)
    assert bounds[outer].extent is n and bounds[inner].extent.value == 2
    given, out = np.zeros(6, "float32"), np.zeros(6, "float32")
    evaluate(te.create_prim_func([A, B]), given, out)
    assert (out == 3).all()
    half = te.placeholder((n // 2,), name="half")
    with pytest.raises(lw.LoopwrightError, match="nothing gives the value of n"):
        lw.build([half, te.compute((n // 2,), lambda i: half[i] + 1, name="C")])


def test_local_names_are_not_parameters():
    A = te.placeholder((8,), name="A")
    x = ir.Var("x", "float32")
    B = te.compute((8,), lambda i: ir.Let(x, A[i] + 1, x * x), name="B")
    assert len(te.create_prim_func([A, B]).params) == 2


def test_attributes_become_annotations():
    A, B, C = _matmul(attrs={"rule": "tile", "steps": [1, 2]})
    D = te.compute((4, 5), lambda i, j: C[i, j], name="D", attrs={"of": C, "layout_free_placeholders": [B]})
    func = te.create_prim_func([A, B, D])
    c, d = _blocks(func)[1:]
    assert c.annotations == {"rule": "tile", "steps": [1, 2]}
    assert d.annotations == {"of": c.writes[0].buffer}
    assert func.attrs["layout_free_buffers"] == [1]


def test_reduce_domains_may_depend_on_data_axes():
    A = te.placeholder((4, 4), name="A")

    def row(i):
        k = te.reduce_axis((0, i + 1), name="k")
        return te.sum(A[i, k], axis=k)

    func = te.create_prim_func([A, te.compute((4,), row, name="B")])
    outer, inner = _loops(func)
    assert _index(inner.extent) == "(i + 1)"
    assert inner.extent.a is outer.loop_var


def test_zero_sizes():
    A = te.placeholder((0, 3), name="A")
    k = te.reduce_axis((0, 0), name="k")
    func = te.create_prim_func([A, te.compute((3,), lambda j: te.sum(A[k, j], axis=k), name="B")])
    assert [int(loop.extent) for loop in _loops(func)] == [3, 0]


def test_missing_placeholder_is_named():
    A, B, C = _matmul()
    D = te.compute((4, 5), lambda i, j: C[i, j], name="D")
    message = r"placeholder B \(read by C\) is not in the list \[A, D\](.|\n)*add B"
    with pytest.raises(te.MissingPlaceholder, match=message):
        te.create_prim_func([A, D])
    with pytest.raises(
        te.MissingPlaceholder, match=r"placeholders A \(read by C\), B \(read by C\) are not in the list"
    ):
        te.create_prim_func([C])


def test_no_output():
    A, B, _ = _matmul()
    with pytest.raises(te.NoOutput, match=r"\[A, B\] holds no output: none of the tensors is computed"):
        te.create_prim_func([A, B])
    with pytest.raises(te.NoOutput, match=r"\[\] holds no output"):
        te.create_prim_func([])


def test_bad_arguments():
    A, B, C = _matmul()
    with pytest.raises(te.BadFunctionArgument, match="entry 1 of the list repeats A"):
        te.create_prim_func([A, A, C])
    with pytest.raises(te.BadFunctionArgument, match=r"entry 2 of the list is the operation C(.|\n)*op\.output\(0\)"):
        te.create_prim_func([A, B, C.op])
    with pytest.raises(TypeError, match="entry 0 of the list is int 3"):
        te.create_prim_func([3, C])


def test_deep_and_shared_expressions():
    A = te.placeholder((8,), name="A")

    def deep(i):
        value = A[i].as_expr()
        for _ in range(10_000):
            value = value + A[i]
        return value

    def shared(i):
        value = A[i].as_expr()
        for _ in range(60):  # 2**60 paths
            value = value + value
        return value

    func = te.create_prim_func([A, te.compute((8,), deep), te.compute((8,), shared)])
    assert [_regions(block.reads) for block in _blocks(func)[1:]] == [["A[v_i]"], ["A[v_i]"]]


def test_long_chains():
    tensor = A = te.placeholder((8,), name="A")
    for _ in range(2000):
        tensor = _next(tensor)
    func = te.create_prim_func([A, tensor])
    assert len(func.body.block.alloc_buffers) == 1999


def _next(tensor):
    return te.compute((8,), lambda i: tensor[i] + 1, name="T")


def test_text_of_a_chain():
    A, B, C = _matmul(16, 32, 64)
    D = te.compute(C.shape, lambda i, j: te.exp(C[i, j]) + 1, name="D")

    @T.prim_func
    def main(var_A: T.handle, var_B: T.handle, var_D: T.handle):
        T.func_attr({"tir.noalias": True})
        A = T.match_buffer(var_A, (16, 64))
        B = T.match_buffer(var_B, (64, 32))
        D = T.match_buffer(var_D, (16, 32))
        C = T.alloc_buffer((16, 32))
        for i, j, k in T.grid(16, 32, 64):
            with T.block("C"):
                v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[v_i, v_j] = T.float32(0)
                C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]
        for i, j in T.grid(16, 32):
            with T.block("D"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                D[v_i, v_j] = T.exp(C[v_i, v_j]) + T.float32(1)

    assert_structural_equal(te.create_prim_func([A, B, D]), main)


def test_text_of_a_tuple_reduction():
    idx, val = te.placeholder((4, 8), "int32", name="idx"), te.placeholder((4, 8), name="val")
    k = te.reduce_axis((0, 8), name="k")
    best, most = te.compute(
        (4,), lambda i: _argmax()((idx[i, k], val[i, k]), axis=k, where=val[i, k] < 9), name="argmax"
    )

    @T.prim_func
    def main(var_idx: T.handle, var_val: T.handle, var_argmax_v0: T.handle, var_argmax_v1: T.handle):
        T.func_attr({"tir.noalias": True})
        idx = T.match_buffer(var_idx, (4, 8), "int32")
        val = T.match_buffer(var_val, (4, 8))
        argmax_v0 = T.match_buffer(var_argmax_v0, (4,), "int32")
        argmax_v1 = T.match_buffer(var_argmax_v1, (4,))
        for i, k in T.grid(4, 8):
            with T.block("argmax"):
                v_i, v_k = T.axis.remap("SR", [i, k])
                with T.init():
                    argmax_v0[v_i] = -1
                    argmax_v1[v_i] = T.min_value("float32")
                if val[v_i, v_k] < T.float32(9):
                    v_argmax_v0: T.int32 = T.Select(argmax_v1[v_i] >= val[v_i, v_k], argmax_v0[v_i], idx[v_i, v_k])
                    v_argmax_v1: T.float32 = T.Select(argmax_v1[v_i] >= val[v_i, v_k], argmax_v1[v_i], val[v_i, v_k])
                    argmax_v0[v_i] = v_argmax_v0
                    argmax_v1[v_i] = v_argmax_v1

    assert_structural_equal(te.create_prim_func([idx, val, best, most]), main)


def test_regions_are_those_the_script_infers():
    A = te.placeholder((18,), name="A")
    B = te.compute((16,), lambda i: A[i + 2] + A[i] + A[i + 1], name="B")

    @T.prim_func
    def main(var_A: T.handle, var_B: T.handle):
        T.func_attr({"tir.noalias": True})
        A = T.match_buffer(var_A, (18,))
        B = T.match_buffer(var_B, (16,))
        for i in range(16):
            with T.block("B"):
                v_i = T.axis.spatial(16, i)
                B[v_i] = A[v_i + 2] + A[v_i] + A[v_i + 1]

    assert_structural_equal(te.create_prim_func([A, B]), main)
