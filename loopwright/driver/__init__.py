"""`driver`: from a program to what runs, under the paths users know; `build` and `lower` are those of `build.py`."""

from loopwright.driver import build_module
from loopwright.driver.build_module import build, lower

__all__ = ["build", "build_module", "lower"]
