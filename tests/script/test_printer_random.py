"""Random programs over every node class: what is printed reads back as the same program."""

from __future__ import annotations

import random

import numpy as np
import pytest

from loopwright import ir
from loopwright.ir import Op, assert_structural_equal, const, intrinsics, structural_hash
from loopwright.script import from_source

INTS = ["int32", "int64", "int8", "uint8", "uint32", "uint64"]
FLOATS = ["float32", "float64", "float16", "bfloat16"]
BINARY = [ir.Add, ir.Sub, ir.Mul, ir.FloorDiv, ir.FloorMod, ir.Div, ir.Mod, ir.Min, ir.Max]
COMPARE = [ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE]
SPECIAL_FLOATS = [0.0, -0.0, 1.0, -2.5, 0.1, 1e-7, 3e4, float("inf"), float("-inf"), float("nan")]
NAMES = ["i", "j", "x", "T", "for", "A", "range", "a.b", "1x", "", "x_1", "é"]


class Programs:
    """Makes programs; the variables and buffers that are visible stand in lists."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.vars: list[ir.Var] = []
        self.buffers: list[ir.Buffer] = []
        self.pointers: list[ir.Var] = []
        self.loops: list[ir.For | tuple] = []

    def pick(self, items):
        return self.random.choice(items)

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def name(self) -> str:
        return self.pick(NAMES)

    # --- expressions ---

    def literal(self, dtype: str):
        if dtype == "bool":
            return const(self.chance(0.5), "bool")
        kind = ir.DataType(dtype)
        if kind.is_float:
            return ir.FloatImm(dtype, self.pick(SPECIAL_FLOATS))
        values = [0, 1, 2, 7, 100, kind.max_value(), kind.min_value()]
        return ir.IntImm(dtype, self.pick(values if kind.is_unsigned else [*values, -1, -5]))

    def expr(self, dtype: str, depth: int = 3):
        if depth == 0 or self.chance(0.2):
            visible = [var for var in self.vars if var.dtype == dtype]
            return self.pick(visible) if visible and self.chance(0.7) else self.literal(dtype)
        kind = ir.DataType(dtype)
        choice = self.random.random()
        if choice < 0.15:
            found = [buffer for buffer in self.buffers if buffer.dtype == dtype]
            if found:
                buffer = self.pick(found)
                return ir.BufferLoad(buffer, tuple(self.index(depth - 1) for _ in buffer.shape))
        if choice < 0.2:
            other = self.pick([*INTS, *FLOATS, "bool"])
            return ir.Cast(dtype, self.expr(other, depth - 1))
        if choice < 0.25:
            return ir.Select(self.expr("bool", depth - 1), self.expr(dtype, depth - 1), self.expr(dtype, depth - 1))
        if choice < 0.3:
            var = ir.Var(self.name(), self.pick(INTS))
            value = self.expr(str(var.dtype), depth - 1)
            self.vars.append(var)
            body = self.expr(dtype, depth - 1)
            self.vars.pop()
            return ir.Let(var, value, body)
        if choice < 0.45:
            return self.call(kind, depth)
        if dtype == "bool":
            return self.condition(depth)
        cls = self.pick(BINARY)
        return cls(self.expr(dtype, depth - 1), self.expr(dtype, depth - 1))

    def condition(self, depth: int):
        choice = self.random.random()
        if choice < 0.2:
            return ir.Not(self.expr("bool", depth - 1))
        if choice < 0.5:
            cls = self.pick([ir.And, ir.Or, ir.EQ, ir.NE])
            return cls(self.expr("bool", depth - 1), self.expr("bool", depth - 1))
        dtype = self.pick([*INTS, *FLOATS])
        return self.pick(COMPARE)(self.expr(dtype, depth - 1), self.expr(dtype, depth - 1))

    def call(self, dtype: ir.DataType, depth: int):
        args = [self.expr(str(dtype), depth - 1) for _ in range(2)]
        names = "exp pow if_then_else abs popcount bitwise_and shift_left call_extern isnan"
        name = self.pick(names.split())
        if name == "if_then_else":
            return ir.Call(dtype, Op.get("tir.if_then_else"), (self.expr("bool", depth - 1), *args))
        if name == "call_extern":
            return intrinsics.call_extern(dtype, "f", *args)
        count = 1 if name in ("exp", "abs", "popcount", "isnan") else 2
        return ir.Call(dtype, Op.get(f"tir.{name}"), tuple(args[:count]))

    def index(self, depth: int):
        return self.expr(self.pick(["int32", "int32", "int64"]), depth)

    def vector(self, dtype: str, lanes: int):
        choice = self.random.random()
        if choice < 0.4:
            return ir.Broadcast(self.expr(dtype, 1), lanes)
        if choice < 0.6:
            vector = ir.Broadcast(self.expr(dtype, 1), 2)
            indices = tuple(const(self.random.randrange(2)) for _ in range(lanes))
            return ir.Shuffle((vector,), indices)
        if choice < 0.8 and ir.DataType(dtype).is_int:
            return ir.Ramp(self.expr(dtype, 1), self.expr(dtype, 1), lanes)
        return ir.Add(self.vector(dtype, lanes), self.vector(dtype, lanes))

    # --- statements ---

    def body(self, depth: int):
        kept = len(self.vars), len(self.buffers), len(self.pointers)
        count = self.pick([1, 1, 2, 3])
        statements = [self.statement(depth) for _ in range(count)]
        del self.vars[kept[0] :], self.buffers[kept[1] :], self.pointers[kept[2] :]
        return statements[0] if count == 1 else ir.SeqStmt(tuple(statements))

    def inside(self, depth: int, variables=(), buffers=(), pointers=()):
        kept = len(self.vars), len(self.buffers), len(self.pointers)
        self.vars += variables
        self.buffers += buffers
        self.pointers += pointers
        made = self.body(depth)
        del self.vars[kept[0] :], self.buffers[kept[1] :], self.pointers[kept[2] :]
        return made

    def statement(self, depth: int):
        makers = [self.store, self.store, self.vector_store, self.evaluate]
        if depth > 0:
            makers = [self.store, self.loop, self.loop, self.block, self.block, self.condition_stmt, self.let]
            makers += [self.allocate, self.attr, self.assertion, self.declare, self.thread]
            makers += [self.loop_while, self.constant, self.pair]
        return self.pick(makers)(depth - 1)

    def store(self, depth: int):
        buffer = self.pick(self.buffers)
        return ir.BufferStore(buffer, self.expr(str(buffer.dtype)), tuple(self.index(2) for _ in buffer.shape))

    def vector_store(self, depth: int):
        buffer = self.pick([one for one in self.buffers if one.shape])
        lanes, stride = self.pick([2, 4]), self.pick([1, 1, 2, -1])
        base = self.index(1)
        last = ir.Ramp(base, const(stride, base.dtype), lanes)
        indices = (*[self.index(1) for _ in buffer.shape[1:]], last)
        value = ir.BufferLoad(buffer, indices) if self.chance(0.5) else self.vector(str(buffer.dtype), lanes)
        return ir.BufferStore(buffer, value, indices)

    def evaluate(self, depth: int):
        return ir.Evaluate(self.expr(self.pick([*INTS, "float32"])))

    def extent(self):
        return self.pick([const(8), const(5, "int64"), const(1), self.expr("int32", 1)])

    def size(self):
        extent = self.extent()
        return const(1) if isinstance(extent, ir.IntImm) and extent.value < 0 else extent

    def annotations(self):
        values = [1, "text", True, 0.5, None, [1, 2], ["a"], {"k": [1, "v"]}, *self.vars[:1]]
        values += [const(3), const(2.5), ir.StringImm('q"\n'), const(True)]
        return {self.pick(["k", "pragma.x", "z"]): self.pick(values) for _ in range(self.pick([0, 0, 1, 2]))}

    def loop(self, depth: int):
        extent = self.extent()
        low = const(0, extent.dtype) if self.chance(0.7) else self.expr(str(extent.dtype), 1)
        kind = self.pick([ir.ForKind.SERIAL] * 4 + list(ir.ForKind))
        thread = None
        if kind is ir.ForKind.THREAD_BINDING:
            thread = ir.IterVar(None, ir.Var("t", extent.dtype), 1, "threadIdx.x")
        var = ir.Var(self.name(), extent.dtype)
        self.loops.append((var, low, extent))
        body = self.inside(depth, [var])
        self.loops.pop()
        annotations = self.annotations() if self.chance(0.3) else {}
        return ir.For(var, low, extent, kind, body, thread, annotations)

    def region(self):
        buffer = self.pick(self.buffers)
        ranges = []
        for _ in buffer.shape:
            low = self.index(1)
            one = const(1, low.dtype)
            ranges.append(ir.Range.from_min_extent(low, one if self.chance(0.5) else self.expr(str(low.dtype), 1)))
        return ir.BufferRegion(buffer, tuple(ranges))

    def block(self, depth: int):
        axes, values = [], []
        for _ in range(self.pick([0, 1, 2, 3])):
            kind = self.pick([0, 0, 2, 3, 4])
            if self.loops and self.chance(0.6):
                var, low, extent = self.pick(self.loops)
                dom, value = ir.Range.from_min_extent(low, extent), var
            else:
                dom, value = ir.Range(self.extent()), self.index(1)
                if self.chance(0.3):
                    dom = ir.Range.from_min_extent(self.expr(str(dom.extent.dtype), 1), dom.extent)
            axes.append(ir.IterVar(dom, ir.Var(self.name(), dom.extent.dtype), kind))
            values.append(value)
        visible = [axis.var for axis in axes]
        self.vars += visible
        reads, writes = [self.region() for _ in range(self.pick([0, 1, 2]))], [self.region()]
        allocated = [self.new_buffer() for _ in range(self.pick([0, 0, 1]))]
        self.buffers += allocated
        matches = [self.match() for _ in range(self.pick([0, 0, 1]))]
        views = [match.buffer for match in matches]
        annotations = self.annotations()
        loops, self.loops = self.loops, []
        init = self.inside(0, [], views) if self.chance(0.3) else None
        body = self.inside(depth, [], views)
        self.loops = loops
        if allocated:
            del self.buffers[-len(allocated) :]
        if visible:
            del self.vars[-len(visible) :]
        regions = tuple(reads), tuple(writes)
        made = ir.Block(tuple(axes), *regions, self.name(), body, init, tuple(allocated), tuple(matches), annotations)
        predicate = const(True) if self.chance(0.6) else self.expr("bool", 2)
        return ir.BlockRealize(tuple(values), predicate, made)

    def match(self):
        source = self.region()
        rank = len(source.region)
        strides = [ir.Var(f"s{k}") for k in range(rank)] if self.chance(0.5) else []
        offset = ir.Var("off") if self.chance(0.5) else None
        buffer = ir.decl_buffer(
            [const(4)] * rank,
            source.buffer.dtype,
            self.name(),
            strides=strides,
            elem_offset=offset,
            offset_factor=self.pick([0, 4]),
        )
        return ir.MatchBufferRegion(buffer, source)

    def new_buffer(self):
        return ir.decl_buffer(
            [self.pick([const(4), const(16), const(3, "int32")]) for _ in range(self.pick([0, 1, 2]))],
            self.pick([*INTS, *FLOATS, "bool", "float32"]),
            self.name(),
            scope=self.pick(["global", "local", "shared"]),
            data_alignment=self.pick([-1, 128]),
            offset_factor=0,
            axis_separators=(),
        )

    def condition_stmt(self, depth: int):
        other = self.body(depth) if self.chance(0.5) else None
        return ir.IfThenElse(self.expr("bool"), self.body(depth), other)

    def loop_while(self, depth: int):
        return ir.While(self.expr("bool"), self.body(depth))

    def let(self, depth: int):
        dtype = self.pick([*INTS, *FLOATS, "bool"])
        var = ir.Var(self.name(), dtype) if self.chance(0.8) else ir.SizeVar(self.name(), dtype)
        value = self.expr(dtype)
        return ir.LetStmt(var, value, self.inside(depth, [var]))

    def allocate(self, depth: int):
        dtype = self.pick([*INTS, *FLOATS, "bool"])
        var = ir.pointer(self.name(), "int8" if dtype == "bool" else dtype, self.pick(["global", "local"]))
        condition = const(True) if self.chance(0.7) else self.expr("bool", 1)
        extents = (const(8), self.extent())
        # An undeclared buffer over the pointer, as flattened programs have them.
        views = [ir.decl_buffer([const(64)], dtype, self.name(), data=var)] if self.chance(0.5) else []
        body = self.inside(depth, [], views, [var])
        return ir.Allocate(var, dtype, extents, condition, body, self.annotations())

    def constant(self, depth: int):
        dtype = self.pick(["int32", "float32", "float16", "uint8"])
        data = np.arange(6).reshape(2, 3).astype(dtype)
        if dtype.startswith("float"):
            data[0] = [np.nan, -np.inf, -0.0]
        var = ir.pointer(self.name(), dtype)
        return ir.AllocateConst(var, dtype, (const(2), const(3)), data, self.inside(depth, [], [], [var]))

    def pair(self, depth: int):
        buffer = self.new_buffer().with_(data_alignment=64)
        stored = "int8" if buffer.dtype == "bool" else buffer.dtype
        buffer = buffer.with_(data=ir.pointer("p", stored, "local"))
        body = ir.DeclBuffer(buffer, self.inside(depth, [], [buffer]))
        return ir.Allocate(buffer.data, buffer.dtype, buffer.shape, const(True), body)

    def declare(self, depth: int):
        data = self.pick([*self.pointers, *[buffer.data for buffer in self.buffers]])
        buffer = ir.decl_buffer([const(3), self.size()], self.pick(FLOATS), self.name(), data=data)
        if self.chance(0.3):
            strides = (const(9), self.expr("int32", 1))
            buffer = buffer.with_(elem_offset=self.expr("int32", 1), strides=strides, offset_factor=2)
        return ir.DeclBuffer(buffer, self.inside(depth, [], [buffer]))

    def attr(self, depth: int):
        subject = self.pick([0, "text", {"a": 1}, const(1), *self.vars[:1], *self.buffers[:1]])
        return ir.AttrStmt(subject, "pragma", self.expr("int32", 1), self.body(depth))

    def thread(self, depth: int):
        tag = self.pick(["threadIdx.x", "blockIdx.y", "vthread.x"])
        extent = const(32)
        axis = ir.IterVar(ir.Range(extent), ir.Var(tag.replace(".", "_")), 1, tag)
        key = "virtual_thread" if tag.startswith("vthread") else "thread_extent"
        return ir.AttrStmt(axis, key, extent, self.inside(depth, [axis.var]))

    def assertion(self, depth: int):
        return ir.AssertStmt(self.expr("bool"), ir.StringImm("must 'hold'"), self.body(depth))

    # --- functions ---

    def function(self):
        params: list = []
        n, m = ir.SizeVar("n"), ir.Var("m")
        shapes = [[16], [4, 8], [], [n, m], [n + 1, 4]]
        params += [ir.Var("k", "int32"), ir.Var("s", "float32"), ir.SizeVar("z", "int64")]
        self.vars += [*params, n, m]
        for k in range(self.pick([1, 2, 4])):
            shape = self.pick(shapes)
            buffer = ir.decl_buffer(shape, self.pick([*INTS, *FLOATS, "bool"]), f"B{k}")
            params.append(buffer)
            self.buffers.append(buffer)
        sized = ir.decl_buffer([n, m, 4], "float32", "A")
        params.append(sized)
        self.buffers.append(sized)
        strides = [ir.Var("r0"), ir.Var("r1")]
        strided = ir.decl_buffer([8, 8], "float32", "S", strides=strides, offset_factor=self.pick([0, 1, 8]))
        params.append(strided)
        self.buffers.append(strided)
        self.vars += strided.strides
        pointer = ir.pointer("ptr", "float32")
        params.append(pointer)
        self.pointers.append(pointer)
        body = self.body(4)
        allocated = ()
        root = ir.Block((), (), (), "root", body, None, allocated)
        result = ir.PrimType(ir.DataType("int32")) if self.chance(0.2) else None
        attrs = {"global_symbol": "main", "tir.noalias": True} if self.chance(0.8) else {"a": [1, "b"], "t": const(1.5)}
        whole = ir.BlockRealize((), const(True), root) if has_blocks(body) or self.chance(0.5) else body
        return ir.PrimFunc(params, whole, result, attrs=attrs)


def has_blocks(body) -> bool:
    found = []
    ir.pre_order_visit(body, lambda node: found.append(node) if isinstance(node, ir.BlockRealize) else None)
    return bool(found)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("chunk", range(5))
def test_printed_programs_read_back_as_themselves(chunk):
    for seed in range(chunk * 60, chunk * 60 + 60):
        func = Programs(seed).function()
        text = func.script()
        back = from_source(text)
        try:
            assert_structural_equal(func, back, block_names=True)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        assert structural_hash(func) == structural_hash(back), seed


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(40))
def test_programs_without_sugar_read_back_as_themselves(seed):
    func = Programs(seed).function()
    assert_structural_equal(func, from_source(func.script(syntax_sugar=False)), block_names=True)
