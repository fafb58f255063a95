from __future__ import annotations

import ctypes
import importlib.util
import os
import subprocess
import sys
import textwrap
import threading
import warnings
from pathlib import Path

import pytest
from native_call import native

from loopwright import runtime
from loopwright.runtime import ffi, thread_pool
from loopwright.runtime.call_errors import AssertionFailed
from loopwright.runtime.thread_pool import BODY, BadThreadCount

pytestmark = pytest.mark.skipif(thread_pool.library() is None, reason="no native runtime here")


def parallel_for(body, begin: int, end: int, closure: object = None) -> int:
    library = thread_pool.library()
    assert library is not None
    return library.lw_parallel_for(BODY(body), begin, end, closure)


def chunks(begin: int, end: int, count: int) -> list[tuple[int, int]]:
    seen = []
    with runtime.threads(count):
        assert parallel_for(lambda lo, hi, _: seen.append((lo, hi)) or 0, begin, end) == 0
    return sorted(seen)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 16])
@pytest.mark.parametrize(("begin", "end"), [(0, 0), (5, 3), (0, 1), (-3, 4), (0, 7), (0, 8), (10, 1010)])
def test_chunks_are_contiguous_balanced_and_cover_the_range(begin: int, end: int, count: int):
    got = chunks(begin, end, count)
    assert len(got) == max(0, min(count, end - begin))
    assert [i for lo, hi in got for i in range(lo, hi)] == list(range(begin, end))
    if got:
        sizes = [hi - lo for lo, hi in got]
        assert max(sizes) - min(sizes) <= 1


def test_ranges_wider_than_a_signed_integer_are_cut_right():
    lo, hi = -(1 << 63), (1 << 63) - 1
    got = chunks(lo, hi, 3)
    assert (got[0][0], got[-1][1]) == (lo, hi)
    assert [a[1] for a in got[:-1]] == [b[0] for b in got[1:]]


def test_the_closure_arrives_and_threads_differ():
    seen, barrier = set(), threading.Barrier(3, timeout=20)

    def body(_lo: int, _hi: int, closure: int) -> int:
        seen.add((threading.get_native_id(), closure))
        barrier.wait()  # passes only if all three chunks run at the same time
        return 0

    with runtime.threads(3):
        assert parallel_for(body, 0, 3, 1234) == 0
    assert len(seen) == 3
    assert {closure for _, closure in seen} == {1234}


def test_a_status_comes_back_and_the_pool_stays_usable():
    with runtime.threads(4):
        assert parallel_for(lambda lo, _hi, _: 7 if lo == 2 else 0, 0, 4) == 7
        assert parallel_for(lambda *_: 0, 0, 4) == 0
        assert parallel_for(lambda *_: -1, 0, 4) == -1


def test_an_inner_loop_runs_in_its_own_thread():
    inner = []

    def outer(_lo: int, _hi: int, _closure: object) -> int:
        here = threading.get_native_id()
        return parallel_for(lambda lo, hi, _: inner.append((threading.get_native_id() == here, lo, hi)) or 0, 0, 10)

    with runtime.threads(2):
        assert parallel_for(outer, 0, 2) == 0
    assert inner == [(True, 0, 10)] * 2


def test_many_callers_at_once():
    failures = []

    def call(seed: int) -> None:
        for n in range(50):
            seen = []
            parallel_for(lambda lo, hi, _, seen=seen: seen.extend(range(lo, hi)) or 0, seed, seed + n)
            if sorted(seen) != list(range(seed, seed + n)):
                failures.append((seed, n))

    callers = [threading.Thread(target=call, args=(seed,)) for seed in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not failures


def test_an_error_raised_in_a_worker_reaches_the_caller():
    thread_pool.symbols()  # installs how errors move between threads
    raise_error = ffi.load().LIB.TVMFFIErrorSetRaisedFromCStr

    def body(lo: int, _hi: int, _closure: object) -> int:
        if lo == 0:
            return 0
        raise_error(ctypes.c_char_p(b"AssertionFailed"), ctypes.c_char_p(b"main: i < n does not hold"))
        return -1

    function = native(lambda _values: parallel_for(body, 0, 4))
    with runtime.threads(4):
        for _ in range(3):
            with pytest.raises(AssertionFailed, match="main: i < n does not hold"):
                function()


def test_of_several_errors_the_first_in_the_order_of_iterations_is_reported():
    thread_pool.symbols()  # installs how errors move between threads
    raise_error = ffi.load().LIB.TVMFFIErrorSetRaisedFromCStr
    late = threading.Event()

    def body(lo: int, _hi: int, _closure: object) -> int:
        if lo == 1:
            late.wait(20)  # the first by time is another
        if lo == 0:
            return 0
        raise_error(ctypes.c_char_p(b"AssertionFailed"), ctypes.c_char_p(f"chunk {lo} failed".encode()))
        late.set()
        return -lo

    function = native(lambda _values: parallel_for(body, 0, 4))
    with runtime.threads(4):
        for _ in range(5):
            late.clear()
            with pytest.raises(AssertionFailed, match="chunk 1 failed"):
                function()


def dynamic(body, begin: int, end: int, grain: int) -> int:
    library = thread_pool.library()
    assert library is not None
    return library.lw_parallel_for_dynamic(BODY(body), begin, end, None, grain)


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("grain", [0, 1, 3, 1 << 40])
@pytest.mark.parametrize(("begin", "end"), [(0, 0), (5, 3), (0, 1), (-3, 4), (0, 97)])
def test_dynamic_pieces_cover_the_range(begin: int, end: int, grain: int, count: int):
    got = []
    with runtime.threads(count):
        assert dynamic(lambda lo, hi, _: got.append((lo, hi)) or 0, begin, end, grain) == 0
    assert [i for lo, hi in sorted(got) for i in range(lo, hi)] == list(range(begin, end))
    if grain > 0 and count > 1 and end - begin > 1:
        assert all(hi - lo <= grain for lo, hi in got)


def test_dynamic_pieces_of_an_enormous_range():
    got = []
    with runtime.threads(3):
        dynamic(lambda lo, hi, _: got.append((lo, hi)) or 0, -(1 << 63), (1 << 63) - 1, 1 << 61)
    assert sorted(got) == [(lo, min(lo + (1 << 61), (1 << 63) - 1)) for lo in range(-(1 << 63), 1 << 63, 1 << 61)]


def test_dynamic_pieces_go_to_whoever_is_free():
    """One piece lasts until all others are done, so others must have run them."""
    others, done = [], threading.Event()

    def body(lo: int, _hi: int, _closure: object) -> int:
        if lo == 0:
            return 0 if done.wait(20) else 1
        others.append(lo)
        if len(others) == 19:
            done.set()
        return 0

    with runtime.threads(2):
        assert dynamic(body, 0, 20, 1) == 0
    assert sorted(others) == list(range(1, 20))


def test_threads_begin_with_pieces_of_their_own():
    """The first piece of each thread is that of its own chunk, however the threads come."""
    first: dict[int, int] = {}
    meet = threading.Barrier(3, timeout=20)

    def body(lo: int, _hi: int, _closure: object) -> int:
        if first.setdefault(threading.get_native_id(), lo) == lo:
            meet.wait()
        return 0

    with runtime.threads(3):
        assert dynamic(body, 0, 31, 1) == 0
    assert sorted(first.values()) == [0, 11, 21]


def test_a_dynamic_loop_reports_the_lowest_error_though_others_came_first():
    """Whoever meets an error first, the pieces before it are still run."""
    others = threading.Event()

    def body(lo: int, _hi: int, _closure: object) -> int:
        if lo == 0:
            others.wait(20)
        if lo >= 50:
            others.set()
        return lo if lo in (7, 50, 60) else 0

    with runtime.threads(2):
        assert dynamic(body, 0, 100, 1) == 7


def test_a_dynamic_loop_reports_the_lowest_error_and_begins_no_more():
    seen = []

    def body(lo: int, _hi: int, _closure: object) -> int:
        seen.append(lo)
        return lo if lo >= 3 else 0

    with runtime.threads(3):
        assert dynamic(body, 0, 1000, 1) == 3
    assert len(seen) < 20


def test_a_worker_that_is_late_is_not_waited_for():
    """A chunk nobody has begun is run by the caller, and a worker that then comes does not run it again."""
    runs = []
    with runtime.threads(16):
        for _ in range(200):
            parallel_for(lambda lo, _hi, _: runs.append(lo) or 0, 0, 16)
    assert sorted(runs) == sorted(list(range(16)) * 200)


@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
def test_workers_round_as_their_caller_does(mode: str):
    """Each thread has a rounding mode; a worker takes that of the thread that started the loop, whatever it had."""
    codes = {
        "x86_64": {"nearest": 0, "down": 0x400, "up": 0x800},
        "aarch64": {"nearest": 0, "up": 1 << 22, "down": 2 << 22},
    }
    if os.uname().machine not in codes or not sys.platform.startswith("linux"):
        pytest.skip("the numbers of rounding modes are not known here")
    code = codes[os.uname().machine][mode]
    libm = ctypes.CDLL("libm.so.6")
    seen, meet = [], threading.Barrier(3, timeout=20)

    def body(_lo: int, _hi: int, _closure: object) -> int:
        seen.append(libm.fegetround())
        meet.wait()
        return 0

    with runtime.threads(3):
        before = libm.fegetround()
        libm.fesetround(code)
        try:
            parallel_for(body, 0, 3)
        finally:
            libm.fesetround(before)
    assert seen == [code] * 3


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, **environment},
    )


def test_a_forked_child_has_a_pool_of_its_own():
    done = run(
        """
        import os, sys, warnings
        warnings.simplefilter("ignore")
        from loopwright.runtime import thread_pool as tp
        def count():
            import threading
            seen, meet = set(), threading.Barrier(3, timeout=20)
            def body(lo, hi, closure):
                seen.add(threading.get_native_id()); meet.wait(); return 0
            keep = tp.BODY(body)
            tp.library().lw_parallel_for(keep, 0, 3, None)
            return len(seen)
        assert count() == 3
        child = os.fork()
        if child == 0:
            os._exit(0 if count() == 3 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert count() == 3
        """,
        LOOPWRIGHT_NUM_THREADS="3",
    )
    assert done.returncode == 0, done.stderr


def test_the_environment_sets_the_number_of_threads():
    assert (
        run("from loopwright import runtime; print(runtime.num_threads())", LOOPWRIGHT_NUM_THREADS="5").stdout == "5\n"
    )


@pytest.mark.parametrize("given", ["many", "0", "-1", "5000", "2.5", "２", "99999999999999999999", "9" * 5000])
def test_a_bad_environment_is_named(given: str):
    done = run("from loopwright import runtime; runtime.num_threads()", LOOPWRIGHT_NUM_THREADS=given)
    assert f"the environment variable LOOPWRIGHT_NUM_THREADS: '{given[:100]}" in done.stderr
    assert "BadThreadCount" in done.stderr


@pytest.mark.parametrize("given", ["", " "])
def test_an_empty_environment_says_nothing(given: str):
    done = run("from loopwright import runtime; print(runtime.num_threads())", LOOPWRIGHT_NUM_THREADS=given)
    assert int(done.stdout) >= 1, done.stderr


def test_set_num_threads_and_back():
    default = runtime.num_threads()
    try:
        runtime.set_num_threads(3)
        assert runtime.num_threads() == 3
        with runtime.threads(5):
            assert runtime.num_threads() == 5
            with runtime.threads(1):
                assert runtime.num_threads() == 1
            assert runtime.num_threads() == 5
            other = []
            thread = threading.Thread(target=lambda: other.append(runtime.num_threads()))
            thread.start()
            thread.join()
            assert other == [3]  # the override belongs to this thread
        assert runtime.num_threads() == 3
    finally:
        runtime.set_num_threads(None)
    assert runtime.num_threads() <= max(default, len(os.sched_getaffinity(0)))


@pytest.mark.parametrize("count", [0, -1, 1025, 1.5, True, "2"])
def test_bad_thread_counts_are_refused(count: object):
    with pytest.raises(BadThreadCount, match="is no number of threads"):
        runtime.set_num_threads(count)
    with pytest.raises(BadThreadCount, match="is no number of threads"), runtime.threads(count):
        pass


@pytest.mark.parametrize(
    ("membership", "files", "expected"),
    [
        ("0::/a/b\n", {"a/b/cpu.max": "250000 100000\n"}, 3),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "100000 100000\n"}, 1),
        ("0::/\n", {"cpu.max": "400000 100000\n"}, 4),
        ("0::/a\n", {}, 1024),
        (
            "4:cpu,cpuacct:/box\n1:memory:/x\n",
            {"cpu/box/cpu.cfs_quota_us": "150000", "cpu/box/cpu.cfs_period_us": "100000"},
            2,
        ),
        ("4:cpu:/box\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 1024),
        ("4:cpuset:/box\n", {"cpu.max": "100000 100000\n"}, 1024),
        ("nonsense\n", {}, 1024),
    ],
)
def test_container_quotas(tmp_path: Path, membership: str, files: dict[str, str], expected: int):
    (tmp_path / "cgroup").write_text(membership)
    for name, text in files.items():
        file = tmp_path / "mount" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    library = thread_pool.library()
    assert library is not None
    assert library.lw_quota_cpus(str(tmp_path / "cgroup").encode(), str(tmp_path / "mount").encode()) == expected


def test_one_thread_needs_no_warning(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(thread_pool, "library", lambda: None)
    monkeypatch.setenv("LOOPWRIGHT_NUM_THREADS", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert set(thread_pool.symbols.__wrapped__()) == set(thread_pool._LINKED)


def test_a_missing_runtime_is_warned_of_once_in_a_process(tmp_path: Path):
    code = """
        import os
        from loopwright.runtime import thread_pool
        os.environ["PATH"] = ""
        assert not thread_pool.is_prebuilt()
        for _ in range(3):
            thread_pool.symbols()
    """
    if thread_pool.is_prebuilt() or importlib.util.find_spec("ziglang") is not None:
        pytest.skip("the runtime is never missing here")
    environment = {**os.environ, "LOOPWRIGHT_CACHE_DIR": str(tmp_path), "LOOPWRIGHT_NUM_THREADS": "2"}
    environment.pop("CC", None)
    command = [sys.executable, "-W", "always", "-c", textwrap.dedent(code)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert done.stderr.count("RuntimeWarning") == 1
    assert "parallel loops run on one thread: there is no C compiler (looked for cc, gcc, clang" in done.stderr


def test_without_the_native_runtime_loops_run_serially(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(thread_pool, "library", lambda: None)
    monkeypatch.setattr(thread_pool._native, "why_not", "there is no C compiler")
    monkeypatch.setenv("LOOPWRIGHT_NUM_THREADS", "2")
    with pytest.warns(RuntimeWarning, match="parallel loops run on one thread: there is no C compiler; `loopwright"):
        addresses = thread_pool.symbols.__wrapped__()
    seen = []
    body = BODY(lambda lo, hi, _: seen.append((lo, hi)) or 3)
    assert thread_pool.PARALLEL_FOR(addresses["lw_parallel_for"])(body, 2, 9, None) == 3
    assert thread_pool.PARALLEL_FOR(addresses["lw_parallel_for"])(body, 2, 2, None) == 0
    assert thread_pool.DYNAMIC_FOR(addresses["lw_parallel_for_dynamic"])(body, 3, 5, None, 1) == 3
    assert seen == [(2, 9), (3, 5)]
    runtime.trim_workspace()
    memory = thread_pool._ALLOCATE(addresses["lw_workspace_alloc"])(100)
    assert memory % 64 == 0
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(addresses["lw_workspace_free"])(memory)
    assert thread_pool.num_threads() == 1
    assert thread_pool.why_serial() == "there is no C compiler"
    runtime.set_num_threads(2)
    with runtime.threads(2):
        assert runtime.num_threads() == 1
