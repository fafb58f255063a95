from __future__ import annotations

import os
import shutil
import subprocess
import tarfile

import numpy as np
import pytest

from loopwright import te
from loopwright.model import BadConstantsPlace, Launch, Program, Value, compile_program
from loopwright.runtime import load_module
from loopwright.runtime.link import find_compiler, get_cc
from tests.model.steps import double, mlp, mlp_in_numpy, small_integers

pytestmark = pytest.mark.skipif(get_cc() is None, reason="needs a C compiler")

MAIN = """\
#include <stdio.h>
#include "mlp.h"
int main(void) {
  static float x[48], y[21];
  if (fread(x, sizeof(float), 48, stdin) != 48) return 2;
  for (int k = 0; k < 3; k++)
    if (loopwright_mlp(x, y) != 0) { fprintf(stderr, "%s", loopwright_last_error()); return 1; }
  return fwrite(y, sizeof(float), 21, stdout) == 21 ? 0 : 2;
}
"""


@pytest.fixture(scope="module")
def model():
    return compile_program(mlp())


def build_program(folder, files, name="program"):
    command = [*find_compiler(), "main.c", *files, "-lm", "-lpthread", "-ldl", "-Wl,-rpath,.", "-o", name]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def run_program(folder, x, name="program", **options):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run([f"./{name}"], cwd=folder, input=x.tobytes(), capture_output=True, env=environment, **options)
    return done.returncode, np.frombuffer(done.stdout, "float32"), done.stderr.decode()


def test_a_library_runs_in_a_c_program_and_in_python(model, tmp_path):
    x = small_integers(3, 16)
    expected = mlp_in_numpy(model.program, x)
    model.export_library(tmp_path / "mlp.so")
    model.export_library(tmp_path / "mlp.h")
    (tmp_path / "main.c").write_text(MAIN)
    build_program(tmp_path, ["mlp.so"])
    status, y, said = run_program(tmp_path, x)
    assert (status, said) == (0, "")
    np.testing.assert_array_equal(y.reshape(3, 7), expected)
    again = np.empty((3, 7), "float32")
    load_module(tmp_path / "mlp.so")(x, again)
    np.testing.assert_array_equal(again, expected)


def test_kernels_are_not_seen_outside_the_library(model, tmp_path):
    model.export_library(tmp_path / "mlp.so")
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("needs nm")
    shown = subprocess.run([nm, "-D", "--defined-only", "mlp.so"], cwd=tmp_path, capture_output=True, text=True)
    assert "loopwright_mlp" in shown.stdout
    assert "lw_kernel_" not in shown.stdout
    assert "lw_constants_" not in shown.stdout


def test_constants_in_a_file_beside_the_library(model, tmp_path):
    x = small_integers(3, 16)
    model.export_library(tmp_path / "mlp.so", constants="file")
    model.export_library(tmp_path / "mlp.h")
    assert (tmp_path / "mlp.weights").stat().st_size == 64 + model.constants.size
    (tmp_path / "main.c").write_text(MAIN)
    build_program(tmp_path, ["mlp.so"])
    np.testing.assert_array_equal(run_program(tmp_path, x)[1].reshape(3, 7), mlp_in_numpy(model.program, x))
    content = bytearray((tmp_path / "mlp.weights").read_bytes())
    changed, swapped = bytearray(content), content[:64] + content[72:80] + content[64:72] + content[80:]
    changed[len(content) // 2] ^= 1
    assert swapped != content
    for damaged in (None, content[:-1], b"x" + content[1:], content[:-1] + b"\x01", changed, swapped):
        (tmp_path / "mlp.weights").unlink()
        if damaged is not None:
            (tmp_path / "mlp.weights").write_bytes(damaged)
        status, _, said = run_program(tmp_path, x)
        assert status == 1
        assert "the constants of mlp cannot be read: the file of weights beside the library is missing, or not" in said
        (tmp_path / "mlp.weights").write_bytes(content)


def test_an_object_and_an_archive_can_be_linked_elsewhere(model, tmp_path):
    x = small_integers(3, 16)
    model.export_library(tmp_path / "mlp.o")
    model.export_library(tmp_path / "mlp.h")
    (tmp_path / "main.c").write_text(MAIN.replace("loopwright_last_error()", '"failed"'))
    tar = model.export_library(tmp_path / "mlp.tar")
    with tarfile.open(tar) as archive:
        names = archive.getnames()
        runtime = archive.extractfile("thread_pool.c").read() if "thread_pool.c" in names else b""
    assert {"mlp.h", "metadata.json", "lib0.o"} <= set(names)
    (tmp_path / "thread_pool.c").write_bytes(runtime)
    build_program(tmp_path, ["mlp.o", "thread_pool.c"])
    np.testing.assert_array_equal(run_program(tmp_path, x)[1].reshape(3, 7), mlp_in_numpy(model.program, x))
    again = np.empty((3, 7), "float32")
    load_module(tar)(x, again)
    np.testing.assert_array_equal(again, mlp_in_numpy(model.program, x))


def test_two_models_with_the_same_kernels_in_one_program(tmp_path):
    one, two = compile_program(mlp(name="mlp")), compile_program(mlp(name="other", seed=1))
    assert one.launches[one.program.launches()[0]].symbol == two.launches[two.program.launches()[0]].symbol
    for model in (one, two):
        model.export_library(tmp_path / f"{model.program.name}.o")
        model.export_library(tmp_path / f"{model.program.name}.h")
    text = MAIN.replace("loopwright_last_error()", '"failed"').replace('"mlp.h"', '"mlp.h"\n#include "other.h"')
    text = text.replace("loopwright_mlp(x, y)", "loopwright_mlp(x, y) + loopwright_other(x, y)")
    (tmp_path / "main.c").write_text(text)
    with tarfile.open(one.export_library(tmp_path / "mlp.tar")) as archive:
        pool = [archive.extractfile(n).read() for n in archive.getnames() if n == "thread_pool.c"]
    (tmp_path / "pool.c").write_bytes(pool[0] if pool else b"")
    build_program(tmp_path, ["mlp.o", "other.o", "pool.c"])
    x = small_integers(3, 16)
    np.testing.assert_array_equal(run_program(tmp_path, x)[1].reshape(3, 7), mlp_in_numpy(two.program, x))


def test_the_example_program_compiles_and_runs(model, tmp_path):
    model.export_library(tmp_path / "mlp.so")
    model.export_library(tmp_path / "mlp.h")
    (tmp_path / "main.c").write_text(model.get_source("main.c"))
    build_program(tmp_path, ["mlp.so"])
    done = subprocess.run(["./program"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("h2[0] = ")


def test_sizes_are_parameters_of_the_c_entry(tmp_path):
    n = te.var("n")
    x, h, y = (Value(name, (n, 4), "float32") for name in "xhy")
    steps = [Launch(double((n, 4)), (x, h)), Launch(double((n, 4)), (h, y))]
    made = compile_program(Program("twice", [x], [y], {}, steps))
    assert "loopwright_twice(const float *x, float *y, int32_t n)" in made.get_source("h")
    made.export_library(tmp_path / "twice.so")
    made.export_library(tmp_path / "twice.h")
    (tmp_path / "main.c").write_text(made.get_source("main.c"))
    build_program(tmp_path, ["twice.so"])
    assert subprocess.run(["./program"], cwd=tmp_path, capture_output=True, text=True).stdout == "y[0] = 0\n"


def test_a_place_for_constants_that_there_is_not(model, tmp_path):
    with pytest.raises(BadConstantsPlace, match="constants='attic' is no place for constants"):
        model.export_library(tmp_path / "mlp.so", constants="attic")
