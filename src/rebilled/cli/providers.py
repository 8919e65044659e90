"""`analyze providers`: the dated cache rules, and the API shapes that can be read."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rebilled.cli.reading import JsonOption, WidthOption

EXAMPLES = """\b
Examples:
  analyze providers
  analyze providers anthropic
"""


def providers(
    name: Annotated[str | None, typer.Argument(metavar="NAME", hidden=True)] = None,
    as_json: JsonOption = False,
    width: WidthOption = None,
) -> None:
    """Show the dated cache rules, and the API shapes that can be read.

    NAME is a provider, such as anthropic, or an API shape, such as openai.responses.
    """
    from rebilled.cli.output import emit_json, emit_text, in_colour, screen_width
    from rebilled.reports.provider_lines import provider_lines
    from rebilled.reports.style import Pen

    found = _chosen(name)
    if as_json:
        emit_json(found)
    else:
        emit_text("\n".join(provider_lines(found, screen_width(width), Pen(in_colour()))))


def _chosen(name: str | None) -> list[dict[str, Any]]:
    """The providers asked for. Raises InputError for a name that is none."""
    from rebilled.errors import InputError

    known = _all()
    if name is None:
        return known
    word = name.strip().lower()
    found = [entry for entry in known if word == entry["provider"] or word in (api["name"] for api in entry["apis"])]
    if not found:
        raise InputError(f"no provider or API is called {name!r}; known are {', '.join(e['provider'] for e in known)}")
    return found


def _all() -> list[dict[str, Any]]:
    """Every provider with its APIs and, where it has some of its own, its rules."""
    from importlib.resources import files

    from rebilled.providers import APIS
    from rebilled.providers.policy import rules

    folder = files("rebilled.providers") / "data"
    named = sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))
    by_provider: dict[str, list[dict[str, str]]] = {provider: [] for provider in named}
    for api in APIS:
        by_provider.setdefault(api.provider, []).append({"name": api.name, "title": api.title})
    return [
        {"provider": provider, "apis": apis, "rules": rules(provider) if provider in named else None}
        for provider, apis in by_provider.items()
    ]
