"""NameSupply and GlobalVarSupply: names that are not taken yet."""

from __future__ import annotations

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule


class NameSupply:
    """Gives out names, each once; `prefix` stands before all of them."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self._taken: dict[str, int] = {}  # name → the last number put behind it

    def reserve_name(self, name: str, add_prefix: bool = True) -> str:
        """Take a name, as it is."""
        full = self._full(name, add_prefix)
        self._taken.setdefault(full, 0)
        return full

    def fresh_name(self, name: str, add_prefix: bool = True, add_underscore: bool = True) -> str:
        """A name like `name` that nobody has."""
        full = result = self._full(name, add_prefix)
        number = self._taken.get(full, 0)
        while result in self._taken:
            number += 1
            result = f"{full}_{number}" if add_underscore else f"{full}{number}"
        self._taken[full] = number
        self._taken.setdefault(result, 0)
        return result

    def contains_name(self, name: str, add_prefix: bool = True) -> bool:
        """Whether a name is taken."""
        return self._full(name, add_prefix) in self._taken

    def _full(self, name: str, add_prefix: bool) -> str:
        return f"{self.prefix}_{name}" if add_prefix and self.prefix else name


class GlobalVarSupply:
    """Gives out the names of functions of a module: of one given, of several, or of none yet."""

    def __init__(self, value: NameSupply | IRModule | list[IRModule] | None = None) -> None:
        self._vars: dict[str, GlobalVar] = {}
        modules = [value] if isinstance(value, IRModule) else value if isinstance(value, list) else []
        prefix = f"tvmgen_{modules[0].attrs.get('mod_name', 'default')}" if modules else ""
        self.name_supply = value if isinstance(value, NameSupply) else NameSupply(prefix)
        for module in modules:
            for var in module.get_global_vars():
                self.reserve_global(var)

    def reserve_global(self, global_var: GlobalVar, allow_conflict: bool = False) -> None:
        """Take the name of a variable."""
        if global_var.name in self._vars and not allow_conflict:
            raise ValueError(f"the name {global_var.name!r} is taken already")
        self._vars[global_var.name] = global_var
        self.name_supply.reserve_name(global_var.name, False)

    def fresh_global(self, name: str, add_prefix: bool = True) -> GlobalVar:
        """A new variable with a name like `name`."""
        result = GlobalVar(self.name_supply.fresh_name(name, add_prefix))
        self._vars[result.name] = result
        return result

    def unique_global_for(self, name: str, add_prefix: bool = True) -> GlobalVar:
        """The variable of that name, made if there is none."""
        full = self.name_supply.reserve_name(name, add_prefix)
        return self._vars.setdefault(full, GlobalVar(full))
