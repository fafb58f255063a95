"""allreduce_threads: a reduction over threads becomes one partial result a thread, and a call that joins them.

    for tx in T.thread_binding(4, thread="threadIdx.x"):    →    for tx in T.thread_binding(4, thread="threadIdx.x"):
        for k in range(8):                                           P, R = T.decl_buffer((1,), scope="local"), …
            with T.block("B"):                                       P[0] = 0
                v_k = T.axis.reduce(32, k * 4 + tx)                  for k in range(8):
                with T.init():                                           P[0] = P[0] + A[k * 4 + tx]
                    B[0] = 0                                         with T.attr(T.comm_reducer(…), "reduce_scope", …):
                B[0] = B[0] + A[v_k]                                     T.tvm_thread_allreduce(1, P[0], True, R[0], tx)
                                                                     if tx == 0:
                                                                         B[0] = R[0]

A loop over threads moves out of the serial loops of the reduction: the parts of a thread are summed up first. The
thread that stores the result is one for which `set_store_predicate` of te holds (STORED_BY), or the first one. A sum or
product that starts at its identity, a minimum, maximum, "and" or "or" has this form, where no loop over its results is
inside; so has a tuple that is associative, commutative and starts at what changes nothing (an argmax that breaks ties
by the index). Other reductions over threads stay, and `serialize_thread_reduction` writes the turns that their threads
take.

Needs: blocks with their inits.  Leaves: the same program but for these reductions.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Final, NamedTuple

from loopwright.analysis.combiner_laws import Combiner, Undecided, absorbs, is_associative, is_commutative
from loopwright.analysis.thread_axes import has_threads, is_per, tag_of, uses
from loopwright.ir import (
    Add,
    Allocate,
    And,
    AttrStmt,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    CommReducer,
    DeclBuffer,
    Evaluate,
    Expr,
    FloatImm,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    IterType,
    LetStmt,
    Max,
    Min,
    Mul,
    Op,
    Or,
    PrimFunc,
    Rewriter,
    Select,
    SeqStmt,
    Stmt,
    Var,
    any_node,
    collect,
    const,
    decl_buffer,
    deep,
    is_one,
    logical_and,
    seq,
    structural_equal,
    substitute,
)
from loopwright.ir.annotations import STORED_BY
from loopwright.ir.conditions import conjuncts
from loopwright.ir.machine_intrinsics import tvm_thread_allreduce
from loopwright.ir.passes import function_pass
from loopwright.runtime.dtype import DataType

_JOINS: Final = (Add, Mul, Min, Max, And, Or)
_CALLS: Final = frozenset(["tir.bitwise_and", "tir.bitwise_or", "tir.bitwise_xor"])


class _Reduction(NamedTuple):
    """A block that reduces: its stores, what a run adds to each, and how two parts join."""

    stores: Sequence[BufferStore]
    parts: Sequence[Expr]
    reducer: CommReducer


class _Guards(NamedTuple):
    """What a block's predicate says of the cells it computes, and of the parts it adds to them."""

    cells: Sequence[Expr]
    parts: Sequence[Expr]


class _AllReduce(Rewriter):
    def __init__(self, is_te: bool) -> None:
        self.is_te = is_te
        self.threads: dict[Var, str] = {}  # loops around that are bound to threads of a block
        self.serial: set[Var] = set()  # all others
        self.count = 0

    def visit_For(self, loop: For) -> Stmt:
        written = self._reduced(loop)
        if written is not None:
            return written
        tag = tag_of(loop)
        if tag.startswith("threadIdx"):
            self.threads[loop.loop_var] = tag
        else:
            self.serial.add(loop.loop_var)
        result: Stmt = self.rebuild(loop)
        self.threads.pop(loop.loop_var, None)
        self.serial.discard(loop.loop_var)
        return result

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        written = self._reduced(realize)
        return written if written is not None else self.rebuild(realize)

    def _reduced(self, statement: Stmt) -> Stmt | None:
        """The statement in the new form, where it is the outermost loop of a reduction over threads, or its block."""
        loops: list[For] = []
        inside = statement
        while isinstance(inside, For):
            loops.append(inside)
            inside = inside.body
        if not isinstance(inside, BlockRealize) or inside.block.init is None:
            return None
        axes = list(zip(inside.block.iter_vars, inside.iter_values, strict=True))
        summed = [value for axis, value in axes if axis.iter_type is IterType.CommReduce]
        data = [value for axis, value in axes if axis.iter_type is not IterType.CommReduce]
        if loops and not _use(summed, {loops[0].loop_var}):
            return None
        inner = {loop.loop_var: tag_of(loop) for loop in loops if tag_of(loop).startswith("threadIdx")}
        own = [loop for loop in loops if loop.loop_var not in inner]
        threads = {**self.threads, **inner}
        over = [var for var in threads if _use(summed, {var}) and not _use(data, {var})]
        if not over or any([loop.kind not in (ForKind.SERIAL, ForKind.UNROLLED) for loop in own]):
            return None
        if any([tag in [self.threads[var] for var in self.threads] for tag in inner.values()]):
            return None  # bound to an axis that runs already
        if _use(summed, self.serial) or _use(data, {loop.loop_var for loop in own}):
            return None  # more than this nest belongs to the reduction, or it has several results
        guards = _guards(inside, {*over, *[loop.loop_var for loop in own]}, data)
        reduction = _reduction(inside)
        if guards is None or reduction is None:
            return None
        body = self._written(inside, reduction, guards, own, {var: threads[var] for var in over})
        for loop in reversed([loop for loop in loops if loop.loop_var in inner]):
            body = loop.with_(body=body)
        return body

    def _written(
        self,
        realize: BlockRealize,
        reduction: _Reduction,
        guards: _Guards,
        loops: Sequence[For],
        over: dict[Var, str],
    ) -> Stmt:
        names = [self._names(store.buffer) for store in reduction.stores]
        wholes = [_cell(own[1], store) for own, store in zip(names, reduction.stores, strict=True)]
        zero, reducer = const(0), reduction.reducer
        steps: list[Stmt] = []
        temporaries = [*wholes]
        parts, condition = reduction.parts, _all([*guards.cells, *guards.parts])
        if loops:  # a thread has several parts
            partials = [_cell(own[0], store) for own, store in zip(names, reduction.stores, strict=True)]
            temporaries = [*partials, *wholes]
            so_far = [BufferLoad(partial, (zero,)) for partial in partials]
            identities = zip(partials, reducer.identity_element, strict=True)
            steps += [BufferStore(partial, identity, (zero,)) for partial, identity in identities]
            given = dict(zip([*reducer.lhs, *reducer.rhs], [*so_far, *parts], strict=True))
            nest = _if(condition, _stored_together(partials, [substitute(value, given) for value in reducer.result]))
            for loop in reversed(loops):
                nest = loop.with_(body=nest)
            steps.append(nest)
            parts, condition = so_far, const(True)
        results = [BufferLoad(whole, (zero,)) for whole in wholes]
        call = Evaluate(tvm_thread_allreduce(const(len(parts), "uint32"), *parts, condition, *results, *over))
        null = Call(DataType("handle"), Op.get("tir.reinterpret"), (const(0, "uint64"),))
        steps.append(AttrStmt(reducer, "reduce_scope", null, call))
        pairs = zip(reduction.stores, results, strict=True)
        stored = seq([BufferStore(store.buffer, result, store.indices) for store, result in pairs])
        by = _stored_by(realize, over, reduction.stores[0].buffer)
        steps.append(_if(_all([*guards.cells, *by]), stored))
        body = seq(steps)
        for buffer in reversed(temporaries):
            declared = DeclBuffer(buffer, body)
            body = Allocate(buffer.data, buffer.dtype, tuple(buffer.shape), const(True), declared)
        return body

    def _names(self, buffer: Buffer) -> tuple[str, str]:
        if not self.is_te:
            return f"in_thread_{buffer.name}", f"cross_thread_{buffer.name}"
        number, self.count = self.count, self.count + 1
        return f"normal_reduce_temp{number}", f"reduce_temp{number}"


def _use(values: Sequence[Expr], names: set[Var]) -> bool:
    return any([uses(value, names) for value in values])


def _if(condition: Expr, body: Stmt) -> Stmt:
    return body if is_one(condition) else IfThenElse(condition, body)


def _all(conditions: Sequence[Expr]) -> Expr:
    return logical_and(*conditions) if conditions else const(True)


def _guards(realize: BlockRealize, summed: set[Var], data: Sequence[Expr]) -> _Guards | None:
    """The predicate's conditions; None where one is of cells and parts at once."""
    of_cells = {var for value in data for var in collect(value, Var)}
    cells: list[Expr] = []
    parts: list[Expr] = []
    for condition in [] if is_one(realize.predicate) else conjuncts(realize.predicate):
        if not uses(condition, summed):
            cells.append(condition)
        elif uses(condition, of_cells):
            return None
        else:
            parts.append(condition)
    return _Guards(cells, parts)


def _cell(name: str, store: BufferStore) -> Buffer:
    return decl_buffer((1,), store.buffer.dtype, name, scope="local")


def _stored_together(buffers: Sequence[Buffer], values: Sequence[Expr]) -> Stmt:
    """One cell each: none is stored before all values are there."""
    zero = const(0)
    if len(buffers) == 1:
        return BufferStore(buffers[0], values[0], (zero,))
    new = [Var(f"new_{buffer.name}", buffer.dtype) for buffer in buffers]
    body = seq([BufferStore(buffer, var, (zero,)) for buffer, var in zip(buffers, new, strict=True)])
    for var, value in reversed([*zip(new, values, strict=True)]):
        body = LetStmt(var, value, body)
    return body


def _reduction(realize: BlockRealize) -> _Reduction | None:
    """The block as the sum of its parts, its axes written as the loops; None for another one."""
    block = realize.block
    init, store = block.init, block.body
    if isinstance(init, SeqStmt):
        return _tuple_reduction(realize)
    if not isinstance(init, BufferStore) or not isinstance(store, BufferStore):
        return None
    if block.alloc_buffers or block.match_buffers or init.buffer is not store.buffer:
        return None
    value = store.value
    sides = _sides(value)
    if not all(map(structural_equal, init.indices, store.indices)):
        return None
    mine = [_is_result(side, store) for side in sides]
    if mine.count(True) != 1:
        return None
    part = sides[1] if mine[0] else sides[0]
    if any_node(part, lambda node: isinstance(node, BufferLoad) and node.buffer.data is store.buffer.data):
        return None
    identity = _start(value, init.value)
    if identity is None:
        return None
    left, right = Var("x", value.dtype), Var("y", value.dtype)
    joined = value.with_(args=(left, right)) if isinstance(value, Call) else type(value)(left, right)  # type: ignore[call-arg]
    bound = dict(zip([axis.var for axis in block.iter_vars], realize.iter_values, strict=True))
    written = substitute(store, bound)
    return _Reduction((written,), (substitute(part, bound),), CommReducer((left,), (right,), (joined,), (identity,)))


def _tuple_reduction(realize: BlockRealize) -> _Reduction | None:
    """A block of several fields that are combined together, in any order; None for another one."""
    block = realize.block
    stores, inits = _all_stores(block.body), _all_stores(block.init)
    if block.alloc_buffers or block.match_buffers or stores is None or inits is None:
        return None
    starts = {store.buffer: store for store in inits}
    if len(starts) != len(inits) or set(starts) != {store.buffer for store in stores} or len(starts) != len(stores):
        return None
    fields = {store.buffer: store for store in stores}
    identity = [starts[store.buffer].value for store in stores]
    if not all([isinstance(value, (IntImm, FloatImm)) for value in identity]):
        return None
    loads = [load for store in stores for load in collect(store.value, BufferLoad) if load.buffer in fields]
    cells: list[BufferStore | BufferLoad] = [*inits, *loads]
    if not all([all(map(structural_equal, cell.indices, fields[cell.buffer].indices)) for cell in cells]):
        return None
    parts = [_combined_with(store) for store in stores]
    if any([part is None or _loads_any(part, fields) for part in parts]):
        return None
    left = [Var(f"x{k}", store.value.dtype) for k, store in enumerate(stores)]
    right = [Var(f"y{k}", store.value.dtype) for k, store in enumerate(stores)]
    named = _Named(dict(zip(fields, left, strict=True)), list(zip(parts, right, strict=True)))  # type: ignore[arg-type]
    combiner = Combiner(tuple(left), tuple(right), tuple([named.visit(store.value) for store in stores]))
    if any([used not in (*left, *right) for result in combiner.results for used in collect(result, Var)]):
        return None
    try:
        if not (is_associative(combiner) and is_commutative(combiner) and absorbs(combiner, identity, identity)):
            return None
    except Undecided:
        return None
    bound = dict(zip([axis.var for axis in block.iter_vars], realize.iter_values, strict=True))
    written = [substitute(store, bound) for store in stores]
    reducer = CommReducer(combiner.state, combiner.operands, combiner.results, tuple(identity))
    return _Reduction(written, [substitute(part, bound) for part in parts if part is not None], reducer)


def _all_stores(body: Stmt | None) -> list[BufferStore] | None:
    """The stores of a body, without the names it gives values first; None where it does more, or loads in between."""
    values: dict[Var, Expr] = {}
    while isinstance(body, LetStmt):
        values[body.var] = substitute(body.value, values)
        body = body.body
    parts = body.seq if isinstance(body, SeqStmt) else (body,)
    stores = [substitute(part, values) for part in parts if isinstance(part, BufferStore)]
    in_between = [part for part in parts if isinstance(part, BufferStore) and collect(part.value, BufferLoad)]
    return None if len(stores) != len(parts) or (in_between and len(parts) > 1) else stores


def _combined_with(store: BufferStore) -> Expr | None:
    """What is combined into a field: the other side of an operation, or the other choice."""
    value = store.value
    if isinstance(value, Select):
        sides: tuple[Expr, ...] = (value.true_value, value.false_value)
    else:
        sides = _sides(value)
    mine = [_is_result(side, store) for side in sides]
    if mine.count(True) != 1 or len(sides) != 2:
        return None
    return sides[1] if mine[0] else sides[0]


def _loads_any(expr: Expr, buffers: Container[Buffer]) -> bool:
    return any([load.buffer in buffers for load in collect(expr, BufferLoad)])


class _Named(Rewriter):
    """Writes variables for the fields so far, and for what is combined into them."""

    def __init__(self, fields: Mapping[Buffer, Var], parts: Sequence[tuple[Expr, Var]]) -> None:
        self.fields, self.parts = fields, parts

    def visit_Expr(self, expr: Expr) -> Expr:
        for part, var in self.parts:
            if expr.dtype is part.dtype and structural_equal(expr, part):
                return var
        result: Expr = self.rebuild(expr)
        return result

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        if load.buffer in self.fields:
            return self.fields[load.buffer]
        return self.visit_Expr(load)


def _sides(value: Expr) -> tuple[Expr, ...]:
    """What a value joins; nothing where it is no operation of a reduction."""
    if isinstance(value, _JOINS):
        return value.a, value.b
    return tuple(value.args) if isinstance(value, Call) and value.op.name in _CALLS else ()


def _is_result(expr: Expr, store: BufferStore) -> bool:
    if not isinstance(expr, BufferLoad) or expr.buffer is not store.buffer:
        return False
    return all(map(structural_equal, expr.indices, store.indices))


def _start(value: Expr, init: Expr) -> Expr | None:
    """What every thread may start at: the identity of a sum or product; anything, where joining it twice is no more."""
    if not isinstance(init, (IntImm, FloatImm)) or init.value != init.value:
        return None
    is_xor = isinstance(value, Call) and value.op.name == "tir.bitwise_xor"
    if not (is_xor or isinstance(value, (Add, Mul))):
        return init  # a minimum, a maximum, "and", "or"
    return init if init.value == isinstance(value, Mul) else None


def _stored_by(realize: BlockRealize, over: dict[Var, str], buffer: Buffer) -> list[Expr]:
    """Which thread stores the result: the one that the annotation names, or the first; each, in memory of its own."""
    if all([is_per(buffer.scope(), tag) for tag in over.values()]):
        return []
    chosen = realize.block.annotations.get(STORED_BY)
    numbers = dict(chosen.items()) if isinstance(chosen, Mapping) else {}
    return [var.equal(int(numbers.get(tag, 0))) for var, tag in over.items()]


@function_pass
@deep
def allreduce_threads(func: PrimFunc) -> PrimFunc:
    """Reductions over threads become partial results and `tvm_thread_allreduce`."""
    if not has_threads(func.body):
        return func
    return func.with_(body=_AllReduce("from_legacy_te_schedule" in func.attrs).visit(func.body))
