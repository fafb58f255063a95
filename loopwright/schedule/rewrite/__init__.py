"""Rewriting: what primitives share to build the new version of a program. Nothing here decides whether a step is legal.

Files are named for what they change or build: `bindings.py` (axes of blocks), `nests.py` and `plain_loops.py` (loops),
`buffers.py`, `allocations.py`, `copies.py`, `regions.py`, `windows.py` (memory), `relocate.py`, `inlining.py`,
`reindexing.py` (the work of families of primitives), `edits.py` (several changes in one walk). `iteration_domain.py`
and `footprint.py` say what a statement runs over and which memory it touches.
"""
