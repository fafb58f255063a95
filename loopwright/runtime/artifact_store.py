"""artifact_store: made things kept on disk under the key of what they were made from, for any number of processes.

    store = open_store()                            LOOPWRIGHT_CACHE_DIR, else the user's cache folder; None when off
    store.save(key, {"kind": "module"}, {"object": code})
    found = store.read(key)                         None when it is not there, or is damaged (and then it is removed)

One file an entry. It appears under its name only when complete (a rename), and begins with a checksum of the rest, so
a file that was cut off, damaged or put there by something else is found out and never used. Files that were not used
for longest go first when the folder outgrows its limit; a reader that has a file open keeps it. Nothing here is ever
needed: whatever goes wrong, the caller makes the thing again, and a warning says so once.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from math import inf
from pathlib import Path
from typing import Final, NamedTuple

from loopwright.runtime.artifact_file import Artifact, Damaged, packed, read_content, unpacked
from loopwright.runtime.cache_folder import cache_directory, why_untrusted
from loopwright.runtime.errors import LoopwrightError, user_stack_level

_SUFFIX: Final = ".lwc"
_TEMPORARY: Final = ".tmp-"
_ABANDONED: Final = 3600  # seconds after which a temporary file belongs to a process that died
_SCAN_EVERY: Final = 64  # saves between two looks at what other processes have put there
_ROOM: Final = 0.9  # of the limit stays in use when a save goes beyond it, so that not every later one prunes

DEFAULT_LIMIT: Final = 1 << 30
_UNITS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_SIZE: Final = re.compile(r"\s*(\d+(?:\.\d*)?)\s*([kmgt]?)(i?b)?\s*", re.IGNORECASE)


class CacheWarning(UserWarning):
    """The cache on disk cannot be used, or cannot be written; programs are compiled without it."""


class BadCacheSize(LoopwrightError, ValueError):
    """The limit of the cache is no size: a number of bytes, perhaps with a unit such as `MB` or `GiB`.

    It comes from `LOOPWRIGHT_CACHE_SIZE` or from `loopwright cache prune --size`. Without it the limit is 1 GiB.

    For example:

        from loopwright.runtime.artifact_store import read_size

        read_size("a lot")
    """

    code = "LW0146"

    def __init__(self, where: str, given: str) -> None:
        super().__init__(
            f"{where}: {given!r} is no size",
            hint="write a number of bytes, such as 200000000, 200MB or 2GiB; 0 keeps nothing",
            fields={"where": where, "given": given},
        )


class Entry(NamedTuple):
    """A file of the store."""

    key: str
    path: Path
    size: int
    used: float  # when it was last written or read, in seconds since 1970


def is_on() -> bool:
    """Whether compiled code is kept at all: `LOOPWRIGHT_CACHE=0` says no."""
    return os.environ.get("LOOPWRIGHT_CACHE", "").strip().lower() not in ("0", "off", "no", "false")


def read_size(text: str, where: str = "size") -> int:
    """The bytes that a text such as `200000000`, `200MB` or `2GiB` means; `M` and `MiB` are powers of two."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise BadCacheSize(where, text)
    base = 1000 if match[2] and (match[3] or "").lower() == "b" else 1024
    size = float(match[1]) * base ** _UNITS[match[2].lower()]
    if size == inf:
        raise BadCacheSize(where, text)
    return int(size)


def size_limit() -> int:
    """How many bytes the store may hold."""
    given = os.environ.get("LOOPWRIGHT_CACHE_SIZE", "").strip()
    return read_size(given, "the environment variable LOOPWRIGHT_CACHE_SIZE") if given else DEFAULT_LIMIT


def store_folder() -> Path | None:
    """Where entries are: under `LOOPWRIGHT_CACHE_DIR`, else under the user's cache folder; None where there is none."""
    given = os.environ.get("LOOPWRIGHT_CACHE_DIR")
    if given:
        folder = os.path.expanduser(given)
        return None if folder.startswith("~") else Path(folder).absolute() / "compiled"  # the home of nobody
    result = cache_directory()
    return None if result is None else result / "compiled"


_opened: Final[dict[Path, ArtifactStore]] = {}


def open_store() -> ArtifactStore | None:
    """The store of this user; None where it is switched off, or no folder is safe to take code from."""
    if not is_on():
        return None
    folder = store_folder()
    if folder is None:
        _warn_once("", "no cache folder can be written, so compiled code is not kept; LOOPWRIGHT_CACHE_DIR names one")
        return None
    store = _opened.get(folder)
    if store is None:
        problem = _make_folder(folder)
        if problem is not None:
            _warn_once(str(folder), f"compiled code is not kept in {folder}: {problem}")
            return None
        store = _opened[folder] = ArtifactStore(folder)
    return store


class ArtifactStore:
    """A folder of artifacts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known_bytes = 0  # at the last scan, and what this process has written since
        self._saves_until_scan = 0

    def read(self, key: str) -> Artifact | None:
        """What is kept under `key`, which counts as a use; None where that is nothing, or damaged."""
        path = self._path(key)
        try:
            artifact = unpacked(read_content(path), key)
        except FileNotFoundError:
            return None
        except (OSError, Damaged):
            self.remove(key)
            return None
        with contextlib.suppress(OSError):  # of a read-only store
            os.utime(path)
        return artifact

    def save(self, key: str, header: Mapping[str, object], parts: Mapping[str, bytes]) -> bool:
        """Keep an artifact under `key`; False where it cannot be, which a warning says once."""
        content = packed(key, header, parts)
        limit = size_limit()
        if len(content) > limit:
            return False
        try:
            self._write(self._path(key), content)
        except OSError as error:
            _warn_once(str(self.folder), f"compiled code cannot be kept in {self.folder}: {error.strerror or error}")
            return False
        self._known_bytes += len(content)
        self._saves_until_scan -= 1
        if self._saves_until_scan < 0:
            self._scan()
        if self._known_bytes > limit:
            self.prune(int(limit * _ROOM))
        return True

    def entries(self) -> list[Entry]:
        """Every entry, the one used last first."""
        result = []
        for item in self._files():
            if not item.name.endswith(_SUFFIX):
                continue
            with contextlib.suppress(OSError):  # removed by another process meanwhile
                status = item.stat(follow_symlinks=False)
                result.append(Entry(item.name.removesuffix(_SUFFIX), Path(item.path), status.st_size, status.st_mtime))
        return sorted(result, key=lambda entry: (-entry.used, entry.key))

    def look(self, entry: Entry) -> Artifact:
        """What an entry holds, which does not count as a use; `Damaged` or OSError where that is nothing."""
        return unpacked(read_content(entry.path), entry.key)

    def remove(self, key: str) -> bool:
        """Remove an entry; False where it is not there, or cannot be removed."""
        path = self._path(key)
        try:
            # Something else of that name, put there by hand, is in the way; it goes only if nothing is lost by it.
            os.rmdir(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        except OSError:
            return False
        return True

    def prune(self, limit: int) -> list[Entry]:
        """Remove what was not used for longest until the rest takes no more than `limit` bytes; what was removed."""
        total, is_full = 0, False
        removed: list[Entry] = []
        for entry in self._scan():
            is_full = is_full or total + entry.size > limit
            # Another process may have been faster: it is gone either way.
            if is_full and (self.remove(entry.key) or not entry.path.exists()):
                removed.append(entry)
            else:
                total += entry.size
        self._known_bytes = total
        return removed

    def clear(self) -> list[Entry]:
        """Remove every entry; those that were removed."""
        self._remove_abandoned(0)
        self._known_bytes = 0
        return [entry for entry in self.entries() if self.remove(entry.key)]

    def _scan(self) -> list[Entry]:
        """Every entry, also those of other processes; what processes that died left behind is removed."""
        self._remove_abandoned()
        entries = self.entries()
        self._known_bytes, self._saves_until_scan = sum(entry.size for entry in entries), _SCAN_EVERY
        return entries

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_SUFFIX}"

    def _files(self) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(self.folder) as result:
                yield from list(result)
        except OSError:  # not made yet, or not readable: nothing is there for us
            return

    def _write(self, path: Path, content: bytes) -> None:
        # Someone may have removed the folder while this process runs.
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=_TEMPORARY, dir=self.folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise

    def _remove_abandoned(self, age: float = _ABANDONED) -> None:
        before = time.time() - age
        for item in self._files():
            if item.name.startswith(_TEMPORARY):
                with contextlib.suppress(OSError):
                    if item.stat(follow_symlinks=False).st_mtime <= before:
                        os.unlink(item.path)


# --- the folder ---


def _make_folder(folder: Path) -> str | None:
    """Make the folder; why it cannot be used, or None. One that can only be read is of use."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        return error.strerror or str(error)
    return why_untrusted(status)


_warned: Final[set[str]] = set()


def _warn_once(about: str, message: str) -> None:
    if about not in _warned:
        _warned.add(about)
        warnings.warn(message, CacheWarning, stacklevel=user_stack_level())
