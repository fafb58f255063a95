"""ReachingWrites: what the readers of one version of a program see, by name.

The flow of `analysis/dataflow.py` is in iterations of loops; here it is seen through copies and translated to names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from loopwright.analysis.accesses import Access
from loopwright.analysis.boxes import joined
from loopwright.analysis.dataflow import BlockKey, Flow, NotProvable, Reference
from loopwright.analysis.effects import OUTSIDE
from loopwright.analysis.single_writer import SingleWriterBuffers
from loopwright.arith.affine import Form, Part
from loopwright.arith.isl import context, relations
from loopwright.ir import Block, Buffer, Expr, Var
from loopwright.schedule.origins import Origins
from loopwright.schedule.proof.instance_names import Naming, Way

if TYPE_CHECKING:
    import islpy

    from loopwright.analysis.dataflow import Dataflow

CHAIN: Final = 3  # copies of copies followed one by one, before their closure is asked for


class Through(NamedTuple):
    """What is seen through one buffer; readers in blocks that only copy are left out."""

    flow: Flow
    readers: Sequence[Reference]
    base: islpy.UnionMap  # iteration of a reader → iteration of a write
    updates: islpy.UnionMap  # iteration of a reader → iteration of an update
    reader_names: islpy.UnionMap  # iteration → name
    writer_names: islpy.UnionMap
    named_base: islpy.UnionMap  # name → name
    named_updates: islpy.UnionMap
    readers_differ: bool  # no two iterations of readers have one name
    updates_differ: bool  # the same for the updates that they see

    def twice(self) -> Any:
        """Reader → update, where the reader sees another iteration of the same name as well."""
        names = self.writer_names.intersect_domain(self.updates.range())
        alike = names.apply_range(names.reverse()).subtract(names.domain().identity())
        return self.updates.apply_range(alike).intersect(self.updates)


class ReachingWrites:
    """What readers see, buffer by buffer, when first asked for."""

    def __init__(
        self,
        dataflow: Dataflow,
        origins: Origins | None = None,
        settled: SingleWriterBuffers | None = None,
        way: Way = Way.PLAIN,
        like: ReachingWrites | None = None,
    ) -> None:
        self.dataflow = dataflow
        self.naming: Naming = Naming(dataflow, origins or Origins(), way, None if like is None else like.naming)
        self.settled = settled or SingleWriterBuffers(dataflow)
        self.loads: dict[tuple[BlockKey, int], Access] = self.settled.loads
        self.keys: dict[BlockKey, Block | None] = {}
        for location in dataflow.by_place:
            key = dataflow.key(location)
            # A block that stands in several places has one axis variable there; a name alone may be a coincidence.
            if self.keys.setdefault(key, location.block) is not location.block and isinstance(key, str):
                self.naming.ambiguous.add(key)
        self.followed: dict[str, Reference] = {}  # every write and update met, by tag
        self._found: dict[Buffer, Through] = {}
        self._checked: dict[Buffer, NotProvable | None] = {}

    @property
    def divisions(self) -> int:
        """The divisions and remainders inside one another in its hardest index, which decide how long isl takes."""
        return self.dataflow.program.affine.largest

    def through(self, buffer: Buffer) -> Through:
        """What the readers of `buffer` see. Raises NotProvable."""
        result = self._found.get(buffer)
        if result is None:
            result = self._found[buffer] = self._make(buffer)
        return result

    def check_names(self, buffer: Buffer) -> None:
        """Make sure that a name stands for one value: raise NotProvable when it may stand for several.

        All iterations of a reader with one name must see the same; and where iterations of a writer share a name, so
        must they in whatever their block reads.
        """
        if buffer not in self._checked:
            before = len(self._checked)
            self._checked[buffer] = None  # while we look: names may depend on each other in a circle
            try:
                self._check(buffer)
            except BaseException as reason:
                # Those looked at meanwhile took this one for granted; and the budget may cut a look off.
                for other in list(self._checked)[before:]:
                    del self._checked[other]
                if not isinstance(reason, NotProvable):
                    raise
                self._checked[buffer] = reason
        result = self._checked[buffer]
        if result is not None:
            raise result

    def _check(self, buffer: Buffer) -> None:
        seen = self.through(buffer)
        if not seen.readers_differ:
            lacking = seen.reader_names.intersect_domain(seen.base.domain()).apply_range(seen.named_updates)
            lacking = lacking.subtract(seen.updates.apply_range(seen.writer_names))
            if not seen.named_base.is_single_valued() or not lacking.is_empty():
                if buffer is OUTSIDE:
                    raise NotProvable("iterations with the same axis values make calls that have effects")
                raise NotProvable(f"iterations that read {buffer.name} with the same axis values see different values")
        if not seen.updates_differ and not seen.twice().is_empty():
            raise NotProvable(f"{buffer.name} is updated several times with the same axis values")
        spaces: set[str] = set()
        for writer in [*seen.flow.writers, *seen.flow.updaters]:
            space, location = self.naming.name(writer).space, writer.place
            if location is not None and (space in spaces or not self._is_injective(writer)):
                for access in self.dataflow.by_place[location]:
                    if not access.writes and not self.settled.is_fixed_input(access):
                        self.check_names(access.cell[0])
            spaces.add(space)

    def check_copies(self, buffer: Buffer) -> None:
        """Make sure that what copies from `buffer` finds values there; raise NotProvable else."""
        copies = [item for item in self.dataflow.flow(buffer).readers if self.naming.is_copy(item)]
        if not copies or buffer in self.dataflow.arguments:
            return
        flow = self.dataflow.flow(buffer)
        mine = self.union([f"{item.tuple_text} -> {item.tuple_text}" for item in copies]).domain()
        nothing = self.union(
            [f"{item.tuple_text} -> {item.tuple_text}" for item in flow.writers if item.access is None]
        )
        if not flow.base.intersect_domain(mine).intersect_range(nothing.range()).is_empty():
            title = self.naming.name(copies[0]).label.title
            raise NotProvable(f"block {title} would copy cells of {buffer.name} that hold no value")

    def updates_of_nothing(self, buffer: Buffer) -> Any:
        """The names of updates whose cell holds no value, not even a start value; None when there are none."""
        if buffer not in self.dataflow.groups or buffer in self.dataflow.arguments:
            return None
        flow = self.dataflow.flow(buffer)
        start = [f"{item.tuple_text} -> {item.tuple_text}" for item in flow.writers if item.access is None]
        lacking = flow.update_bases.intersect_range(self.union(start).range()).domain()
        return None if lacking.is_empty() else lacking.apply(self.names(flow.updaters))

    def _is_injective(self, item: Reference) -> bool:
        if self._told_apart(item):
            return True
        return bool(self._names_where_run([item]).is_injective())

    def union(self, items: Sequence[str]) -> Any:
        """isl relations over the program's parameters."""
        return relations(", ".join(self.dataflow.text.parameters.values()), items)

    def names(self, items: Sequence[Reference]) -> Any:
        """Iterations → names."""
        named = [(item, self.naming.name(item)) for item in items]
        return self.union([f"{item.tuple_text} -> {name.space}[{', '.join(name.values)}]" for item, name in named])

    def names_run(self, items: Sequence[Reference]) -> Any:
        """The names of all iterations of accesses."""
        return self._names_where_run(items).range()

    def _names_where_run(self, items: Sequence[Reference]) -> Any:
        """Iterations → names, of those iterations that there are."""
        runs = [f"{item.tuple_text} -> {item.tuple_text} : {' and '.join(item.domain) or '0 = 0'}" for item in items]
        return self.names(items).intersect_domain(self.union(runs).domain())

    def _make(self, buffer: Buffer) -> Through:
        flow = self.dataflow.flow(buffer)
        readers = [item for item in flow.readers if not self.naming.is_copy(item)]
        base, updates = flow.base, flow.updates
        writers, updaters = list(flow.writers), list(flow.updaters)
        if self.naming.origins.copies:
            base, updates, more = self._see_through(flow)
            writers += [item for other in more for item in other.writers]
            updaters += [item for other in more for item in other.updaters]
            if len(readers) < len(flow.readers):
                kept = self.union([f"{item.tuple_text} -> {item.tuple_text}" for item in readers]).domain()
                base, updates = base.intersect_domain(kept), updates.intersect_domain(kept)
        for item in [*writers, *updaters]:
            self.followed[item.tag] = item
        reader_names = self.names(readers)
        writer_names = self.names([item for item in [*writers, *updaters] if not self.naming.is_copy(item)])
        return Through(
            flow,
            readers,
            base,
            updates,
            reader_names,
            writer_names,
            base.apply_domain(reader_names).apply_range(writer_names),
            updates.apply_domain(reader_names).apply_range(writer_names),
            self._differ(readers, base, reader_names),
            self._differ(updaters, updates.reverse(), writer_names),
        )

    def _differ(self, items: Sequence[Reference], relation: Any, names: Any) -> bool:
        """Whether no two iterations of the accesses (those in the domain of `relation`) have one name."""
        spaces = {self.naming.name(item).space for item in items if not self.naming.is_copy(item)}
        if len(spaces) == len(items) and all([self._told_apart(item) for item in items]):
            return True
        return bool(names.intersect_domain(relation.domain()).is_injective())

    def _told_apart(self, item: Reference) -> bool:
        """A quick yes: every loop around the block is a digit of an axis of its own."""
        access, location = item.access, item.place
        if access is None or location is None:
            return item.kind == "final"
        origins, key = self.naming.origins, self.dataflow.key(location)
        if key in origins.renamed or (item.kind == "read" and (key, item.ordinal) in origins.loads):
            return False
        return tells_its_loops(self.dataflow, access)

    def reads_instance(self, key: BlockKey, writer: BlockKey, values: Sequence[Expr]) -> bool:
        """Whether some load of block `key` always sees `writer[values]`, with `values` in the axes of `key`."""
        for (reading, _), access in self.loads.items():
            if reading != key:
                continue
            seen = self.through(access.cell[0])
            reader = next((item for item in seen.readers if item.access is access and item.shadow_of is None), None)
            writers = [item for item in seen.flow.writers if item.place and self.dataflow.key(item.place) == writer]
            if reader is None or not writers:
                continue
            at, around = self.naming.texts(reader, values), self.naming.texts_around(writer, reader)
            if at is None or around is None:
                continue
            at += around
            only = self.union([f"{reader.tuple_text} -> {self.naming.name(w).space}[{', '.join(at)}]" for w in writers])
            mine = self.union([f"{reader.tuple_text} -> {reader.tuple_text}"]).domain()
            result = seen.base.intersect_domain(mine).apply_range(seen.writer_names)
            if result.is_subset(only) and seen.updates.intersect_domain(mine).is_empty():
                return True
        return False

    def _see_through(self, flow: Flow) -> tuple[Any, Any, list[Flow]]:
        """The flow with each copy replaced by what it copied."""
        import islpy as isl

        empty = isl.UnionMap.read_from_str(context(), "{ }")
        flows, copied = [flow], empty
        sources_base, sources_updates = empty, empty
        for one in flows:  # grows as copies of copies are met
            for writer in one.writers:
                if not self.naming.is_copy(writer):
                    continue
                load, source = self._copied(writer)
                if source not in flows:
                    flows.append(source)
                    sources_base, sources_updates = (
                        sources_base.union(source.base),
                        sources_updates.union(source.updates),
                    )
                copied = copied.union(self.union([f"{writer.tuple_text} -> {load.tuple_text}"]))
        if len(flows) == 1 and copied.is_empty():
            return flow.base, flow.updates, []
        if flow in flows[1:] or any([self.naming.is_copy(item) for item in flow.readers]):
            sources_base, sources_updates = sources_base.union(flow.base), sources_updates.union(flow.updates)
        copies = copied.domain()
        onward_base, onward_updates = copied.apply_range(sources_base), copied.apply_range(sources_updates)
        base, updates = flow.base, flow.updates
        for _ in range(CHAIN):
            open_part = base.intersect_range(copies)
            if open_part.is_empty():
                return base, updates, flows[1:]
            updates = updates.union(open_part.apply_range(onward_updates))
            base = base.subtract_range(copies).union(open_part.apply_range(onward_base))
        open_part = base.intersect_range(copies)
        if not open_part.is_empty():
            # Copies in and out of an accumulator, once for each iteration of a loop: a chain of any length.
            steps, exact = onward_base.intersect_range(copies).transitive_closure()
            if not exact:
                raise NotProvable(f"copies of {flow.buffer.name} are handed on from iteration to iteration")
            last = open_part.union(open_part.apply_range(steps))
            updates = updates.union(last.apply_range(onward_updates))
            base = base.union(last.apply_range(onward_base)).subtract_range(copies)
        return base, updates, flows[1:]

    def _copied(self, writer: Reference) -> tuple[Reference, Flow]:
        """The load of a block that copies, and the flow through the buffer that it copies from."""
        location = writer.place
        assert location is not None and writer.access is not None
        loads = [access for access in self.dataflow.by_place[location] if not access.writes]
        if len(loads) == 1:
            flow = self.dataflow.flow(loads[0].cell[0])
            for reader in flow.readers:
                if reader.access is loads[0] and reader.shadow_of is None and len(reader.dims) == len(writer.dims):
                    return reader, flow
        assert location.block is not None
        raise NotProvable(f"block {location.block.name_hint} does not simply copy a cell")


def tells_its_loops(dataflow: Dataflow, access: Access) -> bool:
    """A quick yes: the axis values of its block tell the iteration of every loop around."""
    location = access.instance.place
    open_vars = {loop.var for loop in access.loops[: location.depth]}
    values = [form for form in location.values if form is not None]
    for form in [*values, *_put_together(values)]:
        open_vars.difference_update(_digits(form, dataflow, access))
    return not open_vars


def _put_together(values: Sequence[Form]) -> list[Form]:
    """What was taken apart into axes: `f // 6` and `f % 6` are f."""
    result = []
    for quotient in values:
        for rest in values:
            if quotient is rest or len(quotient.terms) != 1:
                continue
            ((term, k),) = quotient.terms.items()
            if k == 1 and isinstance(term, Part) and term.op == "floor":
                whole = joined(rest.plus(quotient, term.divisor))
                if not any([isinstance(part, Part) for part in whole.terms]):
                    result.append(whole)
    return result


def _digits(form: Form, dataflow: Dataflow, access: Access) -> list[Var]:
    """The loops that a value fixes: the sum of `stride * loop` in which each stride is above all that is smaller."""
    reach, result = 0, []
    for term, stride in sorted(form.terms.items(), key=lambda pair: abs(pair[1])):
        loop = next((loop for loop in access.loops if loop.var is term), None)
        if loop is None or loop.low is None or loop.high is None or abs(stride) <= reach:
            return []
        ranges = dataflow.program.ranges
        top, bottom = ranges.greatest(loop.high, access.loops), ranges.greatest(loop.low.negated(), access.loops)
        result.append(loop.var)
        if top is None or bottom is None:
            return result if len(result) == len(form.terms) else []
        reach += abs(stride) * max(top + bottom, 0)
    return result
