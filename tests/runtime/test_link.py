from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys

import pytest

from loopwright.runtime import link
from loopwright.runtime.link import LinkFailed, NoLinker, create_executable, create_staticlib, find_compiler, get_cc

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def test_a_named_compiler_comes_first(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    assert find_compiler(f"{sys.executable} -m something") == [sys.executable, "-m", "something"]
    with pytest.raises(NoLinker, match="there is no C compiler here that links shared libraries") as caught:
        find_compiler("no-such-compiler --fast")
    assert "looked for no-such-compiler" in str(caught.value)


def test_the_environment_comes_next(monkeypatch):
    monkeypatch.setenv("CC", f"{sys.executable} -fast")
    assert find_compiler() == [sys.executable, "-fast"]


def test_zig_comes_last(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if name == "ziglang" else None)
    assert find_compiler() == [sys.executable, "-m", "ziglang", "cc"]
    assert find_compiler(triple="riscv64-unknown-linux-gnu")[-2:] == ["-target", "riscv64-linux-gnu"]


@pytest.mark.parametrize(
    ("triple", "target"),
    [
        ("arm64-linux-gnu", "aarch64-linux-gnu"),
        ("armv7a-linux-gnueabihf", "arm-linux-gnueabihf"),
        ("thumbv7-unknown-linux-gnueabi", "arm-linux-gnueabi"),
        ("i686-unknown-linux-gnu", "x86-linux-gnu"),
        ("riscv64-unknown-elf", "riscv64-freestanding"),
    ],
)
def test_zig_has_its_own_names_of_machines(monkeypatch, triple, target):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if name == "ziglang" else None)
    assert find_compiler(triple=triple)[-2:] == ["-target", target]


def test_zig_makes_archives_where_there_is_no_ar(monkeypatch, tmp_path):
    commands = []
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("AR", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if name == "ziglang" else None)
    monkeypatch.setattr(link, "_run", lambda command: (commands.append(command), open(command[-2], "w").close()))
    create_staticlib(str(tmp_path / "a.a"), "a.o")
    assert commands[0][:5] == [sys.executable, "-m", "ziglang", "ar", "rcs"]
    with pytest.raises(NoLinker, match="there is no C compiler here"):
        create_staticlib(str(tmp_path / "a.a"), "a.o", ar="no-such-ar")


def test_nothing_at_all_says_what_to_install(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(NoLinker) as caught:
        find_compiler()
    assert "looked for cc, gcc, clang, the Python package ziglang" in str(caught.value)
    assert "apt install gcc; or pip install ziglang" in str(caught.value)
    with pytest.raises(NoLinker, match="links for riscv64-unknown-linux-gnu") as caught:
        find_compiler(triple="riscv64-unknown-linux-gnu")
    assert "apt install gcc-riscv64-linux-gnu" in str(caught.value)
    assert get_cc() is None


@pytest.mark.parametrize(
    ("triple", "first"),
    [
        ("riscv64-unknown-linux-gnu", "riscv64-linux-gnu-gcc"),
        ("arm64-linux-gnu", "aarch64-linux-gnu-gcc"),
        ("thumbv7em-none-eabihf", "arm-none-eabi-gcc"),
        ("armv7a-linux-gnueabihf", "arm-linux-gnueabihf-gcc"),
        ("x86_64-unknown-linux-gnu", "x86_64-linux-gnu-gcc"),
    ],
)
def test_compilers_of_other_machines(triple, first):
    assert link.cross_compilers(triple)[0] == first


@needs_cc
def test_programs_and_archives(tmp_path):
    (tmp_path / "a.c").write_text("int main(void) { return 7; }")
    program = create_executable(str(tmp_path / "a"), str(tmp_path / "a.c"))
    assert subprocess.run([program], check=False).returncode == 7
    subprocess.run(["cc", "-c", "-o", tmp_path / "a.o", tmp_path / "a.c"], check=True)
    create_staticlib(str(tmp_path / "a.a"), [str(tmp_path / "a.o")])
    assert (tmp_path / "a.a").read_bytes().startswith(b"!<arch>")


@needs_cc
def test_a_failure_leaves_nothing_behind(tmp_path):
    (tmp_path / "a.c").write_text("this is no C")
    with pytest.raises(LinkFailed, match="could not link the library") as caught:
        create_executable(str(tmp_path / "a"), str(tmp_path / "a.c"))
    assert "a.c" in str(caught.value) and "command" in caught.value.fields
    assert [file.name for file in tmp_path.iterdir()] == ["a.c"]
