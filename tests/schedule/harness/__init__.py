"""The trust machinery of the schedule layer: is a step the engine accepts right, and one it refuses wrong?

`programs.py` holds small programs, `lets.py` adds lets to them, `cases.py` has every step that can be asked of one,
`legality.py` the truth about a step (by the evaluator on terms), `enumerate.py` puts the engine's answers beside the
truth, `fuzz.py` runs random schedules natively, `reduce.py` makes a failing case small. Start with `legality.py`.
"""
