"""merge: nests that stand side by side become one, their bodies one after the other in each iteration.

    for i in range(8):                     →    for i_m in range(8):
        with T.block("B"):                          with T.block("B"):
            vi = T.axis.spatial(8, i)                   vi = T.axis.spatial(8, i_m)
            B[vi] = A[vi] + 1                           B[vi] = A[vi] + 1
    for j in range(6):                              with T.block("C"):
        with T.block("C"):                              vj = T.axis.spatial(6, i_m)
            vj = T.axis.spatial(6, j)                   T.where(i_m < 6)
            C[vj] = B[vj] * 2                           C[vj] = B[vj] * 2

The loops may stand at any depth: the nests from their common parent down to them are merged loop by loop. A shorter
loop's blocks are guarded. What stands between the nests moves before the merged nest, or behind it where it uses what
the nests before it made. Proved: every read sees the value it saw before.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.analysis.effects import Effects, effects
from loopwright.arith import Analyzer
from loopwright.ir import (
    Allocate,
    Buffer,
    DeclBuffer,
    Expr,
    For,
    ForKind,
    Range,
    SeqStmt,
    Stmt,
    Var,
    logical_and,
    seq,
    structural_equal,
    substitute,
)
from loopwright.ir.operators import cast, maximum
from loopwright.schedule.errors import BadStepArgument, NotSupported
from loopwright.schedule.rewrite.bindings import guard_blocks, rebind
from loopwright.schedule.rewrite.footprint import moved_past_each_other
from loopwright.schedule.rewrite.nests import nest
from loopwright.schedule.rewrite.plain_loops import kind_last
from loopwright.schedule.rewrite.regions import facts_under
from loopwright.schedule.step import LoopResult, Proof, Step
from loopwright.schedule.view import Path, View


def merge(view: View, loops: Sequence[For]) -> Step:
    """Merge the nests that end in `loops`, in program order; the caller gets the innermost merged loop."""
    if len(loops) < 2:
        raise BadStepArgument(
            "merge", f"{len(loops)} loop is given, two or more are needed", loops[0] if loops else None
        )
    if len({loop.loop_var for loop in loops}) != len(loops):
        raise BadStepArgument("merge", f"a loop is named twice among {_names(loops)}", loops[0])
    paths = [view.loop_path(loop.loop_var) for loop in loops]
    parent = _common_parent(loops, paths)
    siblings = paths[0][parent]
    assert isinstance(siblings, SeqStmt)
    at = {statement: position for position, statement in enumerate(siblings.seq)}
    chains = sorted([_chain(path, parent) for path in paths], key=lambda chain: at[chain[0]])
    _check_chains(chains)

    merged, result = _merged_nest(view.all_loops_above(paths[0][:parent]), chains)
    positions = [at[chain[0]] for chain in chains]
    around = paths[0][:parent]
    before, behind = _around(siblings, positions, around)
    first, last = positions[0], positions[-1]
    statements = [*siblings.seq[:first], *before, merged, *behind, *siblings.seq[last + 1 :]]
    after = view.replaced(paths[0][: parent + 1], seq(statements))
    # Within one nest nothing changes its order; only what two of the moved statements share can. A nest that is guarded
    # now may hold a reduction that had no update and still an init: then all it touches is compared.
    buffers: list[Buffer] | None = moved_past_each_other("merge", siblings.seq[first : last + 1], around)
    proof = Proof.VALUES if buffers else Proof.LEMMA
    if any([_is_guarded(chain, result) for chain in chains]):
        buffers, proof = None, Proof.VALUES
    return Step(after, proof, results=[LoopResult(result[-1].loop_var)], at=loops[0], buffers=buffers)


def _is_guarded(chain: Sequence[For], result: Sequence[For]) -> bool:
    """Whether a merged loop runs further than the one it replaces."""
    pairs = zip(chain, result, strict=False)
    return any([not structural_equal(old.extent, new.extent) for old, new in pairs])


def _names(loops: Sequence[For]) -> str:
    return ", ".join([loop.loop_var.name for loop in loops])


def _common_parent(loops: Sequence[For], paths: Sequence[Path]) -> int:
    """The depth of the sequence whose statements hold one nest each."""
    depth = 0
    while all(len(path) > depth and path[depth] is paths[0][depth] for path in paths):
        depth += 1
    parent = depth - 1
    if not isinstance(paths[0][parent], SeqStmt) or len({path[depth] for path in paths}) != len(paths):
        for loop, path in zip(loops, paths, strict=True):
            around = [other for other in loops if other is not loop and any(step is other for step in path)]
            if around:
                problem = f"loop {loop.loop_var.name} is inside loop {around[0].loop_var.name}"
                raise NotSupported("merge", problem, loop, "merge loops of nests that stand side by side")
        problem = f"the loops {_names(loops)} are not in nests that stand side by side"
        raise NotSupported("merge", problem, loops[0])
    return parent


def _chain(path: Path, parent: int) -> list[For]:
    """The loops from below the parent to the named one, each the only statement in the one before."""
    chain: list[For] = []
    for statement in path[parent + 1 :]:
        if not isinstance(statement, For) or (chain and chain[-1].body is not statement):
            loop = path[-1]
            assert isinstance(loop, For)
            if isinstance(statement, (Allocate, DeclBuffer)):
                memory = statement.buffer_var if isinstance(statement, Allocate) else statement.buffer
                problem = f"{memory.name} is allocated in the nest around loop {loop.loop_var.name}"
                raise NotSupported("merge", problem, statement)
            problem = f"loop {loop.loop_var.name} is not the only statement in the nest around it"
            raise NotSupported("merge", problem, path[parent + 1])
        chain.append(statement)
    return chain


def _check_chains(chains: Sequence[Sequence[For]]) -> None:
    first = chains[0]
    for chain in chains[1:]:
        if len(chain) != len(first):
            a, b = first[-1].loop_var.name, chain[-1].loop_var.name
            problem = f"loop {a} is {len(first)} deep in its nest, loop {b} is {len(chain)} deep"
            raise NotSupported("merge", problem, chain[0], "name loops at the same depth")
    for level in zip(*chains, strict=True):
        for loop in level:
            if loop.annotations:
                problem = f"loop {loop.loop_var.name} carries annotations"
                raise NotSupported("merge", problem, loop)
            if loop.kind is ForKind.THREAD_BINDING:
                problem = f"loop {loop.loop_var.name} is bound to threads: a loop gets its kind last"
                raise NotSupported("merge", problem, loop, kind_last("merge", loop.kind))
            if loop.kind is not level[0].kind:
                kinds = f"{level[0].kind.name.lower()} and loop {loop.loop_var.name} {loop.kind.name.lower()}"
                problem = f"loop {level[0].loop_var.name} is {kinds}: a loop gets its kind last"
                given = max(loop.kind, level[0].kind)  # the other one may be serial still
                raise NotSupported("merge", problem, loop, kind_last("merge", given))


def _merged_nest(around: Sequence[For], chains: Sequence[Sequence[For]]) -> tuple[Stmt, list[For]]:
    """One nest for all chains, and its loops."""
    facts = facts_under(around)
    values: list[dict[Var, Expr]] = [{} for _ in chains]
    guards: list[list[Expr]] = [[] for _ in chains]
    result: list[For] = []
    for level in zip(*chains, strict=True):
        dtype = max([loop.loop_var.dtype for loop in level], key=lambda dtype: dtype.bits)
        lows = [cast(substitute(loop.min, given), dtype) for loop, given in zip(level, values, strict=True)]
        extents = [cast(substitute(loop.extent, given), dtype) for loop, given in zip(level, values, strict=True)]
        for loop, low in zip(level, lows, strict=True):
            if not facts.can_prove_equal(low, lows[0]):
                problem = f"loop {level[0].loop_var.name} starts at {lows[0]}, loop {loop.loop_var.name} at {low}"
                raise NotSupported("merge", problem, loop, "merge loops that start at the same value")
        extent = _longest(facts, extents)
        var = Var(f"{level[0].loop_var.name}_m", dtype)
        new = For(var, lows[0], extent, level[0].kind, level[0].body)
        facts.bind(var, Range.from_min_extent(new.min, new.extent))
        for position, loop in enumerate(level):
            values[position][loop.loop_var] = cast(var, loop.loop_var.dtype)
            if not facts.can_prove(extents[position] >= extent):
                guards[position].append(facts.simplify(var < lows[0] + extents[position]))
        result.append(new)
    bodies = []
    for chain, given, conditions in zip(chains, values, guards, strict=True):
        body = rebind(chain[-1].body, given, [*around, *result])
        bodies.append(guard_blocks(body, logical_and(*conditions)) if conditions else body)
    return nest(result, seq(bodies)), result


def _longest(facts: Analyzer, extents: Sequence[Expr]) -> Expr:
    longest = extents[0]
    for extent in extents[1:]:
        if facts.can_prove(extent >= longest):
            longest = extent if not facts.can_prove_equal(extent, longest) else longest
        elif not facts.can_prove(longest >= extent):
            longest = maximum(longest, extent)
    return longest


def _around(siblings: SeqStmt, positions: Sequence[int], path: Path) -> tuple[list[Stmt], list[Stmt]]:
    """What stands between the nests: before the merged one where that crosses nothing it shares memory with."""
    before: list[Stmt] = []
    behind: list[Stmt] = []
    crossed: list[Effects] = []
    for position in range(positions[0], positions[-1] + 1):
        statement = siblings.seq[position]
        mark = effects(statement, path)
        if position in positions:
            crossed.append(mark)
        elif any(mark.conflicts(other) for other in crossed):
            behind.append(statement)
            crossed.append(mark)
        else:
            before.append(statement)
    return before, behind
