"""StandIn: a name of the peer's that is not built here. It can be imported and passed on; using it raises `NotBuilt`.

A script often imports more than it uses: `from tvm import autotvm, te` must not fail in a script that needs te alone.
So the error comes with the first use, and names what was used: `tvm.autotvm.template is not built yet`.
"""

from __future__ import annotations

from types import ModuleType
from typing import NoReturn

from loopwright.runtime.errors import NotBuilt

# Path of a feature, without `tvm.` → what works today instead. The longest path that fits is taken.
_INSTEAD = {
    "relay": "relay.build, relay.create_executor and the passes of relay.transform.__all__ are there",
    "relay.frontend": "a model comes in by from_onnx or from_pytorch: convert it to one of these first",
    "relax": "write the model with relay, or import it: relay.frontend.from_onnx",
    "topi": "this operator is not here yet: write it with te.compute",
    "autotvm": "meta_schedule is there, and build(…, autosched=True), which schedules by rule",
    "auto_scheduler": "meta_schedule is there, and build(…, autosched=True), which schedules by rule",
    "rpc": "there are no remote machines yet: build and run in this process",
    "micro": "build for the target and link the object yourself",
    "driver.tvmc": "tvmc.load, compile and run are there; the command line is `loopwright`: loopwright --help",
    "tir.transform": "lower(program) runs all lowering passes; transform.stages(program) gives the program after each",
}


def not_built(path: str) -> NotBuilt:
    """The error for using `path` (without `tvm.`)."""
    parts = path.split(".")
    prefixes = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    hint = next((_INSTEAD[prefix] for prefix in prefixes if prefix in _INSTEAD), None)
    return NotBuilt(f"tvm.{path}", hint)


class StandIn:
    """What a script gets for a name that is not built; attributes of it are stand-ins too."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> StandIn:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(f"{self._path}.{name}")

    def _used(self, *_: object, **__: object) -> NoReturn:
        raise not_built(self._path)

    # Everything one can do with a function, a class, a context manager or a value.
    __call__ = __getitem__ = __setitem__ = __iter__ = __len__ = __contains__ = __enter__ = _used
    __int__ = __float__ = __index__ = __bool__ = __lt__ = __le__ = __gt__ = __ge__ = __neg__ = _used
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _used

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type]:
        """A class of the script's may derive from one that is not built; making an instance of it is the use."""

        def refuse(*_: object, **__: object) -> NoReturn:
            self._used()

        return (type(self._path.rpartition(".")[2], (), {"__new__": refuse}),)

    def __exit__(self, *_: object) -> None:
        """Only here because `with` looks for it before it calls `__enter__`, which raises."""

    def __instancecheck__(self, instance: object) -> bool:
        return False  # there is no such class, so nothing is an instance of it

    def __subclasscheck__(self, subclass: type) -> bool:
        return False

    def __or__(self, other: object) -> StandIn:
        return self  # in an annotation: Function | None

    __ror__ = __or__

    def __repr__(self) -> str:
        return f"<tvm.{self._path}, which is not built>"


class StandInModule(ModuleType):
    """A module of the peer's that is not built: its names are stand-ins, its submodules are modules like it."""

    def __init__(self, path: str) -> None:
        super().__init__(f"tvm.{path}", f"tvm.{path}, which is not built.")
        self.__path__: list[str] = []  # a package, whatever it was: `import tvm.autotvm.measure` goes on from here
        self._path = path

    def __getattr__(self, name: str) -> StandIn:
        if name == "__all__":
            raise not_built(f"{self._path}.*")  # a star import has to know the names
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return StandIn(f"{self._path}.{name}")

    def __repr__(self) -> str:
        return f"<module 'tvm.{self._path}', which is not built>"
