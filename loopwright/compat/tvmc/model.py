"""The classes of `tvmc`: a model as a graph, a package in a file, the result of a run."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from loopwright.cli.interface import Interface
from loopwright.cli.model_files import ReadModel
from loopwright.cli.package import LoadedPackage, load_package
from loopwright.ir import load_json, save_json
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.params import load_param_dict, save_param_dict
from loopwright.runtime.timing import BenchmarkResult


class TVMCException(Exception):
    """An argument of tvmc that cannot be meant; the text says why."""


class TVMCImportError(TVMCException):
    """A model needs a package that is not installed."""


class TVMCModel:
    """A graph with its weights, and where it came from."""

    def __init__(
        self, mod: Any = None, params: Mapping[str, Any] | None = None, model_path: str | None = None
    ) -> None:
        if (mod is None or params is None) and model_path is None:
            raise TVMCException("Either mod and params must be provided or a path to a saved TVMCModel")
        self._folder = tempfile.TemporaryDirectory(prefix="tvmc-")
        self.output_names: tuple[str, ...] = ()
        self.mod, self.params = mod, dict(params or {})
        if model_path is not None:
            self.load(model_path)

    def read(self) -> ReadModel:
        """As the commands have it."""
        return ReadModel("model", "relay", self.mod, self.params, self.output_names)

    def save(self, model_path: str) -> None:
        """Write the graph and its weights into one archive."""
        parts = {"model.json": save_json(self.mod).encode(), "model.params": bytes(save_param_dict(self.params))}
        with tarfile.open(model_path, "w") as archive:
            for name, content in parts.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, BytesIO(content))

    def load(self, model_path: str) -> None:
        """Read what `save` wrote."""
        try:
            with tarfile.open(model_path) as archive:
                streams = [archive.extractfile(name) for name in ("model.json", "model.params")]
                graph, params = [stream.read() for stream in streams if stream is not None]
        except (OSError, tarfile.TarError, KeyError, ValueError) as error:
            raise TVMCException(f"{model_path} is no saved TVMCModel: {error}") from None
        self.mod, self.params = load_json(graph.decode()), dict(load_param_dict(params))

    def default_tuning_records_path(self) -> str:
        return str(Path(self._folder.name) / "tuning_records")

    def default_package_path(self) -> str:
        return str(Path(self._folder.name) / "model_package.tar")

    def summary(self, file: TextIO | None = None) -> None:
        """Print the graph."""
        print(self.mod, file=file)


class TVMCPackage:
    """A compiled model in a file, loaded."""

    def __init__(self, package_path: str, project_dir: str | None = None) -> None:
        if project_dir is not None:
            raise TVMCException("Setting 'project_dir' is only allowed when importing a MLF.!")
        self.package_path = str(package_path)
        self.type, self.executor_type, self.project_dir = "classic", "graph", None
        try:
            self.loaded: LoadedPackage = load_package(self.package_path)
        except (LoopwrightError, OSError) as error:
            raise TVMCException(str(error)) from error

    @property
    def interface(self) -> Interface:
        """The inputs and outputs of the model."""
        return self.loaded.interface


class TVMCResult:
    """The outputs of a run by name, and its times."""

    def __init__(self, outputs: Mapping[str, np.ndarray] | None, times: BenchmarkResult | list[Any] | None) -> None:
        self.outputs, self.times = outputs, times

    def format_times(self) -> str:
        """A table of milliseconds."""
        return str(self.times)

    def get_output(self, name: str) -> np.ndarray:
        """One output: `output_0`, `output_1`, …"""
        assert self.outputs is not None, "the run has no outputs"
        return self.outputs[name]

    def save(self, output_path: str) -> None:
        """Write the outputs into a .npz file."""
        np.savez(output_path, **dict(self.outputs or {}))  # type: ignore[arg-type]

    def __str__(self) -> str:
        texts = [f"{name}: {array}" for name, array in (self.outputs or {}).items()]
        return "\n".join([*([self.format_times()] if self.times else []), "Output Names:", *texts])
