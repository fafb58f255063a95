"""evaluate_terms: run a program on terms instead of numbers, to say what it computes for all inputs at once.

Loops, indices and conditions run on numbers; what is loaded from an argument is a symbol, what is computed from it is
a term. Two programs compute the same when every cell the caller can see holds the same term:

    difference(evaluate_terms(before), evaluate_terms(after)) is None

Calls of functions outside the program are terms as well: each one with effects is a function of its arguments and of
the calls before it, and changes what the caller sees as `(calls)`.

The updates that a reduction block makes to a cell between two other writes form a multiset, where they may change
places: summation order does not matter, but how often each update happens does. `C[i] = C[i] * 2 + A[i, k]` is no
reduction, whatever its axes are called: its updates are nested, each in the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Final

import numpy as np

from loopwright.analysis.effects import is_pure_call, stored_memory
from loopwright.analysis.races import privatised
from loopwright.evaluator.arguments import Array, as_scalar, check_count
from loopwright.evaluator.errors import DataDependent, UninitialisedRead
from loopwright.evaluator.evaluate import Program, choose_function
from loopwright.evaluator.folds import TermMemory, TermPointer, Update
from loopwright.evaluator.locations import Place, Run
from loopwright.evaluator.lockstep import InLockstep
from loopwright.evaluator.races import Races, RunningLoop
from loopwright.evaluator.statements import OnStep, values_of
from loopwright.evaluator.term import Term, as_term, make
from loopwright.evaluator.threads import ThreadCompiler
from loopwright.evaluator.values import Value
from loopwright.ir import (
    BlockRealize,
    Buffer,
    BufferStore,
    Call,
    Expr,
    For,
    ForKind,
    IntImm,
    IRModule,
    IterType,
    Node,
    PrimFunc,
    StringImm,
    Var,
    any_statement,
    deep,
)
from loopwright.runtime.call_errors import ArgumentKindMismatch, RankMismatch
from loopwright.runtime.dtype import INT32, DataType

Terms = dict[str, np.ndarray]


@deep
def evaluate_terms(
    program: PrimFunc | IRModule,
    *arguments: object,
    check_races: bool = False,
    all_reductions: bool = False,
    on_step: OnStep | None = None,
    function: str | None = None,
) -> Terms:
    """What every cell of every argument buffer holds after the program ran, by buffer name.

    An argument is a shape (or an array, for its shape) or a number; leave all of them out when every shape is a
    literal. `check_races` refuses parallel loops with two iterations that touch one cell, one of them writing.
    `all_reductions` also takes stores like `x[i] = x[i] + y` outside blocks as updates of a reduction, so that
    lowered programs compare with their blocks.
    """
    module, func = choose_function(program, function)
    if check_races:
        func = privatised(func)  # what iterations share by accident is no race
    races = Races() if check_races else None
    outside = outside_memory()
    compiled = Program(module, lambda: _TermCompiler(on_step, races, all_reductions, outside)).function(func)
    given = arguments or (None,) * len(func.params)
    check_count(func, given)
    values = [_argument(func, param, argument) for param, argument in zip(func.params, given, strict=True)]
    compiled.run(values)
    result: Terms = {}
    for param, value in zip(func.params, values, strict=True):
        if isinstance(value, Array):
            result[func.buffer_map[param].name] = _cells(value)
    if outside.cells:
        result[outside.name] = np.array([outside.get(0)], dtype=object)
    return result


def outside_memory() -> TermMemory:
    """What calls with effects may depend on and change: one cell, which each of them reads and writes."""
    return TermMemory("(calls)", INT32, {0: (0,)})


def difference(first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray]) -> str | None:
    """The first cell where two results differ, in words; None when they are the same."""
    if list(first) != list(second):
        return f"the buffers differ: {', '.join(first)} and {', '.join(second)}"
    for name in first:
        a, b = first[name], second[name]
        if a.shape != b.shape:
            return f"{name} has shapes {a.shape} and {b.shape}"
        for indices in np.ndindex(a.shape):
            if a[indices] is not b[indices]:
                where = ", ".join([str(index) for index in indices])
                return f"{name}[{where}] holds {a[indices]} in one and {b[indices]} in the other"
    return None


def _argument(func: PrimFunc, param: Var, given: Value) -> Value:
    buffer = func.buffer_map.get(param)
    if buffer is None:
        if given is None and param.dtype.is_float:
            return make("cell", param.dtype, (), (param.name, None))
        return as_scalar(given, param, func.name)
    if given is None:
        if not all(isinstance(size, IntImm) for size in buffer.shape):
            raise ArgumentKindMismatch(f"{func.name}: give the shape of argument {buffer.name}; it is symbolic")
        given = [int(size) for size in buffer.shape]  # type: ignore[call-overload]
    if hasattr(given, "shape"):
        given = given.shape
    shape = (given,) if isinstance(given, int) else tuple([int(size) for size in given])
    if len(shape) != len(buffer.shape):
        raise RankMismatch(
            f"{func.name}: argument {buffer.name} has {len(shape)} dimensions, expected {len(buffer.shape)}"
        )
    strides, step = [], 1
    for size, declared in zip(reversed(shape), reversed(buffer.strides or (None,) * len(shape)), strict=True):
        strides.append(declared.value if isinstance(declared, IntImm) else step)
        step = strides[-1] * size
    layout = tuple(reversed(strides))
    offset = buffer.elem_offset.value if isinstance(buffer.elem_offset, IntImm) else 0
    names = {
        offset + sum([i * s for i, s in zip(indices, layout, strict=True)]): indices
        for indices in product(*[range(size) for size in shape])
    }
    lanes, element = buffer.dtype.lanes, buffer.dtype.element
    if lanes > 1:
        names = {location * lanes + k: (*indices, k) for location, indices in names.items() for k in range(lanes)}
    return Array(TermPointer(TermMemory(buffer.name, element, names)), element, shape, layout)


def _cells(array: Array) -> np.ndarray:
    memory: TermMemory = array.pointer.memory
    assert memory.names is not None and array.shape is not None
    last = max([len(indices) for indices in memory.names.values()], default=len(array.shape))
    shape = array.shape
    if last > len(shape):
        shape = (*shape, 1 + max([indices[-1] for indices in memory.names.values()]))
    result = np.empty(shape, dtype=object)
    for location, indices in memory.names.items():
        result[indices] = as_term(memory.get(location), memory.dtype)
    return result


# --- the compiler -------------------------------------------------------------------------------------------------

# x = x op y: the updates commute whatever y is.
_UPDATES: Final = frozenset({"Add", "Mul", "Min", "Max", "And", "Or", "bitwise_and", "bitwise_or", "bitwise_xor"})


class _TermCompiler(ThreadCompiler):
    """Compiles a program to run on terms."""

    numeric = False

    def __init__(
        self, on_step: OnStep | None, races: Races | None, all_reductions: bool, outside: TermMemory | None = None
    ) -> None:
        super().__init__(check=True, on_step=on_step)
        self.races, self.all_reductions = races, all_reductions
        self.called = outside or outside_memory()
        self.updates: list[Update] = []  # the run of a reduction block, or of a store taken as one
        self.reduces: set[Var] = set()  # at compile time: the pointers whose cells it updates

    def lift(
        self, name: str, function: Callable[..., Value], operands: Sequence[Expr], result: DataType
    ) -> Callable[..., Value]:
        dtypes = [operand.dtype.element for operand in operands]
        chooses = name in ("Select", "if_then_else")

        def apply(*values: object) -> Value:
            if not any(type(value) is Term for value in values) or (chooses and type(values[0]) is not Term):
                return function(*values)
            return make(name, result, [as_term(value, dtype) for value, dtype in zip(values, dtypes, strict=True)])

        return apply

    def foreign_term(self, call: Call, name: str) -> Run:
        arguments = [argument for argument in call.args[1:] if not isinstance(argument, StringImm)]
        if any([argument.dtype.kind == "handle" or argument.dtype.lanes > 1 for argument in arguments]):
            return super().foreign_term(call, name)  # what it does to memory is not known
        texts = tuple([argument.value for argument in call.args[1:] if isinstance(argument, StringImm)])
        values, dtypes = [self.visit(argument) for argument in arguments], [argument.dtype for argument in arguments]
        is_pure = is_pure_call(call)
        called, races, watch = self.called, self.races, self.watched_touch(True, call)
        dtype = call.dtype if call.dtype.kind not in ("void", "handle") else INT32

        def run() -> Term:
            given = [as_term(value(), dtype) for value, dtype in zip(values, dtypes, strict=True)]
            if not is_pure:
                if races is not None:
                    races.touch(called, 0, True)
                if watch is not None:
                    watch((called, 0), lambda: "the outside of the program")
                given.append(called.get(0))
                called.cells[0] = make("after", INT32, given, (name, texts))
            return make("call", dtype, given, (name, texts))

        return run

    def concrete(self, expr: Expr, run: Run) -> Run:
        if isinstance(expr, IntImm):
            return run
        scope = self.scope

        def known() -> Value:
            value = run()
            for item in value if type(value) is list else (value,):
                if type(item) is Term:
                    raise DataDependent(item, expr, self.loops(scope))
            return value

        return known

    def new_memory(self, name: str, dtype: DataType, sizes: Sequence[Value]) -> Run:
        def make_memory() -> TermPointer:
            count = prod([size if isinstance(size, int) else size() for size in sizes]) * dtype.lanes
            return TermPointer(TermMemory(name, dtype.element, None, count))

        return make_memory

    def constant_memory(self, name: str, dtype: DataType, data: object) -> Run:
        memory = TermMemory(name, dtype.element, None)
        memory.cells = dict(enumerate(values_of(data).reshape(-1).tolist()))
        memory.size = len(memory.cells)
        return lambda: TermPointer(memory)

    def read(self, buffer: Buffer, location: Place, at: Node) -> Callable[[int], Value]:
        frame, scope, races, updates = self.frame, self.scope, self.races, self.updates
        view, _ = self.view_of(buffer)
        updated = buffer.data in self.reduces

        def one(k: int) -> Value:
            pointer = frame[view]
            memory, k = pointer.memory, k + pointer.offset
            if races is not None:
                races.touch(memory, k, False)
            if updated and updates and (memory, k) in updates[-1].stores:
                return updates[-1].stores[memory, k]
            try:
                value = memory.raw(k)
            except IndexError:
                raise location.outside() from None
            if value is None:
                raise UninitialisedRead(buffer, location.indices_of(k - pointer.offset), self.loops(scope), at)
            if updated and updates:
                return updates[-1].load((memory, k))
            return value[0].term(value[1]) if type(value) is tuple else value

        return self.watched_read(one, buffer, location, at)

    def write(self, buffer: Buffer, location: Place, at: Node) -> Callable[[int, Value], None]:
        frame, races, updates = self.frame, self.races, self.updates
        view, _ = self.view_of(buffer)
        updated = buffer.data in self.reduces

        def one(k: int, value: object) -> None:
            pointer = frame[view]
            memory, k = pointer.memory, k + pointer.offset
            if races is not None:
                races.touch(memory, k, True)
            try:
                memory.raw(k)
            except IndexError:
                raise location.outside() from None
            if updated and updates:
                updates[-1].stores[memory, k] = value
            else:
                memory.cells[k] = value

        return self.watched_write(one, buffer, location, at)

    # --- reductions -----------------------------------------------------------------------------------------------

    def visit_BlockRealize(self, stmt: BlockRealize) -> Run:
        if not _is_reduction(stmt):
            return super().visit_BlockRealize(stmt)
        outside, self.reduces = self.reduces, set(stored_memory(stmt.block.body))
        run = super().visit_BlockRealize(stmt)
        self.reduces = outside
        return lambda: self._as_update(run)

    def lockstep_block(self, stmt: BlockRealize) -> InLockstep:
        if not _is_reduction(stmt):
            return super().lockstep_block(stmt)
        outside, self.reduces = self.reduces, set(stored_memory(stmt.block.body))
        run = super().lockstep_block(stmt)
        self.reduces = outside
        return lambda lanes: self._as_update(lambda: run(lanes))

    def visit_BufferStore(self, stmt: BufferStore) -> Run:
        if not self.all_reductions or self.reduces:
            return super().visit_BufferStore(stmt)
        self.reduces = {stmt.buffer.data}
        run = super().visit_BufferStore(stmt)
        self.reduces = set()
        return lambda: self._as_update(run, _is_plain_update)

    def lockstep_store(self, stmt: BufferStore) -> InLockstep:
        if not self.all_reductions or self.reduces:
            return super().lockstep_store(stmt)
        self.reduces = {stmt.buffer.data}
        run = super().lockstep_store(stmt)
        self.reduces = set()
        return lambda lanes: self._as_update(lambda: run(lanes), _is_plain_update)

    def _as_update(self, run: Run, only_if: Callable[[Term, Value], bool] | None = None) -> None:
        self.updates.append(Update())
        run()
        self.updates.pop().commit(only_if)

    # --- parallel loops -------------------------------------------------------------------------------------------

    def loop(self, stmt: For, low: Run, extent: Run, slots: Sequence[int], body: Run) -> Run:
        races = self.races
        if races is None or stmt.kind is not ForKind.PARALLEL:
            return super().loop(stmt, low, extent, slots, body)
        frame = self.frame

        def run() -> None:
            state = RunningLoop(stmt)
            races.running.append(state)
            begin = low()
            for value in range(begin, begin + extent()):
                state.now = value
                for slot in slots:
                    frame[slot] = value
                body()
            races.running.pop()

        return run


def _is_plain_update(value: object, cell: object) -> bool:
    """Whether a value is `□ op y` (or fma(x, y, □)) with a y that does not depend on the cell."""
    if type(value) is not Term:
        return False
    if value.op in _UPDATES:
        mine = [arg for arg in value.args if arg.op == "hole" and arg.data == cell]
        return len(mine) == 1 and all(arg is mine[0] or not arg.is_open for arg in value.args)
    if value.op == "fma":
        x, y, z = value.args
        return z.op == "hole" and z.data == cell and not x.is_open and not y.is_open
    return False


def _is_reduction(stmt: BlockRealize) -> bool:
    """A block that runs over a reduction axis and holds no other block (those inside update for themselves)."""
    if all([axis.iter_type != IterType.CommReduce for axis in stmt.block.iter_vars]):
        return False
    return not any_statement(stmt.block.body, lambda node: isinstance(node, BlockRealize))
