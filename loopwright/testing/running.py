"""Running tests from a script, and programs elsewhere."""

from __future__ import annotations

import sys
from typing import NoReturn

from loopwright.runtime.errors import NotBuilt
from loopwright.testing.marks import load_pytest


def main() -> NoReturn:
    """Run the tests of the calling file with pytest, with the command line's options; the last line of a test file."""
    file = sys._getframe(1).f_globals["__file__"]
    arguments = [file, "-p", "loopwright.testing.plugin", *sys.argv[1:]]
    sys.exit(load_pytest().main(arguments))


def local_run(*args: object, **kwargs: object) -> NoReturn:
    """Build, run and time a program in another process. Not built yet."""
    raise NotBuilt("testing.local_run", "build the program, and time it with module.time_evaluator")


def rpc_run(*args: object, **kwargs: object) -> NoReturn:
    """Build a program here, and run it on another machine. Not built yet."""
    raise NotBuilt("testing.rpc_run", "build the program, and time it with module.time_evaluator")
