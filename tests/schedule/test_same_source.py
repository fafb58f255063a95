"""same_source: whatever the lemma says yes to, the exact test does too; and usual schedules need no exact test."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from loopwright import te, tir
from loopwright.analysis.dataflow import Dataflow, NotProvable
from loopwright.ir import PrimFunc
from loopwright.schedule import Schedule, ScheduleError
from loopwright.schedule.origins import Origins
from loopwright.schedule.proof import find_mismatch as comparing
from loopwright.schedule.proof.reaching_writes import ReachingWrites
from loopwright.schedule.proof.same_source import reads_instance, same_sources
from loopwright.script import from_source


@pytest.fixture
def answers(monkeypatch):
    """How often the lemmas said yes; each time, the exact test must."""
    counts: Counter[str] = Counter()
    settled, reads = comparing._Comparison._is_settled, comparing.reads_instance

    def is_settled(self, buffer):
        says_yes = settled(self, buffer)
        if says_yes:
            try:
                assert self._compare(buffer) is None, f"{buffer.name}\n{self.new.dataflow.program.function.script()}"
                counts["settled"] += 1
            except NotProvable:
                counts["only the lemma"] += 1
        return says_yes

    def instance(version, key, writer, values):
        says_yes = reads(version, key, writer, values)
        if says_yes:
            assert ReachingWrites(version.dataflow).reads_instance(key, writer, values)
            counts["reads"] += 1
        return says_yes

    monkeypatch.setattr(comparing._Comparison, "_is_settled", is_settled)
    monkeypatch.setattr(comparing, "reads_instance", instance)
    return counts


def product(m: int, n: int, k: int) -> PrimFunc:
    """A padded operand, a GEMM, and an epilogue that transposes."""
    A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    P = te.compute((m + 2, k), lambda i, r: te.if_then_else(te.all(i >= 1, i <= m), A[i - 1, r], 0.0), name="P")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((m, n), lambda i, j: te.sum(P[i + 1, r] * B[r, j], axis=r), name="C")
    D = te.compute((n, m), lambda j, i: C[i, j] + B[0, j], name="D")
    E = te.compute((n, m), lambda j, i: te.max(D[j, i], 0.0), name="E")
    return te.create_prim_func([A, B, E])


MAPS_OF_TWO = [
    lambda i, j: (j, i),
    lambda i, j: (i // 2, j, i % 2),
    lambda i, j: (j // 3, i, j % 3),
    lambda i, j: (i * 6 + j,),
    lambda i, j: (i, 0, j),
]
MAPS_OF_THREE = [
    lambda i, j, k: (j, i, k),
    lambda i, j, k: (i * 6 + j, k),
    lambda i, j, k: (i, j, k // 2, k % 2),
    lambda i, j, k: (k, i, j),
    lambda i, j, k: (i // 2, j, i % 2, k),
]


def one_step(rng: random.Random, sch: Schedule) -> None:
    names = [block.name_hint for block in sch.get_child_blocks(sch.get_block("root")) for block in [sch.get(block)]]
    name = rng.choice(names)
    kind = rng.choice(["inline", "inline", "read", "write", "layout", "block", "block", "loops", "at", "at", "scope"])
    if kind == "inline":
        rng.choice([sch.compute_inline, sch.reverse_compute_inline])(name)
    elif kind == "read":
        copy = sch.cache_read(name, rng.randrange(2), "global")
        sch.transform_layout(copy, ("write", 0), rng.choice(MAPS_OF_TWO))
    elif kind == "write":
        sch.cache_write(name, 0, "global")
    elif kind == "layout":
        sch.transform_layout(name, ("write", 0), rng.choice(MAPS_OF_TWO))
    elif kind == "block":
        sch.transform_block_layout(name, rng.choice(MAPS_OF_THREE if len(sch.get_loops(name)) == 3 else MAPS_OF_TWO))
    elif kind == "loops":
        loops = sch.get_loops(name)
        sch.split(rng.choice(loops), [None, rng.choice([2, 3, 4])], tail=rng.choice(["guard", "peel"]))
        if rng.random() < 0.5:
            loops = sch.get_loops(name)
            sch.reorder(*rng.sample(loops, len(loops)))
        if rng.random() < 0.5:
            sch.fuse(*sch.get_loops(name)[:2])
    elif kind == "at":
        other = rng.choice(names)
        rng.choice([sch.compute_at, sch.reverse_compute_at])(name, rng.choice(sch.get_loops(other)))
    else:
        sch.set_scope(name, 0, "local")


def on_threads(start: PrimFunc) -> PrimFunc:
    """The program with its first block, and its last one, on threads."""
    sch = tir.Schedule(start)
    for block in ("P", "E"):
        blocks, threads = sch.split(sch.fuse(*sch.get_loops(block)), [None, 7])
        sch.bind(blocks, "blockIdx.x")
        sch.bind(threads, "threadIdx.x")
    return sch.mod["main"]


@pytest.mark.one_in(7)  # both kinds in turn
@pytest.mark.parametrize("has_threads", [False, True])
@pytest.mark.parametrize("chunk", range(6))
def test_a_yes_is_always_right(answers, chunk, has_threads):
    """Random layouts, caches, inlining and loops; step by step, and as a whole."""
    for seed in range(12 * chunk, 12 * chunk + 12):
        rng = random.Random(seed)
        start = product(rng.choice([4, 5]), 6, rng.choice([4, 3]))
        if has_threads:
            start = on_threads(start)
        sch = tir.Schedule(start)
        for _ in range(8):
            try:
                one_step(rng, sch)
            except ScheduleError:
                continue
        again = tir.Schedule(start)
        sch.trace.apply_to_schedule(again)
        assert again.is_proved
    assert answers["settled"] > (20 if has_threads else 50), answers
    assert answers["reads"] > 0 or has_threads, answers


@pytest.fixture
def no_search(monkeypatch):
    """Whoever computes an exact flow fails the test."""

    def refuse(self: Dataflow, buffer: object) -> None:
        raise AssertionError(f"the flow through {buffer} was searched")

    monkeypatch.setattr(Dataflow, "flow", refuse)


@pytest.mark.usefixtures("no_search")
def test_layouts_axes_and_inlining_need_no_search():
    sch = tir.Schedule(product(8, 6, 4))
    sch.transform_block_layout("C", lambda i, j, k: (i * 6 + j, k))
    packed = sch.cache_read("C", 1, "global")
    sch.transform_layout(packed, ("write", 0), lambda k, j: (j // 3, k, j % 3))
    sch.compute_inline("P")
    sch.compute_inline("D")
    fused = sch.fuse(*sch.get_loops("E"))
    sch.split(fused, [None, 4])
    again = tir.Schedule(product(8, 6, 4))
    sch.trace.apply_to_schedule(again)
    assert again.is_proved


TWO_BLOCKS = """
@T.prim_func
def f(A: T.Buffer((4, 6)), C: T.Buffer((4, 6))):
    B = T.alloc_buffer((4, 6))
    for i, j in T.grid(4, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(4, 6):
        with T.block("C"):
            ui, uj = T.axis.remap("SS", [i, j])
            C[ui, uj] = B[%s]
"""


def versions(before: str, after: str) -> tuple[ReachingWrites, ReachingWrites, PrimFunc]:
    old, new = from_source(TWO_BLOCKS % before), from_source(TWO_BLOCKS % after)
    return comparing._reaching_writes(old), comparing._reaching_writes(new), new


@pytest.mark.parametrize(
    ("after", "values", "expected"),
    [
        ("ui, uj", lambda i, j: (i, j), True),
        ("ui, 5 - uj", lambda i, j: (i, 5 - j), True),
        ("(ui * 6 + uj) // 6, (ui * 6 + uj) % 6", lambda i, j: (i, j), True),
        ("ui, uj", lambda i, j: (i, 5 - j), False),
        ("ui, 5 - uj", lambda i, j: (i, j), False),
        ("uj % 4, uj", lambda i, j: (i, j), False),
    ],
)
def test_axes_that_a_block_is_said_to_have_had(after, values, expected):
    """`B` and `C` are the blocks of another function here: their names say which is which."""
    old, new, function = versions("ui, uj", after)
    block = {key if isinstance(key, str) else key.name: key for key in new.keys}
    before = {key if isinstance(key, str) else key.name: key for key in old.keys}
    axes = {name: block[name] for name in block if name in ("vi", "ui")}
    origins = Origins(
        renamed={
            axes["ui"]: (before["ui"], lambda given: values(*given)),
            axes["vi"]: (before["vi"], lambda given: given),
        },
        buffers={},
    )
    memory = next(buffer for buffer in new.dataflow.by_buffer if buffer.name == "B")
    assert same_sources(old.settled, new.settled, memory, origins) is expected


def test_a_load_reads_one_instance_or_is_not_seen_to():
    old, _, _ = versions("ui, 5 - uj", "ui, uj")
    key = {item if isinstance(item, str) else item.name: item for item in old.keys}
    block = next(block for item, block in old.keys.items() if item is key["ui"])
    i, j = [axis.var for axis in block.iter_vars]
    assert reads_instance(old.settled, key["ui"], key["vi"], [i, 5 - j])
    assert not reads_instance(old.settled, key["ui"], key["vi"], [i, j])
    assert not reads_instance(old.settled, key["ui"], key["ui"], [i, 5 - j])


def test_copies_there_and_back_end():
    """The copy back and the block before it fill C; what is copied back is a sum, not what the other one wrote."""
    before = from_source(
        """
@T.prim_func
def f(A: T.Buffer((4, 6)), C: T.Buffer(4)):
    for i in range(4):
        with T.block("C_init"):
            vi = T.axis.spatial(4, i)
            C[vi] = 0.0
    for i, k in T.grid(4, 6):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            C[vi] = C[vi] + A[vi, vk]
"""
    )
    sch = tir.Schedule(before)
    sch.cache_inplace("C", "C", "local")
    again = tir.Schedule(before)
    sch.trace.apply_to_schedule(again)
    assert again.is_proved
