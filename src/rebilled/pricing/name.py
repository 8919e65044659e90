"""The many spellings of a model, brought to the names that the sellers' lists use. The only place that does so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from rebilled.pricing.place import OTHERS_MODELS, VENDORS, Place, vendor_of

_WRAPPERS = {
    "litellm_proxy": "", "litellm": "", "models": "", "converse": "", "invoke": "", "bedrock": "aws",
    "bedrock_converse": "aws", "vertex_ai": "vertex", "vertex": "vertex", "azure": "azure", "azure_ai": "azure",
    "openrouter": "openrouter", "groq": "groq", "fireworks_ai": "fireworks", "together_ai": "together",
    "mistralai": "", "meta-llama": "", "z-ai": "", "zai-org": "", "moonshotai": "", "x-ai": "", "xai": "",
    "deepseek-ai": "", "minimax": "", "minimaxai": "", "zai": "", "zhipuai": "", "google": "", "gemini": "",
    "anthropic": "", "openai": "", "deepseek": "", "mistral": "", "moonshot": "", "cohere": "",
}  # fmt: skip
"""First parts of a `/` name that only say who routes or makes the model; the value is a seller where it names one."""

_ARN = re.compile(r"arn:aws[a-z-]*:bedrock:[a-z0-9-]*:\d*:(?:foundation-model|inference-profile)/(?P<id>.+)")
_AWS_REGION = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d")
_AWS_SCOPE = re.compile(r"(?P<scope>global|us-gov|us|eu|apac|jp|au|in|ca)\.(?P<id>[a-z0-9-]+\..+)")
_AWS_CLAUDE = re.compile(r"anthropic\.(?P<name>claude-[a-z0-9.@-]+?)(?:-v\d+)?(?::\d+(?::\d+k)?)?")
_PUBLISHER = re.compile(r"(?:.*?locations/(?P<location>[a-z0-9-]+)/)?publishers/[a-z0-9-]+/models/(?P<name>[^/:]+).*")
_CLAUDE_NUMBER_FIRST = re.compile(r"claude-(?P<number>[4-9](?:-\d{1,2})?)-(?P<family>[a-z]+)(?P<rest>(?:[-@].*)?)")


@dataclass(frozen=True, slots=True)
class ModelName:
    """Where to look a model up: sellers with the names to try there, in order.

    regional: billed at a regional endpoint. speed, batch: terms that the name itself carries.
    """

    places: tuple[tuple[str, str], ...]
    regional: bool = False
    speed: str | None = None
    batch: bool = False


def read_name(model: str, place: Place) -> ModelName:
    """The lists and names under which a model's price can stand; nothing is cut off that could be another model.

    On Bedrock `global.` names the endpoint at the plain list price. A name without a prefix is an in-region call, one
    with another prefix a regional profile; both cost 10% more for Claude 4.5 and later (AWS price list as read by
    genai-prices 0.2.3, Anthropic pricing page of 2026-08-21). A Vertex call is regional where its host or path names a
    region, and at the plain price where nothing does. An application inference profile does not say its model, so it
    has no price.
    """
    text = model.strip().lower()
    text = text.removesuffix("[1m]")
    if text.startswith("arn:"):
        found = _ARN.fullmatch(text)
        return _read_aws(found["id"]) if found else ModelName(())
    published = _PUBLISHER.fullmatch(text)
    if published:
        location = published["location"]
        regional = place.regional if location is None else location != "global"
        return read_name(published["name"], Place("vertex", regional))
    if place.seller == "aws" or (not place.seller and _is_aws_claude(text)):
        return _read_aws(_drop_aws_route(text))
    return _read_route(text, place)


def _read_route(text: str, place: Place) -> ModelName:
    """A name that may carry routes in front: tried whole first, then without each of them."""
    tried: list[tuple[str, str]] = []
    while True:
        if place.seller not in ("", "vertex"):
            tried.append((place.seller, text))
        head, slash, rest = text.partition("/")
        if not slash or head not in _WRAPPERS:
            break
        if not place.seller and _WRAPPERS[head]:
            place = Place(_WRAPPERS[head], place.regional)
        text = rest
        if place.seller == "aws":
            return _read_aws(_drop_aws_route(text))
    if not place.seller and _is_aws_claude(text):
        return _read_aws(text)
    name = ModelName((), regional=bool(place.regional))
    if place.seller == "openrouter":
        name, text = _read_openrouter(text, name)
    vendor = vendor_of(text)
    spellings = list(_spellings(text, vendor))
    vendors = OTHERS_MODELS.get(place.seller, (place.seller,))
    if place.seller in VENDORS.values():
        tried += [(place.seller, spelling) for spelling in spellings]
    elif vendor in vendors:
        tried += [(vendor, spelling) for spelling in spellings]
    return replace(name, places=tuple(dict.fromkeys(tried)))


def _spellings(text: str, vendor: str | None) -> Iterator[str]:
    yield text
    if vendor == "anthropic":
        yield spell_claude(text)


def spell_claude(text: str) -> str:
    """A Claude name as Anthropic spells it: dashes for dots, family before number from 4 on, no `:beta`."""
    text = re.sub(r"(?<=\d)\.(?=\d)", "-", text.removesuffix(":beta"))
    found = _CLAUDE_NUMBER_FIRST.fullmatch(text)
    return f"claude-{found['family']}-{found['number']}{found['rest']}" if found else text


def _read_openrouter(text: str, name: ModelName) -> tuple[ModelName, str]:
    """OpenRouter's endings for terms of a Claude model; every other ending is another listing there."""
    if text.startswith("claude-"):
        if text.endswith(":batch"):
            return replace(name, batch=True), text.removesuffix(":batch")
        if text.endswith("-fast"):
            return replace(name, speed="fast"), text.removesuffix("-fast")
    return name, text


def _is_aws_claude(text: str) -> bool:
    scoped = _AWS_SCOPE.fullmatch(text)
    return _AWS_CLAUDE.fullmatch(scoped["id"] if scoped else text) is not None


def _drop_aws_route(text: str) -> str:
    head, slash, rest = text.partition("/")
    while slash and (_WRAPPERS.get(head) in ("", "aws") or _AWS_REGION.fullmatch(head)):
        text = rest
        head, slash, rest = text.partition("/")
    return text


def _read_aws(text: str) -> ModelName:
    """A Bedrock model id: scope prefix, maker, name, version."""
    scoped = _AWS_SCOPE.fullmatch(text)
    scope, bare = (scoped["scope"], scoped["id"]) if scoped else ("", text)
    claude = _AWS_CLAUDE.fullmatch(bare)
    if claude or vendor_of(bare) == "anthropic":
        spelled = spell_claude(claude["name"] if claude else bare)
        return ModelName((("anthropic", spelled),), regional=scope != "global")
    bare = re.sub(r":\d+$", "", bare)
    listed = "global" if scope == "global" else "regional"
    scoped_names = (f"{scope}.{bare}", f"{listed}.{bare}") if scope else (f"{listed}.{bare}",)
    return ModelName(tuple(("aws", name) for name in (*scoped_names, bare)))
