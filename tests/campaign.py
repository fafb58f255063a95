"""How long random tests run: a share of them in the suite, all of them with LOOPWRIGHT_LONG=1 (`make fuzz`)."""

from __future__ import annotations

import os


def programs(every_run: int, campaign: int) -> int:
    """How many random programs are tried."""
    return campaign if os.environ.get("LOOPWRIGHT_LONG") == "1" else every_run
