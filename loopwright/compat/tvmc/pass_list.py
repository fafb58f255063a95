"""Names of passes in one text, separated by commas."""

from __future__ import annotations

import argparse

from loopwright.cli.compiled_model import BadOption, read_disabled_passes


def parse_pass_list_str(input_string: str) -> list[str]:
    """The passes, each of which exists; no text names one pass without a name."""
    names = input_string.split(",")
    unknown = []
    for name in names:
        try:
            read_disabled_passes(name)
        except BadOption:
            unknown.append(name.strip())
    if unknown:
        raise argparse.ArgumentTypeError(
            f"there are no passes {', '.join(unknown)} (in {input_string!r}); see loopwright compile --help"
        )
    return [name.strip() for name in names]
