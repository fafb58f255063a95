"""The store of made things: one file an entry, complete or absent, damage found out, bounded, shared by processes."""

from __future__ import annotations

import errno
import os
import random
import time
import warnings

import pytest

from loopwright.runtime import artifact_store
from loopwright.runtime.artifact_store import ArtifactStore, BadCacheSize, CacheWarning, Damaged, read_size

KEY, OTHER = "a" * 40, "b" * 40


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(artifact_store, "_warned", set())
    monkeypatch.setattr(artifact_store, "_opened", {})
    return ArtifactStore(tmp_path / "compiled")


def path_of(store, key=KEY):
    return store.folder / f"{key}.lwc"


def used(store, key, seconds_ago):
    when = time.time() - seconds_ago
    os.utime(path_of(store, key), (when, when))


@pytest.mark.parametrize("parts", [{}, {"object": b""}, {"object": b"\0\xff" * 1000, "ll": b"text"}])
def test_what_is_saved_is_read(store, parts):
    header = {"kind": "module", "numbers": [1, 2.5], "text": 'π "quoted"\n', "none": None}
    assert store.save(KEY, header, parts)
    found = store.read(KEY)
    assert found.header == {**header, "key": KEY}
    assert found.parts == parts
    assert store.read(OTHER) is None


def test_saving_again_replaces(store):
    store.save(KEY, {"n": 1}, {"object": b"one"})
    store.save(KEY, {"n": 2}, {"object": b"two"})
    assert store.read(KEY).parts == {"object": b"two"}
    assert len(store.entries()) == 1


def test_only_this_user_can_read_what_is_saved(store):
    store.save(KEY, {}, {})
    assert path_of(store).stat().st_mode & 0o777 == 0o600
    assert store.folder.stat().st_mode & 0o777 == 0o700


def damaged_files(whole: bytes):
    middle = len(whole) // 2
    yield "empty", b""
    yield "one byte", whole[:1]
    yield "magic only", whole[:8]
    yield "half", whole[:middle]
    yield "one byte short", whole[:-1]
    yield "one byte long", whole + b"\0"
    for place in (8, 45, middle, len(whole) - 1):
        yield f"bit at {place}", whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
    yield "foreign", b"\x7fELF" + os.urandom(300)
    yield "zeros", bytes(len(whole))


def test_damage_of_any_kind_is_found_and_removed(store):
    store.save(KEY, {"kind": "module"}, {"object": b"code" * 100})
    whole = path_of(store).read_bytes()
    for what, content in damaged_files(whole):
        path_of(store).write_bytes(content)
        path_of(store).chmod(0o600)
        assert store.read(KEY) is None, what
        assert not path_of(store).exists(), what
    path_of(store).write_bytes(whole)
    assert store.read(KEY).parts == {"object": b"code" * 100}


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"", "it is empty"), (b"LWCACHE1", "it is cut off"), (b"hello", "it is not a file of this cache")],
)
def test_damage_is_named(store, content, why):
    store.folder.mkdir()
    path_of(store).write_bytes(content)
    (entry,) = store.entries()
    with pytest.raises(Damaged, match=why):
        store.look(entry)


def test_an_entry_under_the_name_of_another_is_not_used(store):
    store.save(KEY, {}, {"object": b"code"})
    path_of(store).rename(path_of(store, OTHER))
    with pytest.raises(Damaged, match=f"it belongs to another key, {KEY}"):
        store.look(store.entries()[0])
    assert store.read(OTHER) is None


def test_what_is_no_file_is_not_used(store):
    store.folder.mkdir()
    path_of(store).mkdir()
    assert store.read(KEY) is None
    assert not path_of(store).exists()  # it was empty
    (path_of(store) / "inside").mkdir(parents=True)
    with pytest.warns(CacheWarning, match="compiled code cannot be kept in"):
        assert not store.save(KEY, {}, {})
    assert store.read(KEY) is None
    assert (path_of(store) / "inside").exists()  # not ours: nothing is lost
    os.mkfifo(path_of(store, OTHER))
    assert store.read(OTHER) is None


def test_a_file_that_others_can_write_is_not_used(store):
    store.save(KEY, {}, {"object": b"code"})
    path_of(store).chmod(0o666)
    with pytest.raises(Damaged, match="other users can write to it"):
        store.look(store.entries()[0])
    assert store.read(KEY) is None


def test_the_longest_unused_go_first(store):
    for k in range(6):
        store.save(f"{k:040x}", {}, {"object": bytes(1000)})
        used(store, f"{k:040x}", 600 - k)
    assert store.read(f"{0:040x}") is not None  # used just now
    size = store.entries()[0].size
    removed = store.prune(3 * size + 10)
    assert [int(entry.key, 16) for entry in removed] == [3, 2, 1]
    assert [int(entry.key, 16) for entry in store.entries()] == [0, 5, 4]
    assert store.prune(3 * size) == []
    store.prune(0)
    assert store.entries() == []


def test_a_small_old_entry_does_not_outlive_a_large_newer_one(store):
    store.save(KEY, {}, {"object": b"small"})
    used(store, KEY, 100)
    store.save(OTHER, {}, {"object": bytes(10_000)})
    assert {entry.key for entry in store.prune(5_000)} == {KEY, OTHER}


def test_saving_keeps_the_folder_within_the_limit(store, monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_CACHE_SIZE", "20000")
    for k in range(100):
        store.save(f"{k:040x}", {}, {"object": bytes(1000)})
        assert sum(entry.size for entry in store.entries()) <= 20000
    assert store.read(f"{99:040x}") is not None
    assert not store.save(KEY, {}, {"object": bytes(20001)})  # larger than all there may be
    assert store.read(KEY) is None


def test_what_other_processes_write_is_seen(store, monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_CACHE_SIZE", "50000")
    monkeypatch.setattr(artifact_store, "_SCAN_EVERY", 4)
    store.save(KEY, {}, {})
    other = ArtifactStore(store.folder)
    monkeypatch.setattr(other, "prune", lambda limit: [])
    for k in range(60):
        other.save(f"{k:040x}", {}, {"object": bytes(1000)})
    for k in range(60, 66):
        store.save(f"{k:040x}", {}, {"object": bytes(1000)})
    assert sum(entry.size for entry in store.entries()) <= 50000


def test_temporary_files_of_dead_processes_are_removed(store):
    store.folder.mkdir()
    old, new = store.folder / ".tmp-old", store.folder / ".tmp-new"
    old.write_bytes(b"half")
    new.write_bytes(b"half")
    os.utime(old, (0, 0))
    store.prune(1 << 20)
    assert not old.exists() and new.exists()
    store.clear()
    assert not new.exists()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT])
def test_a_folder_that_cannot_be_written_is_said_once(store, monkeypatch, number):
    def refuse(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(artifact_store.tempfile, "mkstemp", refuse)
    with pytest.warns(CacheWarning, match=os.strerror(number)):
        assert not store.save(KEY, {}, {})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not store.save(KEY, {}, {})


def test_a_disk_that_fills_while_writing_leaves_nothing(store, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(artifact_store.os, "replace", full)
    with pytest.warns(CacheWarning, match="No space left on device"):
        assert not store.save(KEY, {}, {"object": b"code"})
    assert list(store.folder.iterdir()) == []


def test_a_folder_removed_meanwhile_is_made_again(store):
    store.save(KEY, {}, {})
    store.clear()
    store.folder.rmdir()
    assert store.read(KEY) is None and store.entries() == []
    assert store.save(KEY, {}, {})


def open_in(monkeypatch, folder):
    monkeypatch.setenv("LOOPWRIGHT_CACHE", "1")
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(folder))
    return artifact_store.open_store()


def test_the_folder_is_the_one_asked_for(store, monkeypatch, tmp_path):
    found = open_in(monkeypatch, tmp_path / "new" / "deep")
    assert found.folder == tmp_path / "new" / "deep" / "compiled"
    assert found.folder.is_dir()
    assert artifact_store.open_store() is found
    for off in ("0", "off", "no", "False", " 0 "):
        monkeypatch.setenv("LOOPWRIGHT_CACHE", off)
        assert artifact_store.open_store() is None


def test_without_a_wish_the_folder_is_the_users(store, monkeypatch, tmp_path):
    monkeypatch.setenv("LOOPWRIGHT_CACHE", "1")
    monkeypatch.delenv("LOOPWRIGHT_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert artifact_store.open_store().folder == tmp_path / "xdg" / "loopwright" / "compiled"


def test_the_home_of_nobody_is_no_folder(store, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CacheWarning)
        assert open_in(monkeypatch, "~no_such_user_here/cache") is None


def test_a_folder_that_others_can_write_is_refused(store, monkeypatch, tmp_path):
    (tmp_path / "open" / "compiled").mkdir(parents=True)
    (tmp_path / "open" / "compiled").chmod(0o777)
    with pytest.warns(CacheWarning, match=r"other users can write to it \(chmod go-w\)"):
        assert open_in(monkeypatch, tmp_path / "open") is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert artifact_store.open_store() is None


def test_a_folder_that_cannot_be_made_is_said(store, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(CacheWarning, match="Not a directory"):
        assert open_in(monkeypatch, tmp_path / "file") is None


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("123", 123),
        ("2k", 2048),
        ("2KB", 2000),
        ("2KiB", 2048),
        (" 1.5 GiB ", 3 << 29),
        ("200MB", 200_000_000),
        ("1g", 1 << 30),
        ("1T", 1 << 40),
        ("7 B", 7),
    ],
)
def test_sizes_are_read(text, size):
    assert read_size(text) == size


@pytest.mark.parametrize("text", ["", "a lot", "-1", "1 GiBB", "1e9", "GiB", "9" * 400])
def test_what_is_no_size_is_said(text):
    with pytest.raises(BadCacheSize, match="is no size"):
        read_size(text)


def test_a_bad_limit_in_the_environment_is_said(store, monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_CACHE_SIZE", "much")
    with pytest.raises(BadCacheSize, match="the environment variable LOOPWRIGHT_CACHE_SIZE: 'much' is no size"):
        store.save(KEY, {}, {})


def test_processes_read_write_and_prune_at_once(store, monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_CACHE_SIZE", "30000")
    children = [started(lambda seed=seed: hammer(ArtifactStore(store.folder), seed)) for seed in range(4)]
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
    assert not [file for file in store.folder.iterdir() if file.name.startswith(".tmp-")]
    for entry in store.entries():
        store.look(entry)


def started(work):
    """The number of a forked process that does `work` and ends with status 0 if nothing is raised."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return child


def hammer(store, seed):
    pick = random.Random(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(200):
            number = pick.randrange(20)
            content = bytes([number]) * pick.randrange(1, 4000)
            key = f"{number:040x}"
            action = pick.randrange(10)
            if action < 5:
                assert store.save(key, {"number": number}, {"object": content})
            elif action < 9:
                found = store.read(key)
                assert found is None or set(found.parts["object"]) == {number}
            else:
                store.prune(10000)
