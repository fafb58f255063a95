"""find_mismatch: prove that a new version of a program computes the same values, or find what would differ.

Every read of every instance of the new version must see the write that the instance of the same name saw before, and
every cell of every argument must be written last by the same instance (`analysis/dataflow.py` says who sees what,
`instance_names.py` what is the same). By induction over the order of execution, all values are then the same. What saw
no value before may see anything now. An instance that did not exist before cannot be seen by one that did.

Of a reduction, a reader must see the same base, and the same updates, each of them once:

    wrong base      { reader → base } of the new version, less that of the old
    extra           { reader → updates } of the new version, less that of the old
    missing         the other way round, for each *iteration* of the reader: one may miss what another one sees
    twice           two iterations of one name among the updates that a reader sees
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any, Final

from loopwright.analysis.accesses import Access, accesses_of
from loopwright.analysis.block_domains import stays_in_domains
from loopwright.analysis.bounds import OutOfBounds, is_inside
from loopwright.analysis.dataflow import BlockKey, Dataflow, NotProvable, Reference, dataflow_of
from loopwright.analysis.effects import OUTSIDE, called_name, calls_of_threads
from loopwright.analysis.may_fail import may_divide_by_zero
from loopwright.analysis.races import find_race_in, prove_no_race, without_race
from loopwright.analysis.thread_axes import has_threads
from loopwright.analysis.thread_races import find_crossing
from loopwright.arith.isl import BudgetExceeded, context, within_budget
from loopwright.ir import Buffer, Expr, PrimFunc, Var, any_node
from loopwright.schedule.origins import Origins
from loopwright.schedule.proof.changed_parts import changed_parts
from loopwright.schedule.proof.instance_names import BY_WHAT_IT_DOES, UNDEFINED, Way
from loopwright.schedule.proof.lemmas import unchanged_memory
from loopwright.schedule.proof.mismatch import Mismatch, Race, Unproved
from loopwright.schedule.proof.reaching_writes import ReachingWrites, Through
from loopwright.schedule.proof.same_source import reads_instance, same_sources
from loopwright.schedule.proof.unchanged_writers import with_unchanged_writers

__all__ = ["Mismatch", "Race", "Unproved", "find_mismatch", "find_race"]

PROOF_BUDGET: Final = 20_000_000  # isl operations for one comparison, besides those for the flow
VERSIONS: Final = 32  # kept with what their readers see
_SAME: Final = Origins()


def find_mismatch(
    before: PrimFunc,
    after: PrimFunc,
    origins: Origins = _SAME,
    buffers: Collection[Buffer] | None = None,
    by_lemmas: bool = True,
    budget: int = PROOF_BUDGET,
) -> Mismatch | Unproved | None:
    """None when `after` is proved to compute what `before` does; else the smallest witness, or why there is no proof.

    Only flow through `buffers` (of either version) and through new buffers is compared; None means all. Without
    `by_lemmas` the flow is computed also where it is known to be the usual one (`same_source.py`).
    """
    if by_lemmas:
        before, after = changed_parts(before, after)
    result: Mismatch | Unproved | None = None
    for way in Way:
        # What one way of naming instances does not prove, a finer one may; a witness counts before a doubt.
        other = _find(before, after, origins, buffers, by_lemmas, way, budget)
        if other is None:
            return None
        result = other if result is None or isinstance(result, Unproved) else result
        if not (_reaching_writes(before).naming.uses_outside() or _reaching_writes(after).naming.uses_outside()):
            break
    return result


def _find(
    before: PrimFunc,
    after: PrimFunc,
    origins: Origins,
    buffers: Collection[Buffer] | None,
    by_lemmas: bool,
    way: Way,
    budget: int,
) -> Mismatch | Unproved | None:
    try:
        old, new = _reaching_writes(before), _reaching_writes(after)
        if way is not Way.PLAIN:
            old = ReachingWrites(old.dataflow, None, old.settled, way)
        if origins != _SAME or way is not Way.PLAIN:
            new = ReachingWrites(new.dataflow, origins, new.settled, way, old)
        if way in BY_WHAT_IT_DOES:
            buffers = None  # a block that does something else has another name, whichever buffer it touches
        comparison = _Comparison(old, new, by_lemmas)
        divisions = max(old.divisions, new.divisions)
        result = within_budget(lambda _: comparison.find(buffers), budget, divisions)
    except NotProvable as reason:
        return Unproved(str(reason), reason.hint)
    except BudgetExceeded:
        return Unproved("comparing what the reads see takes too many steps")
    if way in BY_WHAT_IT_DOES and result is not None and not _touch_alike(old, new):
        return Unproved("a block that is known by its indices has others now")  # so the names say nothing
    return result


def _touch_alike(old: ReachingWrites, new: ReachingWrites) -> bool:
    """Whether every block that is in both versions touches the same buffers, one after the other."""

    def touched(sight: ReachingWrites) -> dict[BlockKey, list[tuple[Buffer, bool]]]:
        indices = sight.dataflow.by_place.items()
        return {sight.dataflow.key(place): [(item.cell[0], item.writes) for item in found] for place, found in indices}

    before, after = touched(old), touched(new)
    return all([key not in before or before[key] == result for key, result in after.items()])


def find_race(function: PrimFunc, loop_var: Var) -> Race | Unproved | None:
    """None when the iterations of a loop may run at the same time (in lockstep, if it is vectorized); else why not."""
    # Threads share memory with what is outside their loops, so there it is the whole function that counts.
    if has_threads(function.body):
        program = _reaching_writes(function).dataflow.program
        race = prove_no_race(program, loop_var)
        private = without_race(function, race)
        if private is not None:
            return find_race(private, loop_var)
        result = race or find_crossing(program, certain=False)
    else:
        result = find_race_in(function, loop_var)
    if isinstance(result, str):
        return Unproved(result)
    return None if result is None else Race(result)


class _Kept(threading.local):
    """The last versions: each is compared with the one before it, then with the one after. isl's objects belong to
    one thread."""

    def __init__(self) -> None:
        self.reaching: OrderedDict[PrimFunc, ReachingWrites] = OrderedDict()


_kept: Final = _Kept()


def _reaching_writes(function: PrimFunc) -> ReachingWrites:
    """What the readers of a version see."""
    result = _kept.reaching.get(function)
    if result is None:
        result = _kept.reaching[function] = ReachingWrites(dataflow_of(accesses_of(function)))
        if len(_kept.reaching) > VERSIONS:
            _kept.reaching.popitem(last=False)
    _kept.reaching.move_to_end(function)
    return result


class _Comparison:
    """Two versions, side by side."""

    def __init__(self, old: ReachingWrites, new: ReachingWrites, by_lemmas: bool) -> None:
        self.old, self.new, self.by_lemmas = old, new, by_lemmas

    @cached_property
    def _unchanged(self) -> frozenset[Buffer]:
        """The buffers that hold the same in both versions, for reasons that need no isl."""
        return with_unchanged_writers(self.old.settled, self.new.settled, self.new.naming.origins)

    def find(self, buffers: Collection[Buffer] | None) -> Mismatch | None:
        """The first buffer whose readers see something else."""
        old, new = self.old.dataflow, self.new.dataflow
        self._check_inlined()
        self._check_loads()
        self._check_updates()
        unchanged = unchanged_memory(old.program.function, new.program.function)
        self._check_calls(unchanged)
        calls = [OUTSIDE] if OUTSIDE in old.by_buffer else []
        pointed = old.program.unknown | new.program.unknown
        every = list(dict.fromkeys([*new.by_buffer, *new.program.function.argument_buffers(), *calls]))
        named = {OUTSIDE, *[flow.program.source(buffer) for buffer in buffers or () for flow in (old, new)]}
        for buffer in every:
            is_named = buffers is None or buffer in named or buffer.data in pointed
            if not is_named and buffer in old.by_buffer:
                continue
            if buffer.data in unchanged or self._is_plain_input(buffer):
                continue
            self._check_new_starts(buffer)
            if self._is_settled(buffer):
                continue
            result = self._compare(buffer)
            if result is not None:
                return result
        return None

    def _check_calls(self, unchanged: set[Var]) -> None:
        """It must be known when calls with effects come, and which memory calls touch, unless all that is unchanged."""
        for program in (self.old.dataflow.program, self.new.dataflow.program):
            if OUTSIDE.data not in unchanged:
                for call in program.unordered:
                    raise NotProvable(f"how often {called_name(call)} is called is not known where it stands")
                for call in calls_of_threads(program.function) if program.has_threads and program.calls else ():
                    raise NotProvable(f"the order in which threads call {called_name(call)} is not followed")
            if program.effects:
                for data in program.opaque - unchanged:
                    raise NotProvable(f"{data.name} is touched by calls, or goes by several names")
        for access in self.new.dataflow.program.pointers:
            # A call knows the memory by its layout, which is no part of what is compared.
            theirs = self.old.loads.get(self._origin_of(access)) if not access.writes else None
            pointer, location = access.pointer, access.instance.place
            assert pointer is not None
            if access.writes or access.cell[0].data in unchanged or (theirs is not None and theirs.pointer is pointer):
                continue
            name = location.block.name_hint if location.block is not None else "root"
            raise NotProvable(f"block {name} has a pointer to {pointer.name}, which it had not before")

    def _check_inlined(self) -> None:
        """A load that stands for one of another block was inlined: the block must have seen just what is inlined."""
        origins, done = self.new.naming.origins, set()
        for (key, _), (inlined, _, values) in origins.loads.items():
            if key in origins.renamed or key in origins.copies or inlined == key or key not in self.old.keys:
                continue
            claim = (key, inlined, tuple(values))
            if claim not in done and not self._reads_instance(*claim):
                block = self.old.keys[key]
                name = block.name_hint if block is not None else "the function"
                raise NotProvable(f"what is inlined into {name} is not always what it reads")
            done.add(claim)

    def _reads_instance(self, key: BlockKey, inlined: BlockKey, values: Sequence[Expr]) -> bool:
        if self.by_lemmas and not self.old.naming.ambiguous and reads_instance(self.old.settled, key, inlined, values):
            return True
        return self.old.reads_instance(key, inlined, values)

    def _check_loads(self) -> None:
        """A block must have the loads that it had: they go by their numbers, and one that is gone renumbers the rest.

        A load is gone where its value no longer matters: `A[i] - B[i]` once both are the same memory, `B[I[i] % 1]`.
        """
        origins = self.new.naming.origins
        known = _numbers_of_loads(self.old.dataflow)
        for key, numbers in _numbers_of_loads(self.new.dataflow).items():
            before = known.get(origins.renamed[key][0] if key in origins.renamed else key)
            if before is None or key in origins.rewritten or key in origins.copies:
                continue
            # A block that stands in several places may have lost loads in one of them earlier.
            if set(numbers) != set(before) or (len(before) > 1 and numbers != before):
                block = self.new.keys[key]
                title = block.name_hint if block is not None else "root"
                problem = f"block {title} would have {_counted(numbers)}, where it had {_counted(before)}"
                raise NotProvable(f"{problem}: which stands for which is not known")

    def _check_updates(self) -> None:
        """What a block reads beside its own sum must not have become a part of it.

        The loads of an update are not readers: the order of updates is free. Where two buffers come to share memory, a
        load of another value may end up in the very cell that the block updates.
        """
        old, new = self.old.dataflow, self.new.dataflow
        for access in new.program.accesses:
            if access.writes or not new.is_update(access):
                continue
            key, ordinal = self._origin_of(access)
            theirs = self.old.loads.get((key, ordinal))
            if theirs is not None and not old.is_update(theirs):
                title = access.instance.place.block.name_hint if access.instance.place.block is not None else "root"
                raise NotProvable(f"block {title} would read {access.buffer.name} in the cell that it updates")

    def _origin_of(self, access: Access) -> tuple[BlockKey, int]:
        """The old block of a load, and its number there."""
        key, ordinal = self.new.dataflow.key(access.instance.place), self.new.dataflow.ordinals[access]
        origins = self.new.naming.origins
        if (key, ordinal) in origins.loads:
            return origins.loads[key, ordinal][:2]
        return origins.renamed[key][0] if key in origins.renamed else key, ordinal

    def _is_plain_input(self, buffer: Buffer) -> bool:
        """A quick yes: nobody ever writes the buffer, and its loads are the very nodes they were."""
        old, new = self.old.dataflow, self.new.dataflow
        origins = self.new.naming.origins
        accesses = new.by_buffer.get(buffer, ())
        if buffer.data in new.program.unknown or buffer.data in old.program.unknown:
            return False
        if any([access.writes for access in [*accesses, *old.by_buffer.get(buffer, ())]]):
            return False
        for access in accesses:
            location = access.instance.place
            key, ordinal = new.key(location), new.ordinals[access]
            theirs = self.old.loads.get((key, ordinal))
            if (
                theirs is None
                or theirs.node is not access.node
                or location.outer
                or location.indexed
                or access.cell[0] is not access.buffer
            ):
                return False
            if key in origins.renamed or (key, ordinal) in origins.loads or key in origins.copies:
                return False
        return True

    def _is_settled(self, buffer: Buffer) -> bool:
        """A quick yes: in both versions the readers find what the one block wrote that fills the buffer."""
        if not self.by_lemmas or self.old.naming.ambiguous or self.new.naming.ambiguous:
            return False
        return same_sources(self.old.settled, self.new.settled, buffer, self.new.naming.origins, self._unchanged)

    def _compare(self, buffer: Buffer) -> Mismatch | None:
        self.new.check_copies(buffer)
        self._check_starts(buffer)
        seen = self.new.through(buffer)
        if not seen.readers:
            return None
        known = self._counterparts(seen)
        if not known:
            return None
        base, updates = known[0].named_base, known[0].named_updates
        for other in known[1:]:
            base, updates = base.union(other.named_base), updates.union(other.named_updates)
        defined = base.subtract_range(self._undefined()).domain()

        wrong = self._possible(seen.named_base.intersect_domain(defined).subtract(base))
        result = None
        if wrong is not None:
            result = Mismatch("base", self.old, self.new, seen, known, wrong)
        elif not seen.updates.is_empty() or not updates.is_empty():
            result = self._compare_updates(seen, known, updates, defined)
        for other in known:
            self.old.check_names(other.flow.buffer)
        return result

    def _check_starts(self, buffer: Buffer) -> None:
        """An update must find a start value if it found one before, though nobody reads what it makes.

        Updates are no readers, so the comparison does not ask what they see in cells that are never read; but a program
        that reads memory without a value does not build.
        """
        lacking = self.new.updates_of_nothing(buffer)
        if lacking is None:
            return
        old = self.old.dataflow
        for other in old.groups:
            before = self.old.updates_of_nothing(other)
            if before is not None:
                lacking = lacking.subtract(before)
        if self._possible(lacking) is not None:
            raise NotProvable(f"cells of {buffer.name} would be updated before they get their start value")

    def _check_new_starts(self, buffer: Buffer) -> None:
        """A start that did not run before must not fail: write within its buffer, though nobody reads what it writes,
        load within others, and divide by no 0.
        """
        for writer in self.new.dataflow.starts(buffer, lambda access: self._risk(access) is not None):
            access = writer.access
            assert access is not None
            started = self.new.names_run([writer])
            for other in self.old.dataflow.by_buffer:
                started = started.subtract(self.old.names_run(self.old.dataflow.starts(other)))
            if self._possible(started) is not None:
                text = ", ".join([str(index) for index in access.node.indices])
                problem = f"{buffer.name}[{text}] would be started where it was not before"
                hint = "write the start as a nest of its own first: decompose_reduction"
                raise NotProvable(f"{problem}, and there {self._risk(access)}", hint)

    def _risk(self, access: Access) -> str | None:
        """How the block of an access may fail: it leaves its domains, a buffer is left, or the divisor is 0."""
        program, block = self.new.dataflow.program, access.instance.block
        assert block is not None
        if any_node(block.body, may_divide_by_zero):
            return "it may divide by 0"
        for other in [other for other in program.accesses if other.instance.block is block]:
            try:
                is_known = is_inside(program, other)
            except OutOfBounds:
                is_known = False
            if not is_known:
                text = ", ".join([str(index) for index in other.node.indices])
                return f"{other.buffer.name}[{text}] is not known to be a cell of {other.buffer.name}"
        try:
            return None if stays_in_domains(program, block) else "its axes are not known to stay in their domains"
        except OutOfBounds:
            return "its axes leave their domains"

    def _compare_updates(self, seen: Through, known: list[Through], updates: Any, defined: Any) -> Mismatch | None:
        extra = self._possible(seen.named_updates.intersect_domain(defined).subtract(updates))
        if extra is not None:
            return Mismatch("extra", self.old, self.new, seen, known, extra)
        if seen.readers_differ:
            asked = seen.named_base.domain().intersect(defined)
            missing = self._possible(updates.intersect_domain(asked).subtract(seen.named_updates))
            if missing is not None:
                return Mismatch("missing", self.old, self.new, seen, known, missing)
        else:
            readers = seen.reader_names.intersect_domain(seen.base.domain()).intersect_range(defined)
            lacking = readers.apply_range(updates).subtract(seen.updates.apply_range(seen.writer_names))
            missing = self._possible(lacking.apply_domain(seen.reader_names))
            if missing is not None:
                return Mismatch("missing", self.old, self.new, seen, known, missing, lacking)
        if not seen.updates_differ:
            again = seen.twice()
            named = again.apply_domain(seen.reader_names).apply_range(seen.writer_names)
            twice = self._possible(named.intersect_domain(defined))
            if twice is not None:
                return Mismatch("twice", self.old, self.new, seen, known, twice, again.apply_range(seen.writer_names))
        return None

    def _possible(self, wrong: Any) -> Any:
        """The part of a relation whose sizes an argument can have; None when it is empty."""
        import islpy as isl

        text = self.new.dataflow.text
        facts = " and ".join(text.known()) if text.parameters else ""
        if facts and not wrong.is_empty():
            parameters = ", ".join(text.parameters.values())
            wrong = wrong.intersect_params(isl.Set.read_from_str(context(), f"[{parameters}] -> {{ : {facts} }}"))
        return None if wrong.is_empty() else wrong

    def _counterparts(self, seen: Through) -> list[Through]:
        """The flow through the old buffers that the readers' origins read."""
        result: dict[Buffer, Through] = {}
        old, naming = self.old.dataflow, self.new.naming
        checked = []
        for reader in seen.readers:
            buffer = self._old_buffer(reader)
            if buffer is None:
                continue
            checked.append(reader)
            for field in {buffer, *old.groups.get(buffer, ())}:
                result[field] = self.old.through(field)
        names = [self.old.naming.name(reader) for item in result.values() for reader in item.readers]
        spaces = {(name.space, len(name.values)) for name in names}
        for reader in checked:
            # Relations of another length are never equal, nor different: such a reader would not be compared at all.
            name = naming.name(reader)
            if (name.space, len(name.values)) not in spaces:
                raise NotProvable(f"block {name.label.title} reads {reader.buffer.name} in a new way")
        return list(result.values())

    def _old_buffer(self, reader: Reference) -> Buffer | None:
        """What the reader's origin reads; None when its block is new and stands for no other.

        What a block computes that did not exist before, nobody who did can have seen: its own reads need no proof.
        """
        buffer, location = reader.shadow_of or reader.buffer, reader.place
        if location is None:
            return self.new.naming.origins.buffers.get(buffer, buffer)
        key, ordinal, _ = self.new.naming.origin(reader, location)
        access = self.old.loads.get((key, ordinal))
        if access is not None:
            return access.cell[0]
        if key in self.old.keys:
            title = self.new.naming.name(reader).label.title
            raise NotProvable(f"block {title} has a load of {buffer.name} that stands for none it had before")
        return None

    def _undefined(self) -> Any:
        import islpy as isl

        return isl.UnionSet.read_from_str(context(), f"{{ {UNDEFINED}[] }}")


def _numbers_of_loads(flow: Dataflow) -> dict[BlockKey, Counter[int]]:
    """How many loads each block has, wherever it stands."""
    found: dict[BlockKey, Counter[int]] = {}
    for place, accesses in flow.by_place.items():
        loads = [access for access in accesses if not access.writes and access.buffer is not OUTSIDE]
        found.setdefault(flow.key(place), Counter())[len(loads)] += 1
    return found


def _counted(numbers: Counter[int]) -> str:
    return " and ".join([f"{number} load{'' if number == 1 else 's'}" for number in sorted(numbers)])
