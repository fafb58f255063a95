"""ExpressionEmitter: expressions of lowered IR as LLVM instructions: values, vectors, loads and the stores beside them.

Each class of node has one method; arithmetic goes through `arithmetic.py`, casts through `conversions.py`. Statements
and calls, which may leave the function, are in `emitter.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from loopwright import ir
from loopwright.codegen.expression_facts import FromMemory, Speculatable
from loopwright.codegen.llvm.arithmetic import emit_binary, emit_compare, emit_limit, is_chosen_extremum, is_limit
from loopwright.codegen.llvm.conversions import emit_cast
from loopwright.codegen.llvm.fixed_lanes import fixed_lanes
from loopwright.codegen.llvm.function_builder import FunctionBuilder
from loopwright.codegen.llvm.gathered_lanes import Gathered, come_one_by_one, gathered_lanes
from loopwright.codegen.llvm.lane_moves import moves_lanes
from loopwright.codegen.llvm.lane_of import lane_of
from loopwright.codegen.llvm.module_text import ModuleText
from loopwright.codegen.llvm.neighbouring_lanes import PAIRED_BYTES, Neighbours, neighbouring_lanes
from loopwright.codegen.llvm.odds import odds_of
from loopwright.codegen.llvm.repeated_lanes import Repeated, repeated_lanes
from loopwright.codegen.llvm.strided_lanes import Strided, shuffled, strided_lanes
from loopwright.codegen.llvm.tiles import Key, Tile
from loopwright.codegen.llvm.types import (
    float_literal,
    int_literal,
    is_widened_in_memory,
    mangled,
    memory_type,
    register_type,
    splat,
    storage_type,
    travels_as_bits,
)
from loopwright.codegen.math import body_types
from loopwright.ir.visitor import Visitor
from loopwright.runtime.dtype import INT64, DataType
from loopwright.runtime.errors import InternalError
from loopwright.target import CpuDescription

_GATHERED: Final = frozenset(DataType(name) for name in ("float32", "float64", "int32", "int64", "uint32", "uint64"))
_LEAST_GATHERED: Final = 4  # lanes
_AT_HAND: Final = (ir.Var, ir.IntImm, ir.FloatImm)  # no instruction computes them


class ExpressionEmitter(Visitor):
    """Computes values in the function that `b` writes; `values` maps variables (pointers included) to registers."""

    def __init__(
        self, module: ModuleText, builder: FunctionBuilder, target: CpuDescription, bodies: Callable[..., str]
    ) -> None:
        self.module = module
        self.b = builder
        self.target = target
        self.values: dict[ir.Var, str] = {}
        self.carried: frozenset[ir.Var] = frozenset()  # memory that the innermost loop updates in place
        self.steps: dict[ir.Var, int] = {}  # variables of loops that are written out here, and where they are
        self.tile: Tile | None = None  # the nest they belong to
        self._cells: dict[tuple[str, str, int], str] = {}  # addresses in memory on the stack: pointer, type, offset
        self.apart: set[ir.Var] = set()  # pointers to memory that no other pointer reaches
        self.on_stack: set[ir.Var] = set()  # pointers to memory that LLVM may keep in registers
        self.overlapping: set[ir.Var] = set()  # pointers to memory that only others of these may reach
        self.index_text = f"i{target.pointer_bits}"  # of buffer indices, as choose_index_width leaves them
        self.no_wrap = ""  # " nsw" within index arithmetic, which never overflows
        self.body_of = ""  # the function of `codegen/math` that is written here: its own name means the C library's
        self._bodies = bodies
        self._is_speculatable = Speculatable().visit
        self._from_memory = FromMemory()
        # Values of sub-expressions already computed in this statement: programs share nodes. The trail lists the keys
        # in order, so that what a branch added can be taken out again (copies would grow with the square of the
        # nesting).
        self._known: dict[ir.Expr, str] = {}
        self._trail: list[ir.Expr] = []
        self._pairs: dict[ir.Expr, Mapping[ir.BufferLoad, tuple[Neighbours, int]]] = {}
        self._neighbours: Mapping[ir.BufferLoad, tuple[Neighbours, int]] = {}  # loads of this statement that go by two

    # --- expressions ----------------------------------------------------------------------------------------------

    def value(self, expr: ir.Expr) -> str:
        """The register or literal that holds `expr`."""
        known = self._known.get(expr)
        if known is not None:
            return known
        key = None if self.tile is None or isinstance(expr, _AT_HAND) else self.tile.key(expr, self.steps)
        shared = None if key is None or self.tile is None else self.tile.known.get(key)
        value: str = self._table[type(expr)](self, expr) if shared is None else shared
        if key is not None and self.tile is not None and shared is None:
            self.tile.keep(key, value)
        self._known[expr] = value
        self._trail.append(expr)
        return value

    def index(self, expr: ir.Expr) -> str:
        """The value of an index: its sums and products do not wrap, unless data takes part."""
        return self._with_promise(expr, self._promise(expr))

    def data(self, expr: ir.Expr) -> str:
        """The value of what an index does not add up itself (a condition, the operand of a cast): it may wrap."""
        return self._with_promise(expr, "")

    def _promise(self, index: ir.Expr) -> str:
        # 32-bit indices may be the low halves of 64-bit ones, whose sums do wrap around.
        return "" if self.index_text != "i64" or self._from_memory.visit(index) else " nsw"

    def _with_promise(self, expr: ir.Expr, promise: str) -> str:
        outer, self.no_wrap = self.no_wrap, promise
        result = self.value(expr)
        self.no_wrap = outer
        return result

    def is_soft_float(self, dtype: DataType) -> bool:
        """Whether the type is handled through its bits, for lack of instructions."""
        return travels_as_bits(dtype) or (
            dtype.kind == "float" and dtype.bits == 16 and not self.target.has_f16_convert
        )

    def call_body(self, name: str, source: DataType, target: DataType, *values: str) -> str:
        """Call the function of `codegen/math` called `name`; its body is emitted once a type.

        The small float types are the bits that `decode` takes and `encode` gives.
        """
        given, result = body_types(name, source, target)
        symbol = self._bodies(name, source, target, len(values))
        arguments = ", ".join(f"{register_type(given)} {value}" for value in values)
        return self.b.value(f"call {register_type(result)} @{symbol}({arguments})")

    def intrinsic(self, name: str, result: DataType, arguments: Sequence[tuple[DataType, str]], extra: str = "") -> str:
        """Call an LLVM intrinsic; `extra` is the text of trailing immediate arguments with their types."""
        types = [register_type(dtype) for dtype, _ in arguments]
        more_types = [part.split()[0] for part in extra.split(", ")] if extra else []
        self.module.declare(name, f"{register_type(result)} @{name}({', '.join([*types, *more_types])})")
        given = [f"{text} {value}" for text, (_, value) in zip(types, arguments, strict=True)]
        return self.b.value(f"call {register_type(result)} @{name}({', '.join([*given, *([extra] if extra else [])])})")

    def cast(self, value: str, source: DataType, target: DataType) -> str:
        return emit_cast(self, value, source, target)

    def visit_children(self, node: ir.Node) -> Any:
        raise InternalError(f"{type(node).__name__} reached LLVM code generation: a lowering pass did not run", at=node)

    def visit_Var(self, var: ir.Var) -> str:
        result = self.values.get(var)
        if result is None:
            raise InternalError(f"variable {var.name} is used where it has no value")
        return result

    def visit_IntImm(self, imm: ir.IntImm) -> str:
        return int_literal(imm.dtype, imm.value)

    def visit_FloatImm(self, imm: ir.FloatImm) -> str:
        return float_literal(imm.dtype, imm.value)

    def visit_StringImm(self, imm: ir.StringImm) -> str:
        return self.module.string(imm.value)

    def visit_BinaryExpr(self, node: ir.BinaryExpr) -> str:
        if isinstance(node, (ir.Min, ir.Max)) and is_chosen_extremum(node):
            return self._chosen_extremum(node)
        # Below a remainder or a quotient anything may stand: a hash wraps around, and is a good index all the same.
        promise = "" if isinstance(node, (ir.Div, ir.Mod, ir.FloorDiv, ir.FloorMod)) else self.no_wrap
        a = self._with_promise(node.a, promise)
        b = self._with_promise(node.b, promise)
        return emit_binary(self, node, a, b)

    def _chosen_extremum(self, node: ir.Min | ir.Max) -> str:
        """min(a, c ? b : greatest) as c ? min(a, b) : a, which machines with masks have as one instruction."""
        choice = node.b
        assert isinstance(choice, ir.Select)
        a, condition, b = self.value(node.a), self.data(choice.condition), self.value(choice.true_value)
        extremum = emit_binary(self, node, a, b)
        return self.select(choice.condition.dtype, condition, node.dtype, extremum, a)

    def visit_CompareExpr(self, node: ir.CompareExpr) -> str:
        a = self.data(node.a)
        b = self.data(node.b)
        return emit_compare(self, node, a, b)

    def visit_And(self, node: ir.And) -> str:
        return self._lazy_logic(node, "and", "false")

    def visit_Or(self, node: ir.Or) -> str:
        return self._lazy_logic(node, "or", "true")

    def _lazy_logic(self, node: ir.And | ir.Or, operation: str, decided: str) -> str:
        is_free = self._is_speculatable(node.b)
        if node.dtype.lanes > 1 and not is_free:
            lanes = [
                self.value(type(node)(lane_of(node.a, lane), lane_of(node.b, lane))) for lane in range(node.dtype.lanes)
            ]
            return self.vector(lanes, node.dtype)
        a = self.value(node.a)
        if a in ("true", "false"):
            return a if a == decided else self.value(node.b)
        if is_free:
            return self.b.value(f"{operation} {register_type(node.dtype)} {a}, {self.value(node.b)}")
        rest, end, start = self.b.label("rest"), self.b.label("decided"), self.b.block
        self.b.branch(a, *((rest, end) if operation == "and" else (end, rest)))
        self.b.start(rest)
        b, last = self._in_branch(node.b)
        self.b.jump(end)
        self.b.start(end)
        return self.b.value(f"phi i1 [ {decided}, %{start} ], [ {b}, %{last} ]")

    def _in_branch(self, expr: ir.Expr) -> tuple[str, str]:
        """The value of `expr` and the block it ends in; what is computed there is unknown outside."""
        mark, mark_in_tile = len(self._trail), self.mark()
        value = self.value(expr)
        for key in self._trail[mark:]:
            del self._known[key]
        del self._trail[mark:]
        self.forget(mark_in_tile)
        return value, self.b.block

    def mark(self) -> int:
        """What is computed for all copies of a tile from here on, `forget` drops."""
        return 0 if self.tile is None else len(self.tile.trail)

    def forget(self, mark: int) -> None:
        if self.tile is not None:
            self.tile.forget(mark)

    def visit_Not(self, node: ir.Not) -> str:
        return self.b.value(f"xor {register_type(node.dtype)} {self.value(node.a)}, {splat(node.dtype, 'true')}")

    def visit_Select(self, node: ir.Select) -> str:
        odds = odds_of(node.condition, node.true_value, node.false_value, self.carried)
        if odds is not None:
            weights = self.module.branch_weights(*odds)
            return self._choose_by_odds(node.condition, node.true_value, node.false_value, weights)
        if is_limit(self, node):
            return emit_limit(self, node, self.value(node.false_value), self.value(node.true_value))
        condition = self.data(node.condition)
        if condition in ("true", "false"):
            return self.value(node.true_value if condition == "true" else node.false_value)
        a = self.value(node.true_value)
        b = self.value(node.false_value)
        return self.select(node.condition.dtype, condition, node.dtype, a, b)

    def select(self, condition_dtype: DataType, condition: str, dtype: DataType, a: str, b: str) -> str:
        text = register_type(dtype)
        return self.b.value(f"select {register_type(condition_dtype)} {condition}, {text} {a}, {text} {b}")

    def _choose_by_odds(self, condition: ir.Expr, then: ir.Expr, otherwise: ir.Expr, weights: str) -> str:
        """One of two values, by branches that stay branches: a select of LLVM loses its weights."""
        yes, no, end = self.b.label("then"), self.b.label("else"), self.b.label("chosen")
        self._branch_on(condition, yes, no, weights)
        self.b.start(yes)
        a, from_a = self._in_branch(then)
        self.b.jump(end)
        self.b.start(no)
        b, from_b = self._in_branch(otherwise)
        self.b.jump(end)
        self.b.start(end)
        return self.b.value(f"phi {register_type(then.dtype)} [ {a}, %{from_a} ], [ {b}, %{from_b} ]")

    def _branch_on(self, condition: ir.Expr, yes: str, no: str, weights: str) -> None:
        """Go to `yes` where the condition holds, else to `no`; each part of it is a branch of its own."""
        if isinstance(condition, (ir.And, ir.Or)):
            rest = self.b.label("rest")
            first = (yes, rest) if isinstance(condition, ir.Or) else (rest, no)
            self._branch_on(condition.a, *first, weights)
            self.b.start(rest)
            outer, outer_trail, mark = self._known, self._trail, self.mark()
            self._known, self._trail = {}, []  # what is computed from here on may not be on every way
            self._branch_on(condition.b, yes, no, weights)
            self._known, self._trail = outer, outer_trail
            self.forget(mark)
        else:
            self.b.branch(self.value(condition), yes, no, weights=weights)

    def choose(self, condition: ir.Expr, then: ir.Expr, otherwise: ir.Expr) -> str:
        """if_then_else: only the chosen side runs, unless running both is free of effects and faults.

        A `likely` condition asks for a branch: the other side is there to be skipped.
        """
        odds = odds_of(condition, then, otherwise, self.carried)
        if odds is not None:
            return self._choose_by_odds(condition, then, otherwise, self.module.branch_weights(*odds))
        test = self.value(condition)
        if test in ("true", "false"):
            return self.value(then if test == "true" else otherwise)
        is_likely = isinstance(condition, ir.Call) and condition.op.name == "tir.likely"
        is_free = self._is_free(then) and self._is_free(otherwise)
        if condition.dtype.lanes > 1 and not is_free:
            lanes = [
                self.choose(lane_of(condition, lane), lane_of(then, lane), lane_of(otherwise, lane))
                for lane in range(then.dtype.lanes)
            ]
            return self.vector(lanes, then.dtype)
        if is_free and (condition.dtype.lanes > 1 or not is_likely):
            return self.select(condition.dtype, test, then.dtype, self.value(then), self.value(otherwise))
        yes, no, end = self.b.label("then"), self.b.label("else"), self.b.label("chosen")
        # Without weights, registers would be kept for the unlikely side at the other's cost.
        self.b.branch(test, yes, no, weights=self.module.branch_weights(1 << 12, 1) if is_likely else "")
        self.b.start(yes)
        a, from_a = self._in_branch(then)
        self.b.jump(end)
        self.b.start(no)
        b, from_b = self._in_branch(otherwise)
        self.b.jump(end)
        self.b.start(end)
        return self.b.value(f"phi {register_type(then.dtype)} [ {a}, %{from_a} ], [ {b}, %{from_b} ]")

    def _is_free(self, expr: ir.Expr) -> bool:
        """Whether `expr` may be computed here though it may not be needed; what is computed already may."""
        return expr in self._known or self._is_speculatable(expr)

    def visit_Cast(self, node: ir.Cast) -> str:
        return emit_cast(self, self.data(node.value), node.value.dtype, node.dtype)

    def visit_Let(self, node: ir.Let) -> str:
        outer, outer_trail = self._known, self._trail
        bound: list[tuple[ir.Var, str | None]] = []
        # A loop, since chains of lets (polynomials) are long.
        current: ir.Expr = node
        while isinstance(current, ir.Let):
            var, value = current.var, self.data(current.value)
            self._from_memory.bind(var, current.value)
            if var in self.values or var in self._known:
                # It had another value before: what was computed from that one must not be found now.
                self._known, self._trail = {}, []
            bound.append((var, self.values.get(var)))
            self.values[var] = value
            current = current.body
        result = self.value(current)
        self._known, self._trail = outer, outer_trail
        for var, before in reversed(bound):
            if before is None:
                del self.values[var]
            else:
                self.values[var] = before
        return result

    # --- vectors --------------------------------------------------------------------------------------------------

    def visit_Broadcast(self, node: ir.Broadcast) -> str:
        if isinstance(node.value, (ir.IntImm, ir.FloatImm)):
            return splat(node.dtype, self.value(node.value))
        return self.splat(self.value(node.value), node.value.dtype, node.lanes)

    def splat(self, value: str, dtype: DataType, lanes: int) -> str:
        """A vector of `lanes` copies of a scalar."""
        text, element = register_type(dtype.with_lanes(lanes)), register_type(dtype)
        first = self.b.value(f"insertelement {text} poison, {element} {value}, i64 0")
        return self.b.value(f"shufflevector {text} {first}, {text} poison, <{lanes} x i32> zeroinitializer")

    def visit_Ramp(self, node: ir.Ramp) -> str:
        dtype, text = node.base.dtype, register_type(node.dtype)
        element, promise = register_type(dtype), self.no_wrap if dtype is INT64 else ""
        base = self.splat(self.value(node.base), dtype, node.lanes)
        if isinstance(node.stride, ir.IntImm):
            stride = node.stride.value
            steps = ", ".join([f"{element} {int_literal(dtype, stride * lane)}" for lane in range(node.lanes)])
            return self.b.value(f"add{promise} {text} {base}, <{steps}>")
        counts = ", ".join([f"{element} {int_literal(dtype, lane)}" for lane in range(node.lanes)])
        strides = self.splat(self.value(node.stride), dtype, node.lanes)
        scaled = self.b.value(f"mul{promise} {text} {strides}, <{counts}>")
        return self.b.value(f"add{promise} {text} {base}, {scaled}")

    def visit_Shuffle(self, node: ir.Shuffle) -> str:
        whole = self._whole_shuffle(node)
        if whole is not None:
            return whole
        lanes: list[tuple[str, DataType, int]] = []
        for vector in node.vectors:
            value = self.value(vector)
            lanes += [(value, vector.dtype, lane) for lane in range(vector.dtype.lanes)]
        picked = [self.lane(*lanes[int(index)]) for index in node.indices]  # type: ignore[call-overload]
        return picked[0] if len(picked) == 1 else self.vector(picked, node.dtype)

    def _whole_shuffle(self, node: ir.Shuffle) -> str | None:
        """One instruction, for lanes of one or two vectors of the same type; None for others."""
        first, last = node.vectors[0], node.vectors[-1]
        indices = [int(index) for index in node.indices]  # type: ignore[call-overload]
        if len(node.vectors) > 2 or first.dtype != last.dtype or first.dtype.lanes == 1 or len(indices) == 1:
            return None
        text = register_type(first.dtype)
        a = self.value(first)
        b = self.value(last) if len(node.vectors) == 2 else "poison"
        mask = ", ".join([f"i32 {index}" for index in indices])
        return self.b.value(f"shufflevector {text} {a}, {text} {b}, <{len(indices)} x i32> <{mask}>")

    def lane(self, value: str, dtype: DataType, lane: int) -> str:
        """One lane of a vector; a scalar is its own only lane."""
        if dtype.lanes == 1:
            return value
        return self.b.value(f"extractelement {register_type(dtype)} {value}, i64 {lane}")

    def vector(self, lanes: Sequence[str], dtype: DataType) -> str:
        """A vector from its lanes."""
        text, element, result = register_type(dtype), register_type(dtype.element), "poison"
        for position, value in enumerate(lanes):
            result = self.b.value(f"insertelement {text} {result}, {element} {value}, i64 {position}")
        return result

    # --- memory ---------------------------------------------------------------------------------------------------

    def address(self, buffer: ir.Buffer, index: str, inside: bool = True) -> str:
        """The address of the element at a scalar index; not `inside` when it may lie outside the buffer (a hint)."""
        pointer = self.visit_Var(buffer.data)
        promise = " inbounds" if inside else ""
        element = storage_type(buffer.dtype)
        return self.b.value(f"getelementptr{promise} {element}, ptr {pointer}, {self.index_text} {index}")

    def element(self, buffer: ir.Buffer, index: ir.Expr) -> str:
        """The address of the element at a scalar index, which is inside the buffer."""
        tile = self.tile
        is_plain = tile is not None and self.index_text == "i64" and not self._from_memory.visit(index)
        place = tile.place(index) if tile is not None and is_plain else None
        if tile is None or place is None:
            return self.address(buffer, self.index(index))
        offset, kind = place.offset(self.steps), storage_type(buffer.dtype)
        if place.rest is None:
            pointer = self.visit_Var(buffer.data)
            if buffer.data not in self.on_stack:
                return self.b.value(f"getelementptr inbounds {kind}, ptr {pointer}, i64 {offset}")
            cell = self._cells.get((pointer, kind, offset))
            if cell is None:
                cell = self.b.at_entry(f"getelementptr inbounds {kind}, ptr {pointer}, i64 {offset}")
                self._cells[pointer, kind, offset] = cell
            return cell
        # The cell that copies count from need not be inside the buffer: no promise.
        key: Key = (place.rest, (buffer,))
        base = tile.known.get(key)
        if base is None:
            base = self.b.value(
                f"getelementptr {kind}, ptr {self.visit_Var(buffer.data)}, i64 {self.index(place.rest)}"
            )
            tile.keep(key, base)
        return self.b.value(f"getelementptr {kind}, ptr {base}, i64 {offset}") if offset else base

    def visit_BufferLoad(self, load: ir.BufferLoad) -> str:
        index = self._only_index(load.buffer, load.indices)
        if index.dtype.lanes == 1:
            return self._load(self.element(load.buffer, index), load.dtype, load.buffer.dtype)
        if isinstance(index, ir.Ramp) and isinstance(index.stride, ir.IntImm) and index.stride.value == 1:
            return self._load(self.element(load.buffer, index.base), load.dtype, load.buffer.dtype)
        if isinstance(index, ir.Broadcast) and load.buffer.dtype.lanes == 1:
            one = self._load(self.element(load.buffer, index.value), load.buffer.dtype, load.buffer.dtype)
            return self.splat(one, load.buffer.dtype, index.lanes)
        strided = strided_lanes(load.buffer, index, self.target.vector_bits // 8, self.steps)
        if strided is not None:
            assert isinstance(index, ir.Ramp)
            return self._load_strided(load.buffer, index.base, strided)
        repeated = repeated_lanes(index) if load.buffer.dtype.lanes == 1 else None
        if repeated is not None:
            return self._load_repeated(load.buffer, repeated)
        widest = max(index.dtype.lanes, self.target.vector_bits // 8 // max(1, load.buffer.dtype.nbytes))
        fixed = fixed_lanes(index, widest, self.steps) if load.buffer.dtype.lanes == 1 else None
        if fixed is not None and not any(fixed.offsets):
            one = self._load(self.address(load.buffer, self.index(fixed.base)), load.buffer.dtype, load.buffer.dtype)
            return self.splat(one, load.buffer.dtype, index.dtype.lanes)
        if fixed is not None:
            return self._load_strided(load.buffer, fixed.base, shuffled(fixed.offsets, widest))
        if _is_gathered(load):
            pair, number = self._neighbours.get(load, (None, 0))
            if pair is not None:
                return self._load_neighbour(pair, number, load.dtype)
            return self._gather(load.buffer.data, load.buffer.dtype, gathered_lanes(index))
        lanes, dtype = [], load.buffer.dtype
        for where in self._index_lanes(index):
            one = self._load(self.address(load.buffer, where), dtype, dtype)
            lanes += [self.lane(one, dtype, lane) for lane in range(dtype.lanes)]
        return self.vector(lanes, load.dtype)

    def _load_strided(self, buffer: ir.Buffer, first: ir.Expr, strided: Strided) -> str:
        """Lanes a few elements apart, or in reverse: whole vectors are loaded, and the lanes picked from them."""
        dtype = buffer.dtype
        count = len(strided.lanes)
        whole, lanes = dtype.with_lanes(strided.width), dtype.with_lanes(count)
        base, promise = self.index(first), self._promise(first)
        parts = []
        for start in strided.starts:
            where = self.b.value(f"add{promise} {self.index_text} {base}, {start - strided.before}")
            parts.append(self._load(self.address(buffer, where), whole, dtype))
        result = ""
        for number in range(0, len(parts), 2):  # a shuffle takes two vectors
            picks = strided.picks(number)
            other = parts[number + 1] if number + 1 < len(parts) else "poison"
            answer = self._picked(whole, parts[number], other, picks)
            if result:
                kept = [lane if pick is None else count + lane for lane, pick in enumerate(picks)]
                answer = self._picked(lanes, result, answer, kept)
            result = answer
        return result

    def _picked(self, dtype: DataType, a: str, b: str, locations: Sequence[int | None]) -> str:
        """Lanes of two vectors of `dtype`, counted through both; None where any value will do."""
        text = register_type(dtype)
        mask = ", ".join(["i32 poison" if location is None else f"i32 {location}" for location in locations])
        return self.b.value(f"shufflevector {text} {a}, {text} {b}, <{len(locations)} x i32> <{mask}>")

    def _load_repeated(self, buffer: ir.Buffer, repeated: Repeated) -> str:
        """Each element several times: they are loaded once, and spread."""
        few = buffer.dtype.with_lanes(repeated.elements)
        part = self._load(self.address(buffer, self.index(repeated.base)), few, buffer.dtype)
        mask = ", ".join([f"i32 {lane // repeated.times}" for lane in range(repeated.lanes)])
        text = register_type(few)
        return self.b.value(f"shufflevector {text} {part}, {text} poison, <{repeated.lanes} x i32> <{mask}>")

    def _gather(self, data: ir.Var, dtype: DataType, where: Gathered, together: int = 1) -> str:
        """Lanes of `together` elements from anywhere, in one instruction where the machine has it, and it pays."""
        count, element = where.lanes.dtype.lanes, storage_type(dtype)
        first = self.visit_Var(data)
        if where.base is not None:
            first = self.b.value(f"getelementptr {element}, ptr {first}, {self.index_text} {self.index(where.base)}")
        lanes, kind = self.index(where.lanes), register_type(where.lanes.dtype.element)
        has_gather, is_slow = self.target.units.has_gather, self.target.microarchitecture.has_slow_gather
        if not has_gather or (is_slow and come_one_by_one(where.lanes)):
            loaded = []
            for lane in range(count):
                at = self.lane(lanes, where.lanes.dtype, lane)
                address = self.b.value(f"getelementptr {element}, ptr {first}, {kind} {at}")
                loaded.append(self._load(address, dtype.with_lanes(together), dtype))
            return self._joined(loaded, dtype, together)
        pointers = self.b.value(f"getelementptr {element}, ptr {first}, <{count} x {kind}> {lanes}")
        lane_type = DataType(f"uint{8 * dtype.nbytes * together}") if together > 1 else dtype
        gathered = lane_type.with_lanes(count)
        result, whole = register_type(gathered), splat(DataType("bool").with_lanes(count), "true")
        name = f"llvm.masked.gather.{mangled(gathered)}.v{count}p0"
        self.module.declare(name, f"{result} @{name}(<{count} x ptr>, i32, <{count} x i1>, {result})")
        arguments = f"<{count} x ptr> {pointers}, i32 {dtype.nbytes}, <{count} x i1> {whole}, {result} poison"
        value = self.b.value(f"call {result} @{name}({arguments})")
        if together > 1:
            value = self.b.value(f"bitcast {result} {value} to {register_type(dtype.with_lanes(count * together))}")
        return value

    def _joined(self, parts: Sequence[str], dtype: DataType, lanes: int) -> str:
        """One vector of all of these, each of which has some lanes."""
        if lanes == 1:
            return self.vector(parts, dtype.with_lanes(len(parts)))
        total = lanes * len(parts)
        while len(parts) > 1:
            text = register_type(dtype.with_lanes(lanes))
            mask = ", ".join([f"i32 {lane}" for lane in range(2 * lanes)])
            others = [*parts[1::2], "poison"]
            parts = [
                self.b.value(f"shufflevector {text} {one}, {text} {other}, <{2 * lanes} x i32> <{mask}>")
                for one, other in zip(parts[::2], others, strict=False)
            ]
            lanes *= 2
        return parts[0] if lanes == total else self._picked(dtype.with_lanes(lanes), parts[0], "poison", range(total))

    def _load_neighbour(self, pair: Neighbours, number: int, dtype: DataType) -> str:
        """The first or the second of the elements that are loaded by two."""
        whole = self._known.get(pair.name)
        if whole is None:
            whole = self._gather(pair.buffer.data, pair.buffer.dtype, pair.first, together=2)
            self._known[pair.name] = whole
            self._trail.append(pair.name)
        count = dtype.lanes
        return self._picked(dtype.with_lanes(2 * count), whole, "poison", range(number, 2 * count, 2))

    def _only_index(self, buffer: ir.Buffer, indices: tuple[ir.Expr, ...]) -> ir.Expr:
        if len(indices) != 1:
            raise InternalError(
                f"buffer {buffer.name} still has {len(indices)} dimensions: flatten_buffers did not run"
            )
        return indices[0]

    def _index_lanes(self, index: ir.Expr) -> list[str]:
        if isinstance(index, ir.Ramp):
            base, stride, promise = self.index(index.base), self.index(index.stride), self._promise(index)
            lanes = []
            for lane in range(index.lanes):
                step = self.b.value(f"mul{promise} {self.index_text} {stride}, {lane}")
                lanes.append(self.b.value(f"add{promise} {self.index_text} {base}, {step}"))
            return lanes
        whole = self.index(index)
        return [self.lane(whole, index.dtype, lane) for lane in range(index.dtype.lanes)]

    def _load(self, address: str, dtype: DataType, element: DataType) -> str:
        value = self.b.value(f"load {memory_type(dtype)}, ptr {address}, align {element.nbytes}")
        if dtype.is_bool:
            nought = "0" if dtype.lanes == 1 else "zeroinitializer"
            return self.b.value(f"icmp ne {memory_type(dtype)} {value}, {nought}")
        if is_widened_in_memory(dtype):
            return self.b.value(f"trunc {memory_type(dtype)} {value} to {register_type(dtype)}")
        return value

    def _store(self, address: str, value: str, dtype: DataType, element: DataType) -> None:
        if is_widened_in_memory(dtype):
            extend = "zext" if dtype.is_unsigned else "sext"
            value = self.b.value(f"{extend} {register_type(dtype)} {value} to {memory_type(dtype)}")
        if dtype.lanes == 3 and element.nbytes == 1 and self.target.triple.startswith("aarch64"):
            self._store_three_bytes(memory_type(dtype), value, address)
            return
        self.b.do(f"store {memory_type(dtype)} {value}, ptr {address}, align {element.nbytes}")

    def _store_in_order(self, address: str, value: str, dtype: DataType, element: DataType, piece: int) -> None:
        """Registers one after the other: LLVM stores those of a wide vector in any order, and some machines fill caches
        at half the speed unless lines come in ascending order."""
        part, kind = dtype.with_lanes(piece), register_type(dtype)
        for start in range(0, dtype.lanes, piece):
            lanes = ", ".join(f"i32 {lane}" for lane in range(start, start + piece))
            some = self.b.value(f"shufflevector {kind} {value}, {kind} poison, <{piece} x i32> <{lanes}>")
            at = self.b.value(f"getelementptr {storage_type(element)}, ptr {address}, i64 {start}")
            self._store(at, some, part, element)

    def _store_three_bytes(self, kind: str, value: str, address: str) -> None:
        """One by one: three int64 that are cut to bytes and stored as one vector end the process in LLVM 22."""
        for lane in range(3):
            byte = self.b.value(f"extractelement {kind} {value}, i64 {lane}")
            at = self.b.value(f"getelementptr i8, ptr {address}, i64 {lane}")
            self.b.do(f"store i8 {byte}, ptr {at}, align 1")

    def _pairs_in(self, value: ir.Expr) -> Mapping[ir.BufferLoad, tuple[Neighbours, int]]:
        result = self._pairs.get(value)
        if result is None:
            result = self._pairs[value] = neighbouring_lanes(value, _is_paired)
        return result

    def visit_BufferStore(self, store: ir.BufferStore) -> None:
        buffer, index = store.buffer, self._only_index(store.buffer, store.indices)
        self._neighbours = self._pairs_in(store.value) if index.dtype.lanes > 1 else {}
        value = self.value(store.value)
        self._neighbours = {}
        if index.dtype.lanes == 1:
            self._store(self.element(buffer, index), value, store.value.dtype, buffer.dtype)
        elif isinstance(index, ir.Ramp) and isinstance(index.stride, ir.IntImm) and index.stride.value == 1:
            address, dtype = self.element(buffer, index.base), store.value.dtype
            piece = self.target.vector_bits // (8 * max(1, buffer.dtype.nbytes))
            fits = dtype.lanes > piece > 1 and dtype.lanes % piece == 0
            if fits and buffer.data not in self.on_stack and not moves_lanes(store.value):
                self._store_in_order(address, value, dtype, buffer.dtype, piece)
            else:
                self._store(address, value, dtype, buffer.dtype)
        else:
            each = buffer.dtype.lanes
            for position, where in enumerate(self._index_lanes(index)):
                lanes = [self.lane(value, store.value.dtype, position * each + lane) for lane in range(each)]
                one = lanes[0] if each == 1 else self.vector(lanes, buffer.dtype)
                self._store(self.address(buffer, where), one, buffer.dtype, buffer.dtype)


def _is_gathered(load: ir.BufferLoad) -> bool:
    """Whether a load whose lanes are anywhere is one that machines have an instruction for."""
    return load.buffer.dtype in _GATHERED and load.dtype.lanes >= _LEAST_GATHERED


def _is_paired(load: ir.BufferLoad) -> bool:
    """Whether two neighbours of such lanes are worth one load."""
    is_run = isinstance(load.indices[-1], (ir.Ramp, ir.Broadcast))
    return len(load.indices) == 1 and not is_run and _is_gathered(load) and load.buffer.dtype.nbytes == PAIRED_BYTES
