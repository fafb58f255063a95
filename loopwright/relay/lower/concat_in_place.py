"""joined_parts: the inputs of a concatenation, written where they belong from the start, so that nothing is copied.

    a = conv(x)               a, b are parts of c: their kernels write into the memory of c,
    b = pool(x)          →    in which their lines are as far apart as those of c
    c = concat(a, b)          (no step)

Concatenations of concatenations become one. What is a part of two wholes, an input of the model, or would not start
where kernels expect memory to start, is copied into its place as before. A whole lives from its first part on: where
that would take much more memory, everything is left as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from loopwright import te
from loopwright.ir import PrimFunc, decl_buffer, substitute
from loopwright.model.arena_packing import ALIGNMENT, Block, lower_bound
from loopwright.model.liveness import Liveness
from loopwright.model.program import (
    Bind,
    Branch,
    Copy,
    Launch,
    Part,
    Program,
    Repeat,
    Require,
    Step,
    Value,
    View,
    walk,
)
from loopwright.relay.expr import Call, Function, Tuple

MORE_MEMORY: Final = 1.1  # how much larger the arena may become


class _Place(NamedTuple):
    """Where a value lies: it begins `start` places into `whole`."""

    whole: Value
    axis: int
    start: int


def concat_in_place(program: Program) -> Program:
    """The program without those of its concatenations that need no code."""
    functions: Mapping[Launch, Function] = program.attrs.get("functions", {})  # type: ignore[assignment]
    locations: dict[Value, _Place] = {}
    joins = _place(program, _joins(program, functions), locations)
    if not joins:
        return program
    joined = _Rewriter(program, locations, functions).rewritten(_without_joins(program, joins, locations))
    before, after = _least_memory(program), _least_memory(joined)
    return joined if after <= MORE_MEMORY * before else program


def _joins(program: Program, functions: Mapping[Launch, Function]) -> dict[Launch, int]:
    """The steps that do nothing but concatenate, and along which axis."""
    result: dict[Launch, int] = {}
    outputs = set(program.outputs)
    for step in program.body:
        function = functions.get(step) if isinstance(step, Launch) else None
        if not isinstance(step, Launch) or function is None or not isinstance(function.body, Call):
            continue
        call = function.body
        given = call.args[0] if len(call.args) == 1 else None
        plain = given.fields if isinstance(given, Tuple) else [given]
        if getattr(call.attrs, "op_name", "") != "concatenate" or list(plain) != list(function.params):
            continue
        if all(value.is_static for value in step.arguments) and step.written[0] not in outputs:
            result[step] = call.attrs.axis % len(step.written[0].shape)
    return result


def _place(program: Program, joins: Mapping[Launch, int], locations: dict[Value, _Place]) -> dict[Launch, int]:
    """Find out which values become parts, and where they lie (of a part of a part, in the whole).

    Returns the concatenations that have such parts; the others stay steps, whatever else becomes of their inputs.
    """
    movable = _movable(program)
    parted: dict[Launch, int] = {}
    for step, axis in reversed(list(joins.items())):
        (result,) = step.written
        whole, along, start = locations.get(result, _Place(result, axis, 0))
        if along != axis:
            continue
        counts = Counter(step.inputs)
        for value in step.inputs:
            if value in movable and counts[value] == 1 and value not in locations and _is_aligned(whole, axis, start):
                locations[value] = _Place(whole, axis, start)
                parted[step] = axis
            start += _length(value, axis)
    return parted


def _length(value: Value, axis: int) -> int:
    length = value.shape[axis]
    assert isinstance(length, int)  # only such values are joined
    return length


def _is_aligned(whole: Value, axis: int, start: int) -> bool:
    return Part(axis, start, 0).offset(whole) % ALIGNMENT == 0


def _movable(program: Program) -> set[Value]:
    """The values that a kernel makes as its only result, and that nothing but kernels beside it read."""
    result = {step.written[0] for step in program.body if isinstance(step, Launch) and step.outputs == 1}
    inside = set(walk(program.body)) - set(program.body)
    for step in walk(program.body):
        if not isinstance(step, Launch) or step in inside:
            result.difference_update(_values(step))
    return result - set(program.outputs)


def _values(step: Step) -> Iterator[Value | None]:
    """The values that a step names itself."""
    match step:
        case Launch():
            yield from step.arguments
        case View() | Copy():
            yield from (step.value, step.of)
        case Bind():
            yield step.value
        case Require():
            yield from (value for _, value, _ in step.reads)
        case Branch():
            yield from (step.condition, *step.results, *step.then.results, *step.otherwise.results)
        case Repeat():
            yield from (step.condition, step.next_condition, step.inside_condition, step.index)
            yield step.count if isinstance(step.count, Value) else None
            for carried in step.carried:
                yield from (carried.initial, carried.inside, carried.next, carried.result)
            for cut in (*step.scanned, *step.collected):
                yield from (cut.whole, cut.part)
            yield from step.body.results


def _without_joins(program: Program, joins: Mapping[Launch, int], locations: dict[Value, _Place]) -> list[Step]:
    """The steps, with a copy for each input of a concatenation that is no part of it; the copy is one."""
    steps: list[Step] = []
    for step in program.body:
        if not isinstance(step, Launch) or step not in joins:
            steps.append(step)
            continue
        axis = joins[step]
        whole, _, start = locations.get(step.written[0], _Place(step.written[0], axis, 0))
        for value in step.inputs:
            own = _Place(whole, axis, start)
            if locations.get(value) != own:
                copy = Value(f"{value.name}_in_{whole.name}", value.shape, value.dtype)
                locations[copy] = own
                steps.append(Launch(_copying(value), (value, copy), name=step.name))
            start += _length(value, axis)
    return steps


class _Rewriter:
    """The steps with parts in place of values. What a whole is after each of its parts has a value of its own."""

    def __init__(self, program: Program, indices: Mapping[Value, _Place], functions: Mapping[Launch, Function]) -> None:
        self.program, self.places = program, indices
        self.functions = dict(functions)
        self.now: dict[Value, Value] = {}  # what a whole is called at this step
        self.missing: Counter[Value] = Counter()  # parts of a whole that are not written yet
        self.funcs: dict[tuple[object, ...], PrimFunc] = {}

    def rewritten(self, steps: Sequence[Step]) -> Program:
        written = [value for step in steps if isinstance(step, Launch) for value in step.written]
        self.missing.update(self.places[value].whole for value in written if value in self.places)
        body = [self._launch(step) if isinstance(step, Launch) else step for step in steps]
        program, attrs = self.program, {**self.program.attrs, "functions": self.functions}
        return Program(program.name, program.inputs, program.outputs, program.constants, body, attrs)

    def _launch(self, step: Launch) -> Launch:
        if not any(value in self.places for value in step.arguments):
            return step
        arguments: list[Value] = []
        parts: list[Part | None] = []
        keeps = None
        for value in step.arguments:
            location = self.places.get(value)
            if location is None:
                arguments.append(value)
                parts.append(None)
                continue
            if value in step.written:
                keeps = self.now.get(location.whole)
                self.now[location.whole] = self._next(location.whole)
            arguments.append(self.now[location.whole])
            parts.append(Part(location.axis, location.start, _length(value, location.axis)))
        func = self._func(step.func, {k: arguments[k] for k, part in enumerate(parts) if part is not None})
        result = replace(step, func=func, arguments=tuple(arguments), may_overwrite=(), parts=tuple(parts), keeps=keeps)
        if step in self.functions:
            self.functions[result] = self.functions.pop(step)
        return result

    def _next(self, whole: Value) -> Value:
        """What a whole is after one more of its parts; after the last it is itself."""
        self.missing[whole] -= 1
        left = self.missing[whole]
        return Value(f"{whole.name}_{left}_missing", whole.shape, whole.dtype) if left else whole

    def _func(self, func: PrimFunc, wholes: Mapping[int, Value]) -> PrimFunc:
        """The kernel with larger buffers, of which it uses the beginning of each line."""
        key = (func, *[(k, whole.shape) for k, whole in wholes.items()])
        result = self.funcs.get(key)
        if result is None:
            buffers = [param for param in func.params if param in func.buffer_map]
            changed = {}
            for k, whole in wholes.items():
                old = func.buffer_map[buffers[k]]
                changed[old] = decl_buffer(whole.shape, old.dtype, old.name)
            mapping = {param: changed.get(buffer, buffer) for param, buffer in func.buffer_map.items()}
            result = func.with_(body=substitute(func.body, {}, changed), buffer_map=mapping)
            self.funcs[key] = result
        return result


def _copying(value: Value) -> PrimFunc:
    source = te.placeholder(value.shape, value.dtype, name="part")
    return te.create_prim_func([source, te.compute(value.shape, lambda *at: source(*at), name="placed")])


def _least_memory(program: Program) -> int:
    """The most bytes that are alive at one moment, before kernels say what they may overwrite."""
    homes = Liveness(program, {}).arena()
    return lower_bound([Block(home.nbytes, home.first, home.last) for home in homes if isinstance(home.nbytes, int)])
