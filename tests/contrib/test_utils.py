from __future__ import annotations

import os
import subprocess
import sys

import pytest

import loopwright.contrib
from loopwright.contrib import utils


def test_a_folder_goes_with_its_last_reference():
    folder = utils.tempdir()
    with open(folder.relpath("a.txt"), "w") as file:
        file.write("a")
    assert folder / "a.txt" == folder.relpath("a.txt")
    assert folder.listdir() == ["a.txt"]
    path = folder.path
    assert path == folder.temp_dir and os.path.isdir(path)
    del folder
    assert not os.path.exists(path)


def test_a_folder_is_removed_on_request_and_at_exit(tmp_path):
    folder = utils.tempdir(tmp_path / "mine")
    assert folder.path == str(tmp_path / "mine")
    folder.remove()
    folder.remove()
    assert not (tmp_path / "mine").exists()
    code = "from loopwright.contrib import utils; d = utils.tempdir(); print(d.path)"
    path = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert path and not os.path.exists(path)


def test_a_folder_that_is_there_is_not_taken_over(tmp_path):
    with pytest.raises(FileExistsError):
        utils.tempdir(tmp_path)
    assert tmp_path.exists()


def test_a_folder_can_be_kept():
    with utils.TempDirectory.set_keep_for_debug():
        folder = utils.tempdir()
    path = folder.path
    del folder
    assert os.path.isdir(path)
    os.rmdir(path)
    with utils.tempdir() as gone:
        path = gone.path
    assert not os.path.exists(path)


def test_questions_about_files():
    assert utils.is_source_path("a.cc") and not utils.is_source_path("a.o")
    assert utils.which("no-such-program") is None


def test_tools_are_found_by_name():
    assert loopwright.contrib.graph_executor.GraphModule and loopwright.contrib.cc.create_shared
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        loopwright.contrib.nonsense
    assert "cc" in dir(loopwright.contrib)
