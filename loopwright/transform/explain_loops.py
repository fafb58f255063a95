"""explain_loops: how each innermost loop of a program will run, and what would make it faster.

    C: i, k, j        j is vectorized: unit stride in every access
    C: j, k, i        scalar: C has stride 512 over i
                      → make j the innermost loop: unit stride in B and C

The same facts decide what `vectorize_outer_loops` and the code generator do (`codegen/llvm/loop_hints.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from loopwright.arith import Analyzer
from loopwright.ir import (
    BufferLoad,
    BufferStore,
    Call,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    Node,
    PrimFunc,
    Range,
    Stmt,
    Visitor,
    While,
    any_node,
    collect,
    deep,
    structural_equal,
)
from loopwright.target import Target
from loopwright.transform.parts.known_ops import IF_THEN_ELSE
from loopwright.transform.parts.memory_strides import Access, stride_of
from loopwright.transform.passes.vectorize_outer_loops import CHUNK, SHORT, keeps_order
from loopwright.transform.pipeline import lower


class LoopNote(NamedTuple):
    """How an innermost loop runs."""

    loops: tuple[str, ...]  # the loops around it and itself, outermost first
    writes: tuple[str, ...]  # buffers
    is_vectors: bool
    text: str
    hint: str  # what would make it faster; empty where nothing is lost

    def __str__(self) -> str:
        head = f"{', '.join(self.writes)}: {', '.join(self.loops)}"
        return f"{head}\n    {self.text}" + (f"\n    → {self.hint}" if self.hint else "")


@deep
def explain_loops(func: PrimFunc, target: Target | str | None = None) -> list[LoopNote]:
    """How each innermost loop of `func` will run on `target` (this machine by default), in the order of the program."""
    lowered = lower(func, target, stop_after="vectorize_outer_loops")
    (body,) = [function.body for _, function in lowered.functions_items()]
    reader = _Innermost()
    reader.visit(body)
    notes: dict[tuple[tuple[str, ...], tuple[str, ...]], LoopNote] = {}
    for path in reader.paths:
        note = _note(path)
        if note is not None:
            notes.setdefault((note.loops, note.writes), note)  # tails run like the loop they are the end of, or worse
    return list(notes.values())


class _Innermost(Visitor):
    """Collects the innermost loops, each with those around it."""

    def __init__(self) -> None:
        self.path: list[For] = []
        self.paths: list[tuple[For, ...]] = []

    def visit_For(self, loop: For) -> None:
        before = len(self.paths)
        self.path.append(loop)
        self.visit_children(loop)
        if len(self.paths) == before:
            self.paths.append(tuple(self.path))
        self.path.pop()


def _note(path: tuple[For, ...]) -> LoopNote | None:
    innermost = path[-1]
    accesses = _accesses(innermost.body)
    writes = tuple(dict.fromkeys(access.buffer.name for access in accesses if isinstance(access, BufferStore)))
    if not writes:
        return None
    names = tuple(loop.loop_var.name for loop in path if not loop.loop_var.name.endswith(CHUNK))
    facts = Analyzer.over({loop.loop_var: Range.from_min_extent(loop.min, loop.extent) for loop in path})
    lanes = next((loop for loop in reversed(path) if loop.kind is ForKind.VECTORIZED), None)
    if lanes is not None:
        return LoopNote(names, writes, True, *_in_lanes(lanes, innermost, accesses, facts))
    problems = _problems(innermost, accesses, facts)
    if not problems:
        text = f"{innermost.loop_var.name} is vectorized: unit stride in every access"
        return LoopNote(names, writes, True, text, "")
    return LoopNote(names, writes, False, "scalar: " + "; ".join(problems), _advice(path, accesses, facts))


def _in_lanes(lanes: For, innermost: For, accesses: Sequence[Access], facts: Analyzer) -> tuple[str, str]:
    """The text and the hint for a loop that is vectorized already."""
    name = lanes.loop_var.name
    apart = _far(accesses, lanes, facts)
    count = lanes.extent.value if isinstance(lanes.extent, IntImm) else "?"
    text = f"vectors of {count} lanes over {name}"
    if lanes is not innermost:
        text += f"; {innermost.loop_var.name} runs serially inside"
    if not apart:
        return text, ""
    text += f", gathered: {_listed(apart)} over {name}"
    return text, "vectorize a loop with unit stride, or pack the buffer to get one"


def _problems(loop: For, accesses: Sequence[Access], facts: Analyzer) -> list[str]:
    """Why the loop is not vectorized; empty where it is."""
    name = loop.loop_var.name
    if loop.kind is ForKind.UNROLLED:
        return [f"{name} is unrolled"]
    result: list[str] = []
    if isinstance(loop.extent, IntImm) and loop.extent.value < SHORT:
        result.append(f"{name} has only {loop.extent.value} iterations")
    far = _far(accesses, loop, facts)
    if far:
        result.append(f"{_listed(far)} over {name}")
    stores = [access for access in accesses if isinstance(access, BufferStore)]
    for store in stores:
        if stride_of(store, loop.loop_var, facts) == 0 and keeps_order(store):
            result.append(f"{name} carries the float sum {store.buffer.name}, which is not reassociated")
    written = {store.buffer.data: store for store in stores}
    for access in accesses:
        update = written.get(access.buffer.data)
        if update is not None and not _same_cell(access, update):
            result.append(f"{name} has a loop-carried dependence through {access.buffer.name}")
            break
    if _has_conditions(loop.body):
        result.append("a condition in the body is evaluated for each element")
    return list(dict.fromkeys(result))


def _same_cell(one: Access, other: Access) -> bool:
    return all(structural_equal(a, b) for a, b in zip(one.indices, other.indices, strict=True))


def _far(accesses: Iterable[Access], loop: For, facts: Analyzer) -> list[tuple[str, int | None]]:
    """The buffers without unit stride over `loop`, and their stride in elements (None: not constant)."""
    strides = {access.buffer.name: stride_of(access, loop.loop_var, facts) for access in accesses}
    return [(name, stride) for name, stride in strides.items() if stride not in (0, 1)]


def _listed(far: Sequence[tuple[str, int | None]]) -> str:
    known = [f"{name} has stride {stride}" for name, stride in far if stride is not None]
    unknown = [f"{name} has no constant stride" for name, stride in far if stride is None]
    return ", ".join(known + unknown)


def _advice(path: Sequence[For], accesses: Sequence[Access], facts: Analyzer) -> str:
    *around, innermost = path
    stores = [access for access in accesses if isinstance(access, BufferStore)]
    for loop in reversed(around):
        if loop.kind in (ForKind.SERIAL, ForKind.PARALLEL) and not _far(accesses, loop, facts):
            units = {access.buffer.name for access in accesses if stride_of(access, loop.loop_var, facts) == 1}
            if all(stride_of(store, loop.loop_var, facts) == 1 for store in stores):
                return f"make {loop.loop_var.name} the innermost loop: unit stride in {' and '.join(sorted(units))}"
    carries = any(stride_of(store, innermost.loop_var, facts) == 0 for store in stores)
    if carries and not _far(accesses, innermost, facts):
        return f"split {innermost.loop_var.name} and rfactor the inner loop: each lane then has its own accumulator"
    if _far(accesses, innermost, facts):
        return "no loop has unit stride in every access: tile so that whole cache lines are used, or pack a copy"
    return ""


def _accesses(body: Stmt) -> list[Access]:
    return collect(body, BufferLoad, BufferStore)


def _has_conditions(body: Stmt) -> bool:
    def chooses(node: Node) -> bool:
        return isinstance(node, (IfThenElse, While)) or (isinstance(node, Call) and node.op is IF_THEN_ELSE)

    return any_node(body, chooses)
