"""Figures that are not about kernels: a busy machine, noise, and peers that more threads make slower.

On cores that others use too, a pool waits for a thread that is not running, and a call takes a time slice instead of
microseconds. Such a ratio flatters us by orders of magnitude, so no bar is held to be kept by it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from benchmarks.bench.row import AGAIN, OURS

Row = dict[str, Any]
SLOWER = 1.25  # times as long on many threads as on one
NOISE = 0.1  # how far A/A may reach from 1


def load() -> float:
    """How many processes want to run, on average over the last minute."""
    return os.getloadavg()[0]


def mark(rows: Sequence[Row]) -> list[str]:
    """Give rows `doubtful`, peer → why, and return a line for each kind of doubt."""
    alone = {(row["family"], row["name"]): row for row in rows if row["threads"] == 1 and "contenders" in row}
    slower, noisy = [], []
    for row in rows:
        if "contenders" not in row:
            continue
        row["doubtful"] = {}
        single = alone.get((row["family"], row["name"]))
        for peer, figures in row["contenders"].items():
            before = single["contenders"].get(peer) if single is not None and row["threads"] > 1 else None
            if before and peer not in (OURS, AGAIN) and figures["seconds"] > SLOWER * before["seconds"]:
                times = figures["seconds"] / before["seconds"]
                row["doubtful"][peer] = f"{times:.2g} times as long on {row['threads']} threads as on 1"
                slower.append(f"{row['family']} {row['name']} ({peer})")
        same = row["ratios"][AGAIN]
        if same["low"] < 1 - NOISE or same["high"] > 1 + NOISE:
            row["noisy"] = True
            noisy.append(f"{row['family']} {row['name']} on {row['threads']}")
    return [
        *_line("peers slower on many threads than on one, left out of the bars", slower),
        *_line("rows whose A/A interval reaches more than 10 % from 1", noisy),
    ]


def _line(what: str, found: list[str]) -> list[str]:
    more = f" and {len(found) - 6} more" if len(found) > 6 else ""
    return [f"{len(found)} {what}: {', '.join(found[:6])}{more}"] if found else []
