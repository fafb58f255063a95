"""Worker processes that can be stopped: run a function elsewhere, with a time limit, and survive its crash.

    with PopenPoolExecutor(max_workers=4, timeout=10) as pool:
        future = pool.submit(function, argument)
        for result in pool.map_with_error_catching(function, arguments):
            print(result.status, result.value)

A worker is a fresh Python, so it holds none of this process's threads or libraries; it is started with its first
task and used again for the next. Tasks travel by pickle (cloudpickle where it is installed, which also takes lambdas;
without it, functions of the script are found by running the script under another name, as multiprocessing does).
`popen_worker.py` is the other end.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from enum import IntEnum
from typing import IO, Any, NamedTuple, TypeVar

from loopwright.contrib import popen_worker
from loopwright.runtime.errors import LoopwrightError

Item = TypeVar("Item")


class WorkerTimeout(LoopwrightError, TimeoutError):
    """A task did not finish in its time, and its worker process was ended.

    For example:

        import time
        from loopwright.contrib.popen_pool import PopenPoolExecutor

        PopenPoolExecutor(max_workers=1, timeout=0.1).submit(time.sleep, 60).result()
    """

    code = "LW0038"

    def __init__(self, limit: float) -> None:
        super().__init__(f"the task did not finish in {limit:g} s, and was stopped", fields={"limit": limit})


class WorkerDied(LoopwrightError, ChildProcessError):
    """The worker process ended before its task did: the task crashed it, or something else ended it.

    For example:

        import os
        from loopwright.contrib.popen_pool import PopenPoolExecutor

        PopenPoolExecutor(max_workers=1).submit(os._exit, 3).result()
    """

    code = "LW0039"

    def __init__(self, status: int | None) -> None:
        how = "ended" if status is None else f"ended with status {status}"
        if status is not None and status < 0:
            known = {number.value: number.name for number in signal.Signals}
            how = f"was ended by {known.get(-status, f'signal {-status}')}"
        super().__init__(f"the worker process {how} before its task was done", fields={"status": status})


class StatusKind(IntEnum):
    """How a task is, or went."""

    RUNNING = 0
    COMPLETE = 1
    EXCEPTION = 2
    TIMEOUT = 3


class MapResult(NamedTuple):
    """What became of one task: its value, or the exception."""

    status: StatusKind
    value: Any


class PopenWorker:
    """One worker process; `send` gives it a task, `recv` waits for the result."""

    def __init__(
        self,
        initializer: Callable[..., object] | None = None,
        initargs: Sequence[object] = (),
        maximum_uses: int | None = None,
        stdout: int | IO[Any] | None = None,
        stderr: int | IO[Any] | None = None,
    ) -> None:
        self._initializer, self._initargs = initializer, tuple(initargs)
        self._maximum_uses, self._uses = maximum_uses, 0
        self._stdout, self._stderr = stdout, stderr
        self._process: subprocess.Popen[bytes] | None = None
        self._to_worker: IO[bytes] | None = None
        self._from_worker: IO[bytes] | None = None
        self._limit: float | None = None
        self._deadline: float | None = None

    def send(
        self,
        fn: Callable[..., object],
        args: Sequence[object] = (),
        kwargs: dict[str, object] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Start `fn(*args, **kwargs)` in the worker, which may take `timeout` seconds."""
        task = _pickled((fn, tuple(args), kwargs or {}))  # before a process is started for what cannot be sent
        if self._process is not None and (
            self._process.poll() is not None or (self._maximum_uses is not None and self._uses >= self._maximum_uses)
        ):
            self.kill()
        if self._process is None:
            self._start()
        self._uses += 1
        self._limit, self._deadline = timeout, None if timeout is None else time.monotonic() + timeout
        self._write(task)

    def recv(self) -> Any:
        """The result of the last task; what it raised is raised here."""
        succeeded, value = self._read()
        if succeeded:
            return value
        raise value

    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def join(self, timeout: float | None = None) -> None:
        """Wait until the process has ended, which it does when its input is closed."""
        if self._process is not None:
            if self._to_worker is not None:
                self._to_worker.close()
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """End the process, and what it has started."""
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (self._to_worker, self._from_worker):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue  # the worker died with a task in the pipe
        try:
            os.killpg(process.pid, signal.SIGKILL)  # it leads a group of its own
        except ProcessLookupError:
            process.kill()
        process.wait()

    def __del__(self) -> None:
        self.kill()

    def _start(self) -> None:
        task_out, task_in = os.pipe()
        result_out, result_in = os.pipe()
        code = f"import {popen_worker.__name__} as worker; worker.main()"
        command = [sys.executable, "-c", code, str(task_out), str(result_in)]
        self._process = subprocess.Popen(
            command,
            pass_fds=(task_out, result_in),
            stdin=subprocess.DEVNULL,
            stdout=self._stdout,
            stderr=self._stderr,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        os.close(task_out)
        os.close(result_in)
        self._to_worker, self._from_worker = os.fdopen(task_in, "wb"), os.fdopen(result_out, "rb", buffering=0)
        self._uses, self._deadline = 0, None
        main, door = sys.modules["__main__"], sys.modules.get("loopwright.compat.door")
        known_as_tvm = door is not None and door.is_open()
        self._write(pickle.dumps({"main": getattr(main, "__file__", None), "door": known_as_tvm}))
        if self._initializer is not None:
            self._write(_pickled((self._initializer, self._initargs, {})))
            self.recv()

    def _write(self, message: bytes) -> None:
        assert self._to_worker is not None
        try:
            popen_worker.write_message(self._to_worker, message)
        except BrokenPipeError:
            return  # the worker has died; reading its answer says so

    def _read(self) -> tuple[bool, Any]:
        assert self._process is not None and self._from_worker is not None
        head = self._wait_for(popen_worker.HEAD)
        return pickle.loads(self._wait_for(int.from_bytes(head, "little")))

    def _wait_for(self, size: int) -> bytes:
        assert self._process is not None and self._from_worker is not None
        received = bytearray()
        while len(received) < size:
            left = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
            if not select.select([self._from_worker], [], [], left)[0]:
                self.kill()
                raise WorkerTimeout(self._limit or 0.0)
            part = os.read(self._from_worker.fileno(), min(size - len(received), 1 << 20))
            if not part:
                status = self._process.wait()
                self.kill()
                raise WorkerDied(status)
            received += part
        return bytes(received)


class PopenPoolExecutor:
    """Several workers behind one `submit`; `timeout` is the limit of each task in seconds."""

    def __init__(
        self,
        max_workers: int | None = None,
        timeout: float | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: Sequence[object] = (),
        maximum_process_uses: int | None = None,
        stdout: int | IO[Any] | None = None,
        stderr: int | IO[Any] | None = None,
    ) -> None:
        self._threads = ThreadPoolExecutor(max_workers or os.cpu_count() or 1)
        self._timeout = timeout
        self._make = lambda: PopenWorker(initializer, initargs, maximum_process_uses, stdout, stderr)
        self._workers: list[PopenWorker] = []
        self._own = threading.local()  # each thread keeps a worker for its tasks

    def submit(self, fn: Callable[..., object], *args: object, **kwargs: object) -> Future[Any]:
        """Run `fn(*args, **kwargs)` in a worker; the future gives its result, or raises what it raised."""
        return self._threads.submit(self._run, fn, args, kwargs)

    def map_with_error_catching(
        self, fn: Callable[[Item], object], iterator: Iterable[Item]
    ) -> Iterable[MapResult]:
        """What became of `fn(item)` for each item, in order; a failure is a result too."""
        return [_outcome(future) for future in [self.submit(fn, item) for item in iterator]]

    def shutdown(self) -> None:
        """End the workers; the pool takes no more tasks."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        for worker in self._workers:
            worker.kill()

    def __enter__(self) -> PopenPoolExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def _run(self, fn: Callable[..., object], args: Sequence[object], kwargs: dict[str, object]) -> Any:
        if not hasattr(self._own, "worker"):
            self._own.worker = self._make()
            self._workers.append(self._own.worker)
        self._own.worker.send(fn, args, kwargs, self._timeout)
        return self._own.worker.recv()


def _outcome(future: Future[object]) -> MapResult:
    try:
        return MapResult(StatusKind.COMPLETE, future.result())
    except TimeoutError as error:
        return MapResult(StatusKind.TIMEOUT, error)
    except Exception as error:
        return MapResult(StatusKind.EXCEPTION, error)


def _pickled(task: object) -> bytes:
    """By pickle, which sends functions by name; a closure takes cloudpickle, where that is installed."""
    try:
        return pickle.dumps(task)
    except (pickle.PicklingError, AttributeError, TypeError):
        if importlib.util.find_spec("cloudpickle") is None:
            raise
    dumped: bytes = importlib.import_module("cloudpickle").dumps(task)
    return dumped
