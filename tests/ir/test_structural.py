"""Structural equality and hash: names do not matter, everything else does."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from loopwright import ir, nd
from loopwright.ir import (
    StructuralMismatch,
    assert_structural_equal,
    const,
    get_first_structural_mismatch,
    intrinsics,
    structural_digest,
    structural_equal,
    structural_hash,
)
from loopwright.runtime import ObjectPath, convert

NOP = ir.Evaluate(const(0))
SERIAL = ir.ForKind.SERIAL


def same(a, b, **options) -> bool:
    """Whether both are equal; hash, mismatch and assertion must agree with it."""
    equal = structural_equal(a, b, **options)
    assert structural_equal(b, a, **options) == equal
    assert (get_first_structural_mismatch(a, b, **options) is None) == equal
    if equal:
        assert structural_hash(a, **options) == structural_hash(b, **options)
        assert_structural_equal(a, b, **options)
    else:
        # Not required of a hash, but a collision in these tests would be a field that it forgets.
        assert structural_hash(a, **options) != structural_hash(b, **options)
    return equal


def matmul(name="i", extent=8, value=1.0):
    A = ir.decl_buffer((extent, 8), "float32", "A")
    B = ir.decl_buffer((extent,), "float32", name + "_out")
    i, k, vi, vk = ir.Var(name), ir.Var("k"), ir.Var("v" + name), ir.Var("vk")
    update = ir.BufferStore(B, B[vi] + A[vi, vk] * value, (vi,))
    axes = ir.IterVar(ir.Range(extent), vi, 0), ir.IterVar(ir.Range(8), vk, 2)
    region = ir.BufferRegion(B, (ir.Range.from_min_extent(vi, const(1)),))
    block = ir.Block(axes, (), (region,), "B", update, ir.BufferStore(B, const(0.0), (vi,)))
    nest = ir.For(i, 0, extent, SERIAL, ir.For(k, 0, 8, SERIAL, ir.BlockRealize((i, k), const(True), block)))
    root = ir.BlockRealize((), const(True), ir.Block((), (), (), "root", nest))
    return ir.PrimFunc([A, B], root, attrs={"global_symbol": "main"})


def test_names_do_not_matter():
    assert same(matmul("i"), matmul("other"))


def test_mismatch_names_the_path_and_shows_both_sides():
    with pytest.raises(StructuralMismatch) as caught:
        assert_structural_equal(matmul(value=3.0), matmul(value=2.0))
    text = str(caught.value)
    path = "body.block.body.body.body.block.body.value.b.b.value"
    assert text.startswith(f"the programs differ at {path}: 3.0 != 2.0 [LW0510]")
    assert "left:" in text and "B[vi] + A[vi, vk] * T.float32(3)" in text.replace("i_out", "B")
    assert "right:" in text and "A[vi, vk] * T.float32(2)" in text and "^^^^" in text
    assert caught.value.fields["path"] == path
    paths = get_first_structural_mismatch(matmul(value=3.0), matmul(value=2.0))
    assert [str(one) for one in paths] == [f"<root>.{path}"] * 2
    assert isinstance(caught.value, AssertionError) and isinstance(caught.value, ValueError)


def test_mismatch_of_a_shape():
    with pytest.raises(StructuralMismatch, match=r"buffer_map\[params\[0\]\].shape\[0\].value: 8 != 9"):
        assert_structural_equal(matmul(extent=8), matmul(extent=9))


# --- binding ---


def test_free_variables_are_equal_only_to_themselves():
    a, b = ir.Var("a"), ir.Var("a")
    assert same(a + 1, a + 1)
    assert not structural_equal(a + 1, b + 1)
    assert same(a + 1, b + 1, map_free_vars=True)
    assert same(a * b, b * a, map_free_vars=True)
    assert not structural_equal(a + a, a + b, map_free_vars=True)
    assert not structural_equal(a + b, a + a, map_free_vars=True)
    assert not structural_equal(a + 1, ir.Var("a", "int64") + 1, map_free_vars=True)
    assert not structural_equal(a + 1, ir.SizeVar("a") + 1, map_free_vars=True)


def test_variables_are_equal_when_bound_at_the_same_place():
    def nest(order):
        i, j = ir.Var("i"), ir.Var("j")
        first, second = (i, j) if order else (j, i)
        return ir.For(i, 0, 4, SERIAL, ir.For(j, 0, 4, SERIAL, ir.Evaluate(first - second)))

    assert same(nest(True), nest(True))
    assert not same(nest(True), nest(False))


def test_one_variable_bound_twice_equals_two_variables():
    i, a, b = ir.Var("i"), ir.Var("a"), ir.Var("b")
    shared = ir.SeqStmt(tuple(ir.For(i, 0, 4, SERIAL, ir.Evaluate(i)) for _ in range(2)))
    fresh = ir.SeqStmt(tuple(ir.For(var, 0, 4, SERIAL, ir.Evaluate(var)) for var in (a, b)))
    assert same(shared, fresh)


def test_a_binding_ends_with_its_scope():
    i, j = ir.Var("i"), ir.Var("j")
    left = ir.SeqStmt((ir.For(i, 0, 4, SERIAL, NOP), ir.Evaluate(i)))
    right = ir.SeqStmt((ir.For(j, 0, 4, SERIAL, NOP), ir.Evaluate(j)))
    assert not structural_equal(left, right)


def test_the_extent_of_a_loop_is_outside_of_it():
    i, j, n = ir.Var("i"), ir.Var("j"), ir.Var("n")
    assert not structural_equal(ir.For(i, 0, n, SERIAL, NOP), ir.For(j, 0, j, SERIAL, NOP))


def test_buffers_bind_their_pointer_and_sizes():
    def func(swap=False):
        n, m = ir.Var("n"), ir.Var("m")
        A = ir.decl_buffer((n, m + 1), "float32", "A", strides=[ir.Var("s"), const(1)], offset_factor=2)
        used = [n, A.strides[0], A.elem_offset]
        return ir.PrimFunc([A], ir.Evaluate(used[1] - used[0] if swap else used[0] - used[1]))

    assert same(func(), func())
    assert not same(func(), func(swap=True))


def test_undeclared_buffers_over_a_bound_pointer():
    def program(dtype="float32"):
        pointer = ir.pointer("p", "float32")
        buffer = ir.decl_buffer((8,), dtype, "B", data=pointer)
        body = ir.BufferStore(buffer, const(0, dtype), (const(0),))
        return ir.Allocate(pointer, "float32", (const(8),), const(True), body)

    assert same(program(), program())
    assert not same(program(), program("float16"))


def test_thread_axes():
    def program(tag="threadIdx.x"):
        axis = ir.IterVar(ir.Range(8), ir.Var("t"), 1, tag)
        return ir.AttrStmt(axis, "thread_extent", const(8), ir.Evaluate(axis.var))

    assert same(program(), program())
    assert not same(program(), program("threadIdx.y"))


def test_reductions_bind_their_axes_and_combiner():
    def total(sign=1):
        k, a, b = ir.IterVar(ir.Range(8), "k", 2), ir.Var("a", "float32"), ir.Var("b", "float32")
        combiner = ir.CommReducer((a,), (b,), (a + b if sign > 0 else a - b,), (const(0.0),))
        return ir.Reduce(combiner, (k.var.astype("float32"),), (k,), const(True), 0)

    assert same(total(), total())
    assert not same(total(), total(-1))


# --- near misses: every field, changed alone, is noticed ---

i, x, p = ir.Var("i"), ir.Var("x", "float32"), ir.Var("p", "bool")
A = ir.decl_buffer((16, 16), "float32", "A")
B = ir.decl_buffer((16, 16), "float32", "B")
STORE = ir.BufferStore(A, x, (i, i))
REGION = ir.BufferRegion(A, (ir.Range(4), ir.Range(4)))
OTHER = ir.BufferRegion(A, (ir.Range(4), ir.Range(5)))
AXIS = ir.IterVar(ir.Range(4), ir.Var("v"), 0)
BLOCK = ir.Block((AXIS,), (REGION,), (REGION,), "B", STORE, STORE, (B,), (ir.MatchBufferRegion(B, REGION),), {"k": 1})
LOOP = ir.For(ir.Var("k"), 0, 8, SERIAL, STORE, None, {"k": 1})
POINTER = ir.pointer("p", "float32")
ALLOCATE = ir.Allocate(POINTER, "float32", (const(4),), const(True), STORE, {"k": 1})
CONSTANT = ir.AllocateConst(POINTER, "float32", (const(2),), np.array([1, 2], "float32"), STORE, {"k": 1})
FUNC = matmul()

NEAR_MISSES = [
    (LOOP, "loop_var", ir.Var("k", "int64")),
    (LOOP, "min", const(1)),
    (LOOP, "extent", const(9)),
    (LOOP, "kind", ir.ForKind.PARALLEL),
    (LOOP, "body", NOP),
    (LOOP, "thread_binding", ir.IterVar(None, ir.Var("t"), 1, "threadIdx.x")),
    (LOOP, "annotations", {"k": 2}),
    (LOOP, "annotations", {}),
    (LOOP, "annotations", {"j": 1}),
    (BLOCK, "iter_vars", (ir.IterVar(ir.Range(5), ir.Var("v"), 0),)),
    (BLOCK, "iter_vars", (ir.IterVar(ir.Range(4), ir.Var("v"), 2),)),
    (BLOCK, "iter_vars", ()),
    (BLOCK, "reads", (OTHER,)),
    (BLOCK, "writes", (OTHER,)),
    (BLOCK, "body", NOP),
    (BLOCK, "init", None),
    (BLOCK, "init", NOP),
    (BLOCK, "alloc_buffers", (B.with_(data_alignment=128),)),
    (BLOCK, "alloc_buffers", ()),
    (BLOCK, "match_buffers", (ir.MatchBufferRegion(B, OTHER),)),
    (BLOCK, "annotations", {"k": 2}),
    (ir.BlockRealize((i,), p, BLOCK), "iter_values", (i + 1,)),
    (ir.BlockRealize((i,), p, BLOCK), "predicate", const(True)),
    (STORE, "value", x + 1),
    (STORE, "indices", (i, i + 1)),
    (STORE, "buffer", B),
    (ALLOCATE, "dtype", ir.DataType("int32")),
    (ALLOCATE, "extents", (const(5),)),
    (ALLOCATE, "condition", p),
    (ALLOCATE, "buffer_var", ir.pointer("p", "float32", "local")),
    (ALLOCATE, "annotations", {}),
    (CONSTANT, "data", np.array([1, 3], "float32")),
    (CONSTANT, "data", np.array([1, 2], "float64")),
    (CONSTANT, "data", np.array([[1, 2]], "float32")),
    (ir.LetStmt(i, const(1), NOP), "value", const(2)),
    (ir.LetStmt(i, const(1), NOP), "body", STORE),
    (ir.AttrStmt("n", "k", const(1), NOP), "node", "m"),
    (ir.AttrStmt("n", "k", const(1), NOP), "attr_key", "j"),
    (ir.AttrStmt("n", "k", const(1), NOP), "value", const(2)),
    (ir.AssertStmt(p, ir.StringImm("a"), NOP), "condition", const(True)),
    (ir.AssertStmt(p, ir.StringImm("a"), NOP), "message", ir.StringImm("b")),
    (ir.IfThenElse(p, NOP, None), "else_case", NOP),
    (ir.IfThenElse(p, NOP, None), "then_case", STORE),
    (ir.While(p, NOP), "condition", const(True)),
    (ir.DeclBuffer(A, NOP), "buffer", A.with_(shape=(const(16), const(17)))),
    (ir.BufferRealize(A, (ir.Range(4), ir.Range(4)), p, NOP), "condition", const(True)),
    (ir.BufferRealize(A, (ir.Range(4), ir.Range(4)), p, NOP), "bounds", (ir.Range(4), ir.Range(5))),
    (ir.Prefetch(A, (ir.Range(4), ir.Range(4))), "bounds", (ir.Range(4), ir.Range(5))),
    (ir.SeqStmt((NOP, STORE)), "seq", (STORE, NOP)),
    (ir.SeqStmt((NOP, STORE)), "seq", (NOP, STORE, NOP)),
    (ir.Cast("float16", x), "dtype", ir.DataType("float64")),
    (intrinsics.exp(x), "op", ir.Op.get("tir.log")),
    (intrinsics.exp(x), "dtype", ir.DataType("float64")),
    (intrinsics.exp(x), "args", (x, x)),
    (ir.Ramp(i, const(1), 4), "lanes", 8),
    (ir.Ramp(i, const(1), 4), "stride", const(2)),
    (ir.Broadcast(x, 4), "lanes", 8),
    (ir.Shuffle((ir.Broadcast(x, 2),), (const(0),)), "indices", (const(1),)),
    (ir.Select(p, x, x), "false_value", x + 1),
    (ir.Let(i, const(1), x), "value", const(2)),
    (ir.IterVar(ir.Range(4), i, 1, "a"), "thread_tag", "b"),
    (FUNC, "attrs", {"global_symbol": "other"}),
    (FUNC, "ret_type", ir.PrimType(ir.DataType("int32"))),
    (FUNC, "params", FUNC.params[:1]),
    (FUNC, "buffer_map", {}),
    (ir.PointerType(ir.PrimType(ir.DataType("int8")), "a"), "storage_scope", "b"),
]


NEAR_MISS_NAMES = [f"{type(node).__name__}.{field}-{k}" for k, (node, field, _) in enumerate(NEAR_MISSES)]


@pytest.mark.parametrize(("node", "field", "value"), NEAR_MISSES, ids=NEAR_MISS_NAMES)
def test_a_changed_field_is_noticed(node, field, value):
    assert same(node, type(node)._make(*[getattr(node, one.name) for one in node.node_fields], span="elsewhere"))
    assert not same(node, node.with_(**{field: value}))


def test_names_of_blocks_count_only_where_asked():
    renamed = BLOCK.with_(name_hint="C")
    assert same(BLOCK, renamed)
    assert not ir.structural_equal(BLOCK, renamed, block_names=True)
    assert ir.structural_hash(BLOCK) == ir.structural_hash(renamed)
    assert structural_digest(BLOCK) != structural_digest(renamed)
    with pytest.raises(StructuralMismatch, match="differ at name_hint: 'B' != 'C'"):
        ir.assert_structural_equal(BLOCK, renamed, block_names=True)


BUFFER_CHANGES = {
    "dtype": "float16",
    "shape": (const(16), const(17)),
    "strides": (const(16), const(1)),
    "elem_offset": const(4),
    "data": ir.pointer("A", "float32", "shared"),
    "data_alignment": 128,
    "offset_factor": 4,
    "buffer_type": "auto_broadcast",
    "axis_separators": (1,),
}


@pytest.mark.parametrize("field", BUFFER_CHANGES)
def test_a_changed_field_of_a_buffer_is_noticed(field):
    changed = A.with_(**{field: BUFFER_CHANGES[field]})
    assert not same(ir.PrimFunc([A], NOP), ir.PrimFunc([changed], NOP))
    assert same(ir.PrimFunc([A], NOP), ir.PrimFunc([A.with_(name="Z")], NOP))


def test_operators_differ_by_class_and_operand_order():
    a, b = ir.Var("a"), ir.Var("b")
    classes = [ir.Add, ir.Sub, ir.Mul, ir.Div, ir.Mod, ir.FloorDiv, ir.FloorMod, ir.Min, ir.Max, ir.EQ, ir.NE, ir.LT]
    for cls in classes:
        assert same(cls(a, b), cls(a, b))
        assert not same(cls(a, b), cls(b, a))
        for other in classes:
            assert cls is other or not same(cls(a, b), other(a, b))


def test_literals():
    assert same(const(float("nan")), const(float("nan")))
    assert not same(const(0.0), const(-0.0))
    assert not same(const(1), const(2))
    assert not same(const(1), const(1, "int64"))
    assert not same(const(1), const(True))


# --- annotations and attributes ---


def annotated(value):
    return ir.AttrStmt(0, "k", const(0), NOP).with_(node=value)


@pytest.mark.parametrize(
    ("a", "b"),
    [(1, const(1)), ("s", ir.StringImm("s")), (True, const(True)), ([1, 2], (1, 2)), ({"a": 1}, {"a": const(1)})],
)
def test_literals_in_data_are_their_python_values(a, b):
    assert same(annotated(a), annotated(b))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, 2),
        (1, True),
        (1, 1.0),
        (1, const(1, "int64")),
        ("a", "b"),
        ([1], [1, 2]),
        ({"a": 1}, {"a": 2}),
        (None, 0),
    ],
)
def test_different_data(a, b):
    assert not same(annotated(a), annotated(b))


def test_variables_in_annotations_are_compared_as_variables():
    def loop():
        k = ir.Var("k")
        return ir.For(k, 0, 4, SERIAL, ir.For(ir.Var("j"), 0, 4, SERIAL, NOP, None, {"by": [k]}))

    assert same(loop(), loop())


# --- modules, and at scale ---


def test_modules():
    one = ir.IRModule({"main": matmul("i"), "sub": matmul("j", 4)})
    two = ir.IRModule({"sub": matmul("k", 4), "main": matmul("l")})
    assert same(one, two)
    assert not same(one, ir.IRModule({"main": matmul()}))
    assert not same(one, two.with_attr("k", 1))
    with pytest.raises(StructuralMismatch, match=r'differ at \["sub"\]\.buffer_map'):
        assert_structural_equal(one, ir.IRModule({"main": matmul(), "sub": matmul("j", 5)}))


def test_different_classes():
    assert not same(const(1), x)
    with pytest.raises(StructuralMismatch, match="the programs differ at the root: 1 != x"):
        assert_structural_equal(const(1), x)


def test_deep_and_large_programs():
    def chain():
        value = i
        for k in range(10_000):
            value = ir.Add(const(k % 7), value)
        return value

    assert same(chain(), chain())
    assert not structural_equal(chain(), ir.Add(const(8), chain().b))
    body = ir.SeqStmt(tuple(ir.BufferStore(A, A[i, i] + x * x, (i, i)) for _ in range(10_000)))
    assert same(body, ir.SeqStmt(tuple(body.seq[:])))


def test_the_digest_is_the_same_in_every_process():
    program = (
        "from loopwright import ir\n"
        "A = ir.decl_buffer((8,), 'float32', 'A')\n"
        "i = ir.Var('i')\n"
        "loop = ir.For(i, 0, 8, ir.ForKind.SERIAL, ir.BufferStore(A, 1.0, (i,)))\n"
        "f = ir.PrimFunc([A], loop, attrs={'b': 1, 'a': 's'})\n"
        "print(ir.structural_digest(f))\n"
    )
    scope: dict = {}
    exec(program.replace("print", "shown = "), scope)
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    assert other == scope["shown"]
    assert len(other) == 32 and structural_digest(scope["f"]) == other


def test_numbers_in_attributes_are_literals():
    loop = ir.For(ir.Var("i"), 0, 4, SERIAL, NOP, annotations={"k": 3, "on": True, "many": [1, (2, 0.5)], "s": "x"})
    notes = loop.annotations
    assert isinstance(notes["k"], ir.IntImm) and notes["k"].value == 3 and notes["k"].dtype == "int32"
    assert notes["on"].dtype == "bool" and notes["on"]
    assert notes == {"k": 3, "on": True, "many": [1, (2, 0.5)], "s": "x"} and notes != {"k": 4}
    assert loop.with_(annotations={"k": 1 << 40}).annotations["k"].dtype == "int64"
    func = ir.PrimFunc([], NOP, attrs={"n": 1}).with_attr("m", 2)
    assert [func.attrs["n"].value, func.attrs["m"].value] == [1, 2]
    assert ir.IRModule({"main": func}, attrs={"a": 5}).attrs["a"].value == 5
    assert ir.python_value(notes["many"]) == [1, (2, 0.5)]


def test_containers_and_tensors_are_compared_by_content():
    root = ObjectPath.root()
    for a, b, paths in [
        ([1, 2, 3], [1, 4, 3], (root.array_index(1).attr("value"),) * 2),
        ([1, 2], [1, 2, 3], (root.missing_array_element(2), root.array_index(2))),
        ({"a": 1}, {"a": 2}, (root.map_value("a").attr("value"),) * 2),
        ({"a": 1, "b": 2}, {"a": 1}, (root.map_value("b"), root.missing_map_entry())),
    ]:
        a, b, again = convert(a), convert(b), convert(a)
        assert same(a, again) and not same(a, b)
        assert get_first_structural_mismatch(a, b) == paths
    a, again, b = nd.array(np.arange(3)), nd.array(np.arange(3)), nd.array(np.ones(3))
    assert same(a, again) and not same(a, b)


def test_paths_lead_to_parameters_and_functions():
    def reader(extent):
        buffer = ir.decl_buffer((extent,), "float32", "A")
        return ir.IRModule({"main": ir.PrimFunc([buffer], ir.Evaluate(buffer[0]))})

    one, other = reader(4), reader(5)
    path, _ = get_first_structural_mismatch(one, other)
    var = one["main"].params[0]
    wanted = ObjectPath.root().attr("functions").map_value(one.get_global_var("main")).attr("buffer_map").map_value(var)
    assert path == wanted.attr("shape").array_index(0).attr("value")
    assert wanted.is_prefix_of(path) and path.get_prefix(wanted.length) == wanted and not path.is_prefix_of(wanted)
    assert "^" in one.script(path_to_underline=[path])
