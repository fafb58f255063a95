"""Peers in processes of their own: libraries with pools of threads do not meet in one, and no one's crash is ours.

One helper a peer lives as long as the child that measures our kernel, and holds one row at a time. It is told what
to make by the function that makes the problem, so both sides have the same inputs; a sample is timed by the helper, and
only the seconds come back. Interleaving stays with `measure.py`, which asks one contender after another.

Between its samples a helper is stopped, as a shell stops a job: the threads of some pools spin for tens of milliseconds
after a call, and would take the cores from the next contender. They need not be told otherwise, and are themselves.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from benchmarks.bench.case import Array, Case, Missing
from benchmarks.bench.measure import sample

if TYPE_CHECKING:
    from benchmarks.bench.peers import Contender, Peers

PATIENCE = 120.0  # seconds without an answer
COMPARED = 1 << 20  # elements of a result that are sent back to be compared


class Gone(Exception):
    """A helper that died or hangs."""

    def __init__(self, peer: str, why: str) -> None:
        super().__init__(f"its process {why}")
        self.peer = peer


class Helper:
    """A process for one peer."""

    def __init__(self, peer: str, peers: Peers, patience: float = PATIENCE) -> None:
        self.peer, self.patience = peer, patience
        context = get_context("spawn")  # a fork would share the pools that this process has started
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, peers.alone()), daemon=True)
        self._process.start()
        theirs.close()
        # At the end daemons are asked to go, and waited for; one that is stopped would not hear it.
        atexit.register(self.close)

    def make(self, case: Case) -> None:
        """Have it make the case's peer, in place of the one it had; raises Missing."""
        answer = self._ask(("make", case.make, case.shape, self.peer))
        if answer is not None:
            raise Missing(answer)

    def __call__(self) -> None:
        """One call."""
        self._ask(("sample", 1, False))

    def sample(self, calls: int, warm: bool) -> float:
        """Seconds a call, timed over there."""
        seconds: float = self._ask(("sample", calls, warm))
        return seconds

    def results(self) -> Sequence[Array]:
        """What it computed, as far as it is compared."""
        arrays: Sequence[Array] = self._ask(("results",))
        return arrays

    @property
    def pid(self) -> int:
        """The number of its process."""
        assert self._process.pid is not None
        return self._process.pid

    def close(self) -> None:
        """End it."""
        atexit.unregister(self.close)
        self._connection.close()
        self._process.kill()
        self._process.join()

    def _ask(self, question: tuple[Any, ...]) -> Any:
        try:
            self._signal(signal.SIGCONT)
            self._connection.send(question)
            if not self._connection.poll(self.patience):
                self.close()
                raise Gone(self.peer, f"gave no answer for {self.patience:.0f} s")
            answer = self._connection.recv()
            self._signal(signal.SIGSTOP)
            return answer
        except (EOFError, ConnectionError) as error:
            self.close()
            code = self._process.exitcode
            raise Gone(self.peer, f"ended with {f'signal {-code}' if code and code < 0 else code}") from error

    def _signal(self, number: int) -> None:
        if self._process.pid is not None and self._process.is_alive():
            os.kill(self._process.pid, number)


def _serve(connection: Connection, peers: Peers) -> None:
    """Answer until the other side is gone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # when its parent dies: a stopped process would not notice
    os.dup2(2, 1)  # what a library prints is not for the parent's standard output
    contender: Any = None
    while True:
        try:
            kind, *what = connection.recv()
        except EOFError:
            return
        answer: Any = None
        if kind == "make":
            contender = None  # frees the last row before the next one is made
            try:
                contender = _make(peers, *what)
            except Missing as error:
                answer = str(error)
            except Exception as error:  # a peer's failure is its own affair
                answer = f"failed: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"
        elif kind == "sample":
            answer = sample(contender.run, *what)
        else:
            answer = [x.reshape(-1)[:COMPARED] for x in contender.results()]
        connection.send(answer)


def _make(peers: Peers, make: Any, shape: Any, name: str) -> Contender:
    problem = make(*shape)
    contender = peers.contender(problem.peers[name], problem)
    contender.run()
    return contender
