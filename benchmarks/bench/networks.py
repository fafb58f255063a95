"""Whole networks from their layers: the time of all convolutions, as often as the network has each, beside each peer's.

The *best* peer is, row by row, the one that was fastest on it: nobody can choose like that, so it is the hardest rival.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.bench.ratios import geomean
from benchmarks.bench.row import AGAIN, OURS

Row = dict[str, Any]
BEST = "best"
# Other kernels of ours: in float32, beside the one in a lower precision, and by winograd, beside the direct one.
OURS_FLOAT32, OURS_WINOGRAD = "ours float32", "ours winograd"


def sum_up(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """An entry for each network, group of rows ("batch 4") and number of threads; a second one with winograd allowed.

    `ratios` are geometric means, each layer once; `totals` compare the sums of seconds, each layer as often as it is
    there. Both leave out a peer's rows where it did not run, on both sides.
    """
    entries = []
    for key in dict.fromkeys([(row["family"], row["group"], row["threads"]) for row in rows if "group" in row]):
        mine = [row for row in rows if (row["family"], row.get("group"), row["threads"]) == key]
        timed = [row for row in mine if "contenders" in row]
        if timed:
            entries.append(_entry(key, timed, len(mine)))
        if any([OURS_WINOGRAD in row["contenders"] for row in timed]):
            family, *others = key
            entries.append(
                _entry((f"{family} winograd", *others), [allowing_winograd(row) for row in timed], len(mine))
            )
    return entries


def _entry(key: tuple[str, str, int], rows: Sequence[Row], count: int) -> dict[str, Any]:
    peers = list(dict.fromkeys([peer for row in rows for peer in row["ratios"] if peer not in (AGAIN, OURS_WINOGRAD)]))
    peers = [*peers, BEST] if any([rivals(row) for row in rows]) else peers
    return {
        "family": key[0],
        "group": key[1],
        "threads": key[2],
        "rows": len(rows),
        "all_rows": count,
        "seconds": _total(rows, OURS),
        "flops": sum([row["flops"] * row["count"] for row in rows]),
        "ratios": {peer: _mean(rows, peer) for peer in peers},
        "totals": {peer: _totals(rows, peer) for peer in peers},
    }


def allowing_winograd(row: Row) -> Row:
    """The row as it is when winograd is allowed: ours is that kernel, where the rule takes it."""
    if OURS_WINOGRAD not in row.get("contenders", {}):
        return row
    slower = row["ratios"][OURS_WINOGRAD]["median"]
    ratios = {peer: {"median": ratio["median"] / slower} for peer, ratio in row["ratios"].items()}
    return {**row, "contenders": {**row["contenders"], OURS: row["contenders"][OURS_WINOGRAD]}, "ratios": ratios}


def rivals(row: Row) -> list[str]:
    """The peers that ran and are not in doubt; what is ours is none of them."""
    left_out = {AGAIN, OURS_FLOAT32, OURS_WINOGRAD, *row.get("doubtful", {})}
    return [peer for peer in row.get("ratios", {}) if peer not in left_out]


def best(row: Row) -> str | None:
    """The peer that was fastest on a row."""
    return min(rivals(row), key=lambda peer: float(row["contenders"][peer]["seconds"]), default=None)


def ratio_to(row: Row, peer: str) -> float | None:
    """How many times faster ours is than a peer, or than the best of them; None where that is not known."""
    chosen = best(row) if peer == BEST else peer
    found = row.get("ratios", {}).get(chosen) if chosen not in row.get("doubtful", {}) else None
    return None if found is None else float(found["median"])


def _mean(rows: Sequence[Row], peer: str) -> float:
    return geomean([ratio for ratio in [ratio_to(row, peer) for row in rows] if ratio is not None])


def _total(rows: Sequence[Row], contender: str) -> float:
    return float(sum([row["count"] * row["contenders"][contender]["seconds"] for row in rows]))


def _totals(rows: Sequence[Row], peer: str) -> float:
    ran = [row for row in rows if ratio_to(row, peer) is not None]
    theirs = [row["count"] * row["contenders"][(best(row) or "") if peer == BEST else peer]["seconds"] for row in ran]
    return sum(theirs) / _total(ran, OURS)
