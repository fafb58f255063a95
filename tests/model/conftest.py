"""These tests compile the same few kernels again and again: they come from a cache of this run."""

from __future__ import annotations

import pytest

from tests.compile_caching import switch_on


@pytest.fixture(scope="session")
def kernel_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture(scope="module", autouse=True)
def kernels_are_kept(kernel_folder):
    with pytest.MonkeyPatch.context() as patch:
        switch_on(patch, kernel_folder)
        yield
