"""`python -m benchmarks.loops`: see `cli.py`."""

from __future__ import annotations

import sys

from benchmarks.loops.cli import main

if __name__ == "__main__":
    sys.exit(main())
