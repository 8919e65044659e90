"""One kind of registry for every plug-in folder: its own modules first, then installed entry points."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Any, Generic, TypeVar

from rebilled.errors import RebilledError

Plugin = TypeVar("Plugin")


@lru_cache
def _installed() -> Any:
    """The entry points of every installed package, looked up once: that takes longer the more are installed."""
    from importlib.metadata import entry_points

    return entry_points()


class Registry(Generic[Plugin]):
    """The plug-ins of one package folder, each module offering one object under `attribute`.

    package: dotted name of the folder, e.g. `rebilled.causes`; also the entry-point group of outside plug-ins.
    attribute: the module-level name that holds the plug-in; a module without it is no plug-in.
    """

    def __init__(self, package: str, attribute: str) -> None:
        self.package = package
        self.attribute = attribute

    @cached_property
    def by_module(self) -> dict[str, Plugin]:
        """Every plug-in by the name of its module or entry point, in alphabetical order."""
        found: dict[str, Plugin] = {}
        folder = importlib.import_module(self.package)
        for info in sorted(pkgutil.iter_modules(folder.__path__), key=lambda item: item.name):
            module = importlib.import_module(f"{self.package}.{info.name}")
            if hasattr(module, self.attribute):
                found[info.name] = getattr(module, self.attribute)
        found.update(self._outside())
        return found

    def _outside(self) -> dict[str, Plugin]:
        found: dict[str, Plugin] = {}
        for point in _installed().select(group=self.package):
            try:
                found[point.name] = point.load()
            except Exception as error:
                raise RebilledError(
                    f"plug-in {point.name!r} of {self.package} ({point.value}) does not load: {error}; "
                    "update or uninstall the package that offers it"
                ) from error
        return found

    def __iter__(self) -> Iterator[Plugin]:
        return iter(self.by_module.values())

    def __len__(self) -> int:
        return len(self.by_module)
