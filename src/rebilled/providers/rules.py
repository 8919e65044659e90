"""The dated cache rules of `data/*.toml`, and whose rules hold for a call."""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

_DATA: Final = files("rebilled.providers") / "data"
_REGION: Final = re.compile(r"^(?:us-gov|us|eu|apac|global|au|jp|ca)\.")
_VENDOR: Final = re.compile(
    r"^(?:anthropic|openai|amazon|google|meta|mistral|moonshotai|moonshot|qwen|zai|minimax|cohere)\."
)
_DATE: Final = re.compile(r"[-@]20\d{6}$")
_VERSION: Final = re.compile(r"(?:-v\d+)?(?::\d+)?$")
_SPELLED: Final = re.compile(r":(?:free|beta|nitro|floor|online|thinking|extended|exacto)$")
_SHAPE_DEFAULTS: Final = ("", "anthropic", "openai", "gemini")
"""Providers that steps have because of their bodies' shape where the host is unknown."""


@lru_cache
def rules(name: str) -> dict[str, Any]:
    """The dated rules of one provider, as in its file."""
    return tomllib.loads((_DATA / f"{name}.toml").read_text(encoding="utf-8"))


@lru_cache
def names() -> tuple[str, ...]:
    """Every provider that has rules of its own, in alphabetical order."""
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in _DATA.iterdir() if entry.name.endswith(".toml")))


def plain_model(model: str) -> str:
    """A model name without the platform's wrapping: region, vendor path, date, version and context suffixes."""
    name = _SPELLED.sub("", model.rsplit("/", 1)[-1].lower()).removesuffix("[1m]")
    name = _VENDOR.sub("", _REGION.sub("", name))
    name = _DATE.sub("", _VERSION.sub("", name))
    if name.startswith("claude-"):
        name = name.replace(".", "-").removesuffix("-latest")
    return name


def holder(api: str, model: str, provider: str = "") -> str:
    """Whose rules hold for a call: the platform's where it has a cache of its own, else the model's vendor's.

    provider: who serves it, empty or the shape's default where the host is unknown. A gateway's prefix such as
    `hosted_vllm/` tells it too.
    """
    vendor, seller = vendor_of(plain_model(model)), provider or _route_of(model)
    if provider in _SHAPE_DEFAULTS:
        seller = _route_of(model) or provider
    if "claude" in model.lower():
        return "bedrock" if seller == "bedrock" or api == "bedrock.converse" else "anthropic"
    if api == "bedrock.converse":
        return "bedrock"
    if api == "gemini.generate_content" or vendor == "gemini":
        return "vertex" if seller == "vertex" else "gemini"
    if seller in names() and "hosts" in rules(seller):
        return seller
    return vendor or _by_shape(api, seller)


def _by_shape(api: str, seller: str) -> str:
    if seller in names() and seller not in _SHAPE_DEFAULTS and seller not in ("bedrock", "vertex", "openrouter"):
        return seller
    return "anthropic" if api == "anthropic.messages" else "openai"


def vendor_of(name: str) -> str:
    """The vendor whose family of models a plain name begins with, empty for families that are unknown or open."""
    if name.startswith("gpt-oss"):
        return ""
    return next((vendor for start, vendor in _families() if name.startswith(start)), "")


@lru_cache
def _families() -> tuple[tuple[str, str], ...]:
    found = [(start, name) for name in names() for start in rules(name).get("models", ())]
    return tuple(sorted(found, key=lambda pair: -len(pair[0])))


def _route_of(model: str) -> str:
    """The provider that a gateway's path in front of a model names, empty where it names none that has rules."""
    word = model.lower().partition("/")[0] if "/" in model else ""
    return next((name for name in names() if word and word in rules(name).get("routes", ())), "")
