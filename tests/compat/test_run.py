"""`python -m loopwright.compat.tvm` beside `python`: the same output, errors and exit status."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import warm_python

DOOR = [sys.executable, "-m", "loopwright.compat.tvm"]


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, **options)


@pytest.fixture
def script(tmp_path):
    def write(text, name="script.py"):
        (tmp_path / name).write_text(text)
        return name

    write.folder = tmp_path
    return write


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "text",
    [
        "import sys; print(sys.argv, __name__, __file__, __spec__, __package__, __doc__, sys.path[0])",
        "'What it does.'\nimport __main__, sys\nprint(__doc__, __main__.__doc__, sys.modules['__main__'] is __main__)",
        "print(sorted(globals()))",
        "import helper; print(helper.value)",
        "from __future__ import annotations\ndef f(x: nonsense): pass\nprint(f.__annotations__)",
        "x: int = 3\nprint(__annotations__)",
        "def f():\n    raise ValueError('no')\ndef g():\n    f()\ng()",
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise KeyError('k') from error",
        "x = (\n",
        "import sys; sys.exit(7)",
        "import sys; sys.exit('a reason')",
        "raise SystemExit",
        "import os; os._exit(9)",
        "import sys\nsys.excepthook = lambda kind, error, trace: print('mine', kind.__name__, error)\n1 / 0",
        "import atexit; atexit.register(print, 'bye'); print('hello')",
        "print(open(__file__).read()[:5]); import inspect, sys; print(inspect.getsource(sys.modules['__main__'])[:5])",
        "import helper; helper.fail()",
        "import threading\nthreading.Thread(target=lambda: 1 / 0).start()",
    ],
)
def test_a_script_runs_as_under_python(script, text):
    script("value = 5\ndef fail():\n    raise RuntimeError('from elsewhere')\n", "helper.py")
    name = script(text)
    expected = run([sys.executable, name, "a", "-b"], cwd=script.folder)
    got = run([*DOOR, name, "a", "-b"], cwd=script.folder)
    assert (got.returncode, got.stdout, got.stderr.splitlines()) == (
        expected.returncode,
        expected.stdout,
        expected.stderr.splitlines(),
    )


def test_an_interrupt_ends_it_like_python(script):
    name = script("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport time; time.sleep(5)\n")
    # Who runs the tests in the background may have them ignore interrupts.
    got = run([*DOOR, name], cwd=script.folder, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    assert got.returncode == -signal.SIGINT
    assert got.stderr.splitlines()[0] == "Traceback (most recent call last):"
    assert f'File "{script.folder / name}", line' in got.stderr.splitlines()[1]
    assert got.stderr.splitlines()[-1] == "KeyboardInterrupt"


def test_a_file_that_is_not_there(script):
    expected = run([sys.executable, "nothing.py"], cwd=script.folder)
    got = run([*DOOR, "nothing.py"], cwd=script.folder)
    assert (got.returncode, got.stdout, got.stderr) == (2, "", expected.stderr)


def test_from_another_folder(script):
    script("value = 5\n", "helper.py")
    name = script("import helper, sys, os; print(helper.value, os.getcwd(), sys.argv)")
    got = run([*DOOR, str(script.folder / name)], cwd="/")
    assert got.stdout == f"5 / ['{script.folder / name}']\n"


def test_usage():
    got = run(DOOR)
    assert (got.returncode, got.stdout) == (2, "")
    assert got.stderr.startswith("usage: python -m loopwright.compat.tvm")
    got = run([*DOOR, "--help"])
    assert got.returncode == 0 and got.stdout.startswith("usage:")
    got = run([*DOOR, "-m"])
    assert got.returncode == 2 and "argument expected for the -m option" in got.stderr


def test_modules_and_code(script):
    script("import sys, tvm\nprint(sys.argv[1:], __name__, tvm.__version__)\n", "mine.py")
    assert run([*DOOR, "-m", "mine", "x"], cwd=script.folder).stdout == "['x'] __main__ 0.15.0\n"
    code = "import sys, tvm; print(sys.argv, __name__, tvm.__version__)"
    assert run([*DOOR, "-c", code, "x"]).stdout == "['-c', 'x'] __main__ 0.15.0\n"
    failed = run([*DOOR, "-c", "1 / 0"])
    assert failed.returncode == 1 and failed.stderr == run([sys.executable, "-c", "1 / 0"]).stderr


def test_the_peer_gives_way_to_what_was_asked_for(script):
    (script.folder / "tvm").mkdir()
    (script.folder / "tvm" / "__init__.py").write_text("raise SystemExit('the wrong one')")
    got = run([*DOOR, script("import tvm; print(tvm.te)")], cwd=script.folder)
    assert got.returncode == 0 and "loopwright.te" in got.stdout, got.stderr


def test_errors_show_the_scripts_own_line(script):
    name = script("from tvm import autotvm\nimport tvm\n\nautotvm.template(None)\n")
    got = run([*DOOR, name], cwd=script.folder)
    assert got.returncode == 1
    assert "tvm.autotvm.template is not built yet [LW0003]" in got.stderr
    assert "call: autotvm.template(None) at script.py:4" in got.stderr


SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.py"))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_classic_script(path, tmp_path):
    """Scripts as users of TVM v0.15 write them; they check their own numbers."""
    text = path.read_text(encoding="utf-8")
    assert "import tvm" in text and "loopwright" not in text
    (tmp_path / "door.py").write_text(
        "import runpy, sys\nsys.argv = sys.argv[1:]\nrunpy.run_module('loopwright.compat.tvm', run_name='__main__')\n"
    )
    done = warm_python.run([tmp_path / "door.py", "-m loopwright.compat.tvm", path], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "ok"
    assert done.stderr == ""


def test_there_are_fifteen():
    assert len(SCRIPTS) == 15


def test_a_test_suite_of_the_peers_users(script):
    """conftest.py asks for the plugin by the peer's name; tests take `target` and `dev`; a script ends in main()."""
    script("pytest_plugins = ['tvm.testing.plugin']\n", "conftest.py")
    name = script(
        """
import numpy as np
import tvm
import tvm.testing
from tvm.script import tir as T

size, scale = tvm.testing.parameters((1, 2), (5, 3))

def test_scaled(target, dev, size, scale):
    @T.prim_func
    def scaled(A: T.Buffer((size,), "float32"), B: T.Buffer((size,), "float32")):
        for i in range(size):
            B[i] = A[i] * T.float32(scale)

    a, b = tvm.nd.array(np.ones(size, "float32"), dev), tvm.nd.empty((size,), "float32", dev)
    tvm.build(scaled, target=target)(a, b)
    tvm.testing.assert_allclose(b.numpy(), np.full(size, scale, "float32"))

@tvm.testing.requires_cuda
def test_on_a_gpu():
    raise AssertionError

if __name__ == "__main__":
    tvm.testing.main()
""",
        "test_it.py",
    )
    environment = {**os.environ, "TVM_TEST_TARGETS": "llvm", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    for command in (["-m", "pytest", "-q"], [name, "-q"]):
        done = run([*DOOR, *command], cwd=script.folder, env=environment)
        assert done.returncode == 0 and "2 passed, 1 skipped" in done.stdout, done.stdout + done.stderr


def test_processes_that_a_script_starts(script):
    child = script("import tvm, tvm.te, sys; print(tvm.__version__, 'loopwright.te' in sys.modules)", "child.py")
    name = script(
        f"""
import concurrent.futures, multiprocessing, subprocess, sys
import tvm
from tvm import te

def version(x):
    return tvm.__version__, te.var(x).name

if __name__ == "__main__":
    print(subprocess.run([sys.executable, {child!r}], capture_output=True, text=True, check=True).stdout.strip())
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        print(list(pool.map(version, ["n"])))
"""
    )
    done = run([*DOOR, name], cwd=script.folder, timeout=120)
    assert done.stdout == "0.15.0 True\n[('0.15.0', 'n')]\n", done.stderr
    assert done.stderr == ""


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["custom_pass", "export_and_load"])
def test_the_same_script_with_loopwright_as_tvm(name, tmp_path):
    text = (Path(__file__).parent / "scripts" / f"{name}.py").read_text(encoding="utf-8")
    text = text.replace("import tvm\n", "import loopwright as tvm\n")
    text = text.replace("import tvm.", "import loopwright.").replace("from tvm", "from loopwright")
    (tmp_path / "script.py").write_text(text)
    done = run([sys.executable, "script.py"], cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "ok", done.stderr
