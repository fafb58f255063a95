"""The words of `T`, by what they are about: `types.py`, `values.py`, `memory.py`, `control.py` (loops, blocks, scopes).

`loopwright/script/tir.py` puts them together with the intrinsics of the IR.
"""
