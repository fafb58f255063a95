"""PassContext: which passes run, under which settings, and who watches.

    with PassContext(disabled_pass=["mine"], config={"tir.disable_vectorize": True}, instruments=[timing]):
        mod = lower(mod)

Contexts nest; the innermost open one counts. `pass_config.py` lists the settings, `instrument.py` has watchers,
`passes.py` asks the context before it runs a pass.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar, Token
from difflib import get_close_matches
from types import TracebackType
from typing import Any, Final, NamedTuple

from loopwright.ir.function import IRModule
from loopwright.ir.pass_aliases import aliases, is_alias, own_name
from loopwright.ir.pass_config import CONFIG_KEYS, all_keys, checked_config
from loopwright.runtime.errors import LoopwrightError, user_stack_level

# The names of all passes there are; `passes.py` adds each as it is made.
known_passes: Final[set[str]] = set()


class BadPassNames(LoopwrightError, TypeError):
    """The passes to require or to disable were not given as a list of names.

    For example:

        from loopwright import PassContext

        PassContext(disabled_pass="simplify")
    """

    code = "LW0526"

    def __init__(self, field: str, names: object) -> None:
        super().__init__(
            f"PassContext: {field} is a list of pass names, got {names!r}",
            hint=f"write {field}=[{names!r}]" if isinstance(names, str) else None,
        )


class UnknownPassWarning(UserWarning):
    """A PassContext requires or disables a pass that does not exist: it was perhaps meant by another name."""


class PassInfo(NamedTuple):
    """What is known of a pass without running it."""

    opt_level: int
    name: str
    required: tuple[str, ...] = ()
    traceable: bool = False
    is_sequence: bool = False  # runs other passes, which are reported by themselves


class PassInstrument:
    """What an instrument may do; each method does nothing unless overridden."""

    def enter_pass_ctx(self) -> None:
        """The context it belongs to is entered."""

    def exit_pass_ctx(self) -> None:
        """The context it belongs to is left."""

    def should_run(self, mod: IRModule, info: PassInfo) -> bool:
        """Whether the pass may run; it does when every instrument agrees."""
        return True

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """The pass is about to run on `mod`."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """The pass has run and returned `mod`."""


class PassContext:
    """The settings under which passes run; `with` makes it the current one, and contexts nest."""

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Sequence[str] | None = None,
        disabled_pass: Sequence[str] | None = None,
        instruments: Sequence[PassInstrument] | None = None,
        config: Mapping[str, object] | None = None,
    ) -> None:
        self.opt_level = opt_level
        self.required_pass = _names("required_pass", required_pass)
        self.disabled_pass = _names("disabled_pass", disabled_pass)
        self.instruments = list(instruments or ())
        self.config: dict[str, Any] = checked_config(config)
        self._disabled = frozenset([*map(own_name, self.disabled_pass), *self.disabled_pass])
        self._required = frozenset([own_name(name) for name in self.required_pass])
        self._names_checked = not (self.disabled_pass or self.required_pass)
        self._tokens: list[Token[PassContext | None]] = []

    @staticmethod
    def current() -> PassContext:
        """The innermost context that is open; a plain one when there is none."""
        return _current.get() or PassContext()

    @staticmethod
    def innermost() -> PassContext | None:
        """The innermost context that is open, if one is."""
        return _current.get()

    @staticmethod
    def list_configs() -> dict[str, dict[str, object]]:
        """Every setting: its type, default and meaning."""
        return {
            name: {"type": key.type.__name__, "default": key.default, "meaning": key.meaning}
            for name, key in sorted(all_keys().items())
        }

    def setting(self, key: str) -> Any:
        """The value of a setting, or its default."""
        if key in self.config:
            return self.config[key]
        return (CONFIG_KEYS.get(key) or all_keys()[key]).default

    def override_instruments(self, instruments: Sequence[PassInstrument] | None) -> None:
        """Let the present instruments leave, and the given ones enter."""
        self._leave(self.instruments)
        self.instruments = list(instruments or ())
        self._enter()

    def pass_enabled(self, info: PassInfo) -> bool:
        """Whether a Sequential runs the pass in this context."""
        if info.name in self._disabled:
            return False
        return info.name in self._required or info.opt_level <= self.opt_level

    def check_names(self, present: Iterable[str]) -> None:
        """Warn of names that are no pass's: a misspelt one would change nothing, in silence.

        Asked when passes first run, since users' passes may be made after the context.
        """
        if self._names_checked:
            return
        self._names_checked = True
        known = known_passes.union(present)
        for field in ("disabled_pass", "required_pass"):
            for name in getattr(self, field):
                if own_name(name) not in known and not is_alias(name):
                    near = get_close_matches(name, [*known, *aliases()], 3)
                    hint = f"; did you mean {', '.join(near)}?" if near else ""
                    message = f"PassContext: {field} names {name!r}, but no pass is called that{hint}"
                    warnings.warn(message, UnknownPassWarning, stacklevel=user_stack_level())

    def __enter__(self) -> PassContext:
        self._tokens.append(_current.set(self))
        try:
            self._enter()
        except BaseException:
            _current.reset(self._tokens.pop())
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.reset(self._tokens.pop())
        self._leave(self.instruments)

    def _enter(self) -> None:
        for count, instrument in enumerate(self.instruments):
            try:
                instrument.enter_pass_ctx()
            except BaseException:
                # Those inside already must get their chance to clean up, newest first; none may watch afterwards.
                entered, self.instruments = self.instruments[:count], []
                self._leave(entered[::-1])
                raise

    def _leave(self, instruments: Sequence[PassInstrument]) -> None:
        for instrument in instruments:
            try:
                instrument.exit_pass_ctx()
            except BaseException:
                self.instruments = []
                raise


_current: ContextVar[PassContext | None] = ContextVar("loopwright_pass_context", default=None)


def _names(field: str, names: Sequence[str] | None) -> tuple[str, ...]:
    if names is not None and not isinstance(names, (list, tuple, set, frozenset)):
        raise BadPassNames(field, names)
    if not all(isinstance(name, str) for name in names or ()):
        raise BadPassNames(field, names)
    return tuple(names or ())
