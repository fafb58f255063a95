"""Config files: the options of a command as JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from loopwright.compat.tvmc.model import TVMCException

CONFIGS_JSON_DIR: str | None = None  # the folder that was found, or that a program chose


def get_configs_json_dir() -> str:
    """The folder of config files: that of TVM_CONFIGS_JSON_DIR, or `configs` in the working directory."""
    global CONFIGS_JSON_DIR
    if CONFIGS_JSON_DIR is None:
        candidates = [os.environ.get("TVM_CONFIGS_JSON_DIR"), "configs"]
        CONFIGS_JSON_DIR = next((one for one in candidates if one and Path(one).is_dir()), None)
    if CONFIGS_JSON_DIR is None:
        raise TVMCException("there is no folder of config files: set TVM_CONFIGS_JSON_DIR")
    return CONFIGS_JSON_DIR


def convert_config_json_to_cli(json_params: dict[str, Any]) -> list[dict[str, Any]]:
    """The options of a config file, one mapping each, under the names that the command line gives them."""
    result: list[dict[str, Any]] = []
    for key, value in json_params.items():
        name = key.replace("-", "_")
        if key == "targets":
            kinds = []
            for target in value:
                kinds.append(target["kind"])
                options = [(option, text) for option, text in target.items() if option != "kind"]
                result += [{f"target_{target['kind']}_{option}": text} for option, text in options]
            result.append({"target": ", ".join(kinds)})
        elif key in ("executor", "runtime"):
            result.append({name: value["kind"]})
            for option, text in value.items():
                if option != "kind":
                    result.append({f"{name}_{value['kind']}_{option.replace('-', '_')}": text})
        elif isinstance(value, dict):
            result.append({name: [f"{option}={text}" for option, text in value.items()]})
        else:
            result.append({name: value})
    return result


def read_and_convert_json_into_dict(config_args: Any) -> list[dict[str, Any]]:
    """The options of the file that `config_args.config` names, a path or a name in the folder of config files."""
    name = config_args.config if config_args.config.endswith(".json") else f"{config_args.config}.json"
    path = Path(name) if Path(name).is_file() else Path(get_configs_json_dir()) / name
    try:
        return convert_config_json_to_cli(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise TVMCException(f"the config file {path} cannot be read: {error}") from None
