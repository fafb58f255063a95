"""plain_form: reductions as the rules know them, before anything is scheduled.

    for k in T.serial(-8, 9):                      →    for k in range(17):
        with T.block("S"):                                  with T.block("S"):
            v_k = T.axis.reduce((-8, 9), k)                     v_k = T.axis.reduce(17, k)
            if M[v_k + 8]:                                      S[i] = S[i] + Select(M[v_k], X[i + v_k], -0)
                S[i] = S[i] + X[i + v_k + 8]

An axis that is reduced over counts from 0, and a point that a condition leaves out takes part with what changes
nothing: -0 for a sum of floats (0 would make 0 of -0), 1 for a product, the least value for a maximum. The results are
the same, bit for bit. A condition that guards loads still does. What guards several values at once (an argmax with
`where=`) stays as it is.

A reduction of one point is none: a factor for each channel (a depthwise convolution of one tap) is element-wise work.

    for i, k in T.grid(9, 1):                      →    for i in range(9):
        with T.block("S"):                                  with T.block("S"):
            with T.init(): S[i] = 0                             S[i] = 0 + X[i, 0] * W[0]
            S[i] = S[i] + X[i, v_k] * W[v_k]
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.arith import Analyzer
from loopwright.autosched.facts import const, loads_of
from loopwright.ir import (
    Add,
    Block,
    BlockRealize,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Call,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    For,
    ForKind,
    GlobalVar,
    IfThenElse,
    IRModule,
    IterType,
    Max,
    Min,
    Mod,
    Mul,
    Node,
    PrimFunc,
    Range,
    Rewriter,
    Select,
    Stmt,
    Var,
    post_order_visit,
    structural_equal,
    substitute,
)
from loopwright.ir import const as number
from loopwright.ir.intrinsics import if_then_else, max_value, min_value


def plain_form(program: IRModule | PrimFunc) -> IRModule | PrimFunc:
    """The program with its reductions in that form; the same object where they are."""
    if isinstance(program, PrimFunc):
        return _plain(program)
    if not isinstance(program, IRModule):
        return program  # Schedule says what it is
    functions: dict[str | GlobalVar, PrimFunc] = {
        name: _plain(func) if isinstance(func, PrimFunc) else func for name, func in program.functions_items()
    }
    if all(functions[name] is func for name, func in program.functions_items()):
        return program
    return IRModule(functions, attrs=program.attrs)


def _plain(func: PrimFunc) -> PrimFunc:
    return func.with_(body=_Plain().visit(func.body))


class _Plain(Rewriter):
    def __init__(self) -> None:
        self.dropped: set[Var] = set()  # loops of axes that are no more

    def visit_Expr(self, expr: Expr) -> Expr:
        return expr

    def visit_For(self, loop: For) -> Stmt:
        loop = self.rebuild(loop)
        if loop.loop_var in self.dropped and const(loop.extent) == 1 and not loop.annotations:
            return loop.body
        start, realize = const(loop.min), _block_in(loop)
        if not start or realize is None or loop.kind is not ForKind.SERIAL or loop.annotations:
            return loop
        shifted = _from_0(realize, loop, start)
        return loop if shifted is None else _with_block(loop.with_(min=number(0, loop.min.dtype)), shifted)

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        realize = self.rebuild(realize)
        of_one = _of_one_point(realize)
        if of_one is None:
            return realize
        for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
            if axis.iter_type is IterType.CommReduce and isinstance(value, Var):
                self.dropped.add(value)
        return of_one

    def visit_Block(self, block: Block) -> Block:
        block = self.rebuild(block)
        body = block.body
        if block.init is None or not isinstance(body, IfThenElse) or body.else_case is not None:
            return block
        store = _unguarded(body, block)
        return block if store is None else block.with_(body=store)


def _of_one_point(realize: BlockRealize) -> BlockRealize | None:
    """A reduction of one point, as element-wise work; None where it is none, or has more than one result."""
    block = realize.block
    init, body = block.init, block.body
    if not isinstance(init, BufferStore) or not isinstance(body, BufferStore) or block.match_buffers:
        return None
    if const(realize.predicate) != 1 or not structural_equal(init.indices, body.indices) or init.buffer != body.buffer:
        return None
    kept: list[int] = []
    first: dict[Var, Expr] = {}
    for index, (axis, value) in enumerate(zip(block.iter_vars, realize.iter_values, strict=True)):
        if axis.iter_type is not IterType.CommReduce:
            kept.append(index)
        elif axis.dom is not None and const(axis.dom.extent) == 1 and const(axis.dom.min) == 0 and _is_first(value):
            first[axis.var] = number(0, axis.var.dtype)
        else:
            return None
    own = [load for load in loads_of(body.value) if load.buffer is body.buffer]
    if not first or not all(structural_equal(load.indices, body.indices) for load in own):
        return None
    store = body.with_(value=_Replaced(own, init.value).visit(body.value))
    plain = block.with_(iter_vars=tuple([block.iter_vars[k] for k in kept]), init=None, body=store)
    plain = substitute(plain, first)
    values = tuple([realize.iter_values[k] for k in kept])
    # Without bounds: an axis of one value stays in its index, as other rules find it.
    return realize.with_(iter_values=values, block=_SimplerIndices(Analyzer()).visit(plain))


def _is_first(value: Expr) -> bool:
    """Whether an axis of one value gets it from a loop of its own, or as the number 0."""
    return isinstance(value, Var) or const(value) == 0


class _Replaced(Rewriter):
    """Each of some loads as another value."""

    def __init__(self, loads: Sequence[BufferLoad], value: Expr) -> None:
        self.loads, self.value = loads, value

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        return self.value if any(load is own for own in self.loads) else load


def _block_in(loop: For) -> BlockRealize | None:
    """The block that a loop is around, with nothing but loops between them."""
    body = loop.body
    while isinstance(body, For):
        body = body.body
    return body if isinstance(body, BlockRealize) else None


def _with_block(loop: For, realize: BlockRealize) -> For:
    return loop.with_(body=_with_block(loop.body, realize) if isinstance(loop.body, For) else realize)


def _from_0(realize: BlockRealize, loop: For, start: int) -> BlockRealize | None:
    """The block with the axis that the loop is counted from 0; None where it is no axis of a reduction."""
    block = realize.block
    for index, (axis, value) in enumerate(zip(block.iter_vars, realize.iter_values, strict=True)):
        if value is not loop.loop_var or axis.iter_type is not IterType.CommReduce or axis.dom is None:
            continue
        if const(axis.dom.min) != start or const(realize.predicate) != 1 or block.match_buffers:
            return None
        var = Var(axis.var.name, axis.var.dtype)
        domain = Range.from_min_extent(number(0, axis.dom.min.dtype), axis.dom.extent)
        axes = tuple([axis.with_(var=var, dom=domain) if k == index else one for k, one in enumerate(block.iter_vars)])
        moved = substitute(block.with_(iter_vars=axes), {axis.var: var + number(start, var.dtype)})
        return realize.with_(block=_SimplerIndices(_bounds(moved)).visit(moved))
    return None


def _bounds(block: Block) -> Analyzer:
    analyzer = Analyzer()
    for axis in block.iter_vars:
        if axis.dom is not None:
            analyzer.bind(axis.var, axis.dom)
    return analyzer


class _SimplerIndices(Rewriter):
    """Indices in which what was added and what was there cancel."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        load = self.rebuild(load)
        return load.with_(indices=tuple([self.analyzer.simplify(index) for index in load.indices]))

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        store = self.rebuild(store)
        return store.with_(indices=tuple([self.analyzer.simplify(index) for index in store.indices]))

    def visit_BufferRegion(self, region: BufferRegion) -> BufferRegion:
        simpler = [
            Range.from_min_extent(self.analyzer.simplify(part.min), self.analyzer.simplify(part.extent))
            for part in region.region
        ]
        return region.with_(region=tuple(simpler))


def _unguarded(guard: IfThenElse, block: Block) -> BufferStore | None:
    """The update without its condition; None where nothing is known that changes nothing."""
    store = guard.then_case
    if not isinstance(store, BufferStore) or not isinstance(store.value, (Add, Mul, Min, Max)):
        return None
    value, neutral = store.value, _neutral(store.value)
    if neutral is None or any(load.buffer is store.buffer for load in loads_of(guard.condition)):
        return None
    for own, other, sides in ((value.a, value.b, "ab"), (value.b, value.a, "ba")):
        is_cell = isinstance(own, BufferLoad) and own.buffer is store.buffer
        if not is_cell or not all(map(structural_equal, own.indices, store.indices)):  # type: ignore[attr-defined]
            continue
        if any(load.buffer is store.buffer for load in loads_of(other)):
            return None
        choose = Select if _is_harmless(other, block) else if_then_else
        return store.with_(value=value.with_(**{sides[0]: own, sides[1]: choose(guard.condition, other, neutral)}))
    return None


def _neutral(value: Add | Mul | Min | Max) -> Expr | None:
    """What leaves the other side of the operation as it is; None for types that are made up of others."""
    dtype = value.dtype
    if dtype.lanes != 1 or dtype.kind not in ("float", "bfloat", "int", "uint"):
        return None
    is_float = dtype.is_float
    if isinstance(value, Add):
        return number(-0.0 if is_float else 0, dtype)
    if isinstance(value, Mul):
        return number(1, dtype)
    if is_float:
        return number(float("inf") if isinstance(value, Min) else float("-inf"), dtype)
    return max_value(dtype) if isinstance(value, Min) else min_value(dtype)


def _is_harmless(value: Expr, block: Block) -> bool:
    """Whether a value may be computed where nobody asks for it: all its loads are inside, and no division can stop."""
    analyzer = _bounds(block)
    is_safe = True

    def look(node: Node) -> None:
        nonlocal is_safe
        if isinstance(node, BufferLoad):
            for index, size in zip(node.indices, node.buffer.shape, strict=True):
                is_safe = is_safe and analyzer.can_prove(index >= 0) and analyzer.can_prove(index < size)
        elif isinstance(node, (Div, Mod, FloorDiv, FloorMod, Call)):
            is_safe = is_safe and node.dtype.is_float

    post_order_visit(value, look)
    return is_safe
