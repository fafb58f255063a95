"""What attention kernels compute, and the sizes of their tiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from loopwright.autosched.attention import Attention
from loopwright.autosched.attention.sizes import known
from loopwright.autosched.gpu.machine import GpuMachine, with_figures
from loopwright.ir import Buffer

QUERY_ROWS: Final = 64  # queries of a warpgroup: the rows that wgmma has
ROW_BYTES: Final = 128  # of a tile in shared memory: the widest swizzle
_PER_GROUP: Final = 128  # threads of a warpgroup
_BARRIER_BYTES: Final = 1 << 10  # bytes of shared memory for barriers and alignment
# By head dimension: keys of a tile, stages, tiles of queries on their way, whether values are weighed under the next
# softmax. The fastest of those in `benchmarks/gpu/attention.py --variants` on an H200.
_MANY_QUERIES: Final = {64: (128, 4, 2, True), 128: (128, 2, 1, False), 256: (80, 2, 1, True)}
_FEW_QUERIES: Final = {64: (128, 3, 1, True), 128: (128, 2, 1, True), 256: (64, 2, 1, True)}
_REGISTERS: Final = {1: 0, 2: 232, 3: 160}  # by the number of warpgroups that multiply
_MOST_KEY_STAGES: Final = 6
_PER_TILE: Final = 1.5  # what a tile of queries costs beside its keys, in the time of a tile of keys
_JOIN: Final = 2.0  # what the second kernel costs, likewise
_JOIN_PART: Final = 0.02


class AttentionShape(NamedTuple):
    """softmax(query · keyᵀ · scale) · value, of tensors that lie as `orders` says ("BHSD" or "BSHD")."""

    query: Buffer
    key: Buffer
    value: Buffer
    out: Buffer
    orders: tuple[str, str, str, str]
    batch: int
    heads: int
    group: int  # heads of queries for each head of keys and values
    queries: int
    keys: int
    depth: int  # elements of a query and a key, and of a value
    scale: float
    causal: bool
    diagonal: int  # with `causal`, query q sees keys up to q + diagonal
    hidden_is_zero: bool  # a query that sees no key has the result 0; else NaN


class AttentionPlan(NamedTuple):
    """The tiles of the kernel: how many queries a block has, how many keys a step, and what is under way."""

    groups: int  # warpgroups that multiply, each 64 queries
    keys: int  # of a tile of keys, and of one of values
    stages: int  # tiles of keys, and of values, in shared memory
    query_stages: int  # tiles of queries
    blocks: int  # that are resident: each goes from tile to tile
    overlaps: bool = True  # whether values are weighed while the softmax of the next scores is computed
    registers: int = 0  # of a thread that multiplies; 0 for as many as of any other
    splits: int = 1  # parts of the keys, each of a block of its own
    rows_are_heads: bool = False  # of a tile: those that share keys, of one query

    @property
    def queries(self) -> int:
        """Of a block."""
        return self.groups * QUERY_ROWS

    @property
    def threads(self) -> int:
        """Of the role that multiplies."""
        return self.groups * _PER_GROUP

    def shared_bytes(self, depth: int) -> int:
        rows = self.query_stages * self.queries + 2 * self.stages * self.keys
        return rows * depth * 2 + _BARRIER_BYTES


def attention_shape(what: Attention, tensors: Sequence[Buffer]) -> AttentionShape | None:
    """The shape of what loops compute, where all sizes are known and no mask is added."""
    sizes = [known(size) for size in (what.batch, what.heads, what.group, what.queries, what.keys)]
    batch, heads, group, queries, keys = sizes
    if len(tensors) != 4 or what.depth != what.width:
        return None
    if batch is None or heads is None or group is None or queries is None or keys is None:
        return None
    query, key, value, out = tensors
    return AttentionShape(
        query,
        key,
        value,
        out,
        orders=what.orders,
        batch=batch,
        heads=heads,
        group=group,
        queries=queries,
        keys=keys,
        depth=what.depth,
        scale=what.scale,
        causal=what.causal,
        diagonal=what.diagonal,
        hidden_is_zero=what.hidden_is_zero,
    )


def attention_plan(shape: AttentionShape, machine: GpuMachine) -> AttentionPlan | None:
    """The tiles for a shape; None where there is no such kernel for it."""
    machine = with_figures(machine)
    if not machine.gpu.has_wgmma or str(shape.query.dtype) not in ("float16", "bfloat16"):
        return None
    is_empty = min(shape.batch, shape.heads, shape.queries, shape.keys) < 1
    if shape.depth not in _MANY_QUERIES or shape.scale <= 0 or is_empty:
        return None
    rows_are_heads = shape.queries == 1 and shape.group <= QUERY_ROWS
    groups = 2 if shape.queries > QUERY_ROWS else 1
    keys, stages, query_stages, overlaps = (_MANY_QUERIES if groups > 1 else _FEW_QUERIES)[shape.depth]
    plan = AttentionPlan(
        groups,
        keys=keys,
        stages=stages,
        query_stages=query_stages,
        blocks=machine.multiprocessors,
        overlaps=overlaps,
        registers=_REGISTERS[groups],
        rows_are_heads=rows_are_heads,
    )
    heads = shape.heads // shape.group if rows_are_heads else shape.heads
    tiles = shape.batch * heads * (1 if rows_are_heads else -(-shape.queries // plan.queries))
    splits = _splits(tiles, -(-shape.keys // plan.keys), machine.multiprocessors)
    if groups == 1:  # little is computed with what is loaded
        while plan.stages < _MOST_KEY_STAGES and _with_stage(plan).shared_bytes(shape.depth) <= machine.shared_memory:
            plan = _with_stage(plan)
    return plan._replace(splits=splits)


def _with_stage(plan: AttentionPlan) -> AttentionPlan:
    return plan._replace(stages=plan.stages + 1)


def _splits(tiles: int, key_tiles: int, multiprocessors: int) -> int:
    """Of how many parts the keys are, so that all multiprocessors have work."""

    def cost(splits: int) -> float:
        """In the time of a tile of keys."""
        each = -(-key_tiles // splits)
        join = 0.0 if splits == 1 else _JOIN + splits * _JOIN_PART
        return -(-tiles * splits // multiprocessors) * (each + _PER_TILE) + join

    most = max(1, min(key_tiles, 2 * multiprocessors // tiles)) if tiles < multiprocessors else 1
    return min([splits for splits in range(1, most + 1) if _is_filled(key_tiles, splits)], key=cost)


def _is_filled(key_tiles: int, splits: int) -> bool:
    """Whether every part has keys."""
    return (splits - 1) * -(-key_tiles // splits) < key_tiles
