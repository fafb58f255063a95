"""Every intrinsic of the machines we know, through tensorize: matched in any order of loops and however they are split,
fused or renamed, from script and from te; and refused with the reason where something differs."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from loopwright import te, tir
from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Expr,
    For,
    ForKind,
    IterType,
    IterVar,
    PrimFunc,
    Range,
    Rewriter,
    Stmt,
    Var,
    const,
    substitute,
)
from loopwright.ir.annotations import TENSORIZED
from loopwright.schedule import LoopRV, Schedule
from loopwright.schedule.proof.tensorized import IntrinsicMismatch
from loopwright.script import from_source
from loopwright.transform.tensor_intrinsics import TensorIntrin
from tests.schedule.steps import assert_same_numbers, refused

DOTS = ["dot_16x4_vnni", "dot_4x4_i8i8s32_sdot", "dot_4x4_u8u8s32_udot"]
AMX = ["amx_dot_16x16x64_u8s8s32", "amx_dot_16x16x64_s8s8s32", "amx_dot_16x16x32_bf16bf16f32"]
OTHERS = ["fma_8_f16_neon", "interleave_4x16_int8", "interleave_4x4_int8", "interleave_2x16_bfloat16"]
ALL = [*DOTS, *AMX, *OTHERS]
TILES = 3  # how many of them the programs compute


class _Within(Rewriter):
    """Accesses of larger buffers: tile number `at` of each."""

    def __init__(self, buffers: dict[Buffer, Buffer], at: Var) -> None:
        self.buffers, self.at = buffers, at

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        return BufferLoad(self.buffers[load.buffer], (self.at, *load.indices))


def repeated(name: str) -> PrimFunc:
    """What the intrinsic describes, for several tiles: for t: C[t, …] = …"""
    intrin = TensorIntrin.get(name)
    pattern = intrin.pattern
    larger = {b: tir.decl_buffer((TILES, *b.shape), b.dtype, b.name) for b in intrin.parameters}
    tile = Var("vt")
    axes = [IterVar(Range(0, TILES), tile, IterType.DataPar)]
    loops, values = [Var("t")], {}
    for loop in pattern.loops:
        kind = IterType.CommReduce if loop.loop_var in pattern.reduced else IterType.DataPar
        values[loop.loop_var] = Var(f"v{loop.loop_var.name}")
        axes.append(IterVar(Range(0, loop.extent), values[loop.loop_var], kind))
        loops.append(Var(loop.loop_var.name))
    (store,) = pattern.stores
    within = _Within(larger, tile)
    value = within.visit(substitute(store.value, values))
    cell = (tile, *[substitute(index, values) for index in store.indices])
    written = larger[store.buffer]
    point = BufferRegion(written, tuple([Range.from_min_extent(index, const(1)) for index in cell]))
    whole = [BufferRegion(b, tuple([Range(0, size) for size in b.shape])) for b in larger.values()]
    block = Block(tuple(axes), tuple(whole), (point,), "C", BufferStore(written, value, cell))
    body: Stmt = BlockRealize(tuple(loops), const(True), block)
    for var, axis in zip(reversed(loops), reversed(axes), strict=True):
        body = For(var, const(0), axis.dom.extent, ForKind.SERIAL, body)
    root = Block((), (), (), "root", body)
    made = PrimFunc(list(larger.values()), BlockRealize((), const(True), root))
    return from_source(made.script())  # what users would have written


def in_another_order(sch: Schedule, seed: int) -> LoopRV:
    """The loops inside the first, split, perhaps fused, and shuffled; the outermost of them."""
    draw = random.Random(seed)
    first, *inner = sch.get_loops("C")
    parts: list[LoopRV] = []
    for loop in inner:
        extent = int(sch.get(loop).extent)
        sizes = [size for size in (2, 4, 8) if extent % size == 0 and size < extent]
        parts += sch.split(loop, [None, draw.choice(sizes)]) if sizes and draw.random() < 0.7 else [loop]
    draw.shuffle(parts)
    sch.reorder(first, *parts)
    kinds = {loop.var: any(c in loop.name for c in "k") for loop in parts}
    for outer, other in pairwise(parts):
        if kinds[outer.var] == kinds[other.var] and draw.random() < 0.5:
            sch.fuse(outer, other)
            break
    return sch.get_loops("C")[1]


@pytest.mark.parametrize("name", ALL)
def test_as_described(name):
    before = repeated(name)
    sch = Schedule(before)
    sch.tensorize(sch.get_loops("C")[1], name)
    marked = [sch.get(block) for block in sch.get_child_blocks(sch.get_loops("C_o")[0])]
    assert marked[0].annotations[TENSORIZED] == name
    assert sch.is_proved and sch.trace.relies_on == [name]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ALL)
def test_in_any_order_and_split(name, seed):
    before = repeated(name)
    sch = Schedule(before)
    sch.tensorize(in_another_order(sch, seed), name)
    assert sch.trace.relies_on == [name]
    if name in DOTS:
        assert_same_numbers(sch.mod["main"], before)


# --- what differs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in ALL if name != "interleave_2x16_bfloat16"])
def test_a_loop_too_short(name):
    """Half of a tile, said with both extents."""
    sch = Schedule(repeated(name))
    first, loop, *rest = sch.get_loops("C")
    size = int(sch.get(loop).extent)
    outer, inner = sch.split(loop, [2, None])
    sch.reorder(outer, inner, *rest)
    message = rf"is not what '{name}' describes: loop \w+ of the description has extent {size}, here .* has {size // 2}"
    error = refused(sch, IntrinsicMismatch, message, "tensorize", inner, name)
    assert (error.fields["wanted"], error.fields["found"]) == (size, size // 2)


@pytest.mark.parametrize("name", ALL)
def test_other_types(name):
    """A tile of the same shape on float64."""
    text = repeated(name).script()
    for dtype in ("uint8", "int8", "int32", "bfloat16", "float16", "float32"):
        text = text.replace(f'"{dtype}"', '"float64"')
    text = text.replace("T.float16(", "T.float64(")
    sch = Schedule(from_source(text))
    error = refused(sch, IntrinsicMismatch, "float64", "tensorize", sch.get_loops("C")[1], name)
    assert error.fields["differs"] in ("dtype", "expression")


@pytest.mark.parametrize("name", [*DOTS, *AMX, "fma_8_f16_neon"])
def test_another_expression(name):
    """Differences in place of products."""
    text = repeated(name).script()
    stored = next(line for line in text.splitlines() if " = C[" in line)
    sch = Schedule(from_source(text.replace(stored, stored.replace(" * ", " - "))))
    error = refused(sch, IntrinsicMismatch, "where the description has", "tensorize", sch.get_loops("C")[1], name)
    assert error.fields["differs"] == "expression"


@pytest.mark.parametrize("name", DOTS)
def test_a_tile_that_is_not_packed(name):
    """The rows of B lie apart: the machine would read something else."""
    intrin = TensorIntrin.get(name)
    a, b = (str(buffer.dtype) for buffer in intrin.parameters[:2])
    lanes = int(intrin.parameters[1].shape[0])
    A, B = te.placeholder((2, 8), a, name="A"), te.placeholder((lanes, 8), b, name="B")
    r = te.reduce_axis((0, 8), "k")
    product = lambda i, j: te.sum(A[i, r].astype("int32") * B[j, r].astype("int32"), axis=r)
    sch = Schedule(te.create_prim_func([A, B, te.compute((2, lanes), product, name="C")]))
    i, j, k = sch.get_loops("C")
    outer, inner = sch.split(k, [None, 4])
    sch.reorder(i, outer, j, inner)
    message = "the tile of B is not contiguous: in dimension 0 of B the elements are 8 apart, the intrinsic needs 4"
    error = refused(sch, IntrinsicMismatch, message, "tensorize", j, name)
    assert error.fields["differs"] == "access" and "stage the buffer" in str(error)


def test_a_loop_that_is_left_out():
    name = "interleave_2x16_bfloat16"
    sch = Schedule(repeated(name))
    inner = sch.get_loops("C")[2]
    message = "loop r of the description has extent 2; here its index stands still"
    error = refused(sch, IntrinsicMismatch, message, "tensorize", inner, name)
    assert "name a loop further out, so that the tile holds that loop as well" in str(error)


# --- from te --------------------------------------------------------------------------------------------------------


def declared(name: str):
    """The intrinsic as te declares it, with body, reset and update; its statements are plain loops."""
    intrin = TensorIntrin.get(name)
    shapes = [([int(n) for n in p.shape], str(p.dtype)) for p in intrin.parameters]
    (_, a), ((lanes, depth), b), (_, c) = shapes
    x, y = te.placeholder((depth,), a, name="x"), te.placeholder((lanes, depth), b, name="y")
    k = te.reduce_axis((0, depth), "k")
    z = te.compute((lanes,), lambda i: te.sum(x[k].astype(c) * y[i, k].astype(c), axis=k), name="z")

    def statements(ins, outs):
        def start():
            ib = tir.ir_builder.create()
            result = ib.buffer_ptr(outs[0])
            with ib.for_range(0, lanes, name="start") as i:
                result[i] = te.const(0, c)
            return ib.get()

        def update():
            ib = tir.ir_builder.create()
            left, right, result = [ib.buffer_ptr(buffer) for buffer in (*ins, *outs)]
            with ib.for_range(0, lanes, name="row") as i, ib.for_range(0, depth, name="col") as k:
                result[i] = result[i] + left[k].astype(c) * right[i, k].astype(c)
            return ib.get()

        return tir.SeqStmt([start(), update()]), start(), update()

    return te.decl_tensor_intrin(z.op, statements, name=f"te_{name}", default_buffer_params={"offset_factor": 1})


@pytest.mark.parametrize("depth", [4, 12])
@pytest.mark.parametrize("name", DOTS)
def test_declared_in_te(name, depth):
    intrin = TensorIntrin.get(name)
    a, b = (str(buffer.dtype) for buffer in intrin.parameters[:2])
    lanes = int(intrin.parameters[1].shape[0])
    A = te.placeholder((3, depth), a, name="A")
    B = te.placeholder((2, depth // 4, lanes, 4), b, name="B")
    r = te.reduce_axis((0, depth), "k")

    def product(i, j):
        return te.sum(A[i, r].astype("int32") * B[j // lanes, r // 4, j % lanes, r % 4].astype("int32"), axis=r)

    C = te.compute((3, 2 * lanes), product, name="C")
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    jo, ji = s[C].split(j, factor=lanes)
    ko, ki = s[C].split(r, factor=4)
    s[C].reorder(jo, i, ko, ji, ki)
    s[C].tensorize(ji, declared(name))
    made = s.as_tir_schedule([A, B, C])
    parts = {"body"} if depth == 4 else {"init", "update"}
    assert {used.split(".")[2] for used in made.trace.relies_on} == parts
    assert_same_numbers(made.mod["main"], te.create_prim_func([A, B, C]))
