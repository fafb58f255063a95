"""cache: what is kept of compiled programs on disk: `loopwright cache info`, `list`, `clear`, `prune`, `verify`.

Looking at entries does not count as using them. All of it works also while `LOOPWRIGHT_CACHE=0` keeps programs from it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable

from loopwright.codegen.compile_cache import CUDA_KIND, KIND
from loopwright.display import progress
from loopwright.runtime.artifact_store import (
    ArtifactStore,
    Damaged,
    Entry,
    is_on,
    read_size,
    size_limit,
    store_folder,
)
from loopwright.runtime.description import ModuleDescription
from loopwright.runtime.json_text import JsonObject


def info(as_json: bool) -> str:
    """Folder, number of entries, their size, and the limit."""
    store = _store()
    entries = [] if store is None else store.entries()
    facts = {
        "folder": None if store is None else str(store.folder),
        "on": is_on(),
        "entries": len(entries),
        "bytes": _total(entries),
        "limit": size_limit(),
        "last_used": entries[0].used if entries else None,
        "longest_unused": entries[-1].used if entries else None,
    }
    if as_json:
        return json.dumps(facts, indent=2)
    lines = [
        f"folder   {facts['folder'] or 'none that can be written; LOOPWRIGHT_CACHE_DIR names one'}",
        f"entries  {len(entries)}",
        f"size     {size_text(_total(entries))} of {size_text(size_limit())}",
    ]
    if entries:
        lines.append(f"used     {_age(entries[0].used)} ago; longest unused {_age(entries[-1].used)}")
    if not is_on():
        lines.append("state    off: LOOPWRIGHT_CACHE is 0")
    return "\n".join(lines)


def listing(as_json: bool) -> str:
    """One line for each compiled module."""
    store = _store()
    rows = [row for entry in (store.entries() if store else ()) if (row := _row(store, entry)) is not None]
    if as_json:
        return json.dumps(rows, indent=2)
    if not rows:
        return "nothing is kept yet"
    shown = [("key", "functions", "target", "size", "used", "took")]
    for row in rows:
        if "damaged" in row:
            shown.append((row["key"][:12], f"damaged: {row['damaged']}", "", size_text(row["bytes"]), "", ""))
            continue
        used, took = f"{_age(row['used'])} ago", f"{row['seconds'] * 1e3:.0f} ms"
        names = ", ".join(row["functions"])
        shown.append((row["key"][:12], names, row["machine"], size_text(row["bytes"]), used, took))
    widths = [max(len(row[k]) for row in shown) for k in range(6)]
    return "\n".join("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in shown)


def clear(as_json: bool) -> str:
    """Remove every entry."""
    store = _store()
    return _removed([] if store is None else store.clear(), as_json)


def prune(size: str | None, as_json: bool) -> str:
    """Remove what was not used for longest, down to `size`."""
    limit = size_limit() if size is None else read_size(size, "--size")
    store = _store()
    return _removed([] if store is None else store.prune(limit), as_json)


def verify(remove: bool, as_json: bool) -> tuple[str, bool]:
    """What is wrong with which entry, and whether anything is."""
    store = _store()
    entries = [] if store is None else store.entries()
    damaged: list[JsonObject] = []
    with progress.task("verify", len(entries)) as task:
        for entry in entries:
            assert store is not None
            task.advance(entry.key[:12])
            problem = _problem(store, entry)
            if problem is not None:
                gone = remove and store.remove(entry.key)
                damaged.append({"key": entry.key, "problem": problem, "removed": gone})
    if as_json:
        return json.dumps({"entries": len(entries), "damaged": damaged}, indent=2), bool(damaged)
    lines = [f"{_count(len(entries))} read, {len(damaged)} damaged"]
    for one in damaged:
        lines.append(f"{one['key']}: {one['problem']}{' (removed)' if one['removed'] else ''}")
    return "\n".join(lines), bool(damaged)


def _store() -> ArtifactStore | None:
    folder = store_folder()
    return None if folder is None else ArtifactStore(folder)


def _row(store: ArtifactStore | None, entry: Entry) -> JsonObject | None:
    """An entry as plain data; None for one that is no compiled module."""
    assert store is not None
    row: JsonObject = {"key": entry.key, "bytes": entry.size, "used": entry.used}
    try:
        header = store.look(entry).header
    except (OSError, Damaged) as problem:
        return {**row, "damaged": str(problem)}
    if header.get("kind") not in (KIND, CUDA_KIND):
        return None
    description = ModuleDescription.from_json(header["description"])
    return {
        **row,
        "functions": [function.name for function in description.functions],
        "target": header["target"],
        "machine": description.target if description.device is None else description.device.target,
        "created": header["created"],
        "seconds": header["seconds"],
        "version": description.version,
    }


def _problem(store: ArtifactStore, entry: Entry) -> str | None:
    try:
        store.look(entry)
    except Damaged as problem:
        return str(problem)
    except FileNotFoundError:  # removed by another process meanwhile
        return None
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    return None


def _removed(entries: list[Entry], as_json: bool) -> str:
    if as_json:
        return json.dumps({"removed": len(entries), "bytes": _total(entries)}, indent=2)
    return f"removed {_count(len(entries))}, {size_text(_total(entries))}"


def _count(number: int) -> str:
    return f"{number} entr{'y' if number == 1 else 'ies'}"


def _total(entries: Iterable[Entry]) -> int:
    return sum(entry.size for entry in entries)


def size_text(size: int) -> str:
    """A number of bytes in the largest unit that leaves a whole part."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} B"


def _age(when: float) -> str:
    seconds = max(0.0, time.time() - when)
    for unit, name in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"
