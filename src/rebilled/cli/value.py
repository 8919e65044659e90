"""The words of a command line to values, without pydantic.

typer loads pydantic to turn even a text into a text, which takes as long as all the rest of the start. The commands
here need texts, paths, whole numbers and a few fixed words only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup


class QuickCommand(TyperCommand):
    """A typer command whose parameters are read by `Reader`; with a typer that asks otherwise, by typer itself."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        for param in self.params:
            read_quickly(param)

    def get_help_option(self, ctx: Any) -> Any:
        """The option `--help`, read quickly too."""
        return read_quickly(super().get_help_option(ctx))


class QuickGroup(TyperGroup):
    """The same for the program itself."""

    def get_help_option(self, ctx: Any) -> Any:
        """The option `--help`, read quickly."""
        return read_quickly(super().get_help_option(ctx))


def read_quickly(param: Any) -> Any:
    """Give a parameter our reader in place of typer's, where its type is one that ours knows."""
    kind = getattr(getattr(param, "type_descriptor", None), "annotation", None)
    if can_read(kind):
        param._runtime_param = Reader(kind)
    return param


def can_read(kind: Any) -> bool:
    """Whether `Reader` knows this type."""
    inner = get_args(kind)[0] if get_origin(kind) is list else kind
    return inner in (str, int, bool, Path) or get_origin(inner) is Literal


class Reader:
    """Turns the words given for one parameter into values of its type."""

    def __init__(self, kind: Any) -> None:
        self.kind = get_args(kind)[0] if get_origin(kind) is list else kind

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value, or a list of them for a parameter that takes several. Raises BadParameter."""
        if param.multiple or param.nargs == -1:
            return [self._one(item, param, ctx) for item in value or ()]
        return None if value is None else self._one(value, param, ctx)

    def _one(self, value: Any, param: Any, ctx: Any) -> Any:
        if self.kind is Path:
            return Path(value)
        if self.kind is int:
            try:
                return int(value)
            except ValueError:
                raise typer.BadParameter(f"{value!r} is no whole number", ctx=ctx, param=param) from None
        choices = get_args(self.kind)
        if choices and value not in choices:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(choices)}", ctx=ctx, param=param)
        return value
