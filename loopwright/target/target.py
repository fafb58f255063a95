"""Target: what to compile for, in the user's words.

    Target("llvm")                                                    this machine
    Target("llvm -mcpu=core-avx2 -mattr=+avx512f,+fma -num-cores=4")
    Target({"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "neoverse-n1"})
    Target("nvidia/nvidia-h100", host="llvm")                         a tag, and who launches the kernels

    with Target("llvm"): ...                                          Target.current() inside
    describe(Target("llvm")).vector_bits                              what it means for this machine: see cpu.py

A target is immutable and compares by its content, so that it can key a dict; `Target(str(target)) == target`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType, TracebackType
from typing import Any, TypeAlias

from loopwright.runtime.errors import NotBuilt
from loopwright.runtime.json_text import NestedTooDeep, read_json
from loopwright.runtime.shown import view
from loopwright.target import canonical
from loopwright.target.architectures import architecture_with_cpu
from loopwright.target.cpu import CpuDescription, describe_cpu
from loopwright.target.errors import (
    BadTargetAttribute,
    BadTargetText,
    NoCurrentTarget,
    UnknownTargetAttribute,
)
from loopwright.target.features import TargetFeatures
from loopwright.target.kinds import TargetKind, ValueType, list_kinds, unknown_kind
from loopwright.target.tags import TAGS, list_tags
from loopwright.target.text import first_word, join_text, split_text

# The targets entered by `with`, innermost last; a context variable, so that threads and tasks each have their own.
_entered: ContextVar[tuple[Target, ...]] = ContextVar("loopwright_targets", default=())

_WORDS = {str: "a text", int: "an integer", bool: "yes or no (1 or 0)", list: "a list of texts"}
_TRUE, _FALSE = ("1", "true", "True", "yes"), ("0", "false", "False", "no")


class Target:
    """What to compile for: a kind, its attributes, and optionally the host that launches the code."""

    __slots__ = ("_hash", "_text", "attrs", "host", "keys", "kind", "tag")

    kind: TargetKind
    keys: tuple[str, ...]  # what rules and operators dispatch on, most specific first
    attrs: Mapping[str, object]  # the options given, and the kind's defaults
    host: Target | None
    tag: str

    def __init__(
        self, target: TargetLike, host: TargetLike | None = None
    ) -> None:
        options = _read(target)
        kind = TargetKind(_expect(options.pop("kind"), str, "any", "kind"))
        own_host = options.pop("host", None)
        attrs = {name: _value(str(kind), name, value, kind.attributes) for name, value in options.items()}
        self.kind = kind
        self.tag = str(attrs.pop("tag", ""))
        given_keys = attrs.pop("keys", None)
        device = attrs.get("device")
        keys = [*(given_keys if isinstance(given_keys, list) else ()), *([str(device)] if device else ())]
        if str(attrs.get("mcpu", "")).startswith("cortex-m") and not device:
            keys.append("arm_cpu")  # whose operators the small cores have
        self.keys = tuple(dict.fromkeys(keys if given_keys is not None else [*keys, *kind.default_keys]))
        self.attrs = MappingProxyType({**kind.defaults, **attrs})
        chosen_host = host if host is not None else own_host
        self.host = None if chosen_host is None else as_target(chosen_host)  # type: ignore[arg-type]  # checked inside
        self._text = self._written()
        self._hash = hash(self._text)

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """The target of the innermost `with` that is open; without one, None or an error."""
        entered = _entered.get()
        if not entered and not allow_none:
            raise NoCurrentTarget
        return entered[-1] if entered else None

    @staticmethod
    def list_kinds() -> list[str]:
        """The names of all target kinds."""
        return list_kinds()

    @staticmethod
    def from_device(device: Any) -> Target:
        """The target that describes a device of this machine: `Target.from_device("cpu")`, `from_device(cpu(0))`."""
        from loopwright.runtime.devices import CPU, CUDA, Device  # loads tvm_ffi

        result = device if isinstance(device, Device) else Device(device)
        result.require("Target.from_device")
        if result.device_type == CUDA:
            return Target(
                {
                    "kind": "cuda",
                    "arch": f"sm_{str(result.compute_version).replace('.', '')}",
                    "max_threads_per_block": result.max_threads_per_block,
                    "max_shared_memory_per_block": result.max_shared_memory_per_block,
                    "thread_warp_size": result.warp_size,
                    "registers_per_block": result.max_registers_per_block,
                    "l2_cache_size_bytes": result.l2_cache_size_bytes,
                }
            )
        if result.device_type != CPU:
            raise NotBuilt(f"Target.from_device for {result}", 'write the target, as in Target("cuda -arch=sm_80")')
        return Target("llvm")  # which means this machine, down to its features

    @staticmethod
    def list_tags() -> list[str]:
        """The names of all tags."""
        return list_tags()

    @staticmethod
    def canon_target(target: TargetLike | None) -> Target | None:
        """The target itself; None stays None."""
        return None if target is None else as_target(target)

    @staticmethod
    def canon_target_and_host(target: Any, target_host: Any = None) -> tuple[Target | None, Target | None]:
        """The target, which knows its host, and the host."""
        return canonical.target_and_host(Target, target, target_host)

    @staticmethod
    def canon_multi_target(multi_targets: Any) -> list[Target] | None:
        """The targets of a map by device, a list, or one alone."""
        return None if multi_targets is None else canonical.several(Target, multi_targets)

    @staticmethod
    def canon_multi_target_and_host(target: Any, target_host: Any = None) -> list[Target]:
        """The targets of a map by device, a list, or one alone; each knows the host."""
        return canonical.several(Target, target, target_host)

    @staticmethod
    def canon_target_map_and_host(target_map: Any, target_host: Any = None) -> tuple[dict[Target, Any], Target | None]:
        """What belongs to each target, by targets that know the host, and the host."""
        return canonical.map_and_host(Target, target_map, target_host)

    def with_host(self, host: TargetLike) -> Target:
        """The same target with another host."""
        return Target(self, host=host)

    def export(self) -> dict[str, object]:
        """The target as a plain dict, ready for JSON; `Target(target.export()) == target`."""
        attrs = {name: _exported(value) if isinstance(value, list) else value for name, value in self.attrs.items()}
        exported: dict[str, object] = {"kind": str(self.kind), "tag": self.tag, "keys": list(self.keys), **attrs}
        if self.host is not None:
            exported["host"] = self.host.export()
        return exported

    def get_kind_attr(self, name: str) -> object:
        """A fact about the kind itself: `default_keys`, `device_type`; None for one that kinds do not have."""
        return getattr(self.kind, name, None) if name in ("default_keys", "device_type", "attributes") else None

    def get_target_device_type(self) -> int:
        """DLPack's code of the device this target runs on."""
        return self.kind.device_type

    @property
    def mcpu(self) -> str:
        """The CPU's name, or the empty text."""
        return str(self.attrs.get("mcpu", ""))

    @property
    def mattr(self) -> list[str]:
        """The instruction features switched on (`+name`) and off (`-name`)."""
        return self._texts("mattr")

    @property
    def libs(self) -> list[str]:
        """Libraries that may be called."""
        return self._texts("libs")

    @property
    def arch(self) -> str:
        """The GPU architecture, several of them separated by commas, or the empty text."""
        return str(self.attrs.get("arch", ""))

    @property
    def model(self) -> str:
        """The board's name, `unknown` unless given."""
        return str(self.attrs.get("model", "unknown"))

    @property
    def device_name(self) -> str:
        """What `-device` says, or the empty text."""
        return str(self.attrs.get("device", ""))

    @property
    def features(self) -> TargetFeatures:
        """What the processor can do: `target.features.has_dotprod`; of a device target, that of its host.

        A CPU that is named without a triple is asked about as what it is, also where this machine is another.
        """
        home = architecture_with_cpu(self.mcpu) if self.mcpu and "mtriple" not in self.attrs else None
        return TargetFeatures(describe(self if home is None else Target({**self.export(), "mtriple": home[1]})))

    @property
    def max_num_threads(self) -> int:
        """The most threads of a block; 1 on processors without blocks."""
        return self._number("max_num_threads", 1)

    @property
    def max_block_size_x(self) -> int:
        """The most threads of a block along x."""
        return self._number("max_block_size_x", self.max_num_threads)

    @property
    def max_block_size_y(self) -> int:
        """The most threads of a block along y."""
        return self._number("max_block_size_y", self.max_num_threads)

    @property
    def thread_warp_size(self) -> int:
        """How many threads run in lockstep."""
        return self._number("thread_warp_size", 1)

    @property
    def max_shared_memory_per_block(self) -> int:
        """Bytes of memory that the threads of a block share."""
        return self._number("max_shared_memory_per_block", 0)

    @property
    def max_function_args(self) -> int:
        """The most arguments a kernel takes; -1 without a limit."""
        return self._number("max_function_args", -1)

    @property
    def l2_cache_size_bytes(self) -> int:
        """The size of the second-level cache; 0 where it was not given."""
        return self._number("l2_cache_size_bytes", 0)

    @property
    def vtcm_capacity(self) -> int:
        """Bytes of Hexagon's tightly coupled memory."""
        return self._number("vtcm-capacity", 0)

    @property
    def supports_integer_dot_product(self) -> bool:
        """Whether it was said to have dot products of 8-bit integers."""
        said = self.attrs.get("supports_integer_dot_product")
        archs = [one.partition("_")[2].rstrip("af") for one in self.arch.split(",")]
        return bool(said) if said is not None else all([arch.isdecimal() and int(arch) >= 61 for arch in archs])

    def _number(self, name: str, otherwise: int) -> int:
        value = self.attrs.get(name)
        return value if isinstance(value, int) else otherwise

    def _texts(self, name: str) -> list[str]:
        value = self.attrs.get(name, [])
        return list(value) if isinstance(value, list) else []

    def __str__(self) -> str:
        return self._text

    def _written(self) -> str:
        options: dict[str, object] = {"keys": list(self.keys)} if self.keys else {}
        options.update(self.attrs)
        if self.tag:
            options["tag"] = self.tag
        if self.host is not None:
            options["host"] = str(self.host)
        return join_text(str(self.kind), options)

    def __repr__(self) -> str:
        return f"Target({str(self)!r})"

    def show(self, style: str | None = None) -> None:
        """Show what was said, and what it means for compiled code."""
        view("target", self).show(style)

    def _repr_html_(self) -> str:
        html: str = view("target", self).html()
        return html

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and (self is other or self._text == other._text)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Target], tuple[dict[str, object]]]:
        return Target, (self.export(),)

    def __enter__(self) -> Target:
        _entered.set((*_entered.get(), self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _entered.set(_entered.get()[:-1])


TargetLike: TypeAlias = str | Mapping[str, object] | Target  # what a target is made of


def as_target(spec: TargetLike) -> Target:
    """`spec` as a target; a target comes back as the same object."""
    return spec if isinstance(spec, Target) else Target(spec)


def describe(target: Target | CpuDescription | str) -> CpuDescription:
    """The CPU that `target` (or, for a device target, its host) means; `llvm` without `-mcpu` means this machine."""
    if isinstance(target, CpuDescription):
        return target
    chosen = Target(target) if isinstance(target, str) else target
    if "cpu" not in chosen.kind.default_keys:  # a device: the question is about the CPU that launches its kernels
        return host_description() if chosen.host is None else describe(chosen.host)
    return describe_cpu(chosen)


def host_description() -> CpuDescription:
    """This machine."""
    return describe_cpu(Target("llvm"))


def _read(spec: object) -> dict[str, object]:
    """The options of `spec`, `kind` among them, values not yet checked."""
    if isinstance(spec, Target):
        options = spec.export()
        return options if spec.tag else {name: value for name, value in options.items() if name != "tag"}
    if isinstance(spec, Mapping):
        return _expand_tag(dict(spec), spec)
    if not isinstance(spec, str):
        raise BadTargetText(spec, f"a target is text, a dict or a Target, not {type(spec).__name__}")
    if spec.lstrip().startswith("{"):
        try:
            loaded = read_json(spec)
        except NestedTooDeep as error:
            raise BadTargetText(spec[:40] + "…", error.problem) from None
        except ValueError as error:
            raise BadTargetText(spec, f"the JSON does not parse ({error})") from None
        return _expand_tag(loaded, spec)
    name = first_word(spec)
    if name in TAGS:
        if spec.strip() != name:
            raise BadTargetText(spec, f"{name} is a tag, and a tag stands alone")
        return {**TAGS[name], "tag": name}
    if name not in list_kinds():
        raise unknown_kind(name, TAGS if "/" in name else ())
    return {"kind": name, **split_text(spec, TargetKind(name).attributes)}


def _expand_tag(options: dict[str, object], spec: object) -> dict[str, object]:
    if "kind" in options:
        return options
    tag = options.get("tag")
    if not isinstance(tag, str) or tag not in TAGS:
        raise BadTargetText(spec, 'it has no "kind"')
    return {**TAGS[tag], **options}


def _value(kind: str, name: str, value: object, attributes: Mapping[str, ValueType]) -> object:
    """`value` checked against, and turned into, the type attribute `name` has."""
    wanted = attributes.get(name)
    if wanted is None:
        raise UnknownTargetAttribute(kind, name, attributes)
    if isinstance(value, str) and wanted is int:
        try:
            value = int(value)
        except ValueError:
            raise BadTargetAttribute(kind, name, value, _WORDS[int]) from None
    elif isinstance(value, str) and wanted is bool and value in _TRUE + _FALSE:
        value = value in _TRUE
    elif wanted is bool and type(value) is int and value in (0, 1):
        value = bool(value)
    elif name == "devices" and isinstance(value, (list, tuple)):
        return [as_target(item) for item in value]
    elif name == "arch" and isinstance(value, (list, tuple)):
        value = ",".join([_expect(item, str, kind, name) for item in value])
    elif wanted is list and isinstance(value, (list, tuple)):
        value = [_expect(item, str, kind, name) for item in value]
    checked = _expect(value, wanted, kind, name)
    if name == "mattr":
        for feature in checked:
            if feature[:1] not in "+-" or len(feature) < 2:
                raise BadTargetAttribute(kind, name, value, "a list of features, each with + or - before its name")
    if name in ("num-cores", "vector-width") and checked < 1:
        raise BadTargetAttribute(kind, name, value, "a positive integer")
    return checked


def _exported(items: list[object]) -> list[object]:
    return [str(item) if isinstance(item, Target) else item for item in items]


def _expect(value: object, wanted: ValueType, kind: str, name: str):  # type: ignore[no-untyped-def]
    # bool is a subclass of int, but `-num-cores` alone (which reads as True) is a mistake.
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise BadTargetAttribute(kind, name, value, _WORDS[wanted])
    return value
