"""Proving: what the engine asks of a step before it applies it, and of a program before it takes it.

Every step is held to the same rules, whatever its primitive: no use of a buffer outside its scope, every value kept,
no races, threads that fit, tensorized blocks that are still what their intrinsics describe.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from loopwright.ir import For, IterType, Var, uses_var
from loopwright.schedule.diagnose.suggest_allocation_move import MOVES, suggest_allocation_move
from loopwright.schedule.errors import NotProved, WouldChangeValues, WouldRace
from loopwright.schedule.proof.calls_in_bounds import check_calls_kept
from loopwright.schedule.proof.early_return import check_order_kept
from loopwright.schedule.proof.find_mismatch import Mismatch, Unproved, find_mismatch, find_race
from loopwright.schedule.proof.loading_lets import check_lets_kept
from loopwright.schedule.proof.loop_kinds import check_thread_loops, concurrent_loops, to_prove_again
from loopwright.schedule.proof.moved_inits import with_inits_proved
from loopwright.schedule.proof.tensorized import check_tensorized
from loopwright.schedule.proof.thread_owners import with_owners_proved
from loopwright.schedule.proof.thread_reduction_order import with_turns_proved
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.trace.record import proof_words
from loopwright.schedule.view import View


def prove_loop_kinds(view: View) -> None:
    """Loops written as parallel or vectorized are held to the same rule as those that a step makes so."""
    check_thread_loops("Schedule", view)
    for loop in concurrent_loops(view):
        _prove_no_race("Schedule", view, loop.loop_var)


def prove_step(method: str, view: View, step: Step) -> str:
    """How the step was shown to keep every value, in words; raises the refusal where it was not."""
    check_order_kept(method, view, step)
    after = View(step.after)
    check_calls_kept(method, view, after, step)
    step = with_inits_proved(view, after, with_turns_proved(method, view, step))
    step = with_owners_proved(view, after, step)
    check_lets_kept(method, view, after, step)
    if step.proof is Proof.VALUES:
        result = find_mismatch(step.given or view.function, step.after, step.origins, step.buffers)
        if isinstance(result, Mismatch):
            raise WouldChangeValues(method, result, step.at)
        if result is not None:
            raise NotProved(method, result.reason, step.at, result.hint)
    check_thread_loops(method, after)
    check_tensorized(method, view, after)
    at_the_same_time = to_prove_again(view, after, step)
    for var in at_the_same_time:
        _prove_no_race(method, after, var)
    return proof_words(step, bool(at_the_same_time))


def _prove_no_race(method: str, view: View, var: Var) -> None:
    race = find_race(view.function, var)
    if isinstance(race, Unproved):
        raise NotProved(f"{method}: loop {var.name}", race.reason, view.loop(var))
    if race is not None:
        loop = view.loop(var)
        hint: str | Callable[[], str] | None = None
        if _is_reduced(view, loop):
            hint = _how_to_share(method, var.name)
        elif method in MOVES:
            hint = cache(lambda: suggest_allocation_move(method, view, var, race.fields.get("buffer")))
        raise WouldRace(f"{method}: loop {var.name}", race.why, loop, race.fields, hint)


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
