"""Children: processes that measure, told what to do as JSON on standard input, and heard line by line.

A child writes a line of JSON for each event. It has pools of as many threads as it is told.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def pool_settings(threads: int) -> dict[str, str]:
    """The environment that gives every pool its threads, and lets idle ones spin for half a millisecond at most.

    By default they spin for tens of milliseconds, into the next contender's time. If they went to sleep at once, waking
    them would be in every call, and small rows would look worse for the peer than they are.
    """
    count = str(threads)
    names = "OMP OPENBLAS MKL LOOPWRIGHT".split()
    return {
        **{f"{name}_NUM_THREADS": count for name in names},
        "OPENBLAS_THREAD_TIMEOUT": "20",  # 2^20 cycles
        "GOMP_SPINCOUNT": "100000",
        "KMP_BLOCKTIME": "1",
    }


def listen(
    command: Sequence[str],
    orders: Mapping[str, Any],
    threads: int,
    patience: float,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[dict[str, Any]]:
    """What a child says, and at the end why it ended, unless it was done; `settings` adds to its environment.

    A child that says nothing for `patience` seconds is killed.
    """
    environment = {**os.environ, **pool_settings(threads), "TORCHINDUCTOR_COMPILE_THREADS": "1", **settings}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment
        )
        assert child.stdin is not None and child.stdout is not None
        try:
            child.stdin.write(json.dumps(orders).encode())
            child.stdin.close()
        except BrokenPipeError:
            child.wait()  # its ending is reported below
        hung = False
        pending = b""
        try:
            while True:
                if not select.select([child.stdout], [], [], patience)[0]:
                    hung = True
                    child.kill()
                    break
                data = os.read(child.stdout.fileno(), 1 << 16)
                if not data:
                    break
                *lines, pending = (pending + data).split(b"\n")
                yield from [json.loads(line) for line in lines]
        except (KeyboardInterrupt, GeneratorExit):
            child.kill()
            child.wait()
            raise
        code = child.wait()
        child.stdout.close()
        if hung:
            yield {"event": "end", "why": f"no answer for {patience:.0f} s"}
        elif code:
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip().splitlines() or ["no message"]
            ended = f"signal {-code}" if code < 0 else f"exit status {code}"
            yield {"event": "end", "why": f"{ended}: {said[-1]}"}
