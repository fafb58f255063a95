"""The thread pool beside others: forked processes, OpenMP, OpenBLAS, several callers, and the end of the interpreter.

Each test runs a script of its own, so that a hang or a crash is one failure and not the end of the whole run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import loopwright as lw
from loopwright.runtime import thread_pool
from loopwright.script import ir as I
from loopwright.script import tir as T

pytestmark = pytest.mark.skipif(thread_pool.library() is None, reason="no native runtime here")

PRELUDE = """
import os, sys, threading, warnings
warnings.simplefilter("ignore")
import numpy as np
from loopwright import runtime

module = runtime.load_module(sys.argv[1])
a = np.random.default_rng(0).integers(0, 1000, (64, 1000)).astype("float32")
expected = a * 3 + np.arange(64, dtype="float32")[:, None]

def check():
    b = np.zeros_like(a)
    module["scale"](a, b)
    assert (b == expected).all()

check()
"""


@I.ir_module
class Kernels:
    @T.prim_func
    def scale(A: T.Buffer((64, 1000), "float32"), B: T.Buffer((64, 1000), "float32")):
        for i in T.parallel(64):
            for j in range(1000):
                B[i, j] = A[i, j] * T.float32(3) + T.float32(i)

    @T.prim_func
    def halve(A: T.Buffer((300, 1000), "float32"), B: T.Buffer((300, 1000), "float32")):
        for i in T.parallel(300):
            for j in range(1000):
                B[i, j] = A[i, j] * T.float32(0.5)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs a script on the kernels and gives what it prints; it must end well, and by itself.

    The scripts load a library, which is much faster than building, and has a copy of the pool in it.
    """
    folder = tmp_path_factory.mktemp("neighbours")
    library = lw.build(Kernels).export_library(str(folder / "kernels.so"))

    def run_script(code: str, *arguments: str) -> str:
        script = PRELUDE + textwrap.dedent(code)
        done = subprocess.run(
            [sys.executable, "-c", script, library, *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env={**os.environ, "LOOPWRIGHT_NUM_THREADS": "3"},
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    return run_script


OPENMP = """
#include <stdint.h>
int64_t omp_sum(const int32_t* values, int64_t count) {
  int64_t sum = 0;
#pragma omp parallel for reduction(+ : sum) num_threads(3)
  for (int64_t i = 0; i < count; i++) sum += values[i];
  return sum;
}
"""

DENORMALS = """
#include <stdint.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
void set_flush(int on) { _mm_setcsr(on ? _mm_getcsr() | 0x8040 : _mm_getcsr() & ~0x8040u); }
#elif defined(__aarch64__)
void set_flush(int on) {
  uint64_t control;
  __asm__ __volatile__("mrs %0, fpcr" : "=r"(control));
  control = on ? control | 1ull << 24 : control & ~(1ull << 24);
  __asm__ __volatile__("msr fpcr, %0" : : "r"(control));
}
#endif
"""


def shared(source: str, folder: Path, *flags: str) -> str:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    (folder / "part.c").write_text(source)
    command = [compiler, "-O2", "-shared", "-fPIC", *flags, "part.c", "-o", "part.so"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"not compiled: {done.stderr[-200:]}")
    return str(folder / "part.so")


def test_children_and_grandchildren_have_pools_of_their_own(run):
    run("""
        def fork(depth):
            child = os.fork()
            if child == 0:
                check()
                if depth:
                    fork(depth - 1)
                os._exit(0)
            for _ in range(20):
                check()
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        fork(2)
        check()
    """)


def test_fork_while_other_threads_run_loops(run):
    run("""
        stop = threading.Event()
        def keep_going():
            while not stop.is_set():
                check()
        threads = [threading.Thread(target=keep_going) for _ in range(2)]
        for thread in threads: thread.start()
        for _ in range(10):
            child = os.fork()
            if child == 0:
                for _ in range(5):
                    check()
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        stop.set()
        for thread in threads: thread.join()
    """)


def test_multiprocessing_by_fork(run):
    run("""
        import multiprocessing
        def task(number):
            for _ in range(20):
                check()
            return number
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(task, range(6)) == list(range(6))
        check()
    """)


def test_beside_openmp_and_openblas(run, tmp_path: Path):
    """All three keep threads of their own; they take turns and run at once."""
    part = shared(OPENMP, tmp_path, "-fopenmp")
    run(
        """
        import ctypes
        omp_sum = ctypes.CDLL(sys.argv[2]).omp_sum
        omp_sum.restype, omp_sum.argtypes = ctypes.c_int64, [ctypes.c_void_p, ctypes.c_int64]
        values = np.arange(100_000, dtype="int32")
        square = np.random.default_rng(1).integers(0, 5, (150, 150)).astype("float64")
        product = square @ square
        def round():
            assert omp_sum(values.ctypes.data, len(values)) == values.sum()
            check()
            assert (square @ square == product).all()
            check()
        for _ in range(20):
            round()
        threads = [threading.Thread(target=lambda: [round() for _ in range(10)]) for _ in range(3)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        """,
        part,
    )


def test_a_loop_inside_an_openmp_region(run, tmp_path: Path):
    """OpenMP's threads are callers like any other: one gets the pool, the others run their loops themselves."""
    part = shared(
        """
        void omp_each(void (*call)(int)) {
        #pragma omp parallel for num_threads(3) schedule(static, 1)
          for (int i = 0; i < 30; i++) call(i);
        }
        """,
        tmp_path,
        "-fopenmp",
    )
    run(
        """
        import ctypes
        done = []
        @ctypes.CFUNCTYPE(None, ctypes.c_int)
        def call(i):
            check()
            done.append(i)
        ctypes.CDLL(sys.argv[2]).omp_each(call)
        assert sorted(done) == list(range(30))
        """,
        part,
    )


def test_denormals_are_treated_as_in_the_caller(run, tmp_path: Path):
    """Flushing them to zero is a setting of a thread; workers follow the one that calls, there and back."""
    if os.uname().machine not in ("x86_64", "aarch64"):
        pytest.skip("no such setting known here")
    part = shared(DENORMALS, tmp_path)
    run(
        """
        import ctypes
        set_flush = ctypes.CDLL(sys.argv[2]).set_flush
        tiny = np.full((300, 1000), np.finfo("float32").tiny, "float32")
        bits = np.empty_like(tiny)
        for on in (0, 1, 0, 1, 0):
            for _ in range(10):
                bits[...] = 1
                set_flush(on)
                module["halve"](tiny, bits)
                set_flush(0)
                assert (bits.view("int32") == (0 if on else 0x400000)).all()
        """,
        part,
    )


@pytest.mark.parametrize(
    "ending",
    [
        "sys.exit(0)",
        "os._exit(0)",
        "threading.Thread(target=lambda: [check() for _ in range(50)]).start()",
        "import atexit; atexit.register(check)",
        "raise SystemExit",
    ],
)
def test_the_interpreter_ends_while_workers_spin(run, ending: str):
    run(f"for _ in range(20): check()\n{ending}\n")


def test_more_threads_than_processors_and_back(run):
    out = run(
        """
        for count in (1, 2, 17, 64, 3, 1, 5):
            with runtime.threads(count):
                for _ in range(5):
                    check()
        print(len(os.listdir("/proc/self/task")) - threading.active_count() >= 63 if os.path.exists("/proc") else True)
        """
    )
    assert out == "True\n"


def test_workers_may_run_wherever_their_caller_may(run):
    """A worker is kept off the processor of its caller at most, never bound to one where there are more."""
    run("""
        if not hasattr(os, "sched_getaffinity"):
            sys.exit(0)
        allowed = os.sched_getaffinity(0)
        for count in range(2, 12):
            with runtime.threads(count):
                for _ in range(30):
                    check()
        assert os.sched_getaffinity(0) == allowed  # the caller itself is left alone
        for task in os.listdir("/proc/self/task"):
            theirs = os.sched_getaffinity(int(task))
            assert theirs <= allowed and len(theirs) >= len(allowed) - 1, (theirs, allowed)
    """)


def test_a_process_bound_to_one_processor(run):
    run("""
        if not hasattr(os, "sched_setaffinity"):
            sys.exit(0)
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        for _ in range(50):
            check()
        runtime.set_num_threads(None)
        assert runtime.num_threads() == 1
        check()
    """)
