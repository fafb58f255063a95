"""The user's cache folder, and whom it trusts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loopwright.runtime.cache_folder import cache_directory, why_untrusted


def test_a_directory_that_others_can_write_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(shared))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "mine"))
    assert cache_directory() == tmp_path / "mine" / "loopwright"


def test_without_a_home_the_temporary_directory_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("LOOPWRIGHT_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    assert cache_directory() == tmp_path / f"loopwright-{os.getuid()}"


def test_a_system_without_user_numbers_has_a_folder_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(os, "getuid")
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path / "mine"))
    assert cache_directory() == tmp_path / "mine"


def test_files_of_others_are_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    status = tmp_path.stat()
    assert why_untrusted(status) is None
    monkeypatch.setattr(os, "getuid", lambda: status.st_uid + 1)
    reason = None if status.st_uid == 0 else "it belongs to another user"  # root may write anything anyway
    assert why_untrusted(status) == reason
    tmp_path.chmod(0o777)
    monkeypatch.undo()
    assert why_untrusted(tmp_path.stat()) == "other users can write to it (chmod go-w)"
