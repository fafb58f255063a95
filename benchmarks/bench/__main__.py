"""`python -m benchmarks.bench`: see `cli.py`."""

from __future__ import annotations

import sys

from benchmarks.bench.cli import main

if __name__ == "__main__":
    sys.exit(main())
