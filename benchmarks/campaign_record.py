"""A campaign's record: one file a part, so that a campaign can stop at any time and go on later.

    record = Record(folder, {"seed": 0, "sizes": [1, 2, 3, 4]})
    record.run(work, {"0": part, "500": another}, jobs=16, seconds=540)
    for data in record.parts(): ...

A folder belongs to one campaign: going on with other settings is refused, since its counts would mix.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import Any


class OtherCampaign(ValueError):
    """The folder holds the record of a campaign with other settings."""


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
        with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
            running: dict[Future[dict[str, Any]], str] = {}
            while True:
                while waiting and len(running) < jobs + 1 and time.monotonic() < deadline:
                    name = waiting.pop(0)
                    running[pool.submit(work, parts[name])] = name
                if not running:
                    return len(waiting)
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    self.add(running.pop(future), future.result())

    def has(self, name: str) -> bool:
        return (self.folder / f"part-{name}.json").exists()

    def add(self, name: str, data: Mapping[str, Any]) -> None:
        """Write a part; it is there whole or not at all."""
        _write(self.folder / f"part-{name}.json", dict(data))

    def parts(self) -> Iterator[dict[str, Any]]:
        for path in sorted(self.folder.glob("part-*.json")):
            yield json.loads(path.read_text())


def _write(path: Path, data: Any) -> None:
    scratch = path.with_suffix(f".{os.getpid()}.tmp")
    scratch.write_text(json.dumps(data, ensure_ascii=False))
    scratch.replace(path)
