"""Temporary folders that go away by themselves, and small questions about files."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar


class TempDirectory:
    """A folder that is removed together with its last reference, at the latest when the process ends.

    folder = tempdir()
    path = folder / "lib.so"          # the same as folder.relpath("lib.so")
    """

    _keep: ClassVar[bool] = False

    @classmethod
    @contextmanager
    def set_keep_for_debug(cls, set_to: bool = True) -> Iterator[None]:
        """Inside the `with`, folders that are made stay where they are."""
        before, cls._keep = cls._keep, set_to
        try:
            yield
        finally:
            cls._keep = before

    def __init__(self, custom_path: str | os.PathLike[str] | None = None, keep_for_debug: bool | None = None) -> None:
        if custom_path is None:
            self.temp_dir = tempfile.mkdtemp(prefix="loopwright-")
        else:
            self.temp_dir = os.fspath(custom_path)
            os.makedirs(self.temp_dir)  # one that exists is someone else's, and must not be removed with ours
        keep = self._keep if keep_for_debug is None else keep_for_debug
        self._finalizer = None if keep else weakref.finalize(self, shutil.rmtree, self.temp_dir, True)

    @property
    def path(self) -> str:
        """Where it is."""
        return self.temp_dir

    def relpath(self, name: str) -> str:
        """The path of the file `name` in it."""
        return os.path.join(self.temp_dir, name)

    __truediv__ = relpath

    def listdir(self) -> list[str]:
        """The names of what it holds."""
        return os.listdir(self.temp_dir)

    def remove(self) -> None:
        """Remove it now; a second time does nothing."""
        if self._finalizer is not None:
            self._finalizer()
        elif os.path.isdir(self.temp_dir):
            shutil.rmtree(self.temp_dir)

    def __enter__(self) -> TempDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"TempDirectory({self.temp_dir!r})"


def tempdir(custom_path: str | os.PathLike[str] | None = None, keep_for_debug: bool | None = None) -> TempDirectory:
    """A new temporary folder, or a new folder at `custom_path`; it is removed with the last reference to it."""
    return TempDirectory(custom_path, keep_for_debug)


def is_source_path(path: str) -> bool:
    """Whether the file holds C, C++, CUDA or LLVM source, going by its name."""
    return os.path.splitext(path)[1] in (".c", ".cc", ".cpp", ".cxx", ".cu", ".ll", ".s", ".S")


def which(exec_name: str) -> str | None:
    """Where the program is on PATH; None where it is not."""
    return shutil.which(exec_name)
