"""cache_folder: the user's folder for things that can be made again, and what makes a folder safe to take code from."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def cache_directory() -> Path | None:
    """The user's directory for things that can be made again, writable by nobody else; None where there is none."""
    xdg = os.environ.get("XDG_CACHE_HOME")
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    candidates = [
        os.environ.get("LOOPWRIGHT_CACHE_DIR"),
        str(Path(xdg) / "loopwright") if xdg else None,
        os.path.expanduser("~/.cache/loopwright"),
        str(Path(tempfile.gettempdir()) / f"loopwright-{user}"),
    ]
    for candidate in candidates:
        if not candidate or candidate.startswith("~"):  # the user has no home
            continue
        directory = Path(candidate)
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = directory.stat()
        except OSError:
            continue
        if why_untrusted(status) is None and os.access(directory, os.W_OK | os.X_OK):
            return directory
    return None


def why_untrusted(status: os.stat_result) -> str | None:
    """Why code must not be taken from a file or folder with this status; None where it may."""
    # What is read from here runs as this user, so nobody else may be able to put a file here.
    if hasattr(os, "getuid") and status.st_uid not in (os.getuid(), 0):
        return "it belongs to another user"
    if status.st_mode & 0o022 and os.name == "posix":
        return "other users can write to it (chmod go-w)"
    return None
