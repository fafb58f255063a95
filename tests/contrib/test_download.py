"""Files that are fetched once."""

from __future__ import annotations

from pathlib import Path
from urllib.error import URLError

import pytest

from loopwright.contrib.download import download, download_testdata


def test_a_file_is_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "source.txt"
    source.write_text("first")
    monkeypatch.setenv("TEST_DATA_ROOT_PATH", str(tmp_path / "data"))
    path = download_testdata(source.as_uri(), "copy.txt", module=["models", "small"])
    assert Path(path) == tmp_path / "data/models/small/copy.txt" and Path(path).read_text() == "first"
    source.write_text("second, longer")
    assert Path(download_testdata(source.as_uri(), "copy.txt", module=["models", "small"])).read_text() == "first"
    download(source.as_uri(), path, overwrite=True)
    assert Path(path).read_text() == "second, longer"


def test_what_is_not_there_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(URLError, match="nowhere"):
        download((tmp_path / "nowhere.txt").as_uri(), tmp_path / "out/copy.txt")
    assert list((tmp_path / "out").iterdir()) == []
