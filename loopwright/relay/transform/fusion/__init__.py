"""Passes that make one kernel of several operators: fused functions, attention, parallel branches combined.

`uses.py` is the def-use graph with post-dominators; `combine_parallel.py` is what the combining passes share.
"""
