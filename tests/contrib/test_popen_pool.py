from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest
import tasks

from loopwright.contrib.popen_pool import (
    MapResult,
    PopenPoolExecutor,
    PopenWorker,
    StatusKind,
    WorkerDied,
    WorkerTimeout,
)
from loopwright.runtime.errors import NotBuilt


def test_a_task_runs_in_another_process():
    worker = PopenWorker()
    worker.send(tasks.process)
    first = worker.recv()
    worker.send(tasks.process)
    assert worker.recv() == first  # the process is used again
    worker.send(tasks.square, [], {"x": 7})
    assert worker.recv() == 49
    assert worker.is_alive()
    worker.kill()
    assert not worker.is_alive()


def test_every_way_a_task_can_end():
    with PopenPoolExecutor(max_workers=1, timeout=3) as pool:
        results = list(pool.map_with_error_catching(tasks.outcome, range(6)))
    assert results[0] == MapResult(StatusKind.COMPLETE, 0)
    assert results[1].status == StatusKind.EXCEPTION and repr(results[1].value) == "ValueError('one')"
    assert results[2].status == StatusKind.TIMEOUT
    assert isinstance(results[2].value, WorkerTimeout)
    assert "the task did not finish in 3 s, and was stopped" in str(results[2].value)
    assert isinstance(results[3].value, WorkerDied)
    assert "the worker process ended with status 7 before its task was done" in str(results[3].value)
    assert isinstance(results[4].value, WorkerDied) and "was ended by SIGSEGV" in str(results[4].value)
    assert results[5] == MapResult(StatusKind.COMPLETE, 25)  # a new worker took over


@pytest.mark.parametrize(
    ("status", "said"),
    [(3, "ended with status 3"), (None, "ended"), (-9, "was ended by SIGKILL"), (-40, "was ended by signal 40")],
)
def test_how_a_worker_died_is_said_in_words(status, said):
    assert f"the worker process {said} before its task was done" in str(WorkerDied(status))


def test_our_errors_arrive_as_themselves():
    with PopenPoolExecutor(max_workers=1) as pool:
        with pytest.raises(NotBuilt, match="a thing is not built yet") as caught:
            pool.submit(tasks.unbuilt).result()
        assert caught.value.hint == "do without"
        with pytest.raises(RuntimeError, match=r"the result <function .*lambda.*> cannot be sent back"):
            pool.submit(tasks.unsendable).result()


def test_an_initializer_runs_first_and_a_worker_is_renewed():
    with PopenPoolExecutor(1, initializer=tasks.remember, initargs=("start",), maximum_process_uses=2) as pool:
        assert pool.submit(tasks.remember, "a").result() == 2
        assert pool.submit(tasks.seen).result() == ["start", "a"]
        assert pool.submit(tasks.seen).result() == ["start"]  # the third task is a new process's first


def test_what_cannot_be_sent_is_refused_here():
    pytest.importorskip("pickle")
    if importlib.util.find_spec("cloudpickle") is not None:
        pytest.skip("cloudpickle sends everything")
    with PopenPoolExecutor(1) as pool, pytest.raises(Exception, match=r"[Pp]ickle|local object"):
        pool.submit(lambda: 1).result()


def test_functions_of_the_script_itself(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import tvm\n"
        "from tvm.contrib.popen_pool import PopenPoolExecutor\n"
        "def half(x):\n"
        "    return x / 2, tvm.__name__, __name__\n"
        "if __name__ == '__main__':\n"
        "    with PopenPoolExecutor(max_workers=1) as pool:\n"
        "        print(pool.submit(half, 3).result())\n"
    )
    command = [sys.executable, "-m", "loopwright.compat.tvm", str(script)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "(1.5, 'tvm', '__mp_main__')\n"
