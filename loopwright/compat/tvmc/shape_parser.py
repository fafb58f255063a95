"""Shapes of inputs as the command line writes them: `"x:[1,3,224,224] mask:[1,-1]"`."""

from __future__ import annotations

import argparse
from typing import Any

from loopwright.cli.model_files import BadShapes, read_shapes
from loopwright.relay import Any as AnySize


def parse_shape_string(inputs_string: str) -> dict[str, list[Any]]:
    """The shape of each input by name; sizes that are not positive are `relay.Any()`."""
    try:
        shapes = read_shapes(inputs_string)
    except BadShapes as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not shapes:
        raise argparse.ArgumentTypeError(f"{inputs_string!r} holds no shapes: write \"x:[1,3,224,224] y:[1,-1]\"")
    return {name: [AnySize() if size == -1 else size for size in shape] for name, shape in shapes.items()}
