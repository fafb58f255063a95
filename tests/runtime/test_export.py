"""export_library and load_module: every form, imports, C programs, and a loader that never sees the compiler."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import loopwright
from loopwright import nd, tir
from loopwright.runtime import Module, load_module, load_static_library
from loopwright.runtime.call_errors import ReadOnlyArgument, ShapeMismatch
from loopwright.runtime.elf import Elf
from loopwright.runtime.errors import NotBuilt
from loopwright.runtime.export import FunctionsClash, NotExportable, UnknownExportForm, UnknownExportOption, needs_pool
from loopwright.runtime.library_file import NotALibrary
from loopwright.runtime.link import LinkFailed, NoLinker, NoSuchFolder, create_shared, create_staticlib
from loopwright.runtime.module import MissingSource
from loopwright.script import tir as T

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
ROOT = Path(__file__).resolve().parents[2]


@T.prim_func
def scale(a: T.handle, b: T.handle, by: T.float32):
    n = T.int32()
    A = T.match_buffer(a, (n, 4))
    B = T.match_buffer(b, (n, 4))
    for i in T.parallel(n):
        for j in range(4):
            B[i, j] = A[i, j] * by


@T.prim_func
def add(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = A[i] + T.float32(1)


@T.prim_func
def count(A: T.Buffer((4,), "bool"), B: T.Buffer((1,), "bfloat16")) -> T.int32:
    B[0] = T.bfloat16(2)
    T.evaluate(T.ret(T.cast(A[0], "int32") + T.cast(A[1], "int32") + 40))


@pytest.fixture(scope="module")
def scaled():
    return loopwright.build(scale)


@pytest.fixture(scope="module")
def library(scaled, tmp_path_factory):
    return scaled.export_library(tmp_path_factory.mktemp("export") / "scale.so")


def check_scale(module: Module) -> None:
    for n in (0, 1, 3, 17):
        a = np.arange(4 * n, dtype="float32").reshape(n, 4)
        b = np.zeros_like(a)
        module(a, b, 2.0)
        np.testing.assert_array_equal(b, 2 * a)


# --- forms --------------------------------------------------------------------------------------------------------


@needs_cc
@pytest.mark.parametrize("form", ["so", "o", "a", "tar"])
def test_every_form_comes_back(scaled, tmp_path, form):
    path = scaled.export_library(tmp_path / f"scale.{form}")
    loaded = load_module(path)
    assert loaded.type_key == "library"
    assert loaded.entry_name == "scale"
    check_scale(loaded)
    check_scale(loaded["scale"])
    assert [file.name for file in tmp_path.iterdir()] == [f"scale.{form}"]  # nothing else is left behind


@needs_cc
def test_a_loaded_module_behaves_like_the_built_one(library):
    loaded = load_module(library)
    with pytest.raises(ShapeMismatch, match=r"scale: argument B has shape \(3, 5\), expected \(3, 4\) = \(n, 4\)"):
        loaded(np.zeros((3, 4), "float32"), np.zeros((3, 5), "float32"), 1.0)
    locked = np.zeros((3, 4), "float32")
    locked.flags.writeable = False
    loaded(locked, np.zeros((3, 4), "float32"), 1.0)
    with pytest.raises(ReadOnlyArgument, match="argument number 2 is a read-only array, and the function writes it"):
        loaded(np.zeros((3, 4), "float32"), locked, 1.0)
    timed = loaded.time_evaluator("scale", loopwright.cpu(), number=2, repeat=2)
    assert len(timed(np.zeros((3, 4), "float32"), np.zeros((3, 4), "float32"), 1.0).results) == 2
    with pytest.raises(AttributeError, match="the module has no function 'other'"):
        loaded["other"]
    with pytest.raises(MissingSource, match="cannot show its source as 'asm'"):
        loaded.get_source("asm")


@needs_cc
def test_a_loaded_library_can_be_written_again(library, tmp_path):
    again = load_module(library).export_library(tmp_path / "again.so")
    assert Path(again).read_bytes() == Path(library).read_bytes()
    with pytest.raises(NotExportable, match=r"Module\(library: scale\) cannot be written as \.o"):
        load_module(library).export_library(tmp_path / "again.o")


@needs_cc
def test_exporting_over_a_loaded_library_does_not_disturb_it(scaled, tmp_path):
    path = scaled.export_library(tmp_path / "module.so")
    first = load_module(path)
    loopwright.build(add).export_library(path)
    check_scale(first)
    assert load_module(path).function_names == ["add"]


def test_an_object_needs_no_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    path = loopwright.build(add).export_library(tmp_path / "add.o")
    assert {"__tvm_ffi_add", "loopwright_add"} <= {symbol.name for symbol in Elf(Path(path).read_bytes()).symbols()}
    with pytest.raises(NoLinker, match="there is no C compiler here that links shared libraries"):
        loopwright.build(add).export_library(tmp_path / "add.so")
    assert [file.name for file in tmp_path.iterdir()] == ["add.o"]


def test_sources_are_written_by_their_ending(tmp_path):
    module = loopwright.build(add)
    for ending, word in (("ll", "define"), ("s", ".text"), ("h", "int32_t loopwright_add"), ("json", '"functions"')):
        assert word in Path(module.export_library(tmp_path / f"add.{ending}")).read_text()
    assert "#ifndef ADD_H" in (tmp_path / "add.h").read_text()
    module.save(tmp_path / "plain", "ll")
    assert (tmp_path / "plain").read_text() == (tmp_path / "add.ll").read_text()
    module.save(tmp_path / "plain.o")
    assert Elf((tmp_path / "plain.o").read_bytes()).kind == 1


@pytest.mark.parametrize("name", [None, 5, b"add.so"])
def test_the_name_of_a_file_is_a_text(name):
    for write in (loopwright.build(add).export_library, loopwright.build(add).save):
        with pytest.raises(UnknownExportForm, match=f"a file's name is a text, not {name!r}"):
            write(name)


def test_forms_there_are_not(tmp_path):
    module = loopwright.build(add)
    with pytest.raises(UnknownExportForm, match=r"nothing is known about files named like 'add.xyz'") as caught:
        module.export_library(tmp_path / "add.xyz")
    assert ".so, .dylib, .dll, .o" in str(caught.value)
    with pytest.raises(MissingSource, match="cannot show its source as 'ptx'"):
        module.export_library(tmp_path / "add.ptx")
    with pytest.raises(NotExportable, match=r"Module\(llvm: main\) cannot be written as \.so"):
        Module({"main": len}).export_library(tmp_path / "main.so")
    with pytest.raises(NotBuilt, match="fpack_imports"):
        module.export_library(tmp_path / "add.so", fpack_imports=len)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["so", "o", "a", "tar", "h", "ll"])
def test_a_folder_that_does_not_exist(tmp_path, monkeypatch, form):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NoSuchFolder, match=f"write nodir/add.{form}: the folder nodir does not exist") as caught:
        loopwright.build(add).export_library(f"nodir/add.{form}")
    assert isinstance(caught.value, FileNotFoundError) and caught.value.hint == "make it first: mkdir -p nodir"
    Path("file").write_text("")
    with pytest.raises(NoSuchFolder, match="the folder file is no folder"):
        loopwright.build(add).export_library(f"file/add.{form}")
    for create in (create_shared, create_staticlib):
        with pytest.raises(NoSuchFolder, match="the folder nodir does not exist"):
            create("nodir/lib", ["add.o"])


def test_an_archive_is_the_same_every_time(scaled, tmp_path):
    first = Path(scaled.export_library(tmp_path / "a.tar")).read_bytes()
    assert Path(scaled.export_library(tmp_path / "a.tar")).read_bytes() == first
    names = tarfile.open(tmp_path / "a.tar").getnames()
    assert names == ["lib0.o", "last_error.c", "thread_pool.c", "a.h", "metadata.json"]


def test_an_archive_brings_the_pool_that_only_an_added_object_needs(scaled, tmp_path):
    parallel = scaled.export_library(tmp_path / "scaled.o")
    loopwright.build(add).export_library(tmp_path / "add.tar", addons=[parallel])
    names = tarfile.open(tmp_path / "add.tar").getnames()
    assert names == ["lib0.o", "scaled.o", "last_error.c", "thread_pool.c", "add.h", "metadata.json"]


def test_fcompile_links_in_our_place(scaled, tmp_path):
    given = []
    scaled.export_library(
        tmp_path / "scale.lib", fcompile=lambda *args, **options: given.append((args, options)), speed=3
    )
    ((file_name, files), options) = given[0]
    assert file_name == str(tmp_path / "scale.lib")
    assert [Path(file).name for file in files] == ["lib0.o", "last_error.c", "thread_pool.c"]
    assert options == {"speed": 3}


@needs_cc
def test_options_reach_the_compiler_and_its_refusal_the_user(tmp_path):
    module = loopwright.build(add)
    with pytest.raises(LinkFailed, match="could not link the library") as caught:
        module.export_library(tmp_path / "add.so", options=["-lno_such_library_anywhere"])
    assert "no_such_library_anywhere" in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    module.export_library(tmp_path / "add.so", options=["-Wl,-soname,mine.so"], workspace_dir=str(tmp_path / "work"))
    assert (tmp_path / "work" / "lib0.o").is_file()
    assert b"mine.so" in (tmp_path / "add.so").read_bytes()


def test_options_there_are_not(tmp_path):
    module = loopwright.build(add)
    for name in ("add.so", "add.h"):
        with pytest.raises(UnknownExportOption, match="export_library has no option 'opts'") as caught:
            module.export_library(str(tmp_path / name), opts=["-g"])
        assert caught.value.hint == "did you mean options=?"
    with pytest.raises(UnknownExportOption) as caught:
        module.export_library(str(tmp_path / "add.so"), name="plus")
    assert 'build(f, name="scale")' in str(caught.value.hint)
    assert not list(tmp_path.iterdir())


def test_the_pool_comes_along_only_where_it_is_needed(scaled):
    assert needs_pool(scaled.object_code())
    assert not needs_pool(loopwright.build(add).object_code())


# --- what the file says -------------------------------------------------------------------------------------------


def test_metadata():
    data = loopwright.build(scale).metadata
    (function,) = data["functions"]
    assert [one["name"] for one in function["arguments"]] == ["A", "B", "by"]
    assert [one["shape"] for one in function["arguments"]] == [("n", "4"), ("n", "4"), None]
    assert [one["is_written"] for one in function["arguments"]] == [False, True, False]
    assert [(one["name"], one["dtype"]) for one in function["sizes"]] == [("n", "int32")]
    assert (data["entry"], data["proved"], data["version"]) == ("scale", True, loopwright.__version__)


@needs_cc
def test_metadata_is_read_without_loading(library):
    section = Elf(Path(library).read_bytes()).section(".loopwright")
    data = json.loads(section)
    assert data["functions"][0]["name"] == "scale"
    assert data["triple"] and data["cpu"] and data["proved"] is True


def test_an_unproved_schedule_is_marked_in_the_artifact():
    sch = tir.Schedule(scale, enable_check=False)
    assert loopwright.build(sch.mod).metadata["proved"] is False
    assert loopwright.build(tir.Schedule(sch.mod).mod).metadata["proved"] is False  # the mark stays
    assert loopwright.build(tir.Schedule(scale).mod).metadata["proved"] is True


# --- imports ------------------------------------------------------------------------------------------------------


@needs_cc
@pytest.mark.parametrize("form", ["so", "o", "tar"])
def test_imports_travel(tmp_path, form):
    module, inner = loopwright.build(scale), loopwright.build(add)
    inner.import_module(loopwright.build(count))
    module.import_module(inner)
    loaded = load_module(module.export_library(tmp_path / f"all.{form}"))
    assert loaded.function_names == ["scale"]
    assert [one.function_names for one in loaded.imported_modules] == [["add"], ["count"]]
    b = np.zeros(4, "float32")
    loaded.get_function("add", query_imports=True)(np.ones(4, "float32"), b)
    assert b.tolist() == [2] * 4
    bits = np.zeros(1, ml_dtypes.bfloat16)
    assert loaded.imported_modules[1](np.array([True, True, False, False]), bits) == 42
    assert bits[0] == 2


def test_two_functions_of_one_name_cannot_be_linked(tmp_path):
    module = loopwright.build(add)
    module.import_module(loopwright.build(add))
    with pytest.raises(FunctionsClash, match="two of the modules to be linked define the function 'add'"):
        module.export_library(tmp_path / "add.so")


def test_static_libraries(tmp_path):
    path = loopwright.build(add).export_library(tmp_path / "add.o")
    static = load_static_library(path, ["loopwright_add"])
    assert (static.is_runnable, static.is_dso_exportable, static.get_property_mask()) == (False, True, 4)
    with pytest.raises(NotALibrary, match="it does not define other"):
        load_static_library(path, ["other"])
    (tmp_path / "text.o").write_text("text")
    with pytest.raises(NotALibrary, match="neither an object nor an archive"):
        load_static_library(tmp_path / "text.o", [])


def test_this_program_holds_no_modules():
    # In a process of its own: another test may have loaded a library for everyone in this one.
    program = "from loopwright.runtime import system_lib; system_lib()"
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert "NotALoopwrightLibrary" in ran.stderr and "is not a library that Loopwright exported" in ran.stderr


# --- other programs -----------------------------------------------------------------------------------------------

LOADER = """
import sys
from loopwright.runtime import load_module
import numpy as np

module = load_module(sys.argv[1])
a = np.arange(12, dtype="float32").reshape(3, 4)
b = np.zeros_like(a)
module(a, b, 3.0)
assert (b == 3 * a).all()
try:
    module(a, b)
except TypeError as error:
    assert "called with 2 argument(s), expected 3" in str(error)
assert module.time_evaluator("scale", None, number=2)(a, b, 1.0).mean > 0
ours = [name for name in sys.modules if name.startswith("loopwright.")]
compiler = [name for name in ours if not name.startswith("loopwright.runtime")]
assert not compiler, compiler
assert not {"llvmlite", "islpy", "torch"} & set(sys.modules)
"""


@needs_cc
def test_a_loader_never_imports_the_compiler(library):
    subprocess.run([sys.executable, "-c", LOADER, library], check=True, cwd=ROOT)


@needs_cc
def test_tvm_ffi_alone_loads_the_library(library):
    program = f"""
import numpy as np, tvm_ffi
module = tvm_ffi.load_module({library!r})
a = np.ones((2, 4), "float32")
module.scale(a, b := np.zeros_like(a), 5.0)
assert (b == 5).all()
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@needs_cc
@pytest.mark.parametrize("with_our_folder", [True, False])
def test_an_environment_with_only_numpy_and_tvm_ffi(library, tmp_path, with_our_folder):
    """No compiler is installed there, nor anything that only the compiler needs."""
    import numpy
    import tvm_ffi
    import typing_extensions

    packages = tmp_path / "packages"
    packages.mkdir()
    for module in (numpy, tvm_ffi):
        source = Path(module.__file__).parent
        (packages / source.name).symlink_to(source)
        libraries = source.with_name(f"{source.name}.libs")
        if libraries.is_dir():
            (packages / libraries.name).symlink_to(libraries)
    for metadata in Path(tvm_ffi.__file__).parent.parent.glob("apache_tvm_ffi-*"):
        (packages / metadata.name).symlink_to(metadata)
    (packages / "typing_extensions.py").symlink_to(typing_extensions.__file__)
    if with_our_folder:
        (packages / "loopwright").symlink_to(ROOT / "loopwright")
        load, error = "from loopwright.runtime import load_module", "ValueError"
    else:
        load, error = "from tvm_ffi import load_module", "RuntimeError"
    program = f"""
import importlib.util
import numpy as np
assert not any([importlib.util.find_spec(name) for name in ("llvmlite", "islpy", "ml_dtypes", "typer")])
{load}
module = load_module("./{Path(library).name}")
a = np.ones((2, 4), "float32")
module["scale"](a, b := np.zeros_like(a), 5.0)
assert (b == 5).all()
try:
    module["scale"](a, b[:, :2], 5.0)
except {error} as error:
    assert "argument B has shape (2, 2), expected (2, 4)" in str(error), error
else:
    raise AssertionError
"""
    command = [sys.executable, "-S", "-c", program]
    subprocess.run(command, check=True, cwd=Path(library).parent, env={"PYTHONPATH": str(packages)})


CALLER = """
#include <stdio.h>
#include "scale.h"
#include "count.h"

int main(void) {
  float a[12], b[12];
  for (int i = 0; i < 12; i++) a[i] = (float)i;
  if (loopwright_scale(a, b, 2.0f, 3) != 0) return 1;
  for (int i = 0; i < 12; i++)
    if (b[i] != 2.0f * (float)i) return 2;
  const bool flags[4] = {true, false, true, false};
  uint16_t bits = 0;
  int64_t result = 0;
  if (loopwright_count(flags, &bits, &result) != 0 || result != 41 || bits != 0x4000) return 3;
  if (loopwright_count(flags, &bits, NULL) != 0) return 4;
  printf("[%s]\\n", loopwright_last_error());
  return 0;
}
"""


@needs_cc
def test_a_c_program_that_knows_only_the_headers(scaled, tmp_path):
    counted = loopwright.build(count)
    for module, name in ((scaled, "scale"), (counted, "count")):
        module.export_library(tmp_path / f"{name}.so")
        module.export_library(tmp_path / f"{name}.h")
    (tmp_path / "caller.c").write_text(CALLER)
    strict = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-o", "caller", "caller.c"]
    subprocess.run([*strict, "./scale.so", "./count.so"], cwd=tmp_path, check=True)
    assert subprocess.run(["./caller"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout == "[]\n"


FAILING = """
#include <stdio.h>
#include "checked.h"

int main(void) {
  float a[4] = {-1, 0, 0, 0};
  int32_t status = loopwright_checked(a);
  printf("%d %s\\n", status, loopwright_last_error());
  return 0;
}
"""


@needs_cc
def test_a_c_program_hears_what_went_wrong(tmp_path):
    @T.prim_func
    def checked(A: T.Buffer((4,), "float32")):
        assert A[0] >= T.float32(0), "A begins below zero"
        A[0] = T.float32(1)

    module = loopwright.build(checked)
    module.export_library(tmp_path / "checked.so")
    module.export_library(tmp_path / "checked.h")
    (tmp_path / "failing.c").write_text(FAILING)
    subprocess.run(["cc", "-o", "failing", "failing.c", "./checked.so"], cwd=tmp_path, check=True)
    said = subprocess.run(["./failing"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert said.startswith("-1 AssertionFailed: ")
    assert "A begins below zero" in said


POOLS = """
#include <stdint.h>
#include <stdio.h>
#include <dlfcn.h>
#include <pthread.h>

static int threads_now(void) {
  FILE *file = fopen("/proc/self/status", "r");
  char line[256];
  int count = 0;
  while (fgets(line, sizeof line, file)) sscanf(line, "Threads: %d", &count);
  fclose(file);
  return count;
}

int main(int argc, char **argv) {
  static float a[4096], b[4096];
  for (int k = 1; k < argc; k++) {
    void *library = dlopen(argv[k], RTLD_NOW | RTLD_LOCAL);
    int32_t (*scale)(const float *, float *, float, int32_t) =
        (int32_t(*)(const float *, float *, float, int32_t))dlsym(library, "loopwright_scale");
    if (!scale || scale(a, b, 1.0f, 1024)) return 1;
  }
  printf("%d\\n", threads_now());
  return 0;
}
"""


@needs_cc
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts threads in /proc")
def test_one_pool_serves_all_libraries_of_a_process(library, tmp_path):
    (tmp_path / "pools.c").write_text(POOLS)
    subprocess.run(["cc", "-o", "pools", "pools.c", "-ldl"], cwd=tmp_path, check=True)
    for name in ("one.so", "two.so", "three.so"):
        shutil.copy(library, tmp_path / name)
    environment = {"LOOPWRIGHT_NUM_THREADS": "4"}
    command = ["./pools", "./one.so", "./two.so", "./three.so"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True)
    assert int(done.stdout) == 4


@needs_cc
@pytest.mark.skipif(shutil.which("nm") is None, reason="needs nm")
def test_the_pool_is_one_symbol_of_the_process(library):
    said = subprocess.run(["nm", "-D", library], check=True, capture_output=True, text=True).stdout
    assert [line.split()[1] for line in said.splitlines() if line.endswith(" lw_process_pool")] == ["u"]


ABROAD = ("aarch64-linux-gnu-gcc", "qemu-aarch64", "readelf")
SYSROOT = Path("/usr/aarch64-linux-gnu")


@pytest.mark.skipif(
    any(shutil.which(tool) is None for tool in ABROAD) or not SYSROOT.is_dir(), reason=f"needs {', '.join(ABROAD)}"
)
def test_one_pool_on_aarch64_at_every_level(tmp_path):
    """The assembler there writes a reference to a symbol that is not global as one to its section."""
    module = loopwright.build(scale, target="llvm -mtriple=aarch64-linux-gnu -num-cores=4")
    with tarfile.open(module.export_library(tmp_path / "scale.tar")) as archive:
        archive.extractall(tmp_path, filter="data")
    (tmp_path / "pools.c").write_text(POOLS)

    def run(*command: str) -> str:
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    emulated = ("qemu-aarch64", "-L", str(SYSROOT), "-E", "LOOPWRIGHT_NUM_THREADS=4", "./pools")
    run(ABROAD[0], "-o", "pools", "pools.c", "-ldl")
    parts = ["lib0.o", "last_error.c", "thread_pool.c"]
    for level in ("-O0", "-O2"):
        run(ABROAD[0], level, "-fPIC", "-c", "-o", "pool.obj", "thread_pool.c")
        assert "lw_process_pool" in run("readelf", "-rW", "pool.obj")
        run(ABROAD[0], level, "-fPIC", "-shared", "-o", "one.so", *parts, "-lm", "-lpthread")
        shutil.copy(tmp_path / "one.so", tmp_path / "two.so")
        assert run(*emulated, "./one.so", "./two.so") == run(*emulated, "./one.so")


STANDING_ALONE = """
#include "scale.h"

int main(void) {
  float a[40], b[40];
  for (int i = 0; i < 40; i++) a[i] = (float)i;
  if (loopwright_scale(a, b, 2.0f, 10) != 0) return 1;
  for (int i = 0; i < 40; i++)
    if (b[i] != 2.0f * (float)i) return 2;
  return 0;
}
"""


@needs_cc
@pytest.mark.parametrize("machine", ["here", "aarch64"])
def test_an_archive_links_into_a_program_as_the_docs_say(tmp_path, machine):
    """With nothing but what is in the archive, and without optimization."""
    target, compiler, emulator = "llvm", "cc", []
    if machine == "aarch64":
        if any(shutil.which(tool) is None for tool in ABROAD) or not SYSROOT.is_dir():
            pytest.skip(f"needs {', '.join(ABROAD)}")
        target, compiler, emulator = "llvm -mtriple=aarch64-linux-gnu", ABROAD[0], ["qemu-aarch64", "-L", str(SYSROOT)]
    with tarfile.open(loopwright.build(scale, target=target).export_library(tmp_path / "scale.tar")) as archive:
        archive.extractall(tmp_path / "scale", filter="data")
    (tmp_path / "main.c").write_text(STANDING_ALONE)
    command = "cc main.c scale/*.o scale/*.c -Iscale -lm -lpthread"
    assert f"$ {command}\n" in (ROOT / "docs" / "deploying.md").read_text(encoding="utf-8")
    subprocess.run(command.replace("cc", f"{compiler} -o main", 1), shell=True, cwd=tmp_path, check=True)
    subprocess.run([*emulator, "./main"], cwd=tmp_path, check=True)


THREADS = """
import sys
from loopwright.runtime import load_module, set_num_threads
import numpy as np

def threads():
    return int(next(line for line in open("/proc/self/status") if line.startswith("Threads")).split()[1])

set_num_threads(7)
module = load_module(sys.argv[1])
before = threads()
a = np.zeros((64, 4), "float32")
module(a, np.zeros_like(a), 1.0)
assert threads() == before + 6, (before, threads())
load_module(sys.argv[2])(a, np.zeros_like(a), 1.0)
assert threads() == before + 6, (before, threads())
"""


@needs_cc
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts threads in /proc")
@pytest.mark.parametrize("form", ["o", "tar", "so"])
def test_loaded_code_runs_on_the_pool_of_the_process(scaled, library, tmp_path, form):
    path = scaled.export_library(tmp_path / f"scale.{form}")
    subprocess.run([sys.executable, "-c", THREADS, path, library], check=True, cwd=ROOT)


def test_a_call_of_code_for_another_machine_says_so():
    module = loopwright.build(add, target="llvm -mtriple=riscv64-unknown-linux-gnu")
    with pytest.raises(loopwright.LoopwrightError, match="cannot run here"):
        module(nd.empty((4,)), nd.empty((4,)))


@needs_cc
@pytest.mark.parametrize("form", ["so", "o", "tar"])
def test_a_module_of_c_source(tmp_path, form):
    module = loopwright.build(scale, target="c")
    loaded = load_module(module.export_library(tmp_path / f"scale.{form}"))
    check_scale(loaded)
    with pytest.raises(ShapeMismatch, match=r"scale: argument B has shape \(3, 5\)"):
        loaded(np.zeros((3, 4), "float32"), np.zeros((3, 5), "float32"), 1.0)


@needs_cc
def test_c_source_and_header_as_files(tmp_path):
    module = loopwright.build(count, target="c")
    module.export_library(tmp_path / "count.c")
    module.export_library(tmp_path / "count.h")
    strict = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-c", "count.c"]
    subprocess.run(strict, cwd=tmp_path, check=True)
