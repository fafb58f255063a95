"""Operators that move elements: reshape, transpose, slice, gather, scatter, join, repeat; and those that create them.

`moving.py` is the stage that most of them are made of.
"""
