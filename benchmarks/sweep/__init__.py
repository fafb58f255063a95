"""The sweep: operators, shapes and types drawn at random from stated distributions, so that we find our slow corners.

`families/` has one file a family of operators; each draws a `Case` (`case.py`) from a seeded generator and states its
distribution in its docstring. `row.py` builds, checks and times one case, `run.py` starts the children that do it, and
`report.py` says how the ratios are distributed. How samples are taken and compared is `benchmarks/bench`'s.
"""
