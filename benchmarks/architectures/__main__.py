"""`python -m benchmarks.architectures`."""

from __future__ import annotations

import sys

from benchmarks.architectures.race import main

if __name__ == "__main__":
    sys.exit(main())
