"""The benchmarks: our compiled kernels side by side with numpy, torch and C loops, by the rules in docs/benchmarks.md.

`cases/` says what is measured, one file a family, and `case.py` what an entry is made of. `run.py` starts one child a
family and thread count; `child.py` builds, checks (`verify.py`) and times (`measure.py`) its rows. `machine.py`
measures the roofline, `bars.py` holds the figures against what we promise; `table.py` and `plot.py` show them.
"""
