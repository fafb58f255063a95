"""The exact source of every read: which write a load sees, for all iterations at once.

Each access becomes an isl relation from the iterations of its loops to the cells it touches; a cell is an index, led by
the iteration that holds the buffer's allocation. Every buffer is first written, cell by cell, by a virtual writer (the
caller's contents, or nothing for allocated memory), and every argument is read at the end by a virtual reader, the
caller. isl's dataflow then gives the last write before each read.

The updates of a reduction (`C[v] = C[v] + …` in a block with a reduction axis) are a set, not a chain, if they may come
in any order (`commuting_updates.py`). What an update or a reader sees of its cell is the last *plain* write, its base,
and a reader sees besides it the updates since:

    base(r)      the last plain write of r's cell before r
    updates(r)   the updates u before r with base(u) = base(r)

Calls that reach outside of the program read and write one more cell (`effects.py`), whose flow is their sequence.

The fields of a tuple reduction are read together: a reader of one is also made a reader (a shadow) of the others.
A read whose index depends on data stands for reads of all cells, one for each value of the unknown index inside of the
buffer. A write that depends on data leaves the source of every read uncertain: its buffer is not provable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from loopwright.analysis.accesses import Access, Program
from loopwright.analysis.commuting_updates import update_law
from loopwright.analysis.effects import OUTSIDE
from loopwright.analysis.instances import Place
from loopwright.analysis.isl_flow import NotProvable, Question, answer
from loopwright.analysis.polyhedral import Polyhedra, Undecided
from loopwright.analysis.time_order import not_before
from loopwright.arith.affine import Form
from loopwright.arith.isl import BudgetExceeded, context
from loopwright.ir import Block, Buffer, IterType, Var

if TYPE_CHECKING:
    import islpy

FLOW_BUDGET: Final = 20_000_000  # isl operations for the flow through one buffer
_APART: Final = 1_000_000  # pointers and what is outside are counted apart: so many loads and stores no block has
_flow_budget = ContextVar("_flow_budget", default=FLOW_BUDGET)


@contextmanager
def flow_budget(operations: int) -> Iterator[None]:
    """Give up sooner: for a question that can be asked in smaller parts."""
    token = _flow_budget.set(operations)
    try:
        yield
    finally:
        _flow_budget.reset(token)


def _too_complex(buffer: Buffer) -> NotProvable:
    return NotProvable(f"the flow through {buffer.name} is too complex to compute")


Kind = Literal["read", "write", "update", "start", "final"]


class InitOf(NamedTuple):
    """Identifies the init of the reduction block `block`."""

    block: Var | str


BlockKey = Var | str | InitOf


class Reference:
    """An access in the flow through one buffer: its isl tuple `tag[dims]`, when it runs and which cell it touches.

    `ordinal` counts the loads, or the stores, of its block in the order of evaluation. Virtual accesses have no access.
    """

    __slots__ = ("access", "buffer", "cell", "dims", "domain", "kind", "names", "ordinal", "shadow_of", "tag", "time")

    def __init__(
        self,
        tag: str,
        kind: Kind,
        access: Access | None,
        ordinal: int,
        buffer: Buffer,
        dims: Sequence[str],
        names: Mapping[Var, str],
        domain: Sequence[str],
        cell: Sequence[str],
        shadow_of: Buffer | None = None,
    ) -> None:
        self.tag = tag
        self.kind = kind
        self.access = access
        self.ordinal = ordinal
        self.buffer = buffer
        self.dims = dims
        self.names = names
        self.domain = domain
        self.cell = cell
        self.shadow_of = shadow_of  # what is really read, when this is the reading of another field of a tuple
        self.time: list[str | int] = []

    @property
    def tuple_text(self) -> str:
        return f"{self.tag}[{', '.join(self.dims)}]"

    @property
    def place(self) -> Place | None:
        """The block it is in."""
        return self.access.instance.place if self.access is not None else None


class Flow(NamedTuple):
    """What every reader of one buffer sees, in iterations of loops."""

    buffer: Buffer
    readers: Sequence[Reference]
    writers: Sequence[Reference]  # plain writes and the virtual first one
    updaters: Sequence[Reference]
    base: islpy.UnionMap  # reader → last plain write; every iteration of a reader has one
    updates: islpy.UnionMap  # reader → updates it sees besides
    update_bases: islpy.UnionMap  # update → last plain write


class _Text(Polyhedra):
    """isl text whose parameters keep their names from program to program."""

    def parameter(self, var: Var) -> str:
        self.check_parameter(var)
        return self.parameters.setdefault(var, f"v{id(var)}")

    def check_parameter(self, var: Var) -> None:
        if var in self.program.affine.products:
            raise NotProvable("an index multiplies a loop variable and a size in a new way")


class Dataflow:
    """The flow through each buffer of one program, computed when asked for. Belongs to one thread, as isl does."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.context = context()
        self.text = _Text(program)
        self.ordinals: dict[Access, int] = {}
        self.by_buffer: dict[Buffer, list[Access]] = {}
        self.by_place: dict[Place, list[Access]] = {}
        counts: dict[tuple[Place, bool, int], int] = {}
        for access in [*program.accesses, *program.pointers, *program.calls]:
            location, sort = access.instance.place, 2 if access.buffer is OUTSIDE else int(access.pointer is not None)
            count = counts.get((location, access.writes, sort), 0)
            self.ordinals[access] = count + _APART * sort
            counts[location, access.writes, sort] = count + 1
            self.by_buffer.setdefault(access.cell[0], []).append(access)
            self.by_place.setdefault(location, []).append(access)
        # Constants are like arguments: they hold their own values when the program starts.
        constants = [buffer for buffer in self.by_buffer if buffer.data in program.constants]
        self.arguments = {*program.function.argument_buffers(), *constants, OUTSIDE}
        self._updated = {location: _updated(location, accesses) for location, accesses in self.by_place.items()}
        self.groups = self._find_groups()
        self._digits: dict[Buffer, list[list[tuple[int, int | None]]]] = {}
        self._tags: dict[Buffer, str] = {}
        self._named: dict[str, int] = {}
        self._flows: dict[Buffer, Flow | NotProvable] = {}
        self._spent: dict[Buffer, int] = {}  # isl operations that did not suffice

    def flow(self, buffer: Buffer) -> Flow:
        """What every reader of `buffer` sees. Raises NotProvable."""
        result = self._flows.get(buffer)
        if result is None:
            limit = _flow_budget.get()
            if self._spent.get(buffer, 0) >= limit:
                raise _too_complex(buffer)
            try:
                result = self._compute(buffer, limit)
            except NotProvable as reason:
                result = reason
            except Undecided:  # isl has no text for a form
                result = NotProvable(f"where {buffer.name} is read or written, is not affine")
            except BudgetExceeded:
                self._spent[buffer] = limit  # under a larger budget it may be asked again
                raise _too_complex(buffer) from None
            self._flows[buffer] = result
        if isinstance(result, NotProvable):
            raise result
        return result

    def key(self, location: Place) -> BlockKey:
        """What identifies a block through every rewrite: its first axis, or its name; for inits, their block."""
        block = location.block
        if block is None:
            return ""
        of = self.program.inits.get(block)
        if of is not None:
            return InitOf(of.iter_vars[0].var if of.iter_vars else of.name_hint)
        return block.iter_vars[0].var if block.iter_vars else block.name_hint

    # --- reductions -------------------------------------------------------------------------------------------------

    def _find_groups(self) -> dict[Buffer, tuple[Buffer, ...]]:
        """The buffers that reductions update → those that are updated together."""
        groups: dict[Buffer, tuple[Buffer, ...]] = {}
        laws: dict[Buffer, set[object]] = {}
        plain: set[Buffer] = set()
        for location in self.by_place:
            group, law = self._updated[location]
            for buffer in group:
                if set(groups.setdefault(buffer, group)) != set(group):
                    plain.update(group, groups[buffer])
            for buffer in group:
                laws.setdefault(buffer, set()).add(law)
        # Different reductions of one cell do not commute with each other.
        plain.update([buffer for buffer, result in laws.items() if len(result) > 1])
        return {buffer: group for buffer, group in groups.items() if plain.isdisjoint(group)}

    def is_update(self, access: Access) -> bool:
        """Whether the access is part of an update of a reduction."""
        return access.cell[0] in self.groups and access.cell[0] in self._updated[access.instance.place][0]

    def ordered_updates(self, buffer: Buffer) -> list[str]:
        """The blocks that run over a reduction axis and update the buffer, though the order of its updates counts."""
        if buffer in self.groups:
            return []
        result = []
        for location, accesses in self.by_place.items():
            own = [access.writes for access in accesses if access.cell[0] is buffer]
            block = location.block
            if block is not None and True in own and False in own and _reduces(block):
                result.append(block.name_hint)
        return result

    # --- relations --------------------------------------------------------------------------------------------------

    def _compute(self, buffer: Buffer, limit: int) -> Flow:
        self._check(buffer)
        readers, writers, updaters = self._references(buffer)
        every = [*readers, *writers, *updaters]
        self._set_times(every)
        asked, (*written, start) = [*readers, *updaters], writers
        late_writes = [text for item in asked for w in written if (text := _not_after(item, w)) is not None]
        late_updates = [text for r in readers for u in updaters if (text := self._not_before(u, r)) is not None]
        question = Question(
            ", ".join(self.text.parameters.values()),
            tuple([_touches(item) for item in asked]),
            tuple([_touches(item) for item in written]),
            _touches(start),
            tuple(late_writes),
            tuple([_runs_at(item) for item in every]),
            len(every[0].time),
            tuple([item.tuple_text for item in updaters]),
            tuple(late_updates),
        )
        base, updates, update_bases = answer(question, buffer.name, limit, self.program.affine.largest)
        return Flow(buffer, readers, writers, updaters, base, updates, update_bases)

    def _check(self, buffer: Buffer) -> None:
        """Every write must be known exactly."""
        if self.program.regions.reason is not None:
            raise NotProvable(self.program.regions.reason)
        if buffer.data in self.program.opaque:
            raise NotProvable(f"{buffer.name} is touched by calls, or goes by several names")
        home = self.program.homes.get(buffer.data, ())
        for access in self.by_buffer.get(buffer, ()):
            if access.writes and not access.is_must:
                if buffer is OUTSIDE:
                    raise NotProvable(f"whether block {_title(access)} makes a call with effects depends on data")
                raise NotProvable(f"where block {_title(access)} writes {buffer.name}, or whether, depends on data")
            if any([loop not in access.instance.loops for loop in home]):
                raise NotProvable(f"{buffer.name} is used outside the loops that hold it")

    def _references(self, buffer: Buffer) -> tuple[list[Reference], list[Reference], list[Reference]]:
        readers, writers, updaters = [], [], []
        group = self.groups.get(buffer, ())
        at = self.tag(buffer)
        for k, access in enumerate(self.by_buffer.get(buffer, ())):
            if self.is_update(access):
                if access.writes:
                    updaters.append(self._reference(f"{at}u{k}", "update", access, buffer))
            elif access.writes:
                writers.append(self._reference(f"{at}w{k}", "write", access, buffer))
            else:
                readers.append(self._reference(f"{at}r{k}", "read", access, buffer))
        readers += [item for other in group if other is not buffer for item in self._shadows(buffer, other)]
        writers.append(self._virtual(f"{at}start", "start", buffer))
        if buffer in self.arguments:
            readers.append(self._virtual(f"{at}final", "final", buffer))
        return readers, writers, updaters

    def starts(self, buffer: Buffer, test: Callable[[Access], bool] = lambda _: True) -> list[Reference]:
        """The writes that give the buffer's cells the start value of a reduction; those that pass `test`."""
        inits, at = self.program.inits, self.tag(buffer)
        return [
            self._reference(f"{at}w{k}", "write", access, buffer)
            for k, access in enumerate(self.by_buffer.get(buffer, ()))
            if access.writes and access.instance.block in inits and test(access)
        ]

    def _shadows(self, buffer: Buffer, other: Buffer) -> list[Reference]:
        """Who reads another field of the tuple that `buffer` is a field of."""
        home = self.program.homes.get(buffer.data, ())
        number, at = self.groups[buffer].index(other), self.tag(buffer)
        apart = f"{buffer.name} and {other.name} are reduced together, but live in different loops"
        result = []
        for k, access in enumerate(self.by_buffer[other]):
            if not access.writes and not self.is_update(access):
                if any([loop not in access.instance.loops for loop in home]):
                    raise NotProvable(apart)
                result.append(self._reference(f"{at}x{number}_{k}", "read", access, buffer, other))
        if other in self.arguments:
            if home:
                raise NotProvable(apart)
            result.append(self._virtual(f"{at}final{number}", "final", buffer, other))
        return result

    def tag(self, buffer: Buffer) -> str:
        """What the tuples of the buffer's accesses begin with: from version to version the same, as far as can be."""
        result = self._tags.get(buffer)
        if result is None:
            name = re.sub(r"\W", "_", buffer.name, flags=re.ASCII)
            number = self._named[name] = self._named.get(name, -1) + 1
            result = self._tags[buffer] = f"b{number}_{name}_"
        return result

    def _reference(
        self, tag: str, kind: Kind, access: Access, buffer: Buffer, shadow_of: Buffer | None = None
    ) -> Reference:
        text = self.text
        names = {loop.var: f"i{k}" for k, loop in enumerate(access.loops)}
        dims = list(names.values())
        steps = iter(self._steps(buffer))
        cell = [names[loop.var] for loop in self.program.homes.get(buffer.data, ())]
        for key in self.program.owners(buffer):
            own = self.program.owner_index(key, access.instance.loops)
            if own is None:
                raise NotProvable(f"{buffer.name} belongs to threads, and is touched outside of them")
            cell.append(names[own.var])
        inside = []
        for index, extent in zip(access.cell[1], buffer.shape, strict=True):
            if index is None:
                dims.append(f"n{len(dims)}")
                cell += _digit_texts(dims[-1], next(steps))
                size = self.program.affine.form(extent)
                inside += [] if size is None else [f"0 <= {dims[-1]} < {text.form(size, {})}"]
            else:
                digits = [self.program.affine.digit(index, step, radix) for step, radix in next(steps)]
                cell += [text.form(digit, names) for digit in digits]
        domain = [*text.domain(access.loops, access.guards, names), *inside]
        result = Reference(tag, kind, access, self.ordinals[access], buffer, dims, names, domain, cell, shadow_of)
        return result

    def _virtual(self, tag: str, kind: Kind, buffer: Buffer, shadow_of: Buffer | None = None) -> Reference:
        """The caller's look at every cell at the end, or what fills every cell at the start."""
        home = len(self.program.homes.get(buffer.data, ())) + len(self.program.owners(buffer))
        dims = [f"c{k}" for k in range(home + len(buffer.shape))]
        cell = dims[:home]
        for dim, steps in zip(dims[home:], self._steps(buffer), strict=True):
            cell += _digit_texts(dim, steps)
        domain = []
        if kind == "final":
            extents = [self.program.affine.form(extent) for extent in buffer.shape]
            domain = [f"0 <= c{k} < {self.text.form(e, {})}" for k, e in enumerate(extents) if e is not None]
        return Reference(tag, kind, None, 0, buffer, dims, {}, domain, cell, shadow_of)

    def _steps(self, buffer: Buffer) -> list[list[tuple[int, int | None]]]:
        """How each dimension of a buffer is cut into digits, as (step, radix).

        Where loops are tiled, indices are sums like 64 * i0 + i1. That two of them are equal says that their digits
        are; isl takes a hundred times as long to find this out by itself.
        """
        result = self._digits.get(buffer)
        if result is None:
            accesses = self.by_buffer.get(buffer, ())
            written = any([access.writes for access in accesses])
            result = self._digits[buffer] = [
                self._cut([access.cell[1][axis] for access in accesses] if written else [])
                for axis in range(len(buffer.shape))
            ]
        return result

    def _cut(self, indices: Sequence[Form | None]) -> list[tuple[int, int | None]]:
        """The digits of one dimension, largest step first; one digit, the index itself, where tiles do not agree."""
        forms = [index for index in indices if index is not None]
        chain = sorted({1}.union(*[[abs(k) for k in form.terms.values()] for form in forms if len(form.terms) > 1]))
        if not any([b % a for a, b in pairwise(chain)]):
            above = [b // a for a, b in pairwise(chain)]
            steps = list(reversed(list(zip(chain, [*above, None], strict=True))))
            parts = [len(self.program.affine.digit(form, *step).parts()) for form in forms for step in steps]
            if sum(parts) <= sum([len(form.parts()) for form in forms]):
                return steps
        return [(1, None)]

    def _set_times(self, references: Sequence[Reference]) -> None:
        """2d+1 vectors of one length; what is the same for all is left out, and places in a sequence are numbered anew.

        So the flow through a buffer stays the same question where something else comes or goes.
        """
        for item in references:
            if item.access is None:
                item.time = [-1 if item.kind == "start" else 1]
            else:
                item.time = [0, *item.access.time_in(item.names)]
        length = max([len(item.time) for item in references])
        for item in references:
            item.time += [0] * (length - len(item.time))
        inner = [item for item in references if item.access is not None]
        kept = [k for k in range(length) if k == 0 or not isinstance(_same([item.time[k] for item in inner]), int)]
        for k in kept[1:]:
            locations = {item.time[k] for item in inner}
            if all([isinstance(location, int) for location in locations]):
                number = {location: n for n, location in enumerate(sorted(locations))}
                for item in inner:
                    item.time[k] = number[item.time[k]]
        for item in references:
            item.time = [item.time[k] for k in kept]

    def _not_before(self, update: Reference, reader: Reference) -> str | None:
        """The pairs, reader → update, where the update does not come before the reader; None when there are none."""
        if reader.access is None:
            return None
        assert update.access is not None
        other = {var: f"j{k}" for k, var in enumerate(update.names)}
        late = not_before(update.access.time_in(other), reader.access.time_in(reader.names))
        if late is None:
            return None
        target = f"{update.tag}[{', '.join(other.values())}]"
        return f"{reader.tuple_text} -> {target} : {late}"


def _touches(item: Reference) -> str:
    where = f" : {' and '.join(item.domain)}" if item.domain else ""
    return f"{item.tuple_text} -> M[{', '.join(item.cell)}]{where}"


def _runs_at(item: Reference) -> str:
    return f"{item.tuple_text} -> [{', '.join([str(t) for t in item.time])}]"


def _not_after(item: Reference, write: Reference) -> str | None:
    """The pairs, item → write, where the item does not come after the write; None when there are none."""
    other = {dim: f"j{k}" for k, dim in enumerate(write.dims)}
    late = not_before([other.get(t, t) if isinstance(t, str) else t for t in write.time], item.time)
    return None if late is None else f"{item.tuple_text} -> {write.tag}[{', '.join(other.values())}] : {late}"


def dataflow_of(program: Program) -> Dataflow:
    """The flow through each buffer of `program`; kept with it."""
    if program.dataflow is None or program.dataflow.context is not context():
        program.dataflow = Dataflow(program)
    result: Dataflow = program.dataflow
    return result


def _title(access: Access) -> str:
    block = access.instance.block
    return f'"{block.name_hint}"' if block is not None else "root"


# --- what is a reduction --------------------------------------------------------------------------------------------


def _updated(location: Place, accesses: Sequence[Access]) -> tuple[tuple[Buffer, ...], Hashable]:
    """The buffers that a block updates as a reduction, and the law of its updates; none when it is no reduction.

    It has a reduction axis, each buffer it stores it stores once, at the one cell where it may load it, and its updates
    may be made in any order (`commuting_updates.py`).
    """
    block = location.block
    if block is None or location.has_blocks or not _reduces(block):
        return (), None
    stores = {access.cell[0]: access for access in accesses if access.writes}
    if OUTSIDE in stores or any([access.pointer is not None for access in accesses]):
        return (), None
    if len(stores) < len([access for access in accesses if access.writes]):
        return (), None
    loaded: set[Buffer] = set()
    cells: set[object] = set()
    names: dict[Buffer, Buffer] = {}
    for access in accesses:
        buffer = access.cell[0]
        if buffer not in stores:
            continue
        # The stores happen for sure. Loads may be left out, as in `a > b or (a == b and I[v] < k)`: what the body
        # computes is what the law is about. But all are of the one cell.
        if (access.writes and not access.is_must) or None in access.cell[1] or len(access.running) > location.depth:
            return (), None
        cells.add(tuple([index.key for index in access.cell[1] if index is not None]))
        names[access.buffer] = buffer
        if not access.writes:
            loaded.add(buffer)
    if len(cells) != 1 or len(loaded) < len(stores):
        return (), None
    law = update_law(block.body, names, block.iter_vars)
    return (tuple(stores), law) if law is not None else ((), None)


def _reduces(block: Block) -> bool:
    return any([axis.iter_type == IterType.CommReduce for axis in block.iter_vars])


def _digit_texts(dim: str, steps: Sequence[tuple[int, int | None]]) -> list[str]:
    texts = []
    for step, radix in steps:
        rest = dim if radix is None else f"(({dim}) mod {radix * step})"
        texts.append(rest if step == 1 else f"floor({rest}/{step})")
    return texts


def _same(items: Sequence[str | int]) -> str | int | None:
    """The one item that all are."""
    return items[0] if items and all([item == items[0] for item in items]) else None
