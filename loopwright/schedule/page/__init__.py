"""Seeing a schedule: what was done, what each step changed, what was refused and why, what happens to a cell.

`history.py`, `diff.py` and `marked.py` are for the screen. `html.py` writes a page out of `page.html`: the differences,
the loops as a tree (`loop_tree.py`), what a run does to each cell (`cell_trace.py`) and the witnesses of refusals as
drawings (`diagnose/witness.py`). Start with `versions.py`.
"""
