"""Plans of random programs, run on a model of memory: whoever reads a value finds what was last written as that value.

No kernel is compiled. Memory is an array of tags, one for every 64 bytes; a write puts a fresh tag, a read wants to see
the tag of the value's last write, everywhere.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from loopwright.ir import PrimFunc
from loopwright.model import (
    Body,
    Branch,
    Carried,
    Copy,
    Launch,
    Program,
    Repeat,
    Slice,
    Value,
    View,
    plan_memory,
)
from loopwright.model.check import check_program
from loopwright.model.liveness import Home
from tests.model.steps import float_value, relu

LINE = 64


class Memory:
    def __init__(self, plan):
        self.plan = plan
        self.arena = np.full(plan.peak // LINE, -1)
        self.others: dict[tuple, np.ndarray] = {}
        self.clock = 0
        self.turn = {}

    def cells(self, home: Home):
        lines = max(1, -(-home.nbytes // LINE))
        if home.kind == "arena":
            start = self.plan.offsets[home] // LINE
            return self.arena[start : start + lines]
        if home.kind == "slice":
            repeat, cut = home.cut
            whole = self.cells(self.plan.home(cut.whole))
            count = cut.whole.shape[0]
            k = self.turn[repeat]
            k = count - 1 - k if cut.backwards else k
            each = len(whole) // count
            return whole[k * each : (k + 1) * each]
        key = (home.kind, home.position, id(home) if home.kind == "constant" else 0)
        return self.others.setdefault(key, np.full(lines, -1))


class Machine:
    """Runs a program: a value's content is a number that says how it came about."""

    def __init__(self, program, plan, in_place):
        self.memory, self.plan, self.program, self.in_place = Memory(plan), plan, program, in_place
        self.content = {}  # number → what it stands for; equal histories are equal numbers

    def number(self, *history):
        return self.content.setdefault(history, len(self.content))

    def read(self, value):
        cells = self.memory.cells(self.plan.home(value))
        assert (cells == cells[0]).all(), f"{value.name} was overwritten in part"
        return int(cells[0])

    def write(self, value, number):
        self.memory.cells(self.plan.home(value))[:] = number

    def run(self, env):
        """`env`: what the program means, value by value, without any memory."""
        for position, value in enumerate(self.program.inputs):
            env[value] = self.number("input", position)
            self.write(value, env[value])
        for value in self.program.constants:
            env[value] = self.number("constant", value.name)
            self.write(value, env[value])
        self.steps(self.program.body, env)
        for position, value in self.plan.liveness.output_copies:
            self.memory.others[("output", position, 0)] = np.full(1, self.check(value, env))
        for position, value in enumerate(self.program.outputs):
            found = self.memory.others[("output", position, 0)]
            assert (found == env[value]).all(), f"the output {value.name} is wrong"

    def check(self, value, env):
        assert self.read(value) == env[value], f"{value.name} was overwritten"
        return env[value]

    def copy(self, target, source, env):
        if self.plan.home(target) is not self.plan.home(source):
            self.write(target, self.read(source))

    def steps(self, steps, env):
        for step in steps:
            match step:
                case Launch():
                    read = [self.check(value, env) for value in step.inputs]
                    for k, value in enumerate(step.written):
                        env[value] = self.number(step.name, k, *read)
                        self.write(value, env[value])
                case View():
                    env[step.value] = env[step.of]
                case Copy():
                    env[step.value] = self.check(step.of, env)
                    self.copy(step.value, step.of, env)
                case Branch():
                    self.check(step.condition, env)
                    body = step.then if env[step.condition] % 2 else step.otherwise
                    self.steps(body.steps, env)
                    for value, result in zip(step.results, body.results):
                        env[value] = self.check(result, env)
                        self.copy(value, result, env)
                case Repeat():
                    self.repeat(step, env)

    def repeat(self, step, env):
        plan = self.plan.liveness.repeats[step]
        for carried in step.carried:
            env[carried.inside] = self.check(carried.initial, env)
            self.copy(carried.inside, carried.initial, env)
        whole = {cut: np.full(cut.whole.shape[0], -1) for cut in step.collected}
        for turn in range(step.count):
            self.memory.turn[step] = turn
            for cut in step.scanned:
                env[cut.part] = env[cut.whole]
                self.check(cut.part, env)
            self.steps(step.body.steps, env)
            for cut in step.collected:
                place = Home("slice", cut.part.nbytes, whole=self.plan.home(cut.whole), cut=(step, cut))
                self.memory.cells(place)[:] = self.check(cut.part, env)
                whole[cut][step.count - 1 - turn if cut.backwards else turn] = env[cut.part]
            following = [self.check(carried.next, env) for carried in step.carried]
            for carried, spare in plan.spare.items():
                self.copy(spare, carried.next, env)
            for carried in step.carried:
                self.copy(carried.inside, plan.spare.get(carried, carried.next), env)
            for carried, number in zip(step.carried, following):
                env[carried.inside] = number
        for carried in step.carried:
            env[carried.result] = env[carried.inside]
            self.check(carried.result, env)
        for cut in step.collected:
            # From here on the whole is one value.
            cells = self.memory.cells(self.plan.home(cut.whole))
            assert (cells.reshape(step.count, -1) == whole[cut][:, None]).all(), "a slice was overwritten"
            env[cut.whole] = self.number("collected", *whole[cut])
            cells[:] = env[cut.whole]


class Maker:
    """Random programs."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.count = 0
        self.func = relu((16,))

    def value(self, lines):
        self.count += 1
        return float_value(f"v{self.count}", 16 * lines)

    def pick(self, known, lines=None):
        fitting = [v for v in known if len(v.shape) == 1 and (lines is None or v.shape == (16 * lines,))]
        return self.random.choice(fitting) if fitting else None

    def steps(self, known, length, depth):
        made = []
        for _ in range(length):
            kind = self.random.choices(("launch", "view", "copy", "branch", "repeat"), (12, 2, 1, depth, depth))[0]
            recent = known[-6:] if self.random.random() < 0.8 else known
            source = self.pick(recent) or self.pick(known)
            lines = source.shape[0] // 16
            if kind == "launch":
                inputs = [source, *[self.pick(recent) or source for _ in range(self.random.randint(0, 2))]]
                sizes = self.random.choices((lines, lines, 1, 2, 3, 8), k=self.random.randint(1, 2))
                outputs = [self.value(size) for size in sizes]
                pairs = [
                    (i, o)
                    for i, x in enumerate(inputs)
                    for o, y in enumerate(outputs)
                    if x.shape == y.shape and self.random.random() < 0.7
                ]
                step = Launch(self.func, (*inputs, *outputs), len(outputs), tuple(pairs), f"k{len(known)}")
                known += outputs
            elif kind in ("view", "copy"):
                target = self.value(lines)
                step = (View if kind == "view" else Copy)(target, source)
                known.append(target)
            elif kind == "branch":
                sizes = [self.random.choice((1, 2, 3)) for _ in range(self.random.randint(1, 2))]
                step = self.branch(known, source, sizes, depth)
                if step is None:
                    continue
                known += step.results
            else:
                step = self.repeat(known, depth)
                known += [carried.result for carried in step.carried]
                known += [cut.whole for cut in step.collected]
            made.append(step)
        return tuple(made)

    def branch(self, known, condition, sizes, depth):
        sides = []
        for _ in range(2):
            inner = list(known)
            steps = self.steps(inner, self.random.randint(0, 4), depth - 1)
            results = [self.pick(inner[-8:], lines) or self.pick(inner, lines) for lines in sizes]
            if None in results:
                return None
            sides.append(Body(steps, tuple(results)))
        return Branch(condition, *sides, tuple(self.value(lines) for lines in sizes))

    def repeat(self, known, depth):
        initials = [self.pick(known) for _ in range(self.random.randint(0, 3))]
        insides = [float_value(f"in{self.count}_{k}", *v.shape) for k, v in enumerate(initials)]
        count = self.random.randint(0, 3)
        scanned = [
            Slice(v, float_value(f"part of {v.name}", *v.shape[1:]), self.random.random() < 0.3)
            for v in known
            if len(v.shape) == 2 and v.shape[0] == count
        ][:1]
        scanned = [Slice(c.whole, self.value(c.part.shape[0] // 16), c.backwards) for c in scanned]
        inner = [*known, *insides, *[cut.part for cut in scanned]]
        steps = self.steps(inner, self.random.randint(0, 5), depth - 1)
        following = [self.pick(inner[-6:], v.shape[0] // 16) or v for v in insides]
        carried = tuple(
            Carried(initial, inside, new, self.value(inside.shape[0] // 16))
            for initial, inside, new in zip(initials, insides, following)
        )
        collected = []
        if count and self.random.random() < 0.5:
            part = self.pick(inner[-4:]) or self.pick(inner)
            whole = Value(f"all{self.count}", (count, *part.shape), "float32")
            collected.append(Slice(whole, part, self.random.random() < 0.3))
            self.count += 1
        # A value of two axes is no argument of these kernels: later loops take its slices.
        return Repeat(Body(steps), count=count, carried=carried, scanned=tuple(scanned), collected=tuple(collected))


def random_program(seed):
    maker = Maker(seed)
    inputs = [maker.value(lines) for lines in (1, 2, 3, 8)]
    constants = {maker.value(1): np.zeros(16), maker.value(2): np.ones(32)}
    known = [*inputs, *constants]
    body = maker.steps(known, maker.random.randint(1, 30), 2)
    flat = [v for v in known if len(v.shape) == 1]
    outputs = [maker.random.choice(flat[-6:]) for _ in range(maker.random.randint(1, 4))]
    return Program("random", inputs, outputs, constants, body)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("first", range(0, 240, 60))
def test_values_stay_as_long_as_they_are_read(first, monkeypatch):
    monkeypatch.setattr("loopwright.model.check._Check._launch", launch_of_any_shape)
    joined = 0
    for seed in range(first, first + 60):
        program = random_program(seed)
        check_program(program)
        in_place = {launch: frozenset(launch.may_overwrite) for launch in program.launches()}
        for reuse in (True, False):
            plan = plan_memory(program, in_place if reuse else None, reuse=reuse)
            assert plan.peak >= plan.lower_bound
            try:
                Machine(program, plan, in_place).run({})
            except AssertionError as error:
                error.add_note(f"seed {seed}, reuse {reuse}")
                raise
            joined += plan.in_place
    assert joined > 60  # it was about something


def launch_of_any_shape(check, step, seen):
    for value in step.inputs:
        check._read(value, "a kernel", seen)
    for value in step.written:
        check._make(value, "a kernel", seen)


def test_the_plan_says_how_large_it_is(capsys):
    x, h, y = (float_value(name, 16 * 100) for name in "xhy")
    func = relu((1600,))
    assert isinstance(func, PrimFunc)
    program = Program("net", [x], [y], {}, [Launch(func, (x, h)), Launch(func, (h, y))])
    plan = plan_memory(program)
    assert str(plan).startswith("memory plan of net: arena 6.25 KiB, equal to the lower bound 6.25 KiB")
    plan.show()
    assert "6,400" in capsys.readouterr().out
    assert "<svg" in plan._repr_html_()
    assert plan.rows() == [("h", 0, 6400, 1, 2)]
