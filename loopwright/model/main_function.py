"""main_function: the function of a model: it takes the inputs and the outputs, and calls one kernel after another.

    def mlp(x, y):
        weights = lw_constants_mlp()
        arena = allocate(4096)
        kernel_1(x, weights + 0, arena + 0)
        kernel_2(arena + 0, weights + 8192, y)

It is ordinary lowered IR, so code generation gives it the checked entry and the plain C entry that every function has.
Kernels are called by their symbols with bare pointers; one that fails ends the call with its error. The arena comes
from the workspace of the runtime, which keeps it for the next call. With `timed`, each launch is measured: the function
takes two more arrays, for nanoseconds and for calls; with `open_arena`, the arena is an argument too. `for_c` makes it
a function of a C file: constants stand in it, and the arena has the alignment of a number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from math import prod
from typing import Final

from loopwright.arith import Analyzer
from loopwright.arith.index_arithmetic import in_64_bits
from loopwright.codegen.describe_module import implicit_variables
from loopwright.ir import (
    Allocate,
    AllocateConst,
    And,
    AssertStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Cast,
    Evaluate,
    Expr,
    For,
    ForKind,
    GlobalVar,
    IfThenElse,
    IntImm,
    LetStmt,
    Not,
    PrimFunc,
    SeqStmt,
    Stmt,
    StringImm,
    Var,
    While,
    const,
    pointer,
    substitute,
)
from loopwright.ir.argument_sizes import solved_sizes
from loopwright.ir.intrinsics import address_of, call_extern, call_intrin
from loopwright.ir.machine_intrinsics import call_error
from loopwright.model.arena_packing import ALIGNMENT
from loopwright.model.errors import SizeNotKnown
from loopwright.model.kernel import Kernel
from loopwright.model.liveness import Home, size_key, variables
from loopwright.model.plan import Plan, Slot
from loopwright.model.program import (
    Bind,
    Body,
    Branch,
    Copy,
    Launch,
    Part,
    Program,
    Repeat,
    Require,
    Slice,
    Step,
    Value,
    View,
)
from loopwright.model.sizes import widened
from loopwright.runtime.dtype import DataType

_WIDE: Final = "int64"
_CLOCK: Final = 1  # CLOCK_MONOTONIC
Item = Stmt | Callable[[Stmt], Stmt]  # a statement, or what goes around all that follow


@dataclass(eq=False)
class MainFunction:
    """The function, and what its maker knows beside it."""

    func: PrimFunc
    written: list[Var]  # the pointers of the arguments that it writes
    launches: list[Launch] = field(default_factory=list)  # as `timed` numbers them


def getter_name(name: str) -> str:
    """The C function that says where the constants of the model `name` are."""
    return "lw_constants_" + re.sub(r"\W", "_", name, flags=re.ASCII)


def make_main(
    program: Program,
    plan: Plan,
    kernels: Mapping[Launch, Kernel],
    name: str,
    *,
    timed: bool = False,
    open_arena: bool = False,
    for_c: bool = False,
) -> MainFunction:
    """The main function of `program` with everything where `plan` says."""
    return _Main(program, plan, kernels, name, timed, open_arena, for_c).make()


class _Main:
    def __init__(
        self,
        program: Program,
        plan: Plan,
        kernels: Mapping[Launch, Kernel],
        name: str,
        timed: bool,
        open_arena: bool,
        for_c: bool,
    ) -> None:
        self.program, self.plan, self.kernels, self.name = program, plan, kernels, name
        self.timed, self.open_arena, self.for_c = timed, open_arena, for_c
        self.constants = {value: pointer(f"constant_{k}", value.dtype) for k, value in enumerate(program.constants)}
        used: set[str] = set()
        self.inputs = [_argument(value, used) for value in program.inputs]
        self.outputs = [_argument(value, used) for value in program.outputs]
        self.weights = pointer("weights", "uint8")
        self.arena = pointer("arena", "uint8")
        self.slot_places: dict[Slot, tuple[Var, Expr]] = {}
        self.slot_of = {home: slot for group in plan.slots.values() for slot in group for home in slot.homes}
        self.turns: dict[Repeat, Expr] = {}
        self.launches: list[Launch] = []
        self.known: set[Var] = set()  # size variables that have a value
        self.clock = Buffer(pointer("clock", _WIDE), _WIDE, (4,), name="clock")
        self.times = Buffer(pointer("times", _WIDE), _WIDE, (max(1, len(program.launches())),), name="times")
        self.calls = Buffer(pointer("calls", _WIDE), _WIDE, (max(1, len(program.launches())),), name="calls")

    def make(self) -> MainFunction:
        buffers = [*self.inputs, *self.outputs]
        written = [buffer.data for buffer in self.outputs]
        if self.open_arena:
            buffers.append(Buffer(self.arena, "uint8", (Var("arena_bytes", _WIDE),), name="arena"))
        if self.timed:
            buffers += [self.times, self.calls]
        written += [buffer.data for buffer in buffers[len(self.inputs) + len(self.outputs) :]]
        handles = [Var(f"{buffer.name}_handle", "handle") for buffer in buffers]
        shell = PrimFunc(handles, Evaluate(const(0)), buffer_map=dict(zip(handles, buffers, strict=True)))
        self.known = {var for buffer in self.inputs for extent in buffer.shape for var in variables(extent)}
        for value in self.program.outputs:
            for extent in value.shape:
                self._require_known(extent, f"the shape of the output {value.name}")
        body = _run(self._body())
        func = shell.with_(body=body).with_attr("global_symbol", self.name)
        return MainFunction(func, written, self.launches)

    def _body(self) -> list[Item]:
        # Before anything is allocated: sizes that do not fit may ask for any amount of memory.
        first = list(takewhile(lambda step: isinstance(step, Require), self.program.body))
        items = self._steps(first)
        if self.for_c:
            items += [self._written_out(value, var) for value, var in self.constants.items()]
        elif self.plan.constant_bytes:
            getter = call_extern("handle", getter_name(self.program.name))
            items.append(lambda rest: LetStmt(self.weights, getter, rest))
            missing = call_intrin("bool", "tir.isnullptr", self.weights)
            why = "the file of weights beside the library is missing, or not as it was written"
            message = StringImm(f"the constants of {self.program.name} cannot be read: {why}")
            items.append(lambda rest: AssertStmt(Not(missing), message, rest))
        items += self._arena(None, self.arena, self.plan.peak)
        if self.timed:
            items.append(lambda rest: Allocate(self.clock.data, DataType(_WIDE), (_wide(4),), const(True), rest))
        items += self._steps(self.program.body[len(first) :])
        for position, value in self.plan.liveness.output_copies:
            buffer = self.outputs[position]
            items += self._copy_to((buffer.data, _wide(0)), value)
        return items

    # --- memory ---------------------------------------------------------------------------------------------------

    def _arena(self, bind: Bind | None, arena: Var, fixed: int) -> list[Item]:
        """Make the arena: its fixed part, and the slots after it."""
        items: list[Item] = []
        end: Expr = _wide(fixed)
        for number, slot in enumerate(self.plan.slots.get(bind, ())):
            location = Var(f"slot_{number}", _WIDE)
            items.append(_let(location, end))
            self.slot_places[slot] = (arena, location)
            self._require_known(slot.nbytes, f"the size of {slot.homes[0].values[0].name}")
            end = _round_up(location + slot.nbytes)
        if isinstance(end, IntImm) and end.value == 0:
            if bind is not None or not self.plan.offsets:
                return items
            end = _wide(ALIGNMENT)  # values of no elements have an address too
        if bind is None and self.open_arena:
            return items
        total = end
        if self.for_c:  # where an array is aligned as its elements are
            count = total // 8 if isinstance(total, IntImm) else (total + 7) // 8
            items.append(lambda rest: Allocate(arena, DataType(_WIDE), (count,), const(True), rest))
        else:
            items.append(lambda rest: Allocate(arena, DataType("uint8"), (total,), const(True), rest))
        return items

    def _written_out(self, value: Value, var: Var) -> Item:
        extents = tuple(_size(extent) for extent in value.shape)
        array = self.program.array(value)
        return lambda rest: AllocateConst(var, value.dtype, extents, array, rest)

    def _place(self, home: Home) -> tuple[Var, Expr]:
        """The pointer and the distance in bytes at which a home begins."""
        match home.kind:
            case "input":
                return self.inputs[home.position].data, _wide(0)
            case "output":
                return self.outputs[home.position].data, _wide(0)
            case "constant":
                if self.for_c:
                    return self.constants[home.values[0]], _wide(0)
                return self.weights, _wide(self.plan.constant_offsets[home.values[0]])
            case "slice":
                assert home.whole is not None
                assert home.cut is not None
                return self._slice_place(*home.cut)
            case "arena":
                if home in self.plan.offsets:
                    return self.arena, _wide(self.plan.offsets[home])
                return self.slot_places[self.slot_of[home]]

    def _slice_place(self, repeat: Repeat, cut: Slice) -> tuple[Var, Expr]:
        base, start = self._place(self.plan.home(cut.whole))
        turn = self.turns[repeat]
        if cut.backwards:
            turn = _size(cut.whole.shape[0]) - 1 - turn
        return base, start + turn * _as_expr(cut.part.nbytes)

    def _pointer(self, value: Value, part: Part | None = None) -> Expr:
        base, start = self._place(self.plan.home(value))
        return self._at(base, start if part is None else start + _wide(part.offset(value)))

    def _at(self, base: Var, distance: Expr) -> Expr:
        """The address so many bytes after `base`."""
        if isinstance(distance, IntImm) and distance.value == 0 and not self.for_c:
            return base
        return address_of(BufferLoad(Buffer(base, "uint8", (1,), name=base.name), (distance,)))

    def _cell(self, value: Value) -> tuple[Buffer, Expr]:
        """A scalar as the element of a flat buffer."""
        base, start = self._place(self.plan.home(value))
        buffer = Buffer(base, value.dtype, (1,), name=value.name)
        return buffer, _divided(start, value.item_bytes)

    def _load(self, value: Value) -> Expr:
        buffer, index = self._cell(value)
        return BufferLoad(buffer, (index,))

    def _copy(self, target: Value, source: Value) -> list[Item]:
        home = self.plan.home(target)
        if home is self.plan.home(source):
            return []
        return self._copy_to(self._place(home), source)

    def _copy_to(self, location: tuple[Var, Expr], source: Value) -> list[Item]:
        size = source.nbytes
        self._require_known(size, f"the size of {source.name}")
        if size == 0:
            return []
        base, start = self._place(self.plan.home(source))
        if source.is_static and prod([extent for extent in source.shape if isinstance(extent, int)]) == 1:
            to = Buffer(location[0], source.dtype, (1,), name=source.name)
            value = BufferLoad(Buffer(base, source.dtype, (1,)), (_divided(start, source.item_bytes),))
            return [BufferStore(to, value, (_divided(location[1], source.item_bytes),))]
        return [Evaluate(call_extern("handle", "memcpy", self._at(*location), self._at(base, start), _as_expr(size)))]

    # --- steps ----------------------------------------------------------------------------------------------------

    def _steps(self, steps: Sequence[Step]) -> list[Item]:
        items: list[Item] = []
        waiting = list(steps)[::-1]
        while waiting:
            step = waiting.pop()
            match step:
                case Launch():
                    items += self._launch(step)
                case View():
                    items += [] if step.first else self._require_same(step.value, step.of)
                case Copy():
                    items += [] if step.first else self._require_same(step.value, step.of)
                    items += self._copy(step.value, step.of)
                case Bind():
                    items += self._bind(step)
                    while waiting and isinstance(behind := waiting[-1], Require):  # before memory of that size
                        items += self._require(behind)
                        waiting.pop()
                    items += self._arena(step, pointer(f"arena_{step.var.name}", "uint8"), 0)
                case Require():
                    items += self._require(step)
                case Branch():
                    items.append(self._branch(step))
                case Repeat():
                    items += self._repeat(step)
        return items

    def _require_same(self, value: Value, of: Value) -> list[Item]:
        """Check in the call what cannot be proved before it: that a view or copy is as large as what it is of."""
        one, other = _as_expr(value.nbytes), _as_expr(of.nbytes)
        if size_key(value) == size_key(of) or Analyzer().can_prove_equal(one, other):
            return []
        for size in (one, other):
            self._require_known(size, f"the size of {value.name}")
        message = StringImm(f"{value.name} is taken for {of.name}, which has another number of elements")
        return [lambda rest: AssertStmt(one.equal(other), message, rest)]

    def _launch(self, step: Launch) -> list[Item]:
        kernel = self.kernels[step]
        locations = iter(range(len(step.arguments)))
        given = []
        for position, param in enumerate(step.func.params):
            location = next(locations) if param in step.func.buffer_map else None
            if kernel.keeps is not None and position not in kernel.keeps:
                continue
            if location is None:
                self._require_known(param, f"the kernel {step.name or step.func.name}")
            given.append(param if location is None else self._pointer(step.arguments[location], step.part(location)))
        for value in self.plan.prepared.made.get(step, ()):
            given.append(self._at(self.weights, _wide(self.plan.constant_offsets[value])))
        sizes = self._sizes(step)
        given += [size.astype(dtype) for size, dtype in zip(sizes, kernel.sizes, strict=True)]
        fit = [self._require_fits(*pair, step) for pair in zip(sizes, map(DataType, kernel.sizes), strict=True)]
        items = [item for item in fit if item is not None]
        call = Evaluate(Call(DataType("void"), GlobalVar(kernel.symbol), tuple(given)))
        number = len(self.launches)
        self.launches.append(step)
        items += [*self._tick(0), call, *self._tick(2), *self._note(number)] if self.timed else [call]
        return items

    def _require_fits(self, size: Expr, dtype: DataType, step: Launch) -> Item | None:
        """Check in the call that a size which the program computes fits the type in which a kernel counts."""
        if dtype.bits >= size.dtype.bits or _is_converted_var(size, dtype):
            return None
        if isinstance(size, IntImm) and size.value <= dtype.highest:
            return None
        message = f"the kernel {step.name or step.func.name} counts in {dtype}, and one of its sizes is %lld"
        return lambda rest: AssertStmt(
            size <= const(dtype.highest, size.dtype), call_error("SizesDoNotFit", message, size), rest
        )

    def _sizes(self, step: Launch) -> list[Expr]:
        """What the kernel's size parameters are at this call."""
        func = step.func
        lengths = dict[Var, Expr]()
        values = dict(zip(step.buffers, step.arguments, strict=True))
        for buffer, value in values.items():
            for extent, given in zip(buffer.shape, value.shape, strict=True):
                if isinstance(extent, Var) and extent not in lengths:
                    lengths[extent] = _size(given)
            if isinstance(buffer.elem_offset, Var):
                lengths.setdefault(buffer.elem_offset, _wide(0))
        wanted = implicit_variables(func)
        lengths.update({var: var for var in wanted if var not in lengths and var in self.known})
        if any(var not in lengths for var in wanted):
            for solution in solved_sizes(func):
                if solution.var in lengths or solution.entry.part != "shape":
                    continue
                entry = _size(values[solution.entry.buffer].shape[solution.entry.axis])
                rest = substitute(solution.rest, lengths)
                lengths[solution.var] = (entry - in_64_bits(rest)) // solution.scale
        for var in wanted:
            if var not in lengths:
                raise SizeNotKnown(f"the kernel {step.name or func.name}", var.name)
            self._require_known(lengths[var], f"the kernel {step.name or func.name}")
        return [lengths[var] for var in wanted]

    def _require_known(self, size: int | Expr, what: str) -> None:
        if isinstance(size, int):
            return
        own = {location for _, location in self.slot_places.values()} | set(self.turns.values())
        for var in variables(size):
            if var not in self.known and var not in own:
                raise SizeNotKnown(what, var.name)

    def _bind(self, step: Bind) -> list[Item]:
        number = self._load(step.value).astype(step.var.dtype)
        # Asked before the number is brought to the variable's type, where it may be another one.
        given = self._load(step.value).astype(_WIDE)
        fine = And(given >= _wide(0), given <= _wide(step.var.dtype.highest))
        message = f"the size {step.var.name} is below 0"
        if step.at_most is not None:
            fine = And(fine, given <= _size(step.at_most))
            message += f" or above {step.at_most}"
        self.known.add(step.var)
        check: Item = lambda rest: AssertStmt(fine, StringImm(message), rest)  # noqa: E731
        return [_let(step.var, number), check]

    def _require(self, step: Require) -> list[Item]:
        before = set(self.known)
        items: list[Item] = []
        for var, value, element in step.reads:
            buffer, index = self._cell(value)
            items.append(_let(var, BufferLoad(buffer, (index + element,)).astype(var.dtype)))
            self.known.add(var)
        for size in (step.condition, *step.values):
            self._require_known(size, "a check")
        message = call_error(step.kind, step.message, *[widened(value) for value in step.values])
        items.append(lambda rest: AssertStmt(widened(step.condition), message, rest))
        self.known = before
        return items

    def _branch(self, step: Branch) -> Stmt:
        def side(body: Body) -> Stmt:
            items = self._steps(body.steps)
            for value, result in zip(step.results, body.results, strict=True):
                items += self._copy(value, result)
            return _run(items)

        before = set(self.known)
        condition = self._load(step.condition)
        then = side(step.then)
        self.known = set(before)
        otherwise = side(step.otherwise)
        self.known = before
        return IfThenElse(condition, then, otherwise)

    def _repeat(self, step: Repeat) -> list[Item]:
        plan = self.plan.liveness.repeats[step]
        before = set(self.known)
        items: list[Item] = []
        for carried in step.carried:
            items += self._copy(carried.inside, carried.initial)
        if plan.condition is not None and step.condition is not None:
            items += self._copy(plan.condition, step.condition)
        count = None
        if isinstance(step.count, Value):
            count = Var("count", _WIDE)
            items.append(_let(count, self._load(step.count).astype(_WIDE)))
        turn = Var("turn", _WIDE)
        self.turns[step] = turn
        body = _run(self._turn(step, turn))
        limit: Expr | None = count if count is not None else None if step.count is None else _size(step.count)  # type: ignore[arg-type]
        if plan.condition is None and limit is not None:
            items.append(For(turn, _wide(0), limit, ForKind.SERIAL, body))
        else:
            items += self._while(step, turn, limit, body, plan.condition)
        self.known = before
        return items

    def _while(self, step: Repeat, turn: Var, limit: Expr | None, body: Stmt, condition: Value | None) -> list[Item]:
        """A loop that ends by what the body computes: the turn is counted in memory."""
        counter = Buffer(pointer("counter", _WIDE), _WIDE, (1,), name="counter")
        now = BufferLoad(counter, (_wide(0),))
        goes_on: Expr = const(True)
        if condition is not None:
            goes_on = self._load(condition)
        if limit is not None:
            goes_on = And(goes_on, now < limit)
        advance = BufferStore(counter, turn + 1, (_wide(0),))
        loop = While(goes_on, LetStmt(turn, now, SeqStmt((body, advance))))
        counted = SeqStmt((BufferStore(counter, _wide(0), (_wide(0),)), loop))
        return [Allocate(counter.data, DataType(_WIDE), (_wide(1),), const(True), counted)]

    def _turn(self, step: Repeat, turn: Var) -> list[Item]:
        plan = self.plan.liveness.repeats[step]
        items: list[Item] = []
        for cut in (*step.scanned, *step.collected):
            length = cut.whole.shape[0]
            if not (isinstance(length, int) and step.count == length):
                fine = turn < _size(length)
                message = StringImm(f"the loop runs longer than {cut.whole.name}, which has {length} slices")
                items.append(lambda rest, fine=fine, text=message: AssertStmt(fine, text, rest))  # type: ignore[misc]
        if step.index is not None:
            buffer, index = self._cell(step.index)
            items.append(BufferStore(buffer, turn.astype(step.index.dtype), (index,)))
        items += self._steps(step.body.steps)
        for cut in step.collected:
            home = self.plan.home(cut.part)
            if home.cut is None or home.cut[1] is not cut:
                items += self._copy_to(self._slice_place(step, cut), cut.part)
        for carried, spare in plan.spare.items():
            items += self._copy(spare, carried.next)
        for carried in step.carried:
            items += self._copy(carried.inside, plan.spare.get(carried, carried.next))
        if plan.condition is not None and step.next_condition is not None:
            items += self._copy(plan.condition, step.next_condition)
        return items

    # --- the clock ------------------------------------------------------------------------------------------------

    def _tick(self, at: int) -> list[Item]:
        where = address_of(BufferLoad(self.clock, (_wide(at),)))
        return [Evaluate(call_extern("int32", "clock_gettime", const(_CLOCK, "int32"), where))]

    def _note(self, number: int) -> list[Item]:
        seconds, nanoseconds = (self._read(k + 2) - self._read(k) for k in (0, 1))
        took = seconds * _wide(1_000_000_000) + nanoseconds
        return [_add(self.times, number, took), _add(self.calls, number, _wide(1))]

    def _read(self, at: int) -> Expr:
        return BufferLoad(self.clock, (_wide(at),))


def _argument(value: Value, used: set[str]) -> Buffer:
    name, count = value.name, 1
    while name in used:
        name, count = f"{value.name}_{count}", count + 1
    used.add(name)
    return Buffer(pointer(name, value.dtype), value.dtype, value.shape, name=name)


def _run(items: Sequence[Item]) -> Stmt:
    """The items as one statement: what goes around the rest is put around it."""
    parts: list[Stmt] = []
    for item in reversed(items):
        if isinstance(item, Stmt):
            parts.append(item)
        else:
            parts = [item(_sequence(parts[::-1]))]
    return _sequence(parts[::-1])


def _sequence(parts: Sequence[Stmt]) -> Stmt:
    if not parts:
        return Evaluate(const(0))
    return parts[0] if len(parts) == 1 else SeqStmt(tuple(parts))


def _let(var: Var, value: Expr) -> Item:
    return lambda rest: LetStmt(var, value, rest)


def _add(buffer: Buffer, at: int, value: Expr) -> Stmt:
    index = _wide(at)
    return BufferStore(buffer, BufferLoad(buffer, (index,)) + value, (index,))


def _wide(value: int) -> IntImm:
    result = const(value, _WIDE)
    assert isinstance(result, IntImm)
    return result


def _as_expr(value: int | Expr) -> Expr:
    return _wide(value) if isinstance(value, int) else value


def _size(extent: int | Expr) -> Expr:
    return _wide(extent) if isinstance(extent, int) else in_64_bits(extent)


def _is_converted_var(size: Expr, dtype: DataType) -> bool:
    """Whether the size is a variable of the type, as an int64."""
    return isinstance(size, Cast) and isinstance(size.value, Var) and size.value.dtype is dtype


def _round_up(size: Expr) -> Expr:
    return (size + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT


def _divided(distance: Expr, by: int) -> Expr:
    """A distance in bytes, in elements."""
    return _wide(distance.value // by) if isinstance(distance, IntImm) else distance // by
