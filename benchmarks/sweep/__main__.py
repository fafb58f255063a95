"""`python -m benchmarks.sweep`."""

from __future__ import annotations

import sys

from benchmarks.sweep.cli import main

if __name__ == "__main__":
    sys.exit(main())
