"""Names of C functions, variables and constants of generated code, as scripts make them.

    to_c_function_style(prefix_generated_name(["model", "run"]))        TVMGenModelRun
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from loopwright.runtime.errors import LoopwrightError


class BadName(LoopwrightError, ValueError):
    """A name for C cannot be made of what was given.

    For example:

        from loopwright.compat.name_transforms import to_c_function_style

        to_c_function_style("run")
    """

    code = "LW0059"


def _checked(name: str, what: str) -> str:
    if not name:
        raise BadName(f"{what} name is empty")
    if not name.startswith("TVM"):
        raise BadName(f"{what} not TVM prefixed: {name!r}", hint="prefix_name(name) does that")
    return name


def to_c_function_style(original_name: str) -> str:
    """`TVM_my_name` as `TVMMyName`."""
    first, *rest = _checked(original_name, "Function").split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def to_c_variable_style(original_name: str) -> str:
    """`TVM_my_Name` as `tvm_my_name`."""
    return _checked(original_name, "Variable").lower()


def to_c_constant_style(original_name: str) -> str:
    """`TVM_my_Name` as `TVM_MY_NAME`."""
    return _checked(original_name, "Constant").upper()


def combine_names(names: Sequence[str] | str) -> str:
    """The parts of a name, joined."""
    if isinstance(names, str):
        if not names:
            raise BadName("Name is empty")
        return names
    parts = [str(name) for name in names]
    if not parts:
        raise BadName("Name segments empty")
    if not all(parts):
        raise BadName("Name segment is empty")
    return "_".join(parts)


def prefix_name(names: Sequence[str] | str) -> str:
    """A name of the runtime: `TVM_…`."""
    return f"TVM_{combine_names(names)}"


def prefix_generated_name(names: Sequence[str] | str) -> str:
    """A name of generated code: `TVMGen_…`."""
    return f"TVMGen_{combine_names(names)}"


def sanitize_name(original_name: str) -> str:
    """The name with `_` in place of what C does not allow."""
    if not original_name:
        raise BadName("Name is empty")
    return re.sub(r"[^0-9A-Za-z_]", "_", original_name)


def mangle_module_name(mod_name: str | None) -> str:
    """The prefix of the functions of a module: `tvmgen_…`."""
    if not mod_name:
        return "tvmgen"
    if not re.fullmatch(r"[0-9A-Za-z_]+", mod_name):
        raise BadName(f"{mod_name!r} is no name for C functions", hint="use letters, digits and _")
    return f"tvmgen_{mod_name}"
