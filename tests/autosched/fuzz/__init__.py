"""Random contractions, convolutions, pooling and reductions, held against numpy through autosched.

`approx.py` says how far a correct program may be from the float64 result, `draft.py` builds programs and their values
together, `contractions.py`, `convolutions.py` and `images.py` choose what they compute, and `check.py` tries one.
"""
