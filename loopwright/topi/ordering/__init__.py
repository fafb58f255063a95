"""Operators that order or search: sort, topk, unique, argwhere, searchsorted. `merge_sort.py` is what they share."""
