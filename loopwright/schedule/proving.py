"""Proving: what the engine asks of a step before it applies it, and of a program before it takes it.

Every step is held to the same rules, whatever its primitive: no use of a buffer outside its scope, every value kept,
no races, threads that fit, tensorized blocks that are still what their intrinsics describe.
"""

from __future__ import annotations

from loopwright.ir import Var
from loopwright.schedule.errors import NotProved, WouldChangeValues, WouldRace
from loopwright.schedule.loop_kinds import check_thread_loops, concurrent_loops, to_prove_again
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
    race = find_race(view.function, var)
    if isinstance(race, Unproved):
        raise NotProved(f"{method}: loop {var.name}", race.reason, view.loop(var))
    if race is not None:
        raise WouldRace(f"{method}: loop {var.name}", race.why, view.loop(var), race.fields)
