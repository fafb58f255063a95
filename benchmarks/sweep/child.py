"""A child of the sweep: measures the cases it is told, and reports each as a line of JSON.

Its orders come as JSON on standard input; what libraries print goes to standard error. `before` is the folder of
another version of Loopwright, which is imported in place of this one.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from typing import Any


def main() -> None:
    """Read the orders, measure the cases."""
    orders = json.load(sys.stdin)
    report = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    import_loopwright(orders["before"])
    from benchmarks.sweep.families import case_of
    from benchmarks.sweep.row import row_of

    def tell(event: str, **what: Any) -> None:
        report.write(json.dumps({"event": event, **what}) + "\n")
        report.flush()

    warm_up()
    for index in orders["indices"]:
        tell("start", index=index)
        tell("row", row=row_of(case_of(orders["seed"], index), orders["threads"], orders["budget"]))


def import_loopwright(folder: str | None) -> None:
    """Import Loopwright from `folder`; its benchmarks stay those of this version."""
    if folder is not None:
        sys.path.insert(0, folder)
    import loopwright

    if folder is not None:
        sys.path.remove(folder)
        if not str(loopwright.__file__).startswith(os.path.abspath(folder)):
            raise SystemExit(f"there is no loopwright in {folder}")


def warm_up() -> None:
    """Compile something small of each kind: what a process does once is not the compile time of a case."""
    import loopwright as lw
    from benchmarks.bench.case import aligned
    from benchmarks.bench.cases.elementwise import flat
    from benchmarks.bench.cases.gemm import matmul
    from benchmarks.bench.onnx_models import Step, model

    for problem in (flat("axpy", 48), matmul(48, 48, 48)):
        lw.build(problem.program(), name="main", autosched=True)
    x = aligned((3, 5))
    lw.compile(model([Step("Relu", ["x0"], "y0")], {"x0": x}, {"y0": x}, {}))


if __name__ == "__main__":
    main()
