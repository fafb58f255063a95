"""Tools around the compiler: C compilers, archives, temporary folders, worker processes, other libraries' tensors.

Each file is one of them, and most import nothing of the compiler: `utils.py` (`tempdir`), `cc.py` (compile and link),
`tar.py`, `clang.py`, `nvcc.py`, `dlpack.py`, `popen_pool.py` (`popen_worker.py` is its other end), `graph_executor.py`
(compiled models), `debugger/` (the same with a clock in it), `cblas.py` and `random.py` (numpy's BLAS and random
numbers for te), `relay_viz/` (graphs of relay as trees or drawings). `compilers.py` runs the compilers of the others.
They load when first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_MODULES = (
    *("cblas", "cc", "clang", "debugger", "dlpack", "graph_executor", "nvcc", "popen_pool", "random"),
    *("relay_viz", "tar", "utils"),
)

__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
