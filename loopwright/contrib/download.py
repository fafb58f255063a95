"""Files from the network, kept in a folder: what is there already is not fetched again.

    path = download_testdata("https://example.org/model.onnx", "model.onnx", module="onnx")
"""

from __future__ import annotations

import os
import shutil
import tempfile
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from urllib.error import URLError


def download(url: str, path: str | Path, overwrite: bool = False, size_compare: bool = False, retries: int = 3) -> None:
    """Fetch `url` to `path`, unless a file is there; with `size_compare` it must have the size that the server says."""
    target = Path(path)
    if target.is_file() and not overwrite and not (size_compare and target.stat().st_size != _size_of(url)):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    for left in reversed(range(max(retries, 1))):
        try:
            _fetch(url, target)
            return
        except (URLError, TimeoutError, ConnectionError):
            if not left:
                raise


def download_testdata(
    url: str, relpath: str, module: str | Sequence[str] | None = None, overwrite: bool = False
) -> str:
    """The path of the file, which is fetched at the first call; TEST_DATA_ROOT_PATH says under which folder it lies."""
    root = Path(os.environ.get("TEST_DATA_ROOT_PATH", Path.home() / ".tvm_test_data"))
    parts = [module] if isinstance(module, str) else list(module or ())
    path = root.joinpath(*parts, relpath)
    download(url, path, overwrite)
    return str(path)


def _fetch(url: str, target: Path) -> None:
    """The file appears when it is whole: another process may look for it meanwhile."""
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                shutil.copyfileobj(answer, file)
        except BaseException:
            os.unlink(file.name)
            raise
    os.replace(file.name, target)


def _size_of(url: str) -> int | None:
    with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=60) as answer:
        length = answer.headers.get("content-length")
    return None if length is None else int(length)
