"""Alternatives: calls worth trying where a step was refused, the most like it first. Nothing here is known to be legal.

`suggestions.py` tries them on a copy and shows those that are proved. A row of `_NEAR` yields, for one kind of step,
functions that do something to a schedule: the same step elsewhere, another step with the same purpose, or a step that
clears the way and then the same one again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, permutations
from typing import Any, Final, overload

from loopwright.ir import Allocate, BlockRealize, Buffer, For, IntImm, SeqStmt
from loopwright.schedule.errors import ScheduleError
from loopwright.schedule.handles import BlockRV, LoopRV, block_key
from loopwright.schedule.trace.calls import Arguments
from loopwright.schedule.trace.protocol import ScheduleProtocol
from loopwright.schedule.view import View

Attempt = Callable[[ScheduleProtocol], object]

LANES: Final = 8  # tried where a loop of unknown length shall become a vector


@dataclass(frozen=True)
class Asked:
    """The refused step: its arguments as handles, the program it was asked of, and the refusal."""

    kind: str
    inputs: Arguments
    attrs: Arguments
    view: View
    error: ScheduleError

    def again(self, sch: ScheduleProtocol, **changes: object) -> list[Any]:
        """The same step with some arguments changed."""
        inputs = {name: changes.get(name, value) for name, value in self.inputs.items()}
        attrs = {name: changes.get(name, value) for name, value in self.attrs.items()}
        return sch.run_instruction(self.kind, inputs, attrs)

    def changed(self, **changes: object) -> Attempt:
        """The same step with some arguments changed, to be tried."""
        return lambda sch: self.again(sch, **changes)

    def after(self, method: str, *arguments: object) -> Attempt:
        """Another step first, and then the same one."""

        def attempt(sch: ScheduleProtocol) -> None:
            getattr(sch, method)(*arguments)
            self.again(sch)

        return attempt

    # --- what stands around the arguments ---------------------------------------------------------------------------

    def loop(self, name: str = "loop") -> For:
        """The loop that was named."""
        return self.view.loop(self.inputs[name].var)

    def block(self) -> BlockRealize:
        """The block that was named."""
        return self.view.realize(self.inputs["block"].key)

    def nest(self, loop: For) -> list[For]:
        """The loops of the nest that a loop is in, through to the first block under it."""
        blocks = self.view.blocks_below(loop)
        return self.loops_of(blocks[0]) if blocks else self.view.loops_to(loop.loop_var)

    def loops_of(self, realize: BlockRealize) -> list[For]:
        """The loops around a block, outermost first."""
        return self.view.loops_of(block_key(realize.block))

    def neighbours(self, realize: BlockRealize, reads: bool) -> list[BlockRealize]:
        """The other blocks of the scope that make what a block reads, or else that use what it writes."""
        path = self.view.block_path(block_key(realize.block))
        if len(path) == 1:
            return []
        regions = realize.block.reads if reads else realize.block.writes
        mine = {region.buffer.data for region in regions}
        others = [item for item in self.view.blocks_below(self.view.scope_of(path).block.body) if item is not realize]
        theirs = [(item, item.block.writes if reads else item.block.reads) for item in others]
        return [item for item, touched in theirs if any(region.buffer.data in mine for region in touched)]


def alternatives(asked: Asked) -> Iterator[Attempt]:
    """What to try instead of a refused step."""
    memory = asked.error.fields.get("memory")
    if isinstance(memory, str):
        yield from _lifted(asked, memory)
    near = _NEAR.get(asked.kind)
    if near is not None:
        yield from near(asked)


def call(method: str, *arguments: object, **settings: object) -> Attempt:
    """One step by its method."""
    return lambda sch: getattr(sch, method)(*arguments, **settings)


@overload
def _handle(node: For) -> LoopRV: ...
@overload
def _handle(node: BlockRealize) -> BlockRV: ...
def _handle(node: For | BlockRealize) -> LoopRV | BlockRV:
    return LoopRV(node.loop_var) if isinstance(node, For) else BlockRV(block_key(node.block), node.block.name_hint)


def _from(loop: For, nest: Sequence[For]) -> list[For]:
    """The other loops of a nest: those inside `loop` first, then outwards from it; all, if it is not among them."""
    at = next((position for position, other in enumerate(nest) if other is loop), None)
    return list(nest) if at is None else [*nest[at + 1 :], *reversed(nest[:at])]


def _lifted(asked: Asked, memory: str) -> Iterator[Attempt]:
    """The buffer allocated further out first."""
    for path in asked.view.index.blocks.values():
        realize = path[-1]
        assert isinstance(realize, BlockRealize)
        touched = [region.buffer.name for region in (*realize.block.reads, *realize.block.writes)]
        if memory in touched and len(path) > 1:
            for levels in (1, 2):
                yield asked.after("lift_alloc", _handle(realize), memory, levels)
            return


# --- loop kinds -----------------------------------------------------------------------------------------------------


def _at_the_same_time(asked: Asked) -> Iterator[Attempt]:
    """parallel, vectorize, bind: memory of its own for each iteration; another loop of the nest; lanes for threads."""
    loop, view = asked.loop(), asked.view
    shared = asked.error.fields.get("buffer")
    users = [item for item in view.blocks_below(loop) if shared in [region.buffer.name for region in item.block.writes]]
    arguments = [buffer.name for buffer in view.function.argument_buffers()]
    if users and shared not in arguments:
        yield asked.after("sink_alloc", _handle(users[0]), shared)
    if asked.kind == "Vectorize" and not isinstance(loop.extent, IntImm):
        yield lambda sch: sch.vectorize(sch.split(asked.inputs["loop"], [None, LANES])[1])
    nest = asked.nest(loop)
    others = list(reversed(nest)) if asked.kind == "Vectorize" else nest
    for other in others:
        if other is not loop and other.kind is loop.kind:
            yield asked.changed(loop=_handle(other))
    if asked.kind != "Vectorize" and isinstance(loop.extent, IntImm):
        yield call("vectorize", asked.inputs["loop"])
    for item in users:
        if item.block.init is not None:
            yield asked.after("decompose_reduction", _handle(item), asked.inputs["loop"])


# --- shapes of nests ------------------------------------------------------------------------------------------------


def _reorder(asked: Asked) -> Iterator[Attempt]:
    """What stands between the loops divided off; other orders of them, those first that turn fewest pairs round."""
    wanted: list[LoopRV] = asked.inputs["ordered_loops"]
    yield from _divided(asked, wanted, "ordered_loops")
    depth = {handle.var: len(asked.view.loop_path(handle.var)) for handle in wanted}
    now = tuple(sorted(range(len(wanted)), key=lambda position: depth[wanted[position].var]))
    asked_for = tuple(range(len(wanted)))
    orders = list(islice(permutations(asked_for), 5040))
    for order in sorted(orders, key=_turned):
        if order not in (now, asked_for):
            yield asked.changed(ordered_loops=[wanted[position] for position in order])
    for count in range(len(wanted) - 1, 1, -1):
        for some in combinations(wanted, count):
            if sorted(some, key=lambda handle: depth[handle.var]) != list(some):
                yield asked.changed(ordered_loops=list(some))


def _turned(order: Sequence[int]) -> int:
    """How many pairs stand the other way round than asked for."""
    return sum(one > other for one, other in combinations(order, 2))


def _divided(asked: Asked, loops: Sequence[LoopRV], argument: str) -> Iterator[Attempt]:
    """The statements between some loops of a nest in loops of their own first, and then the same step."""
    paths = sorted([asked.view.loop_path(handle.var) for handle in loops], key=len)
    top, longest = paths[0][-1], paths[-1]
    assert isinstance(top, For)
    below = longest[len(paths[0]) :]  # the sequence, and the statement of it that leads on
    body, child = top.body, below[1] if len(below) > 1 else None
    if not isinstance(body, SeqStmt) or child is None:
        return
    index = next((position for position, statement in enumerate(body.seq) if statement is child), None)
    if index is None:
        return

    def attempt(sch: ScheduleProtocol) -> None:
        own = _handle(top)
        if index > 0:
            own = sch.fission(own, index)[1]
        if index + 1 < len(body.seq):
            own = sch.fission(own, 1)[0]
        named = [own if handle.var is top.loop_var else handle for handle in asked.inputs[argument]]
        asked.again(sch, **{argument: named})

    yield attempt


def _fuse(asked: Asked) -> Iterator[Attempt]:
    """What stands in the way first; the loops brought together; some of them."""
    loops: list[LoopRV] = asked.inputs["loops"]
    nodes = [asked.view.loop(handle.var) for handle in loops]
    yield from _without_notes(asked, nodes)
    for realize in asked.view.blocks_below(nodes[0]):
        if realize.block.init is not None:
            yield asked.after("decompose_reduction", _handle(realize), loops[0])
    yield asked.after("reorder", *loops, *[_handle(loop) for loop in asked.nest(nodes[0]) if loop not in nodes])
    for count in range(len(loops) - 1, 1, -1):
        for start in range(len(loops) - count + 1):
            yield asked.changed(loops=loops[start : start + count])


def _split(asked: Asked) -> Iterator[Attempt]:
    """Notes taken off first; a guarded tail; the first factor inferred."""
    loop, factors = asked.loop(), asked.inputs["factors"]
    yield from _without_notes(asked, [loop])
    if asked.attrs["tail"] != "guard":
        yield asked.changed(tail="guard")
        for realize in asked.view.blocks_below(loop):
            if realize.block.init is not None:
                yield asked.after("decompose_reduction", _handle(realize), asked.inputs["loop"])
    small = asked.error.fields.get("factor")  # that may be less than 1
    factors = [f"max({factor}, 1)" if factor == small and small else factor for factor in factors]
    if small:
        yield asked.changed(factors=factors)
    if None not in factors:
        yield asked.changed(factors=[None, *factors[1:]])


def _without_notes(asked: Asked, loops: Iterable[For]) -> Iterator[Attempt]:
    for loop in loops:
        for key in loop.annotations:
            yield asked.after("unannotate", _handle(loop), str(key))


def _merge(asked: Asked) -> Iterator[Attempt]:
    """Further out or in; the first nest moved into the second, or the second into the first; memory lifted."""
    loops: list[LoopRV] = asked.inputs["loops"]
    nodes = [asked.view.loop(handle.var) for handle in loops]
    paths = [asked.view.loop_path(handle.var) for handle in loops]
    yield from _without_notes(asked, nodes)
    for handle, path in zip(loops, paths, strict=True):
        others = {statement for other in paths if other is not path for statement in other}
        own = [statement for statement in path[:-1] if statement not in others]
        for statement in own:
            if isinstance(statement, Allocate):
                yield from _lifted(asked, statement.buffer_var.name)
            if isinstance(statement, For) and isinstance(statement.body, SeqStmt):
                yield from _divided(asked, [_handle(statement), handle], "loops")
    nests = [asked.nest(loop) for loop in nodes]
    depths = [next(k for k, other in enumerate(nest) if other is loop) for nest, loop in zip(nests, nodes, strict=True)]
    for level in sorted(range(min(len(nest) for nest in nests)), key=lambda level: abs(level - min(depths))):
        if set(depths) != {level}:
            yield asked.changed(loops=[_handle(nest[level]) for nest in nests])
    first, last = asked.view.blocks_below(nodes[0]), asked.view.blocks_below(nodes[-1])
    if len(loops) == 2 and len(first) == 1:
        yield call("compute_at", _handle(first[0]), loops[1])
    if len(loops) == 2 and len(last) == 1:
        yield call("reverse_compute_at", _handle(last[0]), loops[0])
    if len(first) == 1 and first[0].block.init is None:
        yield call("compute_inline", _handle(first[0]))


def _fission(asked: Asked) -> Iterator[Attempt]:
    """Divided elsewhere, or a loop further in or out."""
    loop = asked.loop()
    body = loop.body
    while isinstance(body, For):
        body = body.body
    if isinstance(body, SeqStmt):
        for index in range(1, len(body.seq)):
            if index != asked.attrs["index"]:
                yield asked.changed(index=index)
    for other in _from(loop, asked.nest(loop)):
        yield asked.changed(loop=_handle(other))


# --- moving computation ---------------------------------------------------------------------------------------------


def _move(asked: Asked) -> Iterator[Attempt]:
    """compute_at, reverse_compute_at: another loop around a block it works with, the first place; another step."""
    block, loop = asked.block(), asked.loop()
    forward = asked.kind == "ComputeAt"
    partners = asked.neighbours(block, reads=not forward)
    for partner in partners:
        for other in _from(loop, asked.loops_of(partner)):
            yield asked.changed(loop=_handle(other))
    yield asked.changed(index=-2)
    yield call("compute_inline" if forward else "reverse_compute_inline", asked.inputs["block"])
    for partner in partners:
        for other in asked.loops_of(block):
            yield call("reverse_compute_at" if forward else "compute_at", _handle(partner), _handle(other))


def _inline(asked: Asked) -> Iterator[Attempt]:
    """compute_inline, reverse_compute_inline: kept as a block, but as near as may be to the block it works with."""
    block = asked.block()
    forward = asked.kind == "ComputeInline"
    partners = asked.neighbours(block, reads=not forward)
    if not forward:
        for partner in partners:
            yield call("compute_inline", _handle(partner))
    method, back = ("compute_at", "reverse_compute_at") if forward else ("reverse_compute_at", "compute_at")
    for partner in partners:
        for loop in reversed(asked.loops_of(partner)):
            yield call(method, asked.inputs["block"], _handle(loop))
    for partner in partners:
        for loop in reversed(asked.loops_of(block)):
            yield call(back, _handle(partner), _handle(loop))


def _decompose_reduction(asked: Asked) -> Iterator[Attempt]:
    """Before another loop, outwards first."""
    nest = asked.loops_of(asked.block())
    at = next((position for position, other in enumerate(nest) if other is asked.loop()), len(nest))
    for other in [*reversed(nest[:at]), *nest[at + 1 :]]:
        yield asked.changed(loop=_handle(other))


# --- memory ---------------------------------------------------------------------------------------------------------


def _stage(asked: Asked) -> Iterator[Attempt]:
    """At another loop, further in first; the start of a reduction written before it first; memory lifted."""
    block, loop = asked.block(), asked.loop()
    nest = asked.loops_of(block)
    if block.block.init is not None:
        for other in nest:
            yield asked.after("decompose_reduction", asked.inputs["block"], _handle(other))
            break
    for other in _from(loop, nest):
        yield asked.changed(loop=_handle(other))
    name = asked.attrs["buffer"]
    if isinstance(name, str):
        yield from _lifted(asked, name)


def _cache(asked: Asked) -> Iterator[Attempt]:
    """cache_read, cache_write: for all consumers; or a window of the buffer at a loop."""
    if asked.inputs["consumer_blocks"] is not None:
        yield asked.changed(consumer_blocks=None)
    block = asked.block()
    given = asked.attrs["read_buffer_index" if asked.kind == "CacheRead" else "write_buffer_index"]
    name = _buffer_name(block, given, reads=asked.kind == "CacheRead")
    if name is not None:
        for loop in asked.loops_of(block):
            yield call("stage", asked.inputs["block"], _handle(loop), name, storage_scope=asked.attrs["storage_scope"])


def _transform_layout(asked: Asked) -> Iterator[Attempt]:
    """The rest filled with zeros; or the layout given to a copy."""
    if asked.attrs["pad_value"] is None:
        yield asked.changed(pad_value=0)
    block, given = asked.block(), asked.attrs["buffer"]
    for reads in (True, False):
        name = _buffer_name(block, given, reads)
        if name is None or (isinstance(given, list) and given[0] != ("read" if reads else "write")):
            continue
        copy_step = "cache_read" if reads else "cache_write"

        def attempt(sch: ScheduleProtocol, method: str = copy_step, name: str = name) -> None:
            copy = getattr(sch, method)(asked.inputs["block"], name, "global")
            result = sch.view().realize(copy.key).block
            regions = result.writes if method == "cache_read" else result.reads
            asked.again(sch, buffer=regions[0].buffer.name)

        yield attempt


def _own_memory(asked: Asked) -> Iterator[Attempt]:
    """set_scope, storage_align: for a copy that is the function's own."""
    scope = asked.attrs.get("storage_scope")
    given = asked.attrs["buffer_index"]
    if scope is not None:
        yield call("cache_write", asked.inputs["block"], given, scope)
    else:
        yield asked.after("cache_write", asked.inputs["block"], given, "global")


def _lift_alloc(asked: Asked) -> Iterator[Attempt]:
    for levels in range(asked.attrs["levels"] - 1, 0, -1):
        yield asked.changed(levels=levels)


def _sink_alloc(asked: Asked) -> Iterator[Attempt]:
    """A copy of the window in each iteration."""
    for loop in asked.loops_of(asked.block()):
        yield call("stage", asked.inputs["block"], _handle(loop), asked.attrs["buffer"])


def _buffer_name(realize: BlockRealize, given: object, reads: bool) -> str | None:
    """The name of the buffer a step means, if the block touches it that way."""
    regions = realize.block.reads if reads else realize.block.writes
    buffers: list[Buffer] = list(dict.fromkeys([region.buffer for region in regions]))
    if isinstance(given, list) and len(given) == 2:
        given = given[1]
    if isinstance(given, int):
        return buffers[given].name if 0 <= given < len(buffers) else None
    return given if isinstance(given, str) and given in [buffer.name for buffer in buffers] else None


def _tensorize(asked: Asked) -> Iterator[Attempt]:
    """A loop that is too long cut to the size that the intrinsic has, the rest of it outside the tile."""
    facts, given = asked.error.fields, asked.inputs["block_or_loop"]
    wrong, size = facts.get("loop"), facts.get("wanted")
    if not isinstance(size, int) or not isinstance(given, LoopRV):
        return
    nest = asked.nest(asked.view.loop(given.var))
    tile = nest[next(k for k, loop in enumerate(nest) if loop.loop_var is given.var) :]
    long = next((loop for loop in tile if loop.loop_var.name == wrong), None)
    if long is None:
        return

    def attempt(sch: ScheduleProtocol) -> None:
        outer, inner = sch.split(_handle(long), [None, size])
        rest = [inner if loop is long else _handle(loop) for loop in tile]
        if len(rest) > 1:
            sch.reorder(outer, *rest)
        asked.again(sch, block_or_loop=rest[0])

    yield attempt


_NEAR: Final[dict[str, Callable[[Asked], Iterator[Attempt]]]] = {
    "Parallel": _at_the_same_time,
    "Vectorize": _at_the_same_time,
    "Bind": _at_the_same_time,
    "Reorder": _reorder,
    "Fuse": _fuse,
    "Split": _split,
    "Merge": _merge,
    "Fission": _fission,
    "ComputeAt": _move,
    "ReverseComputeAt": _move,
    "ComputeInline": _inline,
    "ReverseComputeInline": _inline,
    "Tensorize": _tensorize,
    "DecomposeReduction": _decompose_reduction,
    "Stage": _stage,
    "CacheRead": _cache,
    "CacheWrite": _cache,
    "TransformLayout": _transform_layout,
    "SetScope": _own_memory,
    "StorageAlign": _own_memory,
    "LiftAlloc": _lift_alloc,
    "SinkAlloc": _sink_alloc,
}
