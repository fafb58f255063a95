"""rows: records and workloads as they are stored, and back.

A record is one JSON text, checked by its digest when it is read; beside it stand the columns that are searched. Nothing
in it is executed: a trace is a list here, and it is proved when somebody applies it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from math import isfinite
from typing import Any, Final, NamedTuple, get_origin, get_type_hints

import numpy as np

from loopwright.ir import IRModule, load_json
from loopwright.runtime.json_text import read_json
from loopwright.tune.database.errors import BadRecord
from loopwright.tune.database.interface import Workload
from loopwright.tune.record import Record

# What the JSON of a field must be; a float may be written as an integer, and tuples are lists.
_KINDS: Final[Mapping[str, type]] = {name: get_origin(hint) or hint for name, hint in get_type_hints(Record).items()}
_JSON: Final[Mapping[type, tuple[type, ...]]] = {float: (float, int), tuple: (list, tuple)}
_NAMES: Final = tuple(field.name for field in fields(Record))
_REQUIRED: Final = ("key", "fingerprint", "trace")


class Row(NamedTuple):
    """A record as it is stored."""

    digest: str  # of the body: equal records have one row
    workload: str
    cpu: str  # digest of the fingerprint, which is too long for an index
    threads: int | None
    cache: str | None
    seconds: float | None  # the median; None where the candidate failed
    body: str


def short_digest(text: str) -> str:
    """What stands for a text in an index."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def record_row(record: Record) -> Row:
    """The row of a record; `BadRecord` where it is none."""
    data = {name: getattr(record, name) for name in _NAMES}
    problem = _problem(data)
    if problem is not None:
        raise BadRecord(problem)
    try:
        body = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadRecord(f"it is no plain data ({error})") from None
    threads, cache = record.settings.get("threads"), record.settings.get("cache")
    return Row(
        short_digest(body),
        record.key,
        short_digest(record.fingerprint),
        threads if isinstance(threads, int) else None,
        cache if isinstance(cache, str) else None,
        float(record.median) if record.seconds and not record.error else None,
        body,
    )


def read_record(body: str, digest: str) -> Record:
    """The record that a row holds; ValueError, with the reason, where the row is damaged."""
    if not isinstance(body, str) or short_digest(body) != digest:
        raise ValueError("its text is not what was stored")
    data = read_json(body)
    if not isinstance(data, dict):
        raise ValueError("it is no record")
    known = {name: data[name] for name in _NAMES if name in data}  # another version may have other fields
    problem = _problem(known)
    if problem is not None:
        raise ValueError(problem)
    return Record(**{name: _tuples(value) if _KINDS[name] is tuple else value for name, value in known.items()})


def read_workload(key: str, name: str, text: str, created: float) -> Workload:
    """The workload that a row holds; ValueError where it is damaged."""
    mod = load_json(text)
    if not isinstance(mod, IRModule):
        raise ValueError("it holds no module")
    return Workload(key, name, mod, created)


def is_trace(data: object) -> bool:
    """Whether it has the form of `Trace.as_json()`; an empty list stands for no trace."""
    if data == []:
        return True
    if not isinstance(data, list) or len(data) not in (2, 3):
        return False
    steps, decisions = data[:2]
    if not isinstance(steps, (list, tuple)) or not isinstance(decisions, (list, tuple)):
        return False
    return all(map(_is_step, steps)) and all(map(_is_decision, decisions))


def _is_step(step: object) -> bool:
    if not isinstance(step, (list, tuple)) or len(step) != 4 or not isinstance(step[0], str):
        return False
    return all([isinstance(part, (list, tuple)) for part in step[1:]])


def _is_decision(decision: object) -> bool:
    return isinstance(decision, (list, tuple)) and len(decision) == 2 and isinstance(decision[0], int)


def _problem(data: Mapping[str, Any]) -> str | None:
    """What is wrong with the fields of a record."""
    for name in _REQUIRED:
        if name not in data:
            return f"it has no {name}"
    for name, value in data.items():
        kind = _KINDS[name]
        if not isinstance(value, _JSON.get(kind, (kind,))):
            return f"its {name} is {_article(kind)}, not {value!r:.100}"
    for value in data.get("seconds", ()):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value) or value <= 0:
            return f"a measurement took a positive number of seconds, not {value!r:.100}"
    if not is_trace(data["trace"]):
        return "its trace is no trace: [steps, decisions]"
    return None


def _article(kind: type) -> str:
    return {str: "a text", int: "an integer", float: "a number", dict: "a dict"}.get(kind, "a list")


def _tuples(value: Any) -> Any:
    """Lists as the tuples that they were, so that they can be compared and hashed."""
    return tuple([_tuples(item) for item in value]) if isinstance(value, list) else value


def _plain(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} {value!r:.100} has no JSON form")
