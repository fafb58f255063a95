"""A campaign's record: one file a part, so that a campaign can stop at any time and go on later.

    record = Record(folder, {"seed": 0, "sizes": [1, 2, 3, 4]})
    record.run(work, {"0": part, "500": another}, jobs=16, seconds=540)
    for data in record.parts(): ...

A folder belongs to one campaign: going on with other settings is refused, since its counts would mix. A part that kills
its process ends the campaign with an error that names it; one that raises an error, wanting more than its share of
memory say, is named when all the others are done.
"""

from __future__ import annotations

import gc
import json
import math
import os
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

NEW_OBJECTS: Final = 50_000  # between two looks for cycles: programs are made of many small objects
MEMORY: Final = 8 << 30  # bytes that a part may use: what needs more hides a fault


class OtherCampaign(ValueError):
    """The folder holds the record of a campaign with other settings."""


class PartFailed(RuntimeError):
    """A part of a campaign ended its process, or raised an error of its own."""


class Record:
    """The parts of a campaign that are done."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        head = folder / "campaign.json"
        wanted = json.loads(json.dumps(dict(settings)))
        if head.exists():
            found = json.loads(head.read_text())
            if found != wanted:
                raise OtherCampaign(f"{folder} records a campaign with {found}, not {wanted}: choose another folder")
        else:
            _write(head, wanted)

    def run(
        self, work: Callable[[Any], dict[str, Any]], parts: Mapping[str, Any], jobs: int, seconds: float = math.inf
    ) -> int:
        """Do the parts that are not recorded yet, in processes, starting none after `seconds`; how many are left."""
        waiting = [name for name in parts if not self.has(name)]
        deadline = time.monotonic() + seconds
        failed: list[str] = []
        with _processes(jobs) as pool:
            running: dict[Future[dict[str, Any]], str] = {}
            while True:
                while waiting and len(running) < jobs + 1 and time.monotonic() < deadline:
                    name = waiting.pop(0)
                    running[pool.submit(work, parts[name])] = name
                if not running and failed:
                    raise PartFailed("\n".join(failed))
                if not running:
                    return len(waiting)
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    try:
                        self.add(running[future], future.result())
                    except BrokenProcessPool:
                        raise _killer(work, {name: parts[name] for name in running.values()}) from None
                    except Exception as error:
                        failed.append(f"part {running[future]}: {type(error).__name__}: {error}")
                    del running[future]

    def has(self, name: str) -> bool:
        return (self.folder / f"part-{name}.json").exists()

    def add(self, name: str, data: Mapping[str, Any]) -> None:
        """Write a part; it is there whole or not at all."""
        _write(self.folder / f"part-{name}.json", dict(data))

    def parts(self) -> Iterator[dict[str, Any]]:
        for path in sorted(self.folder.glob("part-*.json")):
            yield json.loads(path.read_text())


def _processes(jobs: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(jobs, get_context("spawn"), _prepare)


def _prepare() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    gc.set_threshold(NEW_OBJECTS)


def _killer(work: Callable[[Any], dict[str, Any]], parts: Mapping[str, Any]) -> PartFailed:
    """Which of the parts under way ended its process: each is done again, alone."""
    for name, part in parts.items():
        with _processes(1) as pool:
            try:
                pool.submit(work, part).result()
            except BrokenProcessPool:
                return PartFailed(f"part {name} kills its process")
    return PartFailed(f"one of the parts {', '.join(parts)} killed its process; none of them does alone")


def _write(path: Path, data: Any) -> None:
    scratch = path.with_suffix(f".{os.getpid()}.tmp")
    scratch.write_text(json.dumps(data, ensure_ascii=False))
    scratch.replace(path)
