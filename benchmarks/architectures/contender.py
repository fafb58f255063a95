"""Contender: a process that holds one model at a time, compiled by one version of Loopwright or loaded by ONNX Runtime.

    ours = Contender("ours", folder, threads=1)
    ours.make(path, inputs)                 seconds it took; the inputs are a file of arrays by name
    ours.results(), ours.sample(calls, warm)

Everyone is called from Python with arrays and returns fresh ones. On one thread times are the processor's, so that a
machine that others use as well matters little. Between its samples a contender is stopped, as a shell stops a job: the
threads of some pools spin for tens of milliseconds after a call.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.bench.children import ROOT, pool_settings
from benchmarks.bench.measure import sample

ONNXRUNTIME = "onnxruntime"
Array = np.ndarray[Any, Any]


class Failed(Exception):
    """A contender that cannot take part in a row, and why."""


class Contender:
    """Our end of a process."""

    def __init__(self, name: str, folder: Path | None, threads: int) -> None:
        self.name = name
        command = [sys.executable, "-m", "benchmarks.architectures.contender", json.dumps(threads)]
        command += [] if folder is None else [str(folder.resolve())]
        paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        settings = {**os.environ, **pool_settings(threads), "PYTHONPATH": paths}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=settings)

    def make(self, model: Path, inputs: Path) -> float:
        """Have it compile or load the model, in place of the one before."""
        return float(self._ask("make", str(model), str(inputs)))

    def results(self) -> list[Array]:
        """What the model gives."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "results.npz"
            self._ask("results", str(path))
            with np.load(path) as found:
                return [found[f"y{number}"] for number in range(len(found.files))]

    def __call__(self) -> None:
        """One call."""
        self._ask("sample", 1, False)

    def sample(self, calls: int, warm: bool) -> float:
        """Seconds a call, timed over there."""
        return float(self._ask("sample", calls, warm))

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()

    def _ask(self, *order: Any) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.send_signal(signal.SIGCONT)
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
            self.process.send_signal(signal.SIGSTOP)
        except BrokenPipeError:
            line = ""
        if not line:
            self.process.send_signal(signal.SIGCONT)
            raise Failed(f"its process ended with {self.process.wait()}")
        answer = json.loads(line)
        if "failed" in answer:
            raise Failed(answer["failed"])
        return answer["is"]


def serve(threads: int, folder: str | None) -> None:
    """The other end: answer orders until there are none."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # when its parent dies: a stopped process would not notice
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is not for the parent
    if folder is not None:
        from benchmarks.sweep.child import import_loopwright

        import_loopwright(folder)
    held: Any = None
    for line in sys.stdin:
        kind, *what = json.loads(line)
        answer: dict[str, Any]
        try:
            if kind == "make":
                held = None  # frees the last model before the next one
                start = perf_counter()
                held = _made(*what, threads, folder is None)
                answer = {"is": perf_counter() - start}
            elif kind == "results":
                found = held()
                several = found if isinstance(found, (list, tuple)) else [found]
                np.savez(what[0], **{f"y{number}": np.asarray(each) for number, each in enumerate(several)})
                answer = {"is": None}
            else:
                answer = {"is": sample(held, *what, process_time if threads == 1 else perf_counter)}
        except Exception as error:  # is told, and costs this row alone
            lines = str(error).strip().splitlines() or [""]
            answer = {"failed": f"{type(error).__name__}: {lines[0][:300]}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _made(model: str, inputs: str, threads: int, is_peer: bool) -> Any:
    """A call of the model without arguments."""
    with np.load(inputs) as found:
        given = {name: np.array(found[name]) for name in found.files}
    if not is_peer:
        import loopwright as lw

        compiled = lw.compile(model)
        return lambda: compiled(**given)
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, given)


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
