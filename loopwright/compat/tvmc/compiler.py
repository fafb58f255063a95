"""Compiling a model to a package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loopwright.cli.compile import Output, compile_to_files
from loopwright.cli.compiled_model import Options
from loopwright.compat.tvmc.model import TVMCException, TVMCModel, TVMCPackage
from loopwright.compat.tvmc.pass_config import parse_configs
from loopwright.compat.tvmc.target import target_from_cli
from loopwright.compat.tvmc.transform import convert_layouts, convert_precision


def compile_model(
    tvmc_model: TVMCModel,
    target: str,
    opt_level: int = 3,
    executor: object = None,
    runtime: object = None,
    tuning_records: str | None = None,
    package_path: str | None = None,
    cross: str | None = None,
    cross_options: str | None = None,
    output_format: str = "so",
    dump_code: Sequence[str] | str | None = None,
    dump_offloads: str = "",
    target_host: str | None = None,
    disabled_pass: Sequence[str] | None = None,
    pass_context_configs: Sequence[str] | None = None,
    additional_target_options: Mapping[str, Mapping[str, Any]] | None = None,
    use_vm: bool = False,
    mod_name: str = "default",
    workspace_pools: object = None,
    print_pass_times: bool = False,
    instruments: object = None,
    desired_layout: str | Sequence[str] | None = None,
    desired_layout_ops: Sequence[str] | None = None,
    mixed_precision: bool = False,
    mixed_precision_ops: Sequence[str] | None = None,
    mixed_precision_calculation_type: str | None = None,
    mixed_precision_acc_type: str | None = None,
) -> TVMCPackage:
    """A package of native code for the target. Models of open sizes need no virtual machine: `use_vm` says nothing."""
    if output_format not in ("so", "tar"):
        raise TVMCException(f"the output format {output_format!r} is not built; there are so and tar")
    for name, value in (("dump_offloads", dump_offloads), ("workspace_pools", workspace_pools)):
        if value:
            raise TVMCException(f"{name} is not built: there are no external code generators and no micro targets")
    chosen, extras = target_from_cli(target, additional_target_options)
    if extras:
        raise TVMCException(f"the code generator {extras[0]['name']} is not built")
    mod = convert_layouts(tvmc_model.mod, desired_layout, desired_layout_ops)
    if mixed_precision:
        types = mixed_precision_calculation_type or "float16", mixed_precision_acc_type or "float16"
        mod = convert_precision(mod, mixed_precision_ops, *types)
    path = str(package_path or tvmc_model.default_package_path())
    dumps = dump_code.split(",") if isinstance(dump_code, str) else list(dump_code or ())
    options = Options(
        target=str(chosen),
        opt_level=opt_level,
        name=mod_name,
        config=parse_configs(pass_context_configs),
        disabled_pass=[name for name in disabled_pass or () if name],
    )
    output = Output(
        path,
        "tar",
        library=output_format,
        dumps=[kind for kind in dumps if kind],
        cross_compiler=cross or None,
        cross_options=(cross_options or "").split(),
    )
    read = tvmc_model.read()
    model = read if mod is read.mod else _with_graph(tvmc_model, mod)
    written = compile_to_files(model, options, output, 0.0)
    if print_pass_times:
        print(written.pass_times)
    return TVMCPackage(path)


def _with_graph(tvmc_model: TVMCModel, mod: Any) -> Any:
    changed = TVMCModel(mod, tvmc_model.params)
    changed.output_names = tvmc_model.output_names
    return changed.read()


def save_dumps(module_name: str, dumps: Mapping[str, str], dump_root: str = ".") -> None:
    """Write each text into a file that is named for the module and the kind of text."""
    for kind, text in dumps.items():
        (Path(str(dump_root)) / f"{module_name}.{kind}").write_text(text, encoding="utf-8")
