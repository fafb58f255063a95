from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from loopwright.runtime import native_library, thread_pool
from loopwright.runtime.cache_folder import cache_directory
from loopwright.runtime.elf import is_complete_elf
from loopwright.runtime.native_build import SHIPPED, single_file
from loopwright.runtime.native_library import NativeLibrary

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NativeLibrary:
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    source = tmp_path / "tiny.c"
    source.write_text('const char* lw_source_hash(void) __attribute__((visibility("default")));\n'
                      "const char* lw_source_hash(void) { return LW_SOURCE_HASH; }\n")  # fmt: skip
    return NativeLibrary(source)


def cached(library: NativeLibrary) -> list[Path]:
    directory = cache_directory()
    assert directory is not None
    return sorted(directory.iterdir())


@needs_compiler
def test_it_is_built_once_and_found_again(library: NativeLibrary):
    assert library.load() is not None
    (made,) = cached(library)
    stamp = made.stat().st_mtime_ns
    assert NativeLibrary(library.source).load() is not None
    assert [path.stat().st_mtime_ns for path in cached(library)] == [stamp]


@needs_compiler
def test_a_changed_source_makes_another_library(library: NativeLibrary):
    before = library.hash()
    assert library.load() is not None
    library.source.write_text(library.source.read_text() + "/* changed */\n")
    assert library.hash() != before
    assert library.load() is not None
    assert len(cached(library)) == 2


@needs_compiler
def test_a_changed_part_makes_another_library(library: NativeLibrary):
    library.source.write_text('#include "part.c"\n#include "part.c"\n' + library.source.read_text())
    part = library.source.with_name("part.c")
    part.write_text("extern int part;\n")
    before = library.hash()
    assert library.load() is not None
    part.write_text("extern int other_part;\n")
    assert library.hash() != before
    assert single_file(library.source).startswith("extern int other_part;\nconst char* lw_source_hash")


@needs_compiler
def test_a_cut_off_library_is_built_again(library: NativeLibrary):
    directory = cache_directory()
    assert directory is not None
    path = directory / library.cached_name()
    assert library.build(path)
    whole = path.read_bytes()
    for length in (0, 10, 64, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert not is_complete_elf(path)
    assert library.load() is not None
    assert is_complete_elf(path)


@needs_compiler
def test_a_prebuilt_library_is_used_unless_it_is_stale(library: NativeLibrary):
    prebuilt = library.source.with_name("_tiny.so")
    assert library.build(prebuilt)
    loaded = library.load()
    assert loaded is not None
    assert Path(loaded._name) == prebuilt
    library.source.write_text(library.source.read_text() + "\n")
    loaded = library.load()
    assert loaded is not None
    assert Path(loaded._name) != prebuilt


@needs_compiler
def test_a_prebuilt_library_of_another_machine_is_left_alone(
    library: NativeLibrary, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    prebuilt = library.source.with_name("_tiny.so")
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(platform, "machine", lambda: "another")
        assert library.build(prebuilt)
    loaded = library.load()
    assert loaded is not None
    assert Path(loaded._name) == tmp_path / "cache" / library.cached_name()

    os.unlink(tmp_path / "cache" / library.cached_name())
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    assert library.load() is None
    assert library.why_not.startswith(
        "_tiny.so was made from another source, or for another machine, and there is no C compiler (looked for"
    )


@needs_compiler
def test_a_prebuilt_library_needs_no_compiler_and_no_cache(
    library: NativeLibrary, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    assert library.build(library.source.with_name("_tiny.so"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(native_library, "cache_directory", lambda: None)
    assert library.load() is not None
    assert library.why_not == ""


def test_no_compiler_is_explained(library: NativeLibrary, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    assert library.load() is None
    assert "there is no C compiler (looked for cc, gcc, clang, the Python package ziglang)" in library.why_not


@needs_compiler
def test_the_compiler_is_whichever_also_links_libraries(
    library: NativeLibrary, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    # As with `python -m ziglang cc`, which needs nothing on PATH.
    compiler = str(shutil.which("cc"))
    monkeypatch.setattr(native_library, "find_compiler", lambda: [compiler])
    assert library.load() is not None


@needs_compiler
def test_a_failing_compiler_is_quoted(library: NativeLibrary):
    library.source.write_text("this is not C\n")
    assert library.load() is None
    assert "failed:" in library.why_not
    assert cached(library) == []


@needs_compiler
def test_many_processes_may_build_at_once(tmp_path: Path):
    code = "from loopwright.runtime import thread_pool as t; assert t.library() is not None; print(t.num_threads())"
    environment = {**os.environ, "LOOPWRIGHT_CACHE_DIR": str(tmp_path), "LOOPWRIGHT_NUM_THREADS": "3"}
    running = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert [process.communicate(timeout=100)[0] for process in running] == ["3\n"] * 3
    assert len(list(tmp_path.iterdir())) == 1


def test_a_wheel_carries_every_c_file():
    root = Path(native_library.__file__).parents[2]
    patterns = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["loopwright"]
    package = root / "loopwright"
    shipped = {file for pattern in patterns for file in package.glob(pattern)}
    sources = {file for suffix in ("c", "h") for file in package.rglob(f"*.{suffix}")}
    assert sources and sources <= shipped
    assert {package / name for name in SHIPPED} <= sources


def test_the_parts_are_one_file_for_others():
    text = single_file(thread_pool._native.source)
    assert not re.search(r'#include "', text)
    assert all(text.count(f"{name}(") for name in ("lw_parallel_for", "lw_workspace_alloc", "lw_time_calls"))
    assert text.count("#define MAX_THREADS") == 1


def test_the_runtime_exports_its_functions():
    library = thread_pool.library()
    if library is None:
        pytest.skip("no native runtime here")
    for name, address in thread_pool.symbols().items():
        assert ctypes.cast(getattr(library, name), ctypes.c_void_p).value == address
