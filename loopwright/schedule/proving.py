"""Proving: what the engine asks of a step before it applies it, and of a program before it takes it.

Every step is held to the same rules, whatever its primitive: no use of a buffer outside its scope, every value kept,
no races, threads that fit, tensorized blocks that are still what their intrinsics describe.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from loopwright.analysis.reduction_init import write_named_inits
from loopwright.analysis.thread_axes import tag_of
from loopwright.ir import BlockRealize, For, ForKind, IterType, Node, Var, pre_order_visit, uses_var
from loopwright.schedule.errors import NotProved, WouldChangeValues, WouldRace
from loopwright.schedule.loop_kinds import check_thread_loops, concurrent_loops, to_prove_again
from loopwright.schedule.memory_first import MOVES, memory_first
from loopwright.schedule.proof import Mismatch, Unproved, find_mismatch, find_race
from loopwright.schedule.record import proof_words
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.tensorized import check_tensorized
from loopwright.schedule.view import View


def prove_loop_kinds(view: View) -> None:
    """Loops written as parallel or vectorized are held to the same rule as those that a step makes so."""
    check_thread_loops("Schedule", view)
    for loop in concurrent_loops(view):
        _prove_no_race("Schedule", view, loop.loop_var)


def prove_step(method: str, view: View, step: Step) -> str:
    """How the step was shown to keep every value, in words; raises the refusal where it was not."""
    if step.proof is Proof.VALUES:
        found = find_mismatch(step.given or view.function, step.after, step.origins, step.buffers)
        if isinstance(found, Mismatch):
            raise WouldChangeValues(method, found, step.at)
        if found is not None:
            raise NotProved(method, found.reason, step.at)
    after = View(step.after)
    check_thread_loops(method, after)
    check_tensorized(method, view, after)
    at_the_same_time = to_prove_again(view, after, step)
    for var in at_the_same_time:
        _prove_no_race(method, after, var)
    return proof_words(step, bool(at_the_same_time))


def _prove_no_race(method: str, view: View, var: Var) -> None:
    several = _started_by_all(view, view.loop(var))
    if several is not None:
        condition = f"a condition ties {var.name} to other loops"
        problem = f"each thread would start the cells of block {several}, since {condition}"
        raise NotProved(f"{method}: loop {var.name}", problem, view.loop(var))
    race = find_race(view.function, var)
    if isinstance(race, Unproved):
        raise NotProved(f"{method}: loop {var.name}", race.reason, view.loop(var))
    if race is not None:
        loop = view.loop(var)
        hint: str | Callable[[], str] | None = None
        if _is_reduced(view, loop):
            hint = _how_to_share(method, var.name)
        elif method in MOVES:
            hint = cache(lambda: memory_first(method, view, var, race.fields.get("buffer")))
        raise WouldRace(f"{method}: loop {var.name}", race.why, loop, race.fields, hint)


def _started_by_all(view: View, loop: For) -> str | None:
    """The block whose init all threads of a reduction over threads would run, each for the same cell.

    It does where a condition ties the loop to others: then threads, and not one of them, say which cells there are.
    """
    if loop.kind is not ForKind.THREAD_BINDING or not _is_reduced(view, loop):
        return None
    below = {realize.block for realize in view.blocks_below(loop) if realize.block.init is not None}
    if not below:
        return None
    written, inits = write_named_inits(view.function.body)
    found: list[str] = []

    def look(node: Node) -> None:
        if isinstance(node, For) and node.loop_var is not loop.loop_var and tag_of(node) == tag_of(loop):
            pre_order_visit(node.body, lambda inner: look_inside(inner, node.loop_var))

    def look_inside(node: Node, var: Var) -> None:
        if isinstance(node, BlockRealize) and inits.get(node.block) in below:
            if not any([uses_var(value, {var}.__contains__) for value in node.iter_values]):
                found.append(node.block.name_hint.removesuffix("_init"))

    pre_order_visit(written, look)
    return found[0] if found else None


def _is_reduced(view: View, loop: For) -> bool:
    """Whether the loop's iterations are members of a reduction."""
    return any(
        axis.iter_type is IterType.CommReduce and uses_var(value, lambda used: used is loop.loop_var)
        for realize in view.blocks_below(loop)
        for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
    )


def _how_to_share(method: str, name: str) -> str:
    part = "inner" if method == "vectorize" else "outer"
    then = method if method in ("parallel", "vectorize") else "mark"
    return f"{name} runs over a reduction: split it, rfactor the {part} part, then {then} that loop of the new block"
