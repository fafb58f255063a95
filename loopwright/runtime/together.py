"""together: several files that appear at once, or not at all.

    with together("out/model.so") as folder:
        (folder / "model.so").write_bytes(…)
        (folder / "model.h").write_text(…)
    # now out/model.h and out/model.so are there

They are written in a folder of their own beside the place they go to, on the same disk, and moved at the end; the one
that was asked for comes last. When the disk is full, or anything else goes wrong, what was there before stays.
"""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.link import LinkFailed, require_folder


class CannotWrite(LoopwrightError, OSError):
    """A result could not be written: the disk is full, the folder is read-only, or a folder has that name.

    Nothing was left half written: files that were there before are as they were.

    For example:

        import os
        from loopwright.runtime.together import together

        os.mkdir("model.so")
        with together("model.so"):
            pass
    """

    code = "LW0048"

    def __init__(self, path: str | os.PathLike[str], why: str) -> None:
        super().__init__(f"{os.fspath(path)} cannot be written: {why}", fields={"path": os.fspath(path)})


def require_writable(output: str | os.PathLike[str]) -> Path:
    """Refuse an output that could not be written, before any work is done for it."""
    path = Path(output)
    if "\0" in str(path):
        raise CannotWrite(path, "its name holds a null character")
    require_folder(path)
    if path.is_dir():
        raise CannotWrite(path, "it is a folder")
    if path.exists() and not path.is_file():
        raise CannotWrite(path, "it is not a regular file, and would be replaced by one")
    if not os.access(path.absolute().parent, os.W_OK):
        raise CannotWrite(path, f"the folder {path.parent} may not be written to")
    return path


@contextlib.contextmanager
def together(output: str | os.PathLike[str]) -> Iterator[Path]:
    """A folder to write files into; they are moved beside `output` when all is well."""
    path = require_writable(output)
    try:
        with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.absolute().parent) as name:
            folder = Path(name)
            yield folder
            result = sorted(folder.iterdir(), key=lambda file: file.name == path.name)
            for file in result:
                if (path.parent / file.name).is_dir():
                    raise CannotWrite(path.parent / file.name, "it is a folder")
            for file in result:
                os.replace(file, path.parent / file.name)
    except CannotWrite:
        raise
    except LinkFailed as error:
        if os.strerror(errno.ENOSPC) in str(error):  # the linker writes too
            raise CannotWrite(path, os.strerror(errno.ENOSPC)) from error
        raise
    except OSError as error:
        if isinstance(error, LoopwrightError):
            raise
        raise CannotWrite(path, error.strerror or str(error)) from error


def write_text(output: str | os.PathLike[str], text: str) -> None:
    """One text, whole or not at all."""
    with together(output) as folder:
        (folder / Path(output).name).write_text(text, encoding="utf-8")
