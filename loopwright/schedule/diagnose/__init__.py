"""Diagnosis: what a refusal says beyond the fact: what would work instead, and what became of a loop that is gone.

`suggestions.py` tries the calls that `alternatives.py` lists; `handle_history.py` tells what happened to a handle;
`suggest_allocation_move.py` is the advice where parallel iterations share a buffer, `witness.py` draws the witness.
"""
