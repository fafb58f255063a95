"""c_objects: the C files that exported libraries contain, compiled once in a process, and in the background if begun.

    begin(source, command)             returns at once: the compiler runs beside us
    object_of(source, command)         its object code: waits for the compiler, starts it where nobody did

The thread pool takes a compiler as long as the linker needs for a hundred megabytes of weights.
"""

from __future__ import annotations

import atexit
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from loopwright.runtime.link import COMPILE, TIMEOUT, LinkFailed


class _Compilation:
    """A compiler at work."""

    def __init__(self, source: Path, compiler: Sequence[str]) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="loopwright-")
        self.made = Path(self.folder.name) / f"{source.stem}.o"
        self.said = Path(self.folder.name) / "said"
        self.command = [*compiler, *COMPILE, "-pthread", "-c", str(source), "-o", str(self.made)]
        try:
            with open(self.said, "wb") as said:
                self.process = subprocess.Popen(
                    self.command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT
                )
        except OSError as error:
            self.folder.cleanup()
            raise LinkFailed(self.command, str(error)) from error

    def finish(self) -> bytes:
        """The object, or LinkFailed."""
        try:
            status = self.process.wait(TIMEOUT)
            if status != 0 or not self.made.exists():
                raise LinkFailed(self.command, self.said.read_text(errors="replace"))
            return self.made.read_bytes()
        except subprocess.TimeoutExpired as error:
            raise LinkFailed(self.command, str(error)) from error
        finally:
            self.end()

    def end(self) -> None:
        """Nobody wants it any more."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()


_Key = tuple[str, ...]
_begun: Final[dict[_Key, _Compilation]] = {}
_made: Final[dict[_Key, bytes]] = {}


def begin(source: Path, compiler: Sequence[str]) -> None:
    """Start to compile `source`, unless that was done before."""
    key = (str(source), *compiler)
    if key not in _made and key not in _begun:
        _begun[key] = _Compilation(source, compiler)


def object_of(source: Path, compiler: Sequence[str]) -> bytes:
    """The object code of `source`, as it goes into a shared library. Raises LinkFailed."""
    key = (str(source), *compiler)
    result = _made.get(key)
    if result is None:
        running = _begun.pop(key, None) or _Compilation(source, compiler)
        result = _made[key] = running.finish()
    return result


def _end_all() -> None:
    while _begun:
        _begun.popitem()[1].end()


atexit.register(_end_all)
