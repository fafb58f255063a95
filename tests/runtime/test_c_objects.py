"""c_objects: C files compiled once in a process, and beside us when begun early."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from loopwright.runtime import c_objects
from loopwright.runtime.elf import MAGIC
from loopwright.runtime.link import LinkFailed, find_compiler


@pytest.fixture
def compiler(tmp_path: Path) -> Path:
    """A compiler that writes down that it ran."""
    made = tmp_path / "compiler"
    made.write_text(f'#!/bin/sh\necho x >> {tmp_path}/runs\nexec {find_compiler()[0]} "$@"\n')
    made.chmod(made.stat().st_mode | stat.S_IXUSR)
    return made


def source_in(folder: Path, text: str = "int answer(void) { return 42; }\n") -> Path:
    source = folder / "answer.c"
    source.write_text(text)
    return source


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text().split())


def test_a_source_is_compiled_once(compiler: Path, tmp_path: Path):
    source = source_in(tmp_path)
    c_objects.begin(source, [str(compiler)])
    c_objects.begin(source, [str(compiler)])
    made = c_objects.object_of(source, [str(compiler)])
    assert made[:4] == MAGIC and b"answer" in made
    assert c_objects.object_of(source, [str(compiler)]) == made
    c_objects.begin(source, [str(compiler)])
    assert runs(tmp_path) == 1
    assert not c_objects._begun


def test_what_nobody_began_is_compiled_when_asked_for(compiler: Path, tmp_path: Path):
    assert c_objects.object_of(source_in(tmp_path), [str(compiler)])[:4] == MAGIC
    assert runs(tmp_path) == 1


def test_a_compiler_that_fails_is_quoted_when_the_object_is_asked_for(compiler: Path, tmp_path: Path):
    source = source_in(tmp_path, "int answer(void) { return forty_two; }\n")
    c_objects.begin(source, [str(compiler)])
    for _ in range(2):  # and tried again
        with pytest.raises(LinkFailed, match="forty_two"):
            c_objects.object_of(source, [str(compiler)])
    assert runs(tmp_path) == 2


def test_a_compiler_that_does_not_run(tmp_path: Path):
    with pytest.raises(LinkFailed, match="No such file"):
        c_objects.begin(source_in(tmp_path), [str(tmp_path / "none")])
    assert not c_objects._begun


def test_what_was_begun_and_not_wanted_ends(compiler: Path, tmp_path: Path):
    c_objects.begin(source_in(tmp_path), [str(compiler)])
    (running,) = c_objects._begun.values()
    c_objects._end_all()
    assert running.process.poll() is not None
    assert not Path(running.folder.name).exists()
