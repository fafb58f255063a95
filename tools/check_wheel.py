"""check_wheel: a wheel does its work on a machine that has no C compiler.

    python tools/check_wheel.py               builds the wheel of this tree, checks it in a new environment
    python tools/check_wheel.py some.whl      checks that wheel
    python tools/check_wheel.py --installed   checks the package that this Python has (what cibuildwheel runs)
    … --zig                                   installs `ziglang` too: shared libraries are exported through it

Compilers are hidden: PATH is one empty folder. `loopwright doctor` must say so, a parallel loop must run on two threads
at the same time, an ONNX model must compile and run, and an export must end in an error that says what to install.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("loopwright", "pyproject.toml", "setup.py", "README.md", "LICENSE")  # what a wheel is made from
SECONDS_TO_MEET = 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", nargs="?", type=Path)
    parser.add_argument("--installed", action="store_true")
    parser.add_argument("--zig", action="store_true")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)  # compilers are hidden already
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="check-wheel-") as work:
        if given.inside:
            check(Path(work), given.zig)
        elif given.installed:
            run_inside(Path(sys.executable), Path(work), given.zig)
        else:
            wheel = given.wheel or build_wheel(Path(work))
            report("wheel", f"{wheel.name}, {wheel.stat().st_size / 1e6:.1f} MB")
            run_inside(install(wheel, Path(work), given.zig), Path(work), given.zig)


def build_wheel(work: Path) -> Path:
    """The wheel of a copy of this tree: files that earlier builds left here must not slip in."""
    tree = work / "tree"
    tree.mkdir()
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, tree / part, ignore=shutil.ignore_patterns("__pycache__", "*.so", "*.dylib"))
        else:
            shutil.copy(ROOT / part, tree / part)
    run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(work / "dist"), str(tree)])
    (wheel,) = (work / "dist").glob("*.whl")
    return wheel


def install(wheel: Path, work: Path, with_zig: bool) -> Path:
    """The Python of a new environment that has the wheel, and how long that took."""
    run([sys.executable, "-m", "venv", str(work / "venv")])
    python = work / "venv" / "bin" / "python"
    start = time.monotonic()
    packages = [f"{wheel}[onnx]", *(["ziglang"] if with_zig else [])]
    run([str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages])
    report("installed", f"with what it needs in {time.monotonic() - start:.0f} s")
    start = time.monotonic()
    run([str(python), "-m", "pip", "install", "-q", "--no-deps", "--force-reinstall", str(wheel)])
    report("installed", f"alone in {time.monotonic() - start:.0f} s")
    return python


def run_inside(python: Path, work: Path, with_zig: bool) -> None:
    (work / "empty").mkdir()
    unwanted = ("CC", "PYTHONPATH", "LOOPWRIGHT_CACHE")
    environment = {name: value for name, value in os.environ.items() if name not in unwanted}
    environment |= {
        "PATH": str(work / "empty"),
        "LOOPWRIGHT_NUM_THREADS": "2",
        "LOOPWRIGHT_CACHE_DIR": str(work / "cache"),
    }
    command = [str(python), str(Path(__file__).resolve()), "--inside", *(["--zig"] if with_zig else [])]
    run(command, cwd=work, env=environment)


# --- with the compilers hidden ------------------------------------------------------------------------------------


def check(work: Path, with_zig: bool) -> None:
    import loopwright

    assert not Path(loopwright.__file__).is_relative_to(ROOT), "this is the tree, not an installed package"
    assert not any(shutil.which(name) for name in ("cc", "gcc", "clang")), "a compiler is still to be seen"
    check_doctor(with_zig)
    check_two_threads()
    check_model(work)
    check_export(work, with_zig)


def check_doctor(with_zig: bool) -> None:
    command = [sys.executable, "-m", "loopwright", "doctor", "--json"]
    facts = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    compiler, pool = facts["c_compiler"], facts["thread_pool"]
    report("doctor", f"C compiler: {compiler['value']} {compiler['note']}".strip())
    report("doctor", f"thread pool: {pool['value']}")
    assert compiler["value"].startswith("ziglang" if with_zig else "not found")
    assert pool["value"] == "prebuilt, 2 threads"
    assert facts["array_calls"]["state"] == "fine"


def check_two_threads() -> None:
    """Both iterations of a parallel loop wait for each other: on one thread they would never meet."""
    import ctypes

    import numpy as np

    import loopwright
    from loopwright.runtime import register_extern
    from loopwright.script import tir as T

    barrier = threading.Barrier(2)
    met: list[int] = []

    @ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int32)
    def meet(iteration: int) -> float:
        barrier.wait(SECONDS_TO_MEET)
        met.append(threading.get_native_id())
        return iteration + 1.0

    register_extern("check_wheel_meet", meet)

    @T.prim_func
    def kernel(A: T.Buffer((2,), "float32")):
        for i in T.parallel(2):
            A[i] = T.call_extern("float32", "check_wheel_meet", i)

    result = np.zeros(2, "float32")
    loopwright.build(kernel)(result)
    assert result.tolist() == [1, 2], "the iterations did not meet: the loop ran on one thread"
    assert len(set(met)) == 2
    report("parallel loop", "two iterations at the same time, on two threads")


def check_model(work: Path) -> None:
    import numpy as np

    import loopwright

    x, expected = save_model(work / "small.onnx")
    model = loopwright.compile(str(work / "small.onnx"))
    np.testing.assert_allclose(np.asarray(model(x)), expected, rtol=1e-5, atol=1e-5)
    report("model", "an ONNX model compiled, and computes what numpy computes")


def save_model(path: Path) -> tuple[object, object]:
    """A layer of 64 × 96 with a Relu; an input, and what the layer makes of it."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(0)
    weight, bias, x = [random.standard_normal(shape).astype("float32") for shape in ((64, 96), (96,), (8, 64))]
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["h"]), helper.make_node("Relu", ["h"], ["y"])]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 64])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [8, 96])]
    constants = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(bias, "b")]
    model = helper.make_model(
        helper.make_graph(nodes, "small", inputs, outputs, constants),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=9,
    )
    onnx.save(model, path)
    return x, np.maximum(x @ weight + bias, 0)


def check_export(work: Path, with_zig: bool) -> None:
    import numpy as np

    import loopwright
    from loopwright.runtime import load_module
    from loopwright.script import tir as T

    @T.prim_func
    def scale(A: T.Buffer((4096,), "float32")):
        for i in T.parallel(4096):
            A[i] = A[i] * T.float32(2)

    module = loopwright.build(scale)
    try:
        library = module.export_library(str(work / "scale.so"))
    except loopwright.LoopwrightError as error:
        assert not with_zig and error.code == "LW0138" and "pip install ziglang" in str(error), error
        report("export", f"refused: {error.hint}")
        return
    assert with_zig, "what linked it?"
    values = np.arange(4096, dtype="float32")
    load_module(library)(values)
    np.testing.assert_array_equal(values, 2 * np.arange(4096, dtype="float32"))
    module.export_library(str(work / "scale.a"))
    report("export", "linked through ziglang, loaded and run; archived too")


def run(command: Sequence[str], cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    if subprocess.run(command, check=False, cwd=cwd, env=env).returncode != 0:
        sys.exit(f"failed: {' '.join(command)}")


def report(what: str, said: str) -> None:
    print(f"{what + ':':15} {said}", flush=True)


if __name__ == "__main__":
    main()
