"""Reading models: the front end is that of the file's ending, or the one named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopwright.cli.model_files import FORMATS, read_model
from loopwright.compat.tvmc.model import TVMCException, TVMCImportError, TVMCModel
from loopwright.runtime.errors import LoopwrightError


def get_frontend_names() -> list[str]:
    """The formats that are read."""
    return list(FORMATS)


def load_model(
    path: str,
    model_format: str | None = None,
    shape_dict: Mapping[str, Sequence[int | str]] | None = None,
    **kwargs: object,
) -> TVMCModel:
    """The model in the file; sizes of `shape_dict` that are not positive are open."""
    if kwargs:
        raise TVMCException(f"load: the front ends take no argument {', '.join(kwargs)}")
    try:
        found = read_model(str(path), model_format, shape_dict)
    except ImportError as error:
        raise TVMCImportError(str(error)) from error
    except (LoopwrightError, OSError) as error:
        raise TVMCException(str(error)) from error
    model = TVMCModel(found.mod, found.params)
    model.output_names = found.output_names
    return model
