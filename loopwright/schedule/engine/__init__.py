"""The engine: it finds what a step is about, has the primitive build it, proves it, applies it and records it.

Open `schedule.py` first: `Schedule` and the way of one step. `methods/` are its public methods, in groups;
`prove_step.py` is what the engine asks of a step, `deferred.py` proves a chain of steps at once, `composites.py` makes
one step of several, `state.py` answers `ScheduleState`'s questions.
"""
