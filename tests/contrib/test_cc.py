from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

from loopwright.contrib import cc, clang, tar, utils

needs_compiler = pytest.mark.skipif(cc.get_cc() is None, reason="there is no C compiler")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "twice.c").write_text("int twice(int x) { return 2 * x; }\n")
    (tmp_path / "main.c").write_text("int twice(int);\nint main(void) { return twice(21) == 42 ? 0 : 1; }\n")
    return tmp_path


def compiled(folder, name):
    subprocess.run(["gcc", "-fPIC", "-c", folder / f"{name}.c", "-o", folder / f"{name}.o"], check=True)
    return str(folder / f"{name}.o")


@needs_compiler
def test_a_shared_library(folder):
    cc.create_shared(str(folder / "lib.so"), compiled(folder, "twice"))
    assert ctypes.CDLL(str(folder / "lib.so")).twice(4) == 8
    assert cc.get_global_symbol_section_map(str(folder / "lib.so"))["twice"] == "T"


@needs_compiler
def test_an_executable_from_a_source_and_an_archive(folder):
    cc.create_staticlib(str(folder / "lib.a"), [compiled(folder, "twice")])
    cc.create_staticlib(str(folder / "lib.a"), [compiled(folder, "twice")])  # replaces it
    cc.create_executable(str(folder / "run"), [str(folder / "main.c"), str(folder / "lib.a")], cc="gcc")
    assert subprocess.run([folder / "run"]).returncode == 0


@needs_compiler
def test_a_tar_of_objects_links_like_its_objects(folder):
    tar.tar(str(folder / "objects.tar"), [compiled(folder, "twice")])
    cc.create_shared(str(folder / "lib.so"), [str(folder / "objects.tar")])
    assert ctypes.CDLL(str(folder / "lib.so")).twice(5) == 10
    cc.create_staticlib(str(folder / "lib.a"), str(folder / "objects.tar"))
    assert "twice" in cc.get_global_symbol_section_map(str(folder / "lib.a"))


@needs_compiler
def test_a_cross_compiler_carries_options_files_and_its_machine(folder):
    compile_with = cc.cross_compiler("gcc", options=["-DFACTOR=3"], add_files=[str(folder / "more.c")])
    (folder / "more.c").write_text("int factor(void) { return FACTOR; }\n")
    compile_with(str(folder / "lib.so"), [compiled(folder, "twice")])
    library = ctypes.CDLL(str(folder / "lib.so"))
    assert (library.twice(2), library.factor()) == (4, 3)
    assert compile_with.output_format == "so"
    assert "-" in compile_with.get_target_triple()
    again = cc.cross_compiler(compile_with, options=["-O1"])
    again(str(folder / "again.so"), [str(folder / "twice.o")])
    assert again.output_format == "so"


def test_the_machine_of_a_compiler_that_is_not_there():
    assert cc.get_target_by_dump_machine("no-such-compiler")() is None


def test_the_machine_of_the_compiler_is_that_of_the_environment_now(tmp_path, monkeypatch):
    for name in ("CC", "CXX"):
        monkeypatch.delenv(name, raising=False)
    compiler = tmp_path / "a-compiler"
    compiler.write_text("#!/bin/sh\necho riscv64-linux-gnu\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    assert cc.create_shared.get_target_triple() == "riscv64-linux-gnu"


def test_a_missing_compiler_is_told_with_all_names_it_was_looked_for_by(tmp_path, monkeypatch):
    for name in ("CC", "CXX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(cc.NoCompiler, match=r"looked for g\+\+, gcc, clang\+\+, clang, c\+\+, cc on PATH"):
        cc.create_shared("lib.so", ["lib.o"])


def test_the_compiler_of_the_environment(monkeypatch):
    monkeypatch.setenv("CXX", "ccache g++")
    assert cc.get_cc() == "ccache g++"
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("CC", "mycc")
    assert cc.get_cc() == "mycc"


def test_errors_of_compilers(folder, monkeypatch):
    with pytest.raises(cc.NoCompiler, match="there is no program no-such-compiler here"):
        cc.create_shared("lib.so", ["a.o"], cc="no-such-compiler")
    with pytest.raises(cc.CompilationFailed, match="failed with status"):
        cc.create_executable("program", ["a.o"], cc=sys.executable)
    if cc.get_cc() is not None:
        (folder / "broken.c").write_text("int f( {")
        with pytest.raises(cc.CompilationFailed) as caught:
            cc.create_shared(str(folder / "b.so"), [str(folder / "broken.c")])
        assert "broken.c:1" in caught.value.why
    monkeypatch.setenv("PATH", "")
    for name in ("CC", "CXX"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(cc.NoCompiler, match="there is no C compiler here"):
        cc.create_shared("lib.so", ["a.o"])
    with pytest.raises(cc.NoCompiler, match="there is no archiver here"):
        cc.create_staticlib("lib.a", ["a.o"])
    with pytest.raises(cc.NoCompiler, match="there is no clang here"):
        clang.create_llvm("int f() { return 1; }")
    assert clang.find_clang(required=False) == []


@pytest.mark.skipif(not clang.find_clang(required=False), reason="there is no clang")
def test_llvm_of_a_text():
    assert "define" in clang.create_llvm("extern int f(int x) { return x; }")


def test_create_llvm_hands_clang_the_text_and_reads_what_it_wrote(folder):
    fake = folder / "clang"
    fake.write_text('#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\n(echo "; from:"; cat "$3") > "$2"\n')
    fake.chmod(0o755)
    shown = clang.create_llvm("int f;", output=str(folder / "f.ll"), options=["-O2"], cc=str(fake))
    assert shown == "; from:\nint f;"
    assert (folder / "f.ll").read_text() == shown
    assert "twice" in clang.create_llvm(str(folder / "twice.c"), cc=str(fake))


def test_an_archive_is_the_same_whenever_it_is_made(folder):
    files = [str(folder / "twice.c"), str(folder / "main.c")]
    tar.tar(str(folder / "a.tar"), files)
    os.utime(folder / "main.c", (1, 1))
    tar.tar(str(folder / "b.tar"), files[::-1])
    assert (folder / "a.tar").read_bytes() == (folder / "b.tar").read_bytes()
    tar.untar(str(folder / "a.tar"), str(folder / "out"))
    assert sorted(os.listdir(folder / "out")) == ["main.c", "twice.c"]
    assert tar.tar.output_format == "tar"


def test_what_is_no_archive_passes():
    assert tar.normalize_file_list_by_unpacking_tars(utils.tempdir(), ["a.o", "b.c"]) == ["a.o", "b.c"]
