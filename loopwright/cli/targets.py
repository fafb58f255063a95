"""targets: what can be compiled for, and what one target means: `loopwright targets`, `loopwright targets TARGET`."""

from __future__ import annotations

import json
from dataclasses import asdict

from loopwright.display.sheet import Lines, Sheet, Span, Table, heading
from loopwright.target import Target, TargetKind, describe, describe_gpu, list_kinds, list_tags
from loopwright.target.availability import BUILDABLE
from loopwright.target.target_sheet import known_cpu, known_gpu, target_sheet, unit_words


def listing(as_json: bool) -> str:
    """Every kind of target, with whether this version builds for it, and every tag."""
    kinds = [{"kind": name, "builds": name in BUILDABLE, "keys": _keys(name)} for name in list_kinds()]
    if as_json:
        return json.dumps({"kinds": kinds, "tags": list_tags()}, indent=2)
    names = list_kinds()
    rows = [(name, "yes" if name in BUILDABLE else "not yet", ", ".join(_keys(name))) for name in names]
    tones = tuple(["" if name in BUILDABLE else "faint" for name in names])
    tags = Lines(tuple([(Span(f"  {tag}"),) for tag in list_tags()]))
    table = Table(("kind", "builds", "keys"), tuple(rows), tones)
    return Sheet(heading("Kinds"), table, heading("Tags"), tags).for_screen()


def page(text: str, as_json: bool) -> str:
    """What a target says and means; a processor that is not known is refused, as it is by a build."""
    target = Target(text)
    if "cpu" in target.kind.default_keys:
        describe(target)
    if str(target.kind) == "cuda":
        describe_gpu(target)
    if not as_json:
        return target_sheet(target).for_screen()
    data = {
        "target": str(target),
        "kind": str(target.kind),
        "tag": target.tag or None,
        "keys": list(target.keys),
        "attributes": dict(target.attrs),
        "host": None if target.host is None else str(target.host),
        "builds": str(target.kind) in BUILDABLE,
        "means": _cpu(target) or _gpu(target),
    }
    return json.dumps(data, indent=2)


def _gpu(target: Target) -> dict[str, object] | None:
    gpu = known_gpu(target)
    return None if gpu is None else asdict(gpu)


def _cpu(target: Target) -> dict[str, object] | None:
    cpu = known_cpu(target)
    if cpu is None:
        return None
    return {
        "cpu": cpu.name,
        "triple": cpu.triple,
        "this_machine": cpu.is_host,
        "vector_bits": cpu.vector_bits,
        "registers": cpu.registers,
        "cores": cpu.num_cores,
        "caches": cpu.cache_sizes._asdict(),
        "units": unit_words(cpu),
    }


def _keys(kind: str) -> list[str]:
    return list(TargetKind(kind).default_keys)
