"""Attention by tensor cores of sm_90a, as one kernel with roles: `plan.py` has its sizes, `kernel.py` writes it."""
