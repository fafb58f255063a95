"""liveness: which values of a program share memory by nature, where each lives, and from when to when.

Steps are numbered in the order they stand; a loop has a number where it begins and one where it ends. What a loop reads
from outside lives until the loop ends, since the next turn reads it again. Values that are one memory (a view and what
it views, the carried value of a loop and its result, the result of a branch and what either side leaves) form a `Home`.
Then homes are joined where that saves a copy or a buffer:

    relu(h) -> y                    y takes the memory of h, which nobody reads later     (`may_overwrite`)
    a loop's initial value          becomes the carried value, if nobody reads it later
    a turn's new carried value      is written where the old one was, if that was read before
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from loopwright.ir import Expr, Var, variables_in
from loopwright.model.program import (
    Bind,
    Body,
    Branch,
    Carried,
    Copy,
    Launch,
    Program,
    Repeat,
    Require,
    Slice,
    Step,
    Value,
    View,
    walk,
)

Kind = Literal["input", "output", "constant", "arena", "slice"]
InPlace = Mapping[Launch, frozenset[tuple[int, int]]]  # which pairs of `may_overwrite` the kernel, as scheduled, allows


@dataclass(eq=False)
class Home:
    """One memory: of an input, an output, a constant, a slice of another home, or somewhere in the arena."""

    kind: Kind
    nbytes: int | Expr
    position: int = -1  # of the input or output
    first: int = -1
    last: int = -1
    whole: Home | None = None  # of a slice
    cut: tuple[Repeat, Slice] | None = None
    bind: Bind | None = None  # after which alone its size is known
    values: list[Value] = field(default_factory=list)
    joined: Home | None = None  # the one that took it over

    def root(self) -> Home:
        home = self
        while home.joined is not None:
            home = home.joined
        return home


@dataclass(eq=False)
class _Loop:
    """A loop while the walk is inside it."""

    begin: int
    seen_from_outside: list[Home] = field(default_factory=list)


@dataclass(eq=False)
class RepeatPlan:
    """What a loop needs beside its body: the cell of its condition, and room for values that trade places."""

    condition: Value | None = None
    turn: Value | None = None
    spare: dict[Carried, Value] = field(default_factory=dict)


class Liveness:
    """Every home of a program. `copies` and the like are questions that the maker of the main function asks."""

    def __init__(self, program: Program, in_place: InPlace, reuse: bool = True) -> None:
        """Without `reuse` nothing is joined, and everything lives to the end: for looking at intermediate values."""
        self.program = program
        self.reuse = reuse
        self.homes: dict[Value, Home] = {}
        self.repeats: dict[Repeat, RepeatPlan] = {}
        self.times: dict[Step, int] = {}
        self.ends: dict[Repeat, int] = {}
        self.output_copies: list[tuple[int, Value]] = []
        self._time = 0
        self._loops: list[_Loop] = []
        self._wanted: dict[Value, Home] = {}  # the home that a value is to be written to by whoever makes it
        self._binds: dict[Var, Bind] = {}
        self._bind_order: dict[Bind, int] = {}
        self._made_in = _makers(program.body)
        self._origins = _origins(program.body)
        self._last_inside: dict[tuple[Repeat, int], int] = {}
        self._walk_program()
        if reuse:
            self._join(in_place)
        else:
            for home in set(self.homes.values()):
                home.first, home.last = 0, self._time

    def home(self, value: Value) -> Home:
        """Where the value lives."""
        return self.homes[value].root()

    def arena(self) -> list[Home]:
        """The homes that need a place in the arena, in order of first use."""
        result = {home.root(): None for home in self.homes.values() if home.root().kind == "arena"}
        return sorted(result, key=lambda home: (home.first, home.last))

    # --- the walk -------------------------------------------------------------------------------------------------

    def _walk_program(self) -> None:
        for position, value in enumerate(self.program.inputs):
            self._settle(value, Home("input", value.nbytes, position))
        for value in self.program.constants:
            self._settle(value, Home("constant", value.nbytes))
        for position, value in enumerate(self.program.outputs):
            origin = self._origin(value, self.program.body)
            if origin is None or origin in self._wanted:
                self.output_copies.append((position, value))
            else:
                self._wanted[origin] = Home("output", value.nbytes, position)
        self._walk(self.program.body)
        self._time += 1
        for value in self.program.outputs:
            self._use(value)

    def _walk(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self._time += 1
            self.times[step] = self._time
            match step:
                case Launch():
                    for value in step.inputs:
                        self._use(value)
                    if step.keeps is not None:
                        self._use(step.keeps)
                        self._same_home(step.written[0], step.keeps)
                    else:
                        for value in step.written:
                            self._make(value)
                case View():
                    self._same_home(step.value, step.of)
                case Copy():
                    self._use(step.of)
                    self._make(step.value)
                case Bind():
                    self._use(step.value)
                    self._binds[step.var] = step
                    self._bind_order[step] = self._time
                case Require():
                    for _, value, _ in step.reads:
                        self._use(value)
                case Branch():
                    self._branch(step)
                case Repeat():
                    self._repeat(step)

    def _branch(self, step: Branch) -> None:
        self._use(step.condition)
        for position, value in enumerate(step.results):
            home = self._wanted.get(value) or Home("arena", value.nbytes)
            self._settle(value, home)
            for body in (step.then, step.otherwise):
                self._want(body.results[position], body, home)
        for body in (step.then, step.otherwise):
            self._walk(body.steps)
            self._time += 1
            for value, result in zip(step.results, body.results, strict=True):
                self._use(result)
                self._touch(self.homes[value])

    def _repeat(self, step: Repeat) -> None:
        for value in (step.count, step.condition, *[carried.initial for carried in step.carried]):
            if isinstance(value, Value):
                self._use(value)
        for cut in step.scanned:
            self._use(cut.whole)
        plan = self.repeats[step] = RepeatPlan()
        loop = _Loop(self._time)
        for carried in step.carried:
            home = self._wanted.get(carried.result) or Home("arena", carried.inside.nbytes)
            self._settle(carried.inside, home)
            self._settle(carried.result, home)
        if step.condition is not None:
            plan.condition = step.inside_condition or Value("condition", (), "bool")
            self._settle(plan.condition, Home("arena", plan.condition.nbytes))
        if step.index is not None:
            self._settle(step.index, Home("arena", step.index.nbytes))
        for cut in step.scanned:
            self._settle(cut.part, self._slice(step, cut))
        for cut in step.collected:
            self._settle(cut.whole, self._wanted.get(cut.whole) or Home("arena", cut.whole.nbytes))
            self._want(cut.part, step.body, self._slice(step, cut))
        self._loops.append(loop)
        for cut in step.scanned:
            self._use(cut.part)  # in every turn
        self._walk(step.body.steps)
        self._time += 1
        insides = {self.homes[carried.inside]: carried for carried in step.carried}
        for carried in step.carried:
            self._use(carried.next)
            other = insides.get(self.homes[carried.next])
            if other is not None and other is not carried:  # it is overwritten by its own new value meanwhile
                new = carried.next
                spare = plan.spare[carried] = Value(f"{carried.inside.name}_next", new.shape, new.dtype)
                self._settle(spare, Home("arena", spare.nbytes))
        if step.condition is not None and step.next_condition is not None:
            self._use(step.next_condition)
        for cut in step.collected:
            self._use(cut.part)
        for position, carried in enumerate(step.carried):
            self._last_inside[step, position] = self.homes[carried.inside].last
        self._loops.pop()
        end = self.ends[step] = self._time
        kept = [value for carried in step.carried for value in (carried.inside,)]
        kept += [value for value in (plan.condition, step.index) if value is not None]
        kept += [cut.whole for cut in step.collected]
        for home in (*loop.seen_from_outside, *[self.homes[value] for value in kept]):
            home.last = max(home.last, end)
            if self._loops and home.first < self._loops[-1].begin:
                self._loops[-1].seen_from_outside.append(home)

    def _slice(self, step: Repeat, cut: Slice) -> Home:
        return Home("slice", cut.part.nbytes, whole=self.homes[cut.whole], cut=(step, cut))

    def _settle(self, value: Value, home: Home) -> None:
        if home.first < 0:
            home.first = home.last = self._time
        home.bind = self._later(home.bind, self._bind_of(value))
        home.values.append(value)
        self.homes[value] = home

    def _same_home(self, value: Value, of: Value) -> None:
        home = self.homes[of]
        home.values.append(value)
        self.homes[value] = home

    def _make(self, value: Value) -> None:
        self._settle(value, self._wanted.get(value) or Home("arena", value.nbytes))
        self._touch(self.homes[value])

    def _use(self, value: Value) -> None:
        self._touch(self.homes[value])

    def _touch(self, home: Home) -> None:
        home.last = max(home.last, self._time)
        for loop in self._loops:
            if home.first < loop.begin:
                loop.seen_from_outside.append(home)
                break
        if home.whole is not None:
            self._touch(home.whole)

    def _want(self, value: Value, body: Body, home: Home) -> None:
        """Have `value` written to `home` by the step of `body` that makes it, where there is such a step."""
        origin = self._origin(value, body.steps)
        if origin is not None and origin not in self._wanted:
            self._wanted[origin] = home

    def _origin(self, value: Value, steps: Sequence[Step]) -> Value | None:
        """The value that a step of this very body makes, of which `value` is at most a view; None if it is another."""
        while value in self._origins:
            value = self._origins[value]
        return value if self._made_in.get(value) is steps else None

    def _bind_of(self, value: Value) -> Bind | None:
        result: Bind | None = None
        for extent in value.shape:
            if isinstance(extent, Expr):
                for var in variables(extent):
                    result = self._later(result, self._binds.get(var))
        return result

    def _later(self, one: Bind | None, other: Bind | None) -> Bind | None:
        if one is None or other is None:
            return one or other
        return one if self._bind_order[one] >= self._bind_order[other] else other

    # --- joining --------------------------------------------------------------------------------------------------

    def _join(self, in_place: InPlace) -> None:
        for step, time in sorted(self.times.items(), key=lambda item: item[1]):
            if isinstance(step, Launch):
                self._join_in_place(step, time, in_place.get(step, frozenset()))
            elif isinstance(step, Repeat):
                for carried in step.carried:
                    self._join_initial(carried, time)
        for step in [step for step in self.times if isinstance(step, Repeat)]:
            for position, carried in enumerate(step.carried):
                self._join_next(step, position, carried, in_place)

    def _join_in_place(self, step: Launch, time: int, allowed: frozenset[tuple[int, int]]) -> None:
        used: set[Home] = set()
        for i, o in sorted(allowed):
            source, target = step.inputs[i], step.written[o]
            old, new = self.home(source), self.home(target)
            if old is new or old in used or new in used or not self._same_bytes(source, target):
                continue
            readers = [k for k, value in enumerate(step.inputs) if self.home(value) is old]
            if old.kind == "arena" and old.last == time and new.first == time and old.bind is new.bind:
                if new.kind in ("arena", "output") and all((k, o) in allowed for k in readers):
                    used.add(self._merge(old, new))

    def _join_initial(self, carried: Carried, time: int) -> None:
        old, new = self.home(carried.initial), self.home(carried.inside)
        if old is not new and old.kind == "arena" and old.last == time and new.first == time and old.bind is new.bind:
            self._merge(old, new)

    def _join_next(self, step: Repeat, position: int, carried: Carried, in_place: InPlace) -> None:
        old, new = self.home(carried.inside), self.home(carried.next)
        if old is new or new.kind != "arena" or old.bind is not new.bind or carried in self.repeats[step].spare:
            return
        if self._origin(carried.next, step.body.steps) is None or new.last != self.ends[step]:
            return
        last_read = self._last_inside[step, position]
        if last_read > new.first or (last_read == new.first and not self._allows(new, old, new.first, in_place)):
            return
        if new.first > self.times[step]:
            self._merge(new, old)

    def _allows(self, target: Home, source: Home, time: int, in_place: InPlace) -> bool:
        """Whether the kernel at that time may write `target` over `source`."""
        step = next((step for step, at in self.times.items() if at == time), None)
        if not isinstance(step, Launch):
            return False
        allowed = in_place.get(step, frozenset())
        inputs = [k for k, value in enumerate(step.inputs) if self.home(value) is source]
        outputs = [k for k, value in enumerate(step.written) if self.home(value) is target]
        return all((i, o) in allowed for i in inputs for o in outputs)

    def _same_bytes(self, one: Value, other: Value) -> bool:
        return one.item_bytes == other.item_bytes and size_key(one) == size_key(other)

    def _merge(self, gone: Home, kept: Home) -> Home:
        kept.first, kept.last = min(gone.first, kept.first), max(gone.last, kept.last)
        kept.values += gone.values
        gone.joined = kept
        return kept


def variables(extent: Expr) -> list[Var]:
    """The variables of a length, each once."""
    return variables_in(extent)


def size_key(value: Value) -> tuple[int, tuple[tuple[str, tuple[Var, ...]], ...]]:
    """The bytes of a value as a number and the lengths it is multiplied with, in an order that does not matter."""
    known, rest = value.item_bytes, []
    for extent in value.shape:
        if isinstance(extent, int):
            known *= extent
        else:
            rest.append((str(extent), tuple(variables(extent))))
    return known, tuple(sorted(rest, key=lambda item: (item[0], [id(var) for var in item[1]])))


def _makers(steps: Sequence[Step]) -> dict[Value, Sequence[Step]]:
    """The body in which each value is made by a step that writes memory."""
    result: dict[Value, Sequence[Step]] = {}
    for step in steps:
        match step:
            case Launch():
                result.update(dict.fromkeys(step.written, steps))
            case Copy():
                result[step.value] = steps
            case Branch():
                result.update(dict.fromkeys(step.results, steps))
                result.update(_makers(step.then.steps) | _makers(step.otherwise.steps))
            case Repeat():
                result.update({carried.result: steps for carried in step.carried})
                result.update({cut.whole: steps for cut in step.collected})
                result.update(_makers(step.body.steps))
    return result


def _origins(steps: Sequence[Step]) -> dict[Value, Value]:
    """What each view is a view of."""
    return {step.value: step.of for step in walk(steps) if isinstance(step, View)}
