"""Loops as written: hand-written schedules, compiled by us and by gcc from the C text of the same lowered program.

`rungs/` holds the schedules, one file a family, and `rung.py` what a rung is made of. `c_compiler.py` compiles the C
text, `race.py` builds, checks and times one rung, `cli.py` runs them and shows the table: `python -m benchmarks.loops`.
"""
