"""Mismatch: the smallest case in which a step would change a value, worked out when somebody reads it.

    iteration (m=0, n=511, l=512) of F reads D[0, 512] before iteration (m=0, l=512) of D writes it

A search meets thousands of refusals and reads none of them, so a mismatch first holds only the relation that should
have been empty. The witness is its least point: sizes of arguments first, then the first reader in the program, then
its first iteration by axis values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

from loopwright.analysis.dataflow import Reference
from loopwright.analysis.effects import OUTSIDE
from loopwright.analysis.races import ParallelRace
from loopwright.analysis.thread_races import ThreadRace
from loopwright.arith.isl import BudgetExceeded, context, least_point, within_budget
from loopwright.ir import Var
from loopwright.schedule.proof.instance_names import UNDEFINED, Label
from loopwright.schedule.proof.reaching_writes import ReachingWrites, Through

WITNESS_BUDGET: Final = 20_000_000  # isl operations

Kind = Literal["base", "extra", "missing", "twice"]


class Unproved:
    """There is neither a proof nor a counterexample, for this reason."""

    def __init__(self, reason: str, hint: str | None = None) -> None:
        self.reason, self.hint = reason, hint

    def why(self) -> str:
        return self.reason

    def __repr__(self) -> str:
        return f"Unproved({self.reason!r})"


class Race:
    """Two iterations that would run at the same time touch one cell, and one of them writes it."""

    def __init__(self, error: ParallelRace | ThreadRace) -> None:
        self.error = error
        self.fields = error.fields

    def why(self) -> str:
        return f"{self.error.problem}: {self.error.why}"

    def __repr__(self) -> str:
        return f"Race({self.why()!r})"


class Actor(NamedTuple):
    """An instance: a block and the values of its axes. `kind` tells the caller and its first contents apart."""

    kind: str
    block: str
    iteration: Mapping[str, int]

    def __str__(self) -> str:
        if self.kind == "final":
            return "the caller"
        if self.kind == "start":
            return f"the initial {self.block}[{', '.join([str(value) for value in self.iteration.values()])}]"
        if self.kind == "undefined":
            return "nothing"
        if not self.iteration:
            return f"block {self.block}"
        values = ", ".join([f"{name}={value}" for name, value in self.iteration.items()])
        return f"iteration ({values}) of {self.block}"


class Witness(NamedTuple):
    """One read that would go wrong. `expected` and `found` are what it saw before and would see now."""

    reader: Actor
    buffer: str
    indices: tuple[int, ...]
    expected: Actor | None
    found: Actor | None
    when: Literal["later", "earlier", "never"]  # the expected write runs after the read, before it, or not at all
    sizes: Mapping[str, int]


class Mismatch:
    """A read, or the caller's last look at a cell, that would see another value than before."""

    def __init__(
        self,
        kind: Kind,
        old: ReachingWrites,
        new: ReachingWrites,
        seen: Through,
        known: Sequence[Through],
        wrong: Any,
        iterations: Any = None,
    ) -> None:
        self.kind = kind
        self._old, self._new = old, new
        self._seen, self._known = seen, known
        self._wrong = wrong  # name of the reader → name of what it should not see, or should see
        self._iterations = iterations  # the same for iterations of the reader, where names hide which ones

    @cached_property
    def witness(self) -> Witness:
        """The smallest case, in the user's names."""
        result = self.kind, self._old, self._new, self._seen, self._known, self._wrong, self._iterations
        divisions = max(self._old.divisions, self._new.divisions)
        return within_budget(lambda _: _Search(*result).find(), WITNESS_BUDGET, divisions)

    @property
    def reader(self) -> Actor:
        return self.witness.reader

    @property
    def cell(self) -> tuple[str, tuple[int, ...]]:
        return self.witness.buffer, self.witness.indices

    @property
    def expected(self) -> Actor | None:
        return self.witness.expected

    @property
    def found(self) -> Actor | None:
        return self.witness.found

    def hint(self) -> str:
        """Which blocks look like reductions, but are none; nothing where that is not the case."""
        for seen in self._known:
            buffer = seen.flow.buffer
            blocks = list(dict.fromkeys(self._old.dataflow.ordered_updates(buffer)))
            if len(blocks) == 1:
                return f"block {blocks[0]} runs over a reduction axis, but its updates of {buffer.name} do not commute"
            if blocks:
                names = f"{', '.join(blocks[:-1])} and {blocks[-1]}"
                return f"blocks {names} run over reduction axes, but their updates of {buffer.name} do not commute"
        return ""

    def why(self) -> str:
        """The witness as a sentence."""
        try:
            result = self.witness
        except BudgetExceeded:
            if self._seen.flow.buffer is OUTSIDE:
                return "calls with effects would come in another order (the case itself is hard to find)"
            return f"a read of {self._seen.flow.buffer.name} would see another value (the case itself is hard to find)"
        sentence = _sentence_of_calls(result) if self._seen.flow.buffer is OUTSIDE else _sentence(self.kind, result)
        sizes = ", ".join([f"{name} = {value}" for name, value in result.sizes.items()])
        return f"{sentence} (for {sizes})" if sizes else sentence

    def __repr__(self) -> str:
        return f"Mismatch({self.why()!r})"


def _sentence(kind: Kind, w: Witness) -> str:
    cell = f"{w.buffer}[{', '.join([str(index) for index in w.indices]) or '()'}]"
    caller = w.reader.kind == "final"
    reads = f"{w.reader} reads {cell}"
    if kind == "twice":
        until = "the function returns" if caller else f"{w.reader} reads it"
        return f"{w.found} updates {cell} more than once before {until}"
    if kind == "extra":
        return f"{cell} holds the update of {w.found} as well when {w.reader} reads it"
    if kind == "missing":
        if w.when == "later" and not caller:
            return f"{reads} before {w.expected} updates it"
        if w.when == "never":
            return f"{reads}, but {w.expected} no longer updates it"
        return f"{reads}, but the update of {w.expected} is lost by then"
    if w.expected is None or w.expected.kind == "start":
        if w.found is None or w.found.kind == "undefined":
            return f"{reads}, which holds no value by then"
        if w.found.kind == "start":
            return f"{reads}, which holds {w.found} instead of {w.expected}"
        return f"{reads} after {w.found} has overwritten it"
    if w.when == "later" and not caller:
        return f"{reads} before {w.expected} writes it"
    if w.when == "never":
        return f"{reads}, but {w.expected} no longer writes it"
    if w.found is None or w.found.kind in ("undefined", "start"):
        return f"{reads}, which does not hold what {w.expected} wrote"
    if caller:
        return f"{cell} ends with what {w.found} wrote, not {w.expected}"
    return f"{reads} after {w.found} has overwritten what {w.expected} wrote"


def _sentence_of_calls(w: Witness) -> str:
    """What is wrong with the order of calls that have effects: each sees the one before it, the caller the last."""
    expected = None if w.expected is None or w.expected.kind == "start" else w.expected
    result = None if w.found is None or w.found.kind in ("start", "undefined") else w.found
    if expected is not None and w.when == "never":
        return f"{expected} would no longer make its call, which has effects"
    if w.reader.kind == "final":
        if result is None:
            return f"{expected} would no longer make the last of the calls, which have effects"
        return f"the last of the calls, which have effects, would be that of {result}, not of {expected or 'nobody'}"
    call = f"{w.reader} would make its call, which has effects,"
    if expected is not None and w.when == "later":
        return f"{call} before {expected} makes the one that came before it"
    if expected is None:
        return f"{call} after {result}, and not first"
    return f"{call} after {result}, not right after {expected}" if result is not None else f"{call} first"


class _At(NamedTuple):
    """A point: an isl tuple and its values."""

    space: str
    values: tuple[int, ...]

    @property
    def text(self) -> str:
        return f"{{ {self.space}[{', '.join([str(value) for value in self.values])}] }}"


class _Search:
    def __init__(
        self,
        kind: Kind,
        old: ReachingWrites,
        new: ReachingWrites,
        seen: Through,
        known: Sequence[Through],
        wrong: Any,
        iterations: Any,
    ) -> None:
        self.kind, self.old, self.new = kind, old, new
        self.seen, self.known = seen, known
        self.wrong, self.iterations = wrong, iterations
        self.parameters: dict[str, int] = {}

    def find(self) -> Witness:
        import islpy as isl

        order = [self.new.naming.name(reader).space for reader in self.seen.readers]
        reader = self._first(self.wrong.domain(), order)
        assert reader is not None
        here = isl.UnionSet.read_from_str(context(), reader.text)
        result = expected = None
        if self.kind == "base":
            result = self._first(self._fixed(self.wrong.intersect_domain(here)).range())
            for known in self.known:
                expected = expected or self._first(self._fixed(known.named_base.intersect_domain(here)).range())
        elif self.kind == "missing":
            expected = self._first(self._fixed(self.wrong.intersect_domain(here)).range())
        else:
            result = self._first(self._fixed(self.wrong.intersect_domain(here)).range())
        at = self._iteration(reader, result, expected)
        item = next(item for item in self.seen.readers if item.tag == at.space)
        values = self._values(item, at)
        label = self._label(reader.space)
        return Witness(
            self._actor(reader),
            label.buffer.name,
            self._cell(item, at, values),
            self._actor(expected) if expected is not None else None,
            self._actor(result) if result is not None else None,
            self._when(item, values, expected),
            self._parameter_values(),  # last: each point that was looked for may have fixed some
        )

    # --- points -----------------------------------------------------------------------------------------------------

    def _first(self, points: Any, order: Sequence[str] = ()) -> _At | None:
        """The least point of the first tuple, by `order`; fixes the parameters when they are still open."""
        sets: list[Any] = []
        points.foreach_set(sets.append)
        location = {space: k for k, space in reversed(list(enumerate(order)))}
        sets = [one for one in sets if not one.is_empty()]
        if not sets:
            return None
        # What was never written comes last: a witness with a writer says more.
        chosen = min(
            sets, key=lambda one: (location.get(one.get_tuple_name(), len(order)), one.get_tuple_name() == UNDEFINED)
        )
        space = chosen.get_tuple_name()
        values, parameters = _least(chosen, self.parameters)
        self.parameters.update(parameters)
        return _At(space, values)

    def _fixed(self, relation: Any) -> Any:
        import islpy as isl

        if not self.parameters:
            return relation
        names, facts = ", ".join(self.parameters), " and ".join([f"{n} = {v}" for n, v in self.parameters.items()])
        return relation.intersect_params(isl.Set.read_from_str(context(), f"[{names}] -> {{ : {facts} }}"))

    def _iteration(self, reader: _At, result: _At | None, expected: _At | None) -> _At:
        """The first iteration of the reader that goes wrong."""
        import islpy as isl

        here = isl.UnionSet.read_from_str(context(), reader.text)
        relation = self.iterations
        target = result or expected
        if relation is None and self.kind in ("base", "extra"):
            relation = self.seen.base if self.kind == "base" else self.seen.updates
            relation = relation.apply_range(self.seen.writer_names)
        points = self.seen.base.domain()
        if relation is not None and target is not None:
            points = relation.intersect_range(isl.UnionSet.read_from_str(context(), target.text)).domain()
        points = self._fixed(self.seen.reader_names.intersect_range(here)).domain().intersect(points)
        at = self._first(self._fixed(points), [item.tag for item in self.seen.readers])
        assert at is not None
        return at

    # --- words ------------------------------------------------------------------------------------------------------

    def _label(self, space: str) -> Label:
        result = self.new.naming.labels.get(space) or self.old.naming.labels.get(space)
        assert result is not None
        return result

    def _actor(self, at: _At) -> Actor:
        label = self.old.naming.labels.get(at.space) or self._label(at.space)
        return Actor(label.kind, label.title, dict(zip(label.axes, at.values, strict=False)))

    def _parameter_values(self) -> dict[str, int]:
        names = self.new.dataflow.text.parameters
        return {var.name: self.parameters[name] for var, name in names.items() if name in self.parameters}

    def _values(self, item: Reference, at: _At) -> dict[Var, int]:
        values = {
            var: self.parameters[name]
            for var, name in self.new.dataflow.text.parameters.items()
            if name in self.parameters
        }
        return values | dict(zip(item.names, at.values, strict=False))

    def _cell(self, item: Reference, at: _At, values: Mapping[Var, int]) -> tuple[int, ...]:
        if item.access is None:
            return at.values
        unknown = iter(at.values[len(item.access.loops) :])
        return tuple([next(unknown) if index is None else index.at(values) for index in item.access.cell[1]])

    def _when(self, reader: Reference, values: Mapping[Var, int], expected: _At | None) -> Any:
        """Whether the expected write comes after the reader in the new version, before it, or not at all."""
        import islpy as isl

        if expected is None:
            return "earlier"
        target = isl.UnionSet.read_from_str(context(), expected.text)
        times = []
        for item in self.new.followed.values():
            if (
                item.access is None
                or self.new.naming.is_copy(item)
                or self.new.naming.name(item).space != expected.space
            ):
                continue
            runs = self.new.union([f"{item.tuple_text} -> {item.tuple_text} : {' and '.join(item.domain) or '0 = 0'}"])
            at = self._first(
                self._fixed(self.new.names([item]).intersect_range(target)).domain().intersect(runs.domain())
            )
            if at is not None:
                times.append(_time(item, self._values(item, at)))
        if not times:
            return "never"
        if reader.access is None:
            return "earlier"
        return "later" if _time(reader, values) < min(times) else "earlier"


def _time(item: Reference, values: Mapping[Var, int]) -> list[int]:
    assert item.access is not None
    return [values[t] if isinstance(t, Var) else t for t in item.access.time]


def _least(points: Any, known: Mapping[str, int]) -> tuple[tuple[int, ...], dict[str, int]]:
    """The least point of a set, and the values of its parameters: as small as they can be, and not negative."""
    import islpy as isl

    kind = isl.dim_type
    count = points.dim(kind.param)
    names = [points.get_dim_name(kind.param, k) for k in range(count)]
    for k, name in enumerate(names):
        if name in known:
            points = points.fix_val(kind.param, k, isl.Val(known[name], context=context()))
    whole = points.move_dims(kind.set, 0, kind.param, 0, count)
    natural = whole
    for k in range(count):
        natural = natural.lower_bound_val(kind.set, k, isl.Val(0, context=context()))
    if natural.is_empty():
        natural = whole
    try:
        first = least_point(natural)
    except isl.Error as error:
        if "unbounded" not in str(error):
            raise
        first = natural.sample_point()
    size = points.dim(kind.set)
    numbers = [int(first.get_coordinate_val(kind.set, k).to_python()) for k in range(count + size)]
    return tuple(numbers[count:]), dict(zip(names, numbers, strict=False))
