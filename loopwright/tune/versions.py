"""versions: what a record says of the machine and the programs that it was measured with."""

from __future__ import annotations

import functools
import platform
from importlib.metadata import PackageNotFoundError, version


@functools.cache
def versions() -> dict[str, str]:
    """Of Loopwright, LLVM, numpy and Python, and the kind of machine."""
    return {
        **{name: _version(name) for name in ("loopwright", "llvmlite", "numpy")},
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # it runs from a folder that was not installed
        return "unknown"
