"""Every step that can be asked of a program: all loops, permutations, pairs, factors, targets, buffers, layouts.

A `Move` names what it is about by block name and loop depth, not by handle, so that it can be asked of a smaller
program or after fewer steps. Rows of the primitive table whose file is not there yet are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

from loopwright.ir import BlockRealize, Buffer, For, IntImm, SeqStmt
from loopwright.schedule import Schedule
from loopwright.schedule.primitives import PRIMITIVES
from loopwright.schedule.view import View
from tests.schedule.harness.small_intrinsics import small_intrinsics


@dataclass(frozen=True)
class BlockRef:
    """A block by its name."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class LoopRef:
    """The loop at `depth` among those around a block."""

    block: str
    depth: int

    def __str__(self) -> str:
        return f"{self.block}.loops[{self.depth}]"


@dataclass(frozen=True)
class Layout:
    """An index map as text, so that a move can be compared and printed."""

    text: str


class Side(tuple[str, int]):
    """A buffer of a block as ("read" or "write", position): one argument, not a list of them."""

    def __new__(cls, side: str, index: int) -> Side:
        return super().__new__(cls, (side, index))

    def __getnewargs__(self) -> tuple[str, int]:
        return self[0], self[1]  # campaigns send failures between processes


@dataclass(frozen=True)
class Move:
    """A step before it is asked for: the kind, and its arguments by name."""

    kind: str
    arguments: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        told = [f"{name}={_told(value)}" for name, value in self.arguments]
        return f"{PRIMITIVES[self.kind].method}({', '.join(told)})"

    def apply(self, sch: Schedule) -> None:
        """Ask it of a schedule; the trace then also holds how the handles were found."""
        row = PRIMITIVES[self.kind]
        given = {name: _resolved(sch, value) for name, value in self.arguments}
        inputs = {name: given[name] for name in row.inputs if name in given}
        attrs = {name: given[name] for name in row.attrs if name in given}
        sch.run_instruction(self.kind, inputs, attrs)


def _told(value: Any) -> str:
    if isinstance(value, tuple) and not isinstance(value, Side):
        return f"[{', '.join([_told(item) for item in value])}]"
    return str(value) if isinstance(value, (BlockRef, LoopRef)) else repr(getattr(value, "text", value))


def _resolved(sch: Schedule, value: Any) -> Any:
    if isinstance(value, BlockRef):
        return sch.get_block(value.name)
    if isinstance(value, LoopRef):
        loops = sch.get_loops(sch.get_block(value.block))
        if value.depth >= len(loops):
            raise Unresolved(f"{value} is not there")
        return loops[value.depth]
    if isinstance(value, Layout):
        return value.text
    if isinstance(value, Side):
        return tuple(value)
    if isinstance(value, tuple):
        return [_resolved(sch, item) for item in value]
    return value


class Unresolved(ValueError):
    """A move names a loop that the program does not have."""


def move(kind: str, **arguments: Any) -> Move:
    """A move, arguments by name."""
    return Move(kind, tuple(arguments.items()))


# --- the program as a list of places ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Places:
    """The blocks and loops of a program that moves can name."""

    blocks: list[tuple[BlockRef, BlockRealize]]
    loops: list[tuple[LoopRef, For]]
    nests: list[list[tuple[LoopRef, For]]]  # around each leaf, outermost first
    allocated: frozenset[Buffer]


def places_of(view: View) -> Places:
    """What there is to name; blocks whose name is not unique are left out, as users cannot name them either."""
    names = view.block_names()
    blocks, nests = [], []
    seen: dict[Any, tuple[LoopRef, For]] = {}
    allocated: set[Buffer] = set()
    for key, path in view.index.blocks.items():
        realize = path[-1]
        assert isinstance(realize, BlockRealize)
        allocated.update(realize.block.alloc_buffers)
        name = realize.block.name_hint
        if len(path) == 1 or names.count(name) > 1:
            continue
        blocks.append((BlockRef(name), realize))
        nest = []
        for depth, loop in enumerate(view.loops_of(key)):
            nest.append(seen.setdefault(loop.loop_var, (LoopRef(name, depth), loop)))
        nests.append(nest)
    return Places(blocks, list(seen.values()), nests, frozenset(allocated))


# --- arguments, primitive by primitive ----------------------------------------------------------------------------


def _extent(loop: For) -> int:
    return loop.extent.value if isinstance(loop.extent, IntImm) else 4


def _splits(places: Places) -> Iterator[Move]:
    for ref, loop in places.loops:
        extent = _extent(loop)
        for factor in range(1, extent + 2):
            for factors in ((None, factor), (factor, None), (factor, -(-extent // factor)), (None, factor, 2)):
                yield move("Split", loop=ref, factors=factors, preserve_unit_iters=True, tail="guard")
            for tail in ("peel", "pad", "shift"):
                yield move("Split", loop=ref, factors=(None, factor), preserve_unit_iters=True, tail=tail)
        yield move("Split", loop=ref, factors=(2, None, 2), preserve_unit_iters=True, tail="peel")


def _fuses(places: Places) -> Iterator[Move]:
    for nest in _distinct(places.nests):
        for first, last in combinations(range(len(nest) + 1), 2):
            if last - first > 1:
                loops = tuple([ref for ref, _ in nest[first:last]])
                yield move("Fuse", loops=loops, preserve_unit_iters=True)


def _reorders(places: Places) -> Iterator[Move]:
    for nest in _distinct(places.nests):
        refs = [ref for ref, _ in nest[:5]]
        for count in range(2, len(refs) + 1):
            for chosen in combinations(refs, count):
                for order in permutations(chosen):
                    if order != chosen:
                        yield move("Reorder", ordered_loops=order)


def _merges(places: Places) -> Iterator[Move]:
    refs = [ref for ref, _ in places.loops]
    for pair in permutations(refs, 2):
        if pair[0].block != pair[1].block:
            yield move("Merge", loops=pair)
    for triple in combinations([ref for ref in refs if ref.depth == 0], 3):
        yield move("Merge", loops=triple)


def _fissions(places: Places) -> Iterator[Move]:
    for ref, loop in places.loops:
        count = len(loop.body.seq) if isinstance(loop.body, SeqStmt) else 1
        for index in range(1, max(count, 2)):
            yield move("Fission", loop=ref, index=index)


def _versions(places: Places) -> Iterator[Move]:
    refs = [ref for ref, _ in places.loops]
    for condition in ("lambda: 0 < 1", "lambda: 1 < 0"):
        for ref in refs:
            yield move("Specialize", loops=(ref,), condition=condition)
        for pair in permutations([ref for ref in refs if ref.depth == 0], 2):
            yield move("Specialize", loops=pair, condition=condition)


def _unit_loops(places: Places) -> Iterator[Move]:
    for ref, _ in [*places.blocks, *places.loops]:
        yield move("AddUnitLoop", block_or_loop=ref)


def _kind(kind: str) -> Callable[[Places], Iterator[Move]]:
    def kinds(places: Places) -> Iterator[Move]:
        for ref, _ in places.loops:
            yield move(kind, loop=ref)

    return kinds


def _binds(places: Places) -> Iterator[Move]:
    for ref, _ in places.loops:
        for axis in ("threadIdx.x", "blockIdx.x"):
            yield move("Bind", loop=ref, thread_axis=axis)


def _thread_loops(places: Places) -> Iterator[Move]:
    for ref, loop in places.loops:
        for extent in sorted({1, 2, int(getattr(loop.extent, "value", 2)) or 1}):
            yield move("AddThreadLoop", loop=ref, thread_axis="threadIdx.x", extent=extent)


def _attachments(kind: str) -> Callable[[Places], Iterator[Move]]:
    def attachments(places: Places) -> Iterator[Move]:
        for block, _ in places.blocks:
            own = {ref for nest in places.nests for ref, _ in nest if ref.block == block.name}
            for loop, _ in places.loops:
                if loop in own:
                    continue
                for index in (-1, -2, 0, 1):
                    yield move(kind, block=block, loop=loop, preserve_unit_loops=index == 0, index=index)

    return attachments


def _blocks(kind: str) -> Callable[[Places], Iterator[Move]]:
    def blocks(places: Places) -> Iterator[Move]:
        for block, _ in places.blocks:
            yield move(kind, block=block)

    return blocks


def _decompositions(places: Places) -> Iterator[Move]:
    for (block, realize), nest in zip(places.blocks, places.nests, strict=True):
        if realize.block.init is not None:
            for loop, _ in nest:
                yield move("DecomposeReduction", block=block, loop=loop)


def _rfactors(places: Places) -> Iterator[Move]:
    for (_, realize), nest in zip(places.blocks, places.nests, strict=True):
        if realize.block.init is not None:
            rank = len(realize.block.writes[0].buffer.shape)
            for loop, _ in nest:
                for axis in range(-1, rank + 1):
                    yield move("RFactor", loop=loop, factor_axis=axis)


def _winograds(places: Places) -> Iterator[Move]:
    for block, realize in places.blocks:
        if realize.block.init is not None:
            for tile in (2, 3, 4):
                yield move("Winograd", block=block, tile=tile)


def _blockizes(places: Places) -> Iterator[Move]:
    for ref, _ in places.loops:
        for units in (True, False):
            yield move("Blockize", target=ref, preserve_unit_iters=units)
    blocks = [ref for ref, _ in places.blocks]
    for count in (1, 2, 3):
        for first in range(len(blocks) - count + 1):
            yield move("Blockize", target=tuple(blocks[first : first + count]), preserve_unit_iters=True)


def _tensorizes(places: Places) -> Iterator[Move]:
    """Intrinsics of a loop's extent, and some of another: those must be told apart."""
    names = small_intrinsics()
    for ref, loop in places.loops:
        extent = _extent(loop)
        for name, size in names.items():
            if size == extent or (size == extent + 1 and "copy" in name):
                yield move("Tensorize", block_or_loop=ref, tensor_intrin=name, preserve_unit_iters=True)
    for ref, _ in places.blocks:
        for name in ("small_copy_1", "small_sum_2"):
            yield move("Tensorize", block_or_loop=ref, tensor_intrin=name, preserve_unit_iters=True)


def _cache_reads(places: Places) -> Iterator[Move]:
    for block, realize in places.blocks:
        for index in range(len(realize.block.reads)):
            for scope in ("global", "local", "shared"):
                for consumers in (None, (block,)):
                    yield move(
                        "CacheRead",
                        block=block,
                        consumer_blocks=consumers,
                        read_buffer_index=index,
                        storage_scope=scope,
                    )


def _cache_writes(places: Places) -> Iterator[Move]:
    for block, realize in places.blocks:
        for index, region in enumerate(realize.block.writes):
            readers: list[tuple[BlockRef, ...] | None] = [None]
            for other, candidate in places.blocks:
                if other != block and any(read.buffer is region.buffer for read in candidate.block.reads):
                    readers.append((other,))
            for consumers in readers:
                yield move(
                    "CacheWrite",
                    block=block,
                    consumer_blocks=consumers,
                    write_buffer_index=index,
                    storage_scope="global" if consumers else "local",
                )


def _layouts(rank: int) -> list[Layout]:
    if rank == 0:
        return []
    names = [f"i{position}" for position in range(rank)]
    head = f"lambda {', '.join(names)}: "
    found = [Layout(f"{head}({', '.join([*reversed(names), ''])})")] if rank > 1 else []
    rest = ", ".join([*names[:-1], f"{names[-1]} // 2", f"{names[-1]} % 2"])
    return [*found, Layout(f"{head}({rest})"), *_odd_layouts(names)]


def _odd_layouts(names: Sequence[str]) -> list[Layout]:
    """Maps that drop an index or a digit of it, use one twice, meet in a sum, begin late or run backwards.

    Most put two elements into one cell; which of them do depends on the sizes.
    """
    last, others = names[-1], list(names[:-1])
    chosen = [[*others, f"{last} % 2"], [*others, f"{last} // 2"], [*others, f"{last} // 3", f"{last} % 2"]]
    chosen += [[*others, f"min({last}, 1)"], [*others, f"{last} + 1"], [*others, last, last], [*others, "0"]]
    chosen += [[*others, "1", last], [*others, f"7 - {last}"], [*others, f"({last} * 2) % 3"]]
    if others:
        chosen += [others, [last], [f"{others[0]} + {last}", *others[1:]], [f"{others[0]} * 2 + {last}", *others[1:]]]
        chosen += [[f"{others[0]} + {last}", *names[1:]]]
    return [Layout(f"lambda {', '.join(names)}: ({', '.join([*items, ''])})") for items in chosen]


def _stages(places: Places) -> Iterator[Move]:
    for (block, realize), nest in zip(places.blocks, places.nests, strict=True):
        for index, region in enumerate(realize.block.reads):
            for loop, _ in nest:
                for layout in (None, *_layouts(len(region.buffer.shape))):
                    yield move("Stage", block=block, loop=loop, buffer=index, storage_scope="global", layout=layout)


def _layout_changes(places: Places) -> Iterator[Move]:
    for block, realize in places.blocks:
        sides = [("read", realize.block.reads), ("write", realize.block.writes)]
        for side, regions in sides:
            for index, region in enumerate(regions):
                # The layout of an argument is the caller's.
                if region.buffer in places.allocated:
                    for layout in _layouts(len(region.buffer.shape)):
                        for pad in (None, 0):
                            yield move(
                                "TransformLayout",
                                block=block,
                                buffer=Side(side, index),
                                index_map=layout,
                                pad_value=pad,
                            )


def _scopes(places: Places) -> Iterator[Move]:
    for block, realize in places.blocks:
        for index in range(len(realize.block.writes)):
            for scope in ("local", "shared"):
                yield move("SetScope", block=block, buffer_index=index, storage_scope=scope)


def _alignments(places: Places) -> Iterator[Move]:
    for block, realize in places.blocks:
        for index, region in enumerate(realize.block.writes):
            for axis in range(len(region.buffer.shape)):
                yield move("StorageAlign", block=block, buffer_index=index, axis=axis, factor=8, offset=1)


def _lifts(places: Places) -> Iterator[Move]:
    for block, realize in places.blocks:
        for index in range(len(realize.block.writes)):
            for levels in (1, 2):
                yield move("LiftAlloc", block=block, buffer=index, levels=levels)


def _sinks(places: Places) -> Iterator[Move]:
    for block, realize in places.blocks:
        for index in range(len(realize.block.writes)):
            yield move("SinkAlloc", block=block, buffer=index)


def _prefetches(places: Places) -> Iterator[Move]:
    for (block, realize), nest in zip(places.blocks, places.nests, strict=True):
        for index in range(len(realize.block.reads)):
            for loop, _ in nest:
                for distance in (1, 2):
                    yield move("Prefetch", block=block, loop=loop, buffer=index, distance=distance)


def _annotations(places: Places) -> Iterator[Move]:
    for ref, _ in [*places.blocks, *places.loops]:
        yield move("Annotate", block_or_loop=ref, ann_key="note", ann_val=1)


def _unannotations(places: Places) -> Iterator[Move]:
    noted = [(ref, realize.block.annotations) for ref, realize in places.blocks]
    for ref, notes in [*noted, *[(ref, loop.annotations) for ref, loop in places.loops]]:
        for key in notes:
            yield move("Unannotate", block_or_loop=ref, ann_key=key)


def _distinct(nests: Sequence[list[tuple[LoopRef, For]]]) -> Iterator[list[tuple[LoopRef, For]]]:
    """Each nest once, also when several blocks stand in it."""
    seen = set()
    for nest in nests:
        key = tuple([ref for ref, _ in nest])
        if key not in seen:
            seen.add(key)
            yield nest


def _reindexes(places: Places) -> Iterator[Move]:
    for block, realize in places.blocks:
        for side, regions in (("read", realize.block.reads), ("write", realize.block.writes)):
            for index in range(len(regions)):
                yield move("ReIndex", block=block, buffer=Side(side, index))


def _reindex_caches(kind: str, side: str) -> Callable[[Places], Iterator[Move]]:
    def caches(places: Places) -> Iterator[Move]:
        for block, realize in places.blocks:
            for index in range(len(realize.block.reads if side == "read" else realize.block.writes)):
                for layout in _axis_layouts(realize):
                    argument = {f"{side}_buffer_index": index}
                    yield move(kind, block=block, **argument, storage_scope="global", index_map=layout)

    return caches


def _axis_layouts(realize: BlockRealize) -> list[Layout]:
    """Maps of a block's axes: all, the data axes, each alone, in both orders and one of them folded."""
    names = [f"v{position}" for position in range(len(realize.block.iter_vars))]
    data = [name for name, axis in zip(names, realize.block.iter_vars, strict=True) if axis.iter_type == 0]
    head = f"lambda {', '.join(names)}: "
    chosen = [names, list(reversed(names)), data, list(reversed(data)), *[[name] for name in names]]
    chosen += [[*names[:-1], f"{name} // 2", f"{name} % 2"] for name in names[-1:]]
    chosen += [[*names[:-1], f"{name} % 2"] for name in names[-1:]]
    chosen += [[*names[:-1], f"{name} + 1"] for name in names[-1:]]  # begins late
    chosen += [["1", *names], [*names[:-1], f"{names[0]} + {names[-1]}"]] if names else []
    return list(dict.fromkeys([Layout(f"{head}({', '.join([*items, ''])})") for items in chosen if items]))


def _inplace_caches(places: Places) -> Iterator[Move]:
    for block, realize in places.blocks:
        for index in range(len(realize.block.reads)):
            yield move("CacheInplace", block=block, read_buffer_index=index, storage_scope="local")


def _index_caches(places: Places) -> Iterator[Move]:
    for block, _ in places.blocks:
        for times in (0, 1):
            yield move("CacheIndex", block=block, storage_scope="global", cse_thresh=times)


def _copies_at(kind: str, side: str) -> Callable[[Places], Iterator[Move]]:
    def copies(places: Places) -> Iterator[Move]:
        for (block, realize), nest in zip(places.blocks, places.nests, strict=True):
            for index in range(len(realize.block.reads if side == "read" else realize.block.writes)):
                for loop, _ in nest:
                    argument = {f"{side}_buffer_index": index}
                    yield move(kind, loop=loop, block=block, **argument, storage_scope="global")

    return copies


def _rollings(places: Places) -> Iterator[Move]:
    for block, realize in places.blocks:
        for index in range(len(realize.block.writes)):
            for size in (None, 1, 2, 3, 4):
                yield move("RollingBuffer", block=block, write_buffer_index=index, size=size)


def _reuses(places: Places) -> Iterator[Move]:
    names = sorted({buffer.name for buffer in places.allocated})
    for block, realize in places.blocks:
        for name in dict.fromkeys([region.buffer.name for region in (*realize.block.reads, *realize.block.writes)]):
            for other in names:
                if name in names and other != name:
                    yield move("ReuseBuffer", block=block, buffer=name, other=other)


def _axis_orders(places: Places) -> Iterator[Move]:
    for block, realize in places.blocks:
        for order in permutations(range(len(realize.block.iter_vars))):
            yield move("ReorderBlockIterVar", block=block, new_order=order)


def _block_layouts(places: Places) -> Iterator[Move]:
    for block, realize in places.blocks:
        layouts = _axis_layouts(realize)
        names = [f"v{position}" for position in range(len(realize.block.iter_vars))]
        if len(names) > 1 and isinstance(realize.block.iter_vars[1].dom.extent, IntImm):
            size = realize.block.iter_vars[1].dom.extent.value
            fused = ", ".join([f"v0 * {size} + v1", *names[2:], ""])
            layouts.append(Layout(f"lambda {', '.join(names)}: ({fused})"))
        for layout in layouts:
            yield move("TransformBlockLayout", block=block, index_map=layout)


def _jams(places: Places) -> Iterator[Move]:
    for ref, loop in places.loops:
        for factor in range(1, min(_extent(loop), 3) + 2):
            yield move("UnrollAndJam", loop=ref, factor=factor)


def _skews(places: Places) -> Iterator[Move]:
    for nest in places.nests:
        for number, (ref, _) in enumerate(nest):
            for outer, _ in nest[:number]:
                for factor, modulus in ((1, None), (2, None), (3, 2), (5, 4)):
                    yield move("Skew", loop=ref, outer=outer, factor=factor, modulus=modulus)


def _paddings(places: Places) -> Iterator[Move]:
    for (block, _), nest in zip(places.blocks, places.nests, strict=True):
        for loop, _ in nest:
            yield move("DecomposePadding", block=block, loop=loop)


def _einsums(places: Places) -> Iterator[Move]:
    for block, realize in places.blocks:
        count = len(realize.block.iter_vars)
        for size in (2, 3):
            yield move("PadEinsum", block=block, padding=(size,) * count)
            for position in range(count):
                sizes = tuple([size if k == position else 1 for k in range(count)])
                yield move("PadEinsum", block=block, padding=sizes)


def _expansions(places: Places) -> Iterator[Move]:
    for block, _ in places.blocks:
        for types in (("", ""), ("int64", ""), ("", "int64")):
            yield move("ExpandProduct", block=block, types=types)


def _guards(places: Places) -> Iterator[Move]:
    for block, realize in places.blocks:
        names = [f"v{position}" for position in range(len(realize.block.iter_vars))]
        for name, axis in zip(names, realize.block.iter_vars, strict=True):
            end = axis.dom.extent.value if isinstance(axis.dom.extent, IntImm) else 4
            for condition in (f"{name} < {end}", f"{name} < {end - 1}", f"{name} >= 1", f"{name} != {end // 2}"):
                yield move("AddGuard", block=block, condition=f"lambda {', '.join(names)}: {condition}")


def _guards_away(places: Places) -> Iterator[Move]:
    for block, _ in places.blocks:
        for index in (None, 0, 1):
            yield move("RemoveGuard", block=block, index=index)


def _separators(places: Places) -> Iterator[Move]:
    for block, realize in places.blocks:
        for index, region in enumerate(realize.block.writes):
            for cut in range(len(region.buffer.shape) + 1):
                yield move("SetAxisSeparator", block=block, buffer=Side("write", index), axis_separators=(cut,))


def _types(places: Places) -> Iterator[Move]:
    for block, realize in places.blocks:
        for index in range(len(realize.block.writes)):
            for dtype in ("int64", "int8", "float32"):
                yield move("UnsafeSetDType", block=block, buffer_index=index, dtype=dtype)


def _hidings(places: Places) -> Iterator[Move]:
    for block, realize in places.blocks:
        for side, regions in (("read", realize.block.reads), ("write", realize.block.writes)):
            for index in range(len(regions)):
                yield move("UnsafeHideBufferAccess", block=block, buf_type=side, buf_index_array=(index,))


GENERATORS: Mapping[str, Callable[[Places], Iterator[Move]]] = {
    "Split": _splits,
    "Fuse": _fuses,
    "Reorder": _reorders,
    "Merge": _merges,
    "Fission": _fissions,
    "Specialize": _versions,
    "AddUnitLoop": _unit_loops,
    "Parallel": _kind("Parallel"),
    "Vectorize": _kind("Vectorize"),
    "Unroll": _kind("Unroll"),
    "Bind": _binds,
    "AddThreadLoop": _thread_loops,
    "ComputeAt": _attachments("ComputeAt"),
    "ReverseComputeAt": _attachments("ReverseComputeAt"),
    "ComputeInline": _blocks("ComputeInline"),
    "ReverseComputeInline": _blocks("ReverseComputeInline"),
    "DecomposeReduction": _decompositions,
    "RFactor": _rfactors,
    "Winograd": _winograds,
    "Blockize": _blockizes,
    "Tensorize": _tensorizes,
    "CacheRead": _cache_reads,
    "CacheWrite": _cache_writes,
    "Stage": _stages,
    "TransformLayout": _layout_changes,
    "SetScope": _scopes,
    "StorageAlign": _alignments,
    "LiftAlloc": _lifts,
    "SinkAlloc": _sinks,
    "Prefetch": _prefetches,
    "ReIndex": _reindexes,
    "ReindexCacheRead": _reindex_caches("ReindexCacheRead", "read"),
    "ReindexCacheWrite": _reindex_caches("ReindexCacheWrite", "write"),
    "CacheInplace": _inplace_caches,
    "CacheIndex": _index_caches,
    "ReadAt": _copies_at("ReadAt", "read"),
    "WriteAt": _copies_at("WriteAt", "write"),
    "RollingBuffer": _rollings,
    "ReuseBuffer": _reuses,
    "ReorderBlockIterVar": _axis_orders,
    "TransformBlockLayout": _block_layouts,
    "UnrollAndJam": _jams,
    "Skew": _skews,
    "DecomposePadding": _paddings,
    "PadEinsum": _einsums,
    "ExpandProduct": _expansions,
    "AddGuard": _guards,
    "RemoveGuard": _guards_away,
    "SetAxisSeparator": _separators,
    "UnsafeSetDType": _types,
    "UnsafeHideBufferAccess": _hidings,
    "Annotate": _annotations,
    "Unannotate": _unannotations,
}


def available_kinds() -> list[str]:
    """The steps that the harness knows arguments for."""
    return [kind for kind in step_kinds() if kind in GENERATORS]


def step_kinds() -> list[str]:
    """Every row of the table that changes the program."""
    return [kind for kind, row in PRIMITIVES.items() if not (row.is_query or row.is_sample or row.is_users)]


def moves_of(view: View, kinds: Sequence[str]) -> dict[str, list[Move]]:
    """Every move of these kinds, in a fixed order, each once."""
    places = places_of(view)
    return {kind: list(dict.fromkeys(GENERATORS[kind](places))) for kind in kinds}
