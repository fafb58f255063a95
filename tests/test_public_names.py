"""Every name that a package offers can be had from it, though most are imported only then."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import loopwright

PARTS = [f"loopwright.{part.name}" for part in pkgutil.iter_modules(loopwright.__path__) if part.ispkg]
NESTED = [f"loopwright.{name}" for name in ("frontends.onnx", "frontends.pytorch", "relay.transform", "topi.nn")]


@pytest.mark.parametrize("package", ["loopwright", *PARTS, *NESTED])
def test_what_is_offered_is_there(package):
    module = importlib.import_module(package)
    for name in getattr(module, "__all__", ()):
        assert getattr(module, name) is not None
