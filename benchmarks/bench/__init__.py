"""The benchmarks: our compiled kernels side by side with libraries and C loops, by the rules in docs/benchmarks.md.

`cases/` says what is measured, one file a family, and `case.py` what an entry is made of. `run.py` starts one child a
family and thread count; `child.py` builds, checks (`verify.py`) and times (`measure.py`) its rows, and `apart.py` keeps
peers with pools of their own in other processes. `networks.py` sums up the layers of a network, `machine.py`
measures the roofline, `bars.py` holds the figures against what we promise; `table.py` and `plot.py` show them.
"""
