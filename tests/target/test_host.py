from __future__ import annotations

import os
from pathlib import Path

import pytest

from loopwright.runtime.host_features import known_features
from loopwright.target import available_cores, detect_host
from loopwright.target.host import Caches, _sys_caches, _system_features, cgroup_quota


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_host_is_detected_once():
    host = detect_host()
    assert host is detect_host()
    assert host.cpu
    assert "-" in host.triple
    assert host.caches.l1d >= 4096
    assert host.caches.line in (32, 64, 128, 256)
    assert 1 <= host.num_cores <= os.cpu_count()
    assert available_cores() == host.num_cores


@pytest.mark.parametrize(
    ("membership", "files", "quota"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpu.max": "max 100000\n"}, None),
        ("0::/a/b\n", {"a/b/cpu.max": "400000 100000\n", "a/cpu.max": "200000 100000\n"}, 2.0),
        ("0::/outside/of/the/mount\n", {"cpu.max": "300000 100000\n"}, 3.0),
        ("4:cpu,cpuacct:/x\n", {"cpu/x/cpu.cfs_quota_us": "50000\n", "cpu/x/cpu.cfs_period_us": "100000\n"}, 0.5),
        (
            "4:cpuacct,cpu:/\n",
            {"cpuacct,cpu/cpu.cfs_quota_us": "100000\n", "cpuacct,cpu/cpu.cfs_period_us": "100000\n"},
            1.0,
        ),
        ("4:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ("7:memory:/\n", {}, None),
    ],
)
def test_cgroup_quota(tmp_path, membership, files, quota):
    write(tmp_path / "membership", membership)
    for name, text in files.items():
        write(tmp_path / "cgroup" / name, text)
    assert cgroup_quota(tmp_path / "cgroup", tmp_path / "membership") == quota


def test_no_cgroups_no_quota(tmp_path):
    assert cgroup_quota(tmp_path, tmp_path / "missing") is None


def test_a_quota_limits_the_cores(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(8)), raising=False)
    for quota, cores in ((None, 8), (0.5, 1), (1.5, 2), (2.0, 2), (100.0, 8)):
        monkeypatch.setattr("loopwright.target.host.cgroup_quota", lambda quota=quota: quota)
        assert available_cores() == cores


def test_caches_from_the_kernel(tmp_path):
    rows = [(1, "Data", "48K"), (1, "Instruction", "32K"), (2, "Unified", "2M"), (3, "Unified", "307200K")]
    for index, (level, kind, size) in enumerate(rows):
        for name, text in (("level", level), ("type", kind), ("size", size), ("coherency_line_size", 64)):
            write(tmp_path / f"index{index}" / name, f"{text}\n")
    assert _sys_caches(tmp_path) == Caches(48 << 10, 2 << 20, 300 << 20, 64)


def test_no_caches_described(tmp_path):
    assert _sys_caches(tmp_path) is None


def test_the_kernels_flags_are_spelled_as_llvm_spells_them():
    known = set(detect_host().features)
    found = _system_features()
    for name in ("avx2", "fma", "avx512f", "avx512bf16", "neon", "fullfp16"):
        if name in known:
            assert found.get(name, False) == detect_host().features[name], name


def test_what_the_kernel_knows_completes_what_llvm_says():
    """On AArch64 LLVM leaves out dot products and float16: it takes them from the CPU's name, as we cannot."""
    found = detect_host().features
    assert all([name in found for name in known_features()])
