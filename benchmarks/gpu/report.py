"""The table of `bandwidth.py`, its geometric means, and which bars are passed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, log
from typing import Any

Row = dict[str, Any]
OVERALL, FAMILY, LEAST = 1.1, 0.97, 0.85  # times eager over all; of the better in each family; of the better in a row
GIGABYTE, CEILING = 1 << 30, 0.97  # of so many bytes: the part of the best copy or read of a gigabyte


def geomean(values: Iterable[float]) -> float:
    logs = [log(value) for value in values]
    return exp(sum(logs) / len(logs)) if logs else float("nan")


def show(rows: Sequence[Row]) -> int:
    """Print everything; 1 where a row failed."""
    ceilings = next((row for row in rows if "copy" in row), {})
    failed = [row for row in rows if "failed" in row]
    measured = [row for row in rows if "family" in row and "failed" not in row]
    best = _best(ceilings, measured)
    print(f"{ceilings.get('device', '?')}, torch {ceilings.get('torch', '?')}; medians of interleaved rounds")
    print(f"best copy {best['copy'] / 1e12:.2f} TB/s, best read {best['read'] / 1e12:.2f} TB/s")
    families = list(dict.fromkeys([row["family"] for row in measured]))
    for family in families:
        _show_family(family, [row for row in measured if row["family"] == family], best)
    _show_bars(families, measured)
    _show_large([row for row in measured if row["bytes"] >= GIGABYTE], best)
    left_out = [row for row in failed if row["failed"].startswith("left out")]
    print(f"\n{len(measured)} rows measured, {len(failed) - len(left_out)} failed, {len(left_out)} left out")
    for row in failed:
        if row not in left_out:
            print(f"  FAILED {row.get('case', 'ceilings')}: {row['failed'][:300]}")
    return int(len(failed) > len(left_out))


def _best(ceilings: Row, measured: Sequence[Row]) -> dict[str, float]:
    """The fastest copy and the fastest read of this run, whoever made it, in bytes a second."""
    result = {what: ceilings.get(what, float("nan")) for what in ("copy", "read")}
    for row in measured:
        if row["cold"]:
            what = "read" if row["reads"] else "copy"
            speed = row["bytes"] / min(row["seconds"].values())
            if row["family"] == "copy" or what == "read":
                result[what] = max(result[what], speed) if result[what] == result[what] else speed
    return result


def against_eager(row: Row) -> float:
    return float(row["seconds"]["eager"] / row["seconds"]["ours"])


def against_better(row: Row) -> float:
    times = row["seconds"]
    return float(min(times["eager"], times.get("compile", times["eager"])) / times["ours"])


def of_ceiling(row: Row, best: dict[str, float]) -> float:
    """The part of the best speed: a case that reads ten times what it writes is beside a read."""
    return float(row["bytes"] / row["seconds"]["ours"] / best["read" if row["reads"] else "copy"])


def _show_family(family: str, rows: Sequence[Row], best: dict[str, float]) -> None:
    print(
        f"\n{family:28}{'ours µs':>10}{'TB/s':>7}{'eager µs':>10}{'compile':>9}{'× eager':>9}{'× better':>9}  share of"
    )
    for row in rows:
        seconds = row["seconds"]
        speed = row["bytes"] / seconds["ours"]
        what = "read" if row["reads"] else "copy"
        share = f"{of_ceiling(row, best):6.0%} {what}" if row["cold"] else "  in L2"
        compiled = f"{seconds['compile'] * 1e6:9.1f}" if "compile" in seconds else f"{'-':>9}"
        mark = "  <" if against_better(row) < LEAST else ""
        mine, eager = seconds["ours"] * 1e6, seconds["eager"] * 1e6
        ratios = f"{against_eager(row):9.2f}{against_better(row):9.2f}"
        print(f"  {row['name']:26}{mine:10.1f}{speed / 1e12:7.2f}{eager:10.1f}{compiled}{ratios}{share}{mark}")
    means = geomean(map(against_eager, rows)), geomean(map(against_better, rows))
    print(f"  {'geometric mean':53}{'':9}{means[0]:9.2f}{means[1]:9.2f}")


def _show_bars(families: Sequence[str], rows: Sequence[Row]) -> None:
    overall = geomean(map(against_eager, rows))
    better = {name: geomean([against_better(row) for row in rows if row["family"] == name]) for name in families}
    slow_families = {name: value for name, value in better.items() if value < FAMILY}
    slow = [row for row in rows if against_better(row) < LEAST]
    print(f"\nover all {overall:.3f} × eager, {geomean(map(against_better, rows)):.3f} × the better")
    print(f"{_word(overall >= OVERALL)} over all ≥ {OVERALL} × eager")
    names = ", ".join([f"{name} {value:.2f}" for name, value in slow_families.items()])
    print(f"{_word(not slow_families)} every family ≥ {FAMILY} × the better {names}")
    names = ", ".join([f"{row['family']} {row['name']} {against_better(row):.2f}" for row in slow])
    print(f"{_word(not slow)} no row under {LEAST} × the better {names}")


def _show_large(rows: Sequence[Row], best: dict[str, float]) -> None:
    if not rows:
        return
    shares = {f"{row['family']} {row['name']}": of_ceiling(row, best) for row in rows}
    below = ", ".join([f"{title} {share:.2f}" for title, share in shares.items() if share < CEILING])
    print(f"{_word(not below)} {len(rows)} rows of a gigabyte or more ≥ {CEILING} × the best copy or read {below}")


def _word(is_passed: bool) -> str:
    return "passed" if is_passed else "FAILED"
