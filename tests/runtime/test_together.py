from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from loopwright.runtime.link import LinkFailed, NoSuchFolder
from loopwright.runtime.together import CannotWrite, require_writable, together, write_text


def test_files_appear_together(tmp_path):
    output = tmp_path / "model.so"
    with together(output) as folder:
        (folder / "model.so").write_text("library")
        (folder / "model.h").write_text("header")
        assert not output.exists() and folder.parent == tmp_path
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model.h", "model.so"]


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), LinkFailed(["ld"], "ld: No space left on device")]
)
def test_a_full_disk_leaves_what_was_there(tmp_path, error):
    output = tmp_path / "model.so"
    output.write_text("before")
    with (
        pytest.raises(CannotWrite, match=r"model\.so cannot be written: No space left on device"),
        together(output) as folder,
    ):
        (folder / "model.so").write_text("half")
        raise error
    assert [file.name for file in tmp_path.iterdir()] == ["model.so"] and output.read_text() == "before"


def test_a_real_limit_leaves_nothing_behind(tmp_path):
    """Files of this process may not grow beyond 10,000 bytes."""
    program = (
        "import resource\n"
        "from loopwright.runtime.together import write_text\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))\n"
        f"write_text({str(tmp_path / 'page.html')!r}, 'x' * 100_000)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "page.html cannot be written: File too large [LW0048]" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_other_errors_pass_and_leave_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError), together(tmp_path / "a.txt") as folder:
        (folder / "a.txt").write_text(str(1 // 0))
    with pytest.raises(LinkFailed, match="could not link"), together(tmp_path / "a.so"):
        raise LinkFailed(["ld"], "ld: cannot find -lmagic")
    assert list(tmp_path.iterdir()) == []


def test_outputs_that_cannot_be(tmp_path):
    (tmp_path / "taken.so").mkdir()
    with pytest.raises(CannotWrite, match="it is a folder"):
        require_writable(tmp_path / "taken.so")
    with pytest.raises(NoSuchFolder, match="the folder"):
        require_writable(tmp_path / "nowhere" / "a.so")
    with pytest.raises(CannotWrite, match="it is a folder"), together(tmp_path / "a.c") as folder:
        (folder / "a.c").write_text("")
        (folder / "taken.so").write_text("")
    assert not (tmp_path / "a.c").exists()


def test_a_text(tmp_path):
    write_text(tmp_path / "a.txt", "täxt")
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "täxt"


def test_a_name_that_no_file_can_have(tmp_path):
    with pytest.raises(CannotWrite, match="null character"):
        write_text(tmp_path / "a\0b", "text")
