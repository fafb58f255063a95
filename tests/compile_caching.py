"""What the tests of the compile cache share: a cache of their own, and processes that use it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from loopwright.codegen import compile_cache
from loopwright.ir.op import Op
from loopwright.runtime import artifact_store, thread_pool
from loopwright.runtime.artifact_store import ArtifactStore
from loopwright.runtime.dtype import CUSTOM_CODES


def switch_on(monkeypatch: pytest.MonkeyPatch, folder: Path) -> ArtifactStore:
    """Use the cache in `folder`, with nothing in memory; what is on disk."""
    thread_pool.library()  # from where it is: it would be built once more in the new folder
    monkeypatch.setenv("LOOPWRIGHT_CACHE", "1")
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(folder))
    monkeypatch.setattr(artifact_store, "_warned", set())
    monkeypatch.setattr(artifact_store, "_opened", {})
    # What other tests registered would keep every program from having a key.
    monkeypatch.setattr(Op, "attribute_tables", {})
    for name in list(CUSTOM_CODES):
        monkeypatch.delitem(CUSTOM_CODES, name)
    compile_cache.forget()
    return ArtifactStore(folder / "compiled")


def run_with_cache(folder: Path, code: str, **environment: str) -> str:
    """What a process of its own prints that runs `code` with the cache in `folder`."""
    library = thread_pool.library()
    if library is not None:  # so that the process need not build it
        folder.mkdir(exist_ok=True)
        shutil.copy(str(library._name), folder)
    script = folder.parent / f"{folder.name}-script.py"
    script.write_text(code, encoding="utf-8")
    variables = {**os.environ, "LOOPWRIGHT_CACHE": "1", "LOOPWRIGHT_CACHE_DIR": str(folder), **environment}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=variables, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    return done.stdout.strip()
