"""Targets as the command line writes them.

    "llvm -mcpu=skylake"                        one target
    "cmsis-nn -opt=1, c -mcpu=cortex-m55"       external code generators, then the target, then perhaps its host
    {"kind": "llvm"}, target.json               the same as JSON, or in a file

`--target-KIND-OPTION=VALUE` gives one option of a target.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from loopwright.compat.tvmc.model import TVMCException
from loopwright.runtime.errors import LoopwrightError
from loopwright.target import Target
from loopwright.target.kinds import TargetKind

# What partitions a graph for an accelerator, and compiles its part itself. None of them is built.
CODEGENS: Final = ("compute-library", "cmsis-nn", "ethos-n", "ethos-u", "bnns", "vitis-ai", "clml")
_TOKEN: Final = re.compile(r"""(?:[^\s,"']|"[^"]*"|'[^']*')(?:[^\s"',]|,(?=\S)|"[^"]*"|'[^']*')*|,""")
_WRITTEN: Final[dict[type[Any], type[Any]]] = {bool: int, int: int, str: str, list: str}


def tokenize_target(target: str) -> list[str]:
    """The words of the text; a comma before a space separates targets, and quotes hold a word together."""
    tokens: list[str] = []
    for token in _TOKEN.findall(target):
        if not token.startswith("-") and token != "," and "," in token and not token.startswith(("'", '"')):
            for index, part in enumerate(token.split(",")):
                tokens += [part] if index == 0 else [",", part]
        else:
            tokens.append(token)
    return tokens


def parse_target(target: str) -> list[dict[str, Any]]:
    """Each target of the text: its name, its options, its text, and whether it is a compiler's."""
    known = {*map(str, Target.list_kinds()), *CODEGENS}
    parts: list[list[str]] = [[]]
    for token in tokenize_target(target):
        if token == ",":
            parts.append([])
        else:
            parts[-1].append(token.strip(","))
            if token.endswith(","):
                parts.append([])
    result: list[dict[str, Any]] = []
    for words in parts:
        if not words or (words[0] not in known and not words[0].startswith("-")):
            why = f"{' '.join(words)!r} is no target"
            raise TVMCException(f"Error parsing target string '{target}'.\nThe error was: {why}")
        name = words[0]
        if any(one["name"] == name for one in result):
            raise TVMCException(f"Duplicate target definition: {name}")
        opts = dict(_option(word, target) for word in words[1:])
        is_compiler = name not in CODEGENS
        result.append({"name": name, "opts": opts, "raw": " ".join(words), "is_tvm_target": is_compiler})
    return result


def _option(word: str, target: str) -> tuple[str, Any]:
    name, equals, value = word.partition("=")
    if not name.startswith("-") or (not equals and not name.startswith("--")):
        raise TVMCException(f"Error parsing target string '{target}'.\nThe error was: {word!r} is no option")
    return name.lstrip("-"), value.strip("'\"") if equals else True


def validate_targets(
    targets: Sequence[Mapping[str, Any]], additional_target_options: Mapping[str, Mapping[str, Any]] | None = None
) -> None:
    """Refuse what cannot be compiled: two hosts, a last target that is no compiler's, options of another target."""
    compilers = [one for one in targets if one["is_tvm_target"]]
    if len(compilers) > 2:
        names = ", ".join(one["name"] for one in compilers)
        raise TVMCException(f"Only two of the following targets can be used at a time. Found: {names}")
    if not targets or not targets[-1]["is_tvm_target"]:
        names = "', '".join(one["name"] for one in targets)
        raise TVMCException(f"The last target needs to be a TVM target. Found: '{names}'")
    for name, options in (additional_target_options or {}).items():
        if options and not any(one["name"] == name for one in targets):
            first = next(iter(options))
            raise TVMCException(f"Passed --target-{name}-{first} but did not specify {name} target")


def target_from_cli(
    target: str, additional_target_options: Mapping[str, Mapping[str, Any]] | None = None
) -> tuple[Target, list[dict[str, Any]]]:
    """The compiler's target, with its host, and the external code generators before it."""
    if not target:
        raise TVMCException("A target is needed: llvm, for one")
    text = target.strip()
    if text.endswith(".json") and Path(text).is_file():
        text = Path(text).read_text(encoding="utf-8").strip()
    try:
        if text.startswith("{"):
            return Target(json.loads(text)), []
        targets = parse_target(text)
        validate_targets(targets, additional_target_options)
        chosen = [_with_options(one, additional_target_options) for one in targets if one["is_tvm_target"]]
        extras = [
            {**one, "opts": {**one["opts"], **(additional_target_options or {}).get(one["name"], {})}}
            for one in targets
            if not one["is_tvm_target"]
        ]
        return (chosen[0] if len(chosen) == 1 else chosen[0].with_host(chosen[1])), extras
    except (LoopwrightError, ValueError) as error:
        raise TVMCException(f"Error parsing target string '{target}'.\nThe error was: {error}") from error


def _with_options(one: Mapping[str, Any], additional: Mapping[str, Mapping[str, Any]] | None) -> Target:
    words = [f"-{name}={value}" for name, value in (additional or {}).get(one["name"], {}).items()]
    return Target(" ".join([one["raw"], *words]))


# --- options of the parser --------------------------------------------------------------------------------------------


def generate_target_args(parser: argparse.ArgumentParser) -> None:
    """Add `--target` and an option for each attribute of each kind of target."""
    parser.add_argument("--target", help="what to compile for: a target, a list of targets, JSON, or a JSON file")
    for kind in map(str, Target.list_kinds()):
        group = parser.add_argument_group(f"target {kind}")
        for name, wanted in TargetKind(kind).attributes.items():
            group.add_argument(f"--target-{kind}-{name}", type=_WRITTEN[wanted], help=f"{name} of the target {kind}")


def reconstruct_target_args(args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """The options that were given, by the kind of target."""
    result: dict[str, dict[str, Any]] = {}
    for kind in map(str, Target.list_kinds()):
        for name in TargetKind(kind).attributes:
            value = getattr(args, f"target_{kind}_{name}".replace("-", "_"), None)
            if value is not None:
                result.setdefault(kind, {})[name] = value
    return result
