"""Random programs whose loops are not boxes: triangles, negative extents, extents from data, skewed and strided axes.

    for i in range(3):
        for j in range(i - 1):                                   an extent that may be negative
            with T.block("B0"):
                v0 = T.axis.spatial(12, i + j)                    a skewed axis
                v1 = T.axis.reduce(12, j * 2)                     a strided one
                T.where(i + j < 3)                                a condition that ties the two
                with T.init():
                    B0[v0] = A1[v0]
                B0[v0] = B0[v0] + A0[v0, v1]

Half of them have lets (`lets.py`). Buffers are arguments, or are allocated outside of all loops or in the one that all
their uses are in. Everything is chosen at random, and what means nothing (reads outside of a buffer, or of cells that
hold nothing) is thrown away: only programs that run are scheduled.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from loopwright.runtime.errors import LoopwrightError
from loopwright.schedule import Schedule
from loopwright.script import from_source
from tests.random_programs import random_arguments
from tests.schedule.harness.bound_loops import with_threads
from tests.schedule.harness.legality import INPUTS, computed_from, numbers_of, terms_of
from tests.schedule.harness.lets import perhaps_with_lets
from tests.schedule.harness.programs import TEMPLATES, UPDATES, Program

_LETTERS = "ijkl"
_TRIES = 60  # of a seed, until a program runs

# Of a loop, in terms of the one around it (`o`) and of the sizes; the outermost loop takes those without `o`.
_EXTENTS = ("{n}", "{m}", "{n}", "{m}", "1", "{m} - 1")
_INNER_EXTENTS = (
    *_EXTENTS,
    "{o}",
    "{o} + 1",
    "{n} - {o}",
    "{o} - 1",
    "{o} - {m}",
    "T.min({o}, {m})",
    "T.max({n} - {o}, 0)",
    "({o} + 1) // 2",
    "T.min(N[{o}], {m})",
    "{n} - {o} - {o}",
)
_FIRST = ("0", "0", "0", "0", "1")
_INNER_FIRST = (*_FIRST, "0", "{o}", "{o} - 1")
_AXES = ("{a}", "{a}", "{a}", "{a}", "{a} + {b}", "{a} * 2", "{a} // 2", "{a} % 2", "{a} - {b} + {m}", "{m} - {a}", "0")
_CONDITIONS = (
    "{a} + {b} < {n}",
    "{b} >= {a}",
    "{a} % 2 == 0",
    "{b} >= 1",
    "{b} < {m} - 1",
    "{a} * {m} + {b} < {n} * {m} - 2",
    "N[{a}] > 0",
    "{b} >= {m}",
    "{a} != {b}",
)
_INDICES = ("{u}", "{u}", "{u}", "{u} + 1", "{u} // 2", "{u} - {w}", "{u} + {w}", "{m}", "0")
_VALUES = (
    "{x}",
    "{x} * 3 + {u}",
    "{x} - {y}",
    "T.max({x}, {y})",
    "T.if_then_else({u} < {w}, {x}, {y})",
    "{u} * 7 + {w}",
)


@dataclass(frozen=True)
class Axis:
    """An axis of a block: its kind and its value, of two loops around."""

    kind: str
    form: str
    loops: tuple[int, int]
    is_tight: bool = False  # its domain is `n`, and not all that a buffer has room for


@dataclass(frozen=True)
class Nest:
    """A block in its loops; `joined` stands in the outermost loop of the nest before."""

    extents: tuple[str, ...]
    firsts: tuple[str, ...]
    axes: tuple[Axis, ...]
    where: tuple[tuple[str, tuple[int, int]], ...]  # conditions, in terms of two loops each
    outside: bool  # whether the conditions are an `if` around the block
    target: int  # the number of the buffer it writes
    cell: tuple[str, ...]
    reads: tuple[tuple[str, tuple[str, ...]], ...]
    value: str
    start: str  # of a reduction
    update: int
    joined: bool

    def uses(self, buffer: int) -> bool:
        """Whether it reads or writes a buffer."""
        named = (f"B{self.target}", *[name for name, _ in self.reads], self.start.split("[")[0])
        return f"B{buffer}" in named


@dataclass(frozen=True)
class Ragged:
    """Some nests over buffers that are all equally long in every dimension."""

    seed: int
    nests: tuple[Nest, ...]
    ranks: tuple[int, ...]  # of the buffers that are written
    is_argument: tuple[bool, ...]
    is_inner: tuple[bool, ...]  # allocated in the loop around all that use it, where there is one
    rank: int = 2  # how many sizes it has

    @property
    def name(self) -> str:
        return f"ragged_{self.seed}"

    def smaller(self) -> Iterator[Ragged]:
        for position, nest in enumerate(self.nests):
            if len(self.nests) > 1:
                yield replace(self, nests=(*self.nests[:position], *self.nests[position + 1 :]))
            for simpler in _simpler(nest):
                yield replace(self, nests=(*self.nests[:position], simpler, *self.nests[position + 1 :]))

    def text(self, sizes: Sequence[int]) -> str:
        n, m = sizes
        return self.text_of({"n": str(n), "m": str(m)}, 2 * (n + m) + 2, ())

    def text_of(self, values: dict[str, str], room: int, scalars: Sequence[str]) -> str:
        """The program with `values` for its sizes, in buffers of `room` cells a dimension."""
        arguments = [f'N: T.Buffer(({room},), "int32")', f'A: T.Buffer(({room}, {room}), "int32")']
        body: list[str] = []
        inner: dict[int, list[str]] = {}
        for number, (rank, is_argument) in enumerate(zip(self.ranks, self.is_argument, strict=True)):
            shape = f"({', '.join([str(room)] * rank)},)"
            group = self._group_around(number)
            if is_argument:
                arguments.append(f'B{number}: T.Buffer({shape}, "int32")')
            elif self.is_inner[number] and group is not None:
                inner.setdefault(group, []).append(f'        B{number} = T.decl_buffer({shape}, "int32")')
            else:
                body.append(f'    B{number} = T.alloc_buffer({shape}, "int32")')
        for number, nest in enumerate(self.nests):
            lines, start = _lines(nest, number, values, room)
            if self._group(number) == number:
                body += [*lines[:start], *inner.get(number, ()), *lines[start:]]
            else:
                body += lines[start:]
        arguments += scalars
        head = f"from loopwright.script import tir as T\n\n@T.prim_func\ndef main({', '.join(arguments)}):\n"
        return head + "\n".join(body) + "\n"

    def _group(self, number: int) -> int:
        """The first nest of those in the outermost loop that this one is in."""
        while number and self.nests[number].joined and self._shares(number):
            number -= 1
        return number

    def _group_around(self, buffer: int) -> int | None:
        """The first nest of those in the one loop that has all uses of a buffer."""
        groups = {self._group(number) for number, nest in enumerate(self.nests) if nest.uses(buffer)}
        return groups.pop() if len(groups) == 1 else None

    def _shares(self, number: int) -> bool:
        """Whether the nest can stand in the outermost loop of the one before."""
        return self.nests[number].extents[0] == self.nests[number - 1].extents[0] and not self._starts_later(number)

    def _starts_later(self, number: int) -> bool:
        return self.nests[number].firsts[0] != self.nests[number - 1].firsts[0]


def _lines(nest: Nest, number: int, values: dict[str, str], room: int) -> tuple[list[str], int]:
    """The nest as text, and how many of its lines are the outermost loop."""
    lines, depth = [], 1
    loops = list(_LETTERS[: len(nest.extents)])
    for position, (first, extent) in enumerate(zip(nest.firsts, nest.extents, strict=True)):
        known = values | ({"o": loops[position - 1]} if position else {})
        low, count = first.format(**known), extent.format(**known)
        stop = f"{count}" if low == "0" else f"{low}, {low} + ({count})"
        lines.append("    " * depth + f"for {loops[position]} in range({stop}):")
        depth += 1

    def of(form: str, pair: tuple[int, int]) -> str:
        return form.format(a=loops[pair[0]], b=loops[pair[1]], **values)

    conditions = " and ".join([of(form, pair) for form, pair in nest.where])
    if conditions and nest.outside:
        lines.append("    " * depth + f"if {conditions}:")
        depth += 1
    indent = "    " * depth
    lines.append(f'{indent}with T.block("B{nest.target}_{number}"):')
    indent += "    "
    for position, axis in enumerate(nest.axes):
        domain = values["n"] if axis.is_tight else room
        lines.append(f"{indent}v{position} = T.axis.{axis.kind}({domain}, {of(axis.form, axis.loops)})")
    if conditions and not nest.outside:
        lines.append(f"{indent}T.where({conditions})")
    own = values | {"u": "v0", "w": f"v{len(nest.axes) - 1}"}
    cell = f"B{nest.target}[{', '.join(nest.cell)}]"
    read = [f"{name}[{', '.join([index.format(**own) for index in indices])}]" for name, indices in nest.reads]
    value = nest.value.format(x=read[0], y=read[-1], **own)
    if any([axis.kind == "reduce" for axis in nest.axes]):
        lines.append(f"{indent}with T.init():")
        lines.append(f"{indent}    {cell} = {nest.start}")
        lines.append(f"{indent}{cell} = {UPDATES[nest.update].format(c=cell, x=value)}")
    else:
        lines.append(f"{indent}{cell} = {value}")
    return lines, 1


def _simpler(nest: Nest) -> Iterator[Nest]:
    """The nest with one thing less that is out of the ordinary."""
    if nest.where:
        yield replace(nest, where=nest.where[1:])
        yield replace(nest, outside=False)
    for position, extent in enumerate(nest.extents):
        if extent != "{n}":
            yield replace(nest, extents=(*nest.extents[:position], "{n}", *nest.extents[position + 1 :]))
        if nest.firsts[position] != "0":
            yield replace(nest, firsts=(*nest.firsts[:position], "0", *nest.firsts[position + 1 :]))
    for position, axis in enumerate(nest.axes):
        if axis.form != "{a}":
            plain = replace(axis, form="{a}")
            yield replace(nest, axes=(*nest.axes[:position], plain, *nest.axes[position + 1 :]))
        if axis.is_tight:
            roomy = replace(axis, is_tight=False)
            yield replace(nest, axes=(*nest.axes[:position], roomy, *nest.axes[position + 1 :]))
    if nest.value != "{x}":
        yield replace(nest, value="{x}")
    if nest.start != "5":
        yield replace(nest, start="5")
    if nest.update:
        yield replace(nest, update=0)
    if nest.joined:
        yield replace(nest, joined=False)


def ragged_program(seed: int, sizes: Sequence[int] = (1, 2, 3, 4)) -> Program:
    """The first program from `seed` on that runs, at two of the sizes."""
    for attempt in range(_TRIES):
        rng = random.Random(f"ragged {seed} {attempt}")
        source = perhaps_with_lets(random_nests(seed, rng), rng)
        program = RaggedProgram(source, (rng.choice(sizes), rng.choice(sizes)))
        if runs(program.source.text(program.sizes)):
            return program
    raise AssertionError(f"none of {_TRIES} programs from seed {seed} runs")


class RaggedProgram(Program):
    """A program of which only those smaller ones count that run."""

    def smaller(self) -> Iterator[Program]:
        return (program for program in super().smaller() if runs(program.source.text(program.sizes)))


def with_lets_that_run(program: Program, rng: random.Random, share: float = 0.4) -> Program:
    """The program, in a `share` of all cases with lets; as it is where it would not run with them."""
    source = perhaps_with_lets(program.source, rng, share)
    if source is program.source or not runs(source.text(program.sizes)):
        return program
    return RaggedProgram(source, program.sizes)


def with_threads_that_run(program: Program, rng: random.Random) -> Program:
    """The program with some loops bound to threads; as it is where none of a few choices runs."""
    for _ in range(4):
        source = with_threads(program.source, rng)
        if runs(source.text(program.sizes)):
            return RaggedProgram(source, program.sizes)
    return program


def threaded_program(seed: int, sizes: Sequence[int] = (1, 2, 3, 4)) -> Program:
    """A template, perhaps with lets, or ragged loops; with threads."""
    rng = random.Random(f"threads {seed}")
    while True:
        program = ragged_program(rng.randrange(2**31), sizes)
        if rng.random() < 0.7:
            size = rng.choice(sizes)  # loops of one axis are equally long
            template = rng.choice(TEMPLATES)
            program = with_lets_that_run(Program(template, (size,) * template.rank), rng, 0.2)
        result = with_threads_that_run(program, rng)
        if result is not program:
            return result


@lru_cache(maxsize=4096)
def runs(text: str) -> bool:
    """Whether the program means something, and the engine takes it."""
    try:
        function = from_source(text)
        Schedule(function)
        if terms_of(function) is not None:
            return True
        if "alloc_buffer" in text or "decl_buffer" in text:  # numbers do not tell a cell that holds nothing from others
            return False
        arguments = random_arguments(function, 1)
        most = [np.full_like(arguments[0], 9), *arguments[1:]]  # conditions on N are true, and loops at their longest
        if any([isinstance(numbers_of(function, given), str) for given in (arguments, most)]):
            return False
        return all([computed_from(function, seed)[1] is not None for seed in range(INPUTS)])
    except LoopwrightError:
        return False


def random_nests(seed: int, rng: random.Random) -> Ragged:
    """Some nests; whether they mean something is not known."""
    nests: list[Nest] = []
    ranks: list[int] = []
    is_argument: list[bool] = []
    for _ in range(rng.choice((1, 2, 2, 3))):
        depth = rng.choice((1, 2, 2, 2, 3))
        extents = [rng.choice(_EXTENTS), *[rng.choice(_INNER_EXTENTS) for _ in range(depth - 1)]]
        firsts = [rng.choice(_FIRST), *[rng.choice(_INNER_FIRST) for _ in range(depth - 1)]]
        joined = bool(nests) and rng.random() < 0.45
        follows = joined and rng.random() < 0.5  # reads what the nest before writes, in the same loops
        if follows:
            extents, firsts, depth = list(nests[-1].extents), list(nests[-1].firsts), len(nests[-1].extents)
        elif joined:
            extents[0], firsts[0] = nests[-1].extents[0], nests[-1].firsts[0]
        reduces = rng.random() < 0.5
        axes = []
        for position in range(depth):
            kind = "reduce" if reduces and (position == depth - 1 or rng.random() < 0.2) else "spatial"
            if kind == "spatial" and rng.random() < 0.08:
                kind = "opaque"
            form = rng.choice(_AXES)
            is_tight = rng.random() < (0.5 if form == "0" else 0.15)
            axes.append(Axis(kind, form, (position, rng.randrange(depth)), is_tight))
        where = tuple([(rng.choice(_CONDITIONS), _pair(rng, depth)) for _ in range(rng.choice((0, 0, 0, 1, 1, 2)))])
        if follows and rng.random() < 0.7:
            where, axes = nests[-1].where, list(nests[-1].axes)
        if ranks and rng.random() < 0.15:
            target = rng.randrange(len(ranks))
        else:
            target = len(ranks)
            ranks.append(rng.choice((1, 2, 2)))
            is_argument.append(rng.random() < 0.5)
        data = [f"v{k}" for k, axis in enumerate(axes) if axis.kind != "reduce"] or ["0"]
        cell = tuple([*data, *[rng.choice((*data, "0")) for _ in range(2)]][: ranks[target]])
        readable = ["A", "A", *[f"B{k}" for k in range(len(ranks)) if k != target or rng.random() < 0.1]]
        reads = []
        for _ in range(2):
            name = rng.choice(readable)
            count = 2 if name == "A" else ranks[int(name[1:])]
            indices = [rng.choice(("v0", f"v{depth - 1}", rng.choice(_INDICES))) for _ in range(count)]
            reads.append((name, tuple(indices)))
        if follows and nests[-1].target != target:
            reads[0] = (f"B{nests[-1].target}", nests[-1].cell)
        start = rng.choice(("5", "0", f"A[{data[0]}, 0]", data[0], *_starts(rng, ranks, target, data)))
        update = rng.choice((0, 0, 0, rng.randrange(len(UPDATES))))
        nests.append(
            Nest(
                tuple(extents), tuple(firsts), tuple(axes), where, rng.random() < 0.3, target, cell, tuple(reads),
                rng.choice(_VALUES), start, update, joined,
            )
        )  # fmt: skip
    is_argument[-1] = True
    is_inner = tuple([rng.random() < 0.5 for _ in ranks])
    return Ragged(seed, tuple(nests), tuple(ranks), tuple(is_argument), is_inner)


def _starts(rng: random.Random, ranks: Sequence[int], target: int, data: Sequence[str]) -> list[str]:
    """Start values that other nests compute."""
    others = [number for number in range(len(ranks)) if number != target]
    return [f"B{k}[{', '.join([rng.choice((*data, '0')) for _ in range(ranks[k])])}]" for k in others]


def _pair(rng: random.Random, depth: int) -> tuple[int, int]:
    return rng.randrange(depth), rng.randrange(depth)
