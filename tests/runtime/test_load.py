"""Files that are not what they should be: each gets its error from the catalogue, and never a signal."""

from __future__ import annotations

import ctypes
import io
import random
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

import loopwright
from loopwright.runtime import load_module, load_static_library, seal, system_lib
from loopwright.runtime.description import ModuleDescription
from loopwright.runtime.elf import Elf
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.library_file import (
    DamagedLibrary,
    ForeignLibrary,
    LibraryNotFound,
    NotALibrary,
    NotALoopwrightLibrary,
    UnsealedLibrary,
    require_features,
)
from loopwright.runtime.link import create_shared
from loopwright.script import tir as T

pytestmark = pytest.mark.skipif(
    shutil.which("cc") is None or not sys.platform.startswith("linux"), reason="needs a C compiler, and ELF files"
)


@T.prim_func
def add(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = A[i] + T.float32(1)


@pytest.fixture(scope="module")
def built():
    return loopwright.build(add)


@pytest.fixture(scope="module")
def image(built, tmp_path_factory) -> bytes:
    return Path(built.export_library(tmp_path_factory.mktemp("load") / "add.so")).read_bytes()


def works(path: Path) -> bool:
    b = np.zeros(4, "float32")
    load_module(path)(np.ones(4, "float32"), b)
    return b.tolist() == [2] * 4


def test_a_missing_file(tmp_path):
    with pytest.raises(LibraryNotFound, match=r"there is no library '.*nothing.so' to load") as caught:
        load_module(tmp_path / "nothing.so")
    assert "No such file" in str(caught.value)
    with pytest.raises(ValueError, match="to load"):
        load_module(tmp_path)  # a directory


@pytest.mark.parametrize("name", ["a.so", "a.o", "a", "a.dll"])
def test_a_text_is_no_library(tmp_path, name):
    path = tmp_path / name
    path.write_text("this is a text\n" * 100)
    with pytest.raises(NotALibrary, match="is no library"):
        load_module(path)


@pytest.mark.parametrize("name", ["a.so", "a.o", "a.tar"])
def test_an_empty_file(tmp_path, name):
    path = tmp_path / name
    path.touch()
    with pytest.raises(DamagedLibrary, match="is damaged"):
        load_module(path)


def test_a_library_cut_off_anywhere(image, tmp_path):
    path = tmp_path / "cut.so"
    for size in [1, 3, 4, 16, 51, 52, 63, 64, 100, *range(200, len(image) - 20, 397), len(image) - 21]:
        path.write_bytes(image[:size])
        with pytest.raises((DamagedLibrary, NotALibrary)):
            load_module(path)


def test_only_the_checksum_cut_off(image, tmp_path):
    for missing in (20, 1):
        path = tmp_path / f"cut_{missing}.so"
        path.write_bytes(image[:-missing])
        with pytest.raises(UnsealedLibrary, match="has no seal"):
            load_module(path)


def test_a_library_with_one_byte_changed(image, tmp_path):
    path, dice = tmp_path / "changed.so", random.Random(1)
    for _ in range(60):
        data = bytearray(image)
        data[dice.randrange(len(data) - 20)] ^= 1 << dice.randrange(8)
        path.write_bytes(data)
        with pytest.raises(LoopwrightError):
            load_module(path)


def test_an_object_with_bytes_changed_never_ends_the_process(built, tmp_path):
    path, dice = tmp_path / "changed.o", random.Random(2)
    data = built.object_code()
    for _ in range(200):
        damaged = bytearray(data)
        for _ in range(3):
            damaged[dice.randrange(len(damaged) // 8)] = dice.randrange(256)
        try:
            elf = Elf(bytes(damaged))
            elf.is_complete()
            list(elf.symbols())
            elf.section(".loopwright")
        except ValueError:
            continue
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(DamagedLibrary, match="its headers speak of more"):
        load_module(path)


def test_code_for_another_machine(tmp_path):
    other = "aarch64" if Elf(Path(sys.executable).read_bytes()).machine != 183 else "x86_64"
    module = loopwright.build(add, target=f"llvm -mtriple={other}-unknown-linux-gnu")
    path = module.export_library(tmp_path / "other.o")
    with pytest.raises(ForeignLibrary, match="cannot run on this machine") as caught:
        load_module(path)
    assert "it holds code for" in str(caught.value)
    with tarfile.open(tmp_path / "other.tar", "w") as archive:
        archive.add(path, "lib0.o")
    with pytest.raises(ForeignLibrary):
        load_module(tmp_path / "other.tar")


def test_instructions_that_this_processor_lacks(monkeypatch):
    monkeypatch.setattr("loopwright.runtime.library_file.missing_features", lambda features: sorted(features))
    description = ModuleDescription((), cpu="a-newer-one", features=("avx512f",))
    with pytest.raises(ForeignLibrary, match=r"'x.so' cannot run on this machine") as caught:
        require_features("x.so", [description])
    assert "it was compiled for a-newer-one; this CPU lacks avx512f" in str(caught.value)


def test_a_stripped_library_still_works(image, tmp_path):
    path = tmp_path / "stripped.so"
    path.write_bytes(image)
    subprocess.run(["strip", path], check=True)
    assert len(path.read_bytes()) < len(image)
    with pytest.raises(UnsealedLibrary, match="has no seal behind it, so it may be damaged") as caught:
        load_module(path)
    assert f"loopwright.runtime.seal({str(path)!r})" in str(caught.value)
    loopwright.runtime.seal(path)
    assert works(path)


def test_code_that_was_changed_without_a_seal_is_not_loaded(image, tmp_path):
    path = tmp_path / "changed.so"
    code = image.index(b"\x7fELF") + len(image) // 3
    for data in (image[:-20], image[:-1], image[: code - 20] + bytes(40) + image[code + 20 : -20]):
        path.write_bytes(data)
        with pytest.raises(UnsealedLibrary, match="has no seal"):
            load_module(path)


def test_a_library_that_its_owner_changed_is_sealed_anew(image, tmp_path):
    path = tmp_path / "patched.so"
    at = image.index(b".comment\0")  # the name of a section that nobody reads
    path.write_bytes(image[:at] + b".Comment" + image[at + 8 :])
    with pytest.raises(DamagedLibrary, match="the checksum differs"):
        load_module(path)
    loopwright.runtime.seal(path)
    assert len(path.read_bytes()) == len(image)
    assert works(path)


def test_sealing_what_is_not_there(tmp_path):
    with pytest.raises(LibraryNotFound, match="there is no library"):
        loopwright.runtime.seal(tmp_path / "nothing.so")


def test_a_library_without_its_description(image, tmp_path):
    path = tmp_path / "removed.so"
    path.write_bytes(image)
    subprocess.run(["objcopy", "--remove-section=.loopwright", path], check=True)
    with pytest.raises(NotALoopwrightLibrary, match=r"it has no section \.loopwright"):
        load_module(path)


def test_a_library_without_a_section_table(image, tmp_path):
    data = bytearray(image[:-20])
    data[40:48] = bytes(8)  # e_shoff
    data[58:64] = bytes(6)  # e_shentsize, e_shnum, e_shstrndx
    path = tmp_path / "bare.so"
    path.write_bytes(data)
    with pytest.raises(NotALoopwrightLibrary, match="its section table was stripped"):
        load_module(path)


def test_a_stripped_object(built, tmp_path):
    path = built.export_library(tmp_path / "add.o")
    subprocess.run(["strip", path], check=True)
    with pytest.raises(NotALoopwrightLibrary, match="its symbols were stripped"):
        load_module(path)


def test_someone_elses_library():
    import _ctypes

    with pytest.raises(NotALoopwrightLibrary, match="is not a library that Loopwright exported"):
        load_module(_ctypes.__file__)


def test_the_contents_count_not_the_name(image, built, tmp_path):
    (tmp_path / "library").write_bytes(image)
    assert works(tmp_path / "library")
    (tmp_path / "object.so").write_bytes(built.object_code())
    assert works(tmp_path / "object.so")
    (tmp_path / "library.o").write_bytes(image)
    assert works(tmp_path / "library.o")


@pytest.mark.parametrize("name", ["../out.o", "/tmp/out.o", "folder/out.o"])
def test_an_archive_cannot_write_outside(built, tmp_path, name):
    data = built.object_code()
    with tarfile.open(tmp_path / "bad.tar", "w") as archive:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    with pytest.raises(NotALibrary, match="is no plain file"):
        load_module(tmp_path / "bad.tar")


@pytest.fixture(scope="module")
def linkable(built, tmp_path_factory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("linkable")
    return {form: Path(built.export_library(folder / f"add.{form}")).read_bytes() for form in ("o", "a", "tar")}


@pytest.mark.parametrize("form", ["o", "a", "tar"])
def test_objects_with_one_byte_changed(linkable, tmp_path, form):
    path, data = tmp_path / f"changed.{form}", linkable[form]
    start = data.find(b"\x7fELF")
    end = data.rfind(b"LWSEAL01")
    for at in [start + 1, start + 5, start + 16, *range(start + 64, end, max((end - start) // 150, 1)), end - 1]:
        changed = bytearray(data)
        changed[at] ^= 0x5A
        path.write_bytes(changed)
        with pytest.raises((DamagedLibrary, NotALibrary), match=r"is damaged|is no library"):
            load_module(path)


@pytest.mark.parametrize("form", ["o", "a", "tar"])
def test_a_changed_byte_of_the_code_is_named_as_a_wrong_checksum(linkable, tmp_path, form):
    changed = bytearray(linkable[form])
    changed[changed.find(b"\x7fELF") + 80] ^= 1
    (tmp_path / f"changed.{form}").write_bytes(changed)
    with pytest.raises(DamagedLibrary, match=r"changed\.\w+(\(lib0\.o/\))?' is damaged") as caught:
        load_module(tmp_path / f"changed.{form}")
    assert "the checksum differs" in str(caught.value)


@pytest.mark.parametrize("form", ["o", "a", "tar"])
def test_objects_of_an_older_version_have_no_seal(linkable, tmp_path, form):
    old = linkable[form].replace(b"LWSEAL01", bytes(8))
    (tmp_path / f"old.{form}").write_bytes(old)
    assert works(tmp_path / f"old.{form}")


def test_the_index_of_a_static_library_is_checked(linkable, tmp_path):
    path, data = tmp_path / "cut.a", linkable["a"]
    for size in (30, 70, len(data) - 40):
        path.write_bytes(data[:size])
        with pytest.raises(DamagedLibrary, match="is damaged"):
            load_module(path)
        with pytest.raises(DamagedLibrary, match="is damaged"):
            load_static_library(path, ["loopwright_add"])


def test_a_sealed_archive_is_one_that_tar_reads(linkable, tmp_path):
    path = tmp_path / "add.tar"
    path.write_bytes(linkable["tar"])
    done = subprocess.run(["tar", "-xvf", path, "-C", tmp_path], check=True, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.split() == ["lib0.o", "last_error.c", "add.h", "metadata.json"]
    seal(path)  # once more
    assert path.read_bytes() == linkable["tar"]


def test_an_archive_cut_off(built, tmp_path):
    path = Path(built.export_library(tmp_path / "add.tar"))
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(DamagedLibrary):
        load_module(path)


def test_an_archive_without_objects(tmp_path):
    with tarfile.open(tmp_path / "empty.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("readme.txt"), io.BytesIO())
    with pytest.raises(NotALoopwrightLibrary, match="the archive holds no objects"):
        load_module(tmp_path / "empty.tar")


@pytest.mark.parametrize("name", ["add.ll", "add.bc"])
def test_files_of_llvm_are_compiled_when_they_are_loaded(built, tmp_path, name):
    built.save(tmp_path / name)
    assert works(tmp_path / name)
    (tmp_path / name).write_bytes(b"BC\xc0\xde no such thing" if name.endswith("bc") else b"no such thing")
    with pytest.raises(NotALibrary, match="LLVM does not read it"):
        load_module(tmp_path / name)


def test_a_static_library_by_the_names_of_its_functions(built, tmp_path):
    built.save(tmp_path / "add.o")
    assert load_static_library(tmp_path / "add.o", ["add"]).implements_function("add")


def test_objects_linked_by_hand_are_one_library(tmp_path):
    files = []
    for name in ("linked_first", "linked_second"):
        files.append(loopwright.build(add.with_attr("global_symbol", name)).save(tmp_path / f"{name}.o"))
    path = create_shared(str(tmp_path / "both.so"), files)
    seal(path)
    x = np.ones(4, "float32")
    for module in (load_module(path), _system_lib(path)):
        for name in ("linked_first", "linked_second"):
            out = np.zeros(4, "float32")
            module[name](x, out)
            assert (out == 2).all()


def _system_lib(path):
    """Of a library that is loaded for everyone."""
    ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
    return system_lib("linked_")
