"""Hosts and addresses without what is private in them: known providers and the paths of their APIs stay."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_PUBLIC: Final = (
    r"(?:(?:us|eu|[a-z]{2}-[a-z]+-\d)\.)?(?:api\.openai\.com|api\.anthropic\.com|openrouter\.ai|api\.deepseek\.com|api\.x\.ai|api\.mistral\.ai"
    r"|api\.groq\.com|api\.moonshot\.(?:ai|cn)|api\.kimi\.com|api\.z\.ai|open\.bigmodel\.cn|api\.minimaxi?\.(?:io|com|chat)"
    r"|api\.fireworks\.ai|api\.together\.(?:xyz|ai)|api\.cohere\.(?:com|ai)|api\.perplexity\.ai|api\.cerebras\.ai"
    r"|api\.novita\.ai|inference\.baseten\.co|api\.githubcopilot\.com|generativelanguage\.googleapis\.com"
    r"|dashscope(?:-[a-z]+)?\.aliyuncs\.com)"
    r"|bedrock-(?:runtime|mantle)(?:-fips)?\.[a-z0-9-]+\.(?:amazonaws\.com(?:\.cn)?|api\.aws)"
    r"|(?:[a-z0-9-]+-)?aiplatform\.googleapis\.com|aiplatform\.[a-z]+\.rep\.googleapis\.com"
    r"|localhost|127(?:\.\d+){3}|0\.0\.0\.0|\[?::1\]?"
)
_OWN_PART: Final = re.compile(
    r"(.+?)(\.(?:(?:openai|services\.ai|cognitiveservices|inference\.ml|models\.ai)\.azure\.com|azure-api\.net"
    rf"|{_PUBLIC}))",
    re.IGNORECASE,
)
"""A customer's own name in front of a provider's host."""

_URL: Final = re.compile(r"(?:([a-z]+://)([^/]*))?(.*)", re.IGNORECASE | re.DOTALL)
_STEPS: Final = frozenset(
    [
        "v1",
        "v1beta",
        "v1beta1",
        "v1alpha",
        "v2",
        "v3",
        "v4",
        "api",
        "openai",
        "anthropic",
        "google",
        "chat",
        "completions",
        "responses",
        "compact",
        "messages",
        "models",
        "model",
        "converse",
        "converse-stream",
        "invoke",
        "invoke-with-response-stream",
        "deployments",
        "publishers",
        "projects",
        "locations",
        "endpoints",
        "compatible-mode",
        "inference",
        "paas",
        "coding",
        "beta",
    ]
)
_VERB: Final = re.compile(r"(.+?)(:(?:stream)?(?:generateContent|rawPredict))?", re.IGNORECASE)
_BEFORE_MODEL: Final = frozenset({"models", "model", "deployments"})
_BEFORE_PLACE: Final = frozenset({"locations", "publishers"})
_REGION: Final = re.compile(
    r"(?:us|eu|ap|sa|ca|me|af|il|mx|cn|jp|au|apac|europe|asia|northamerica|southamerica|australia|africa|global)(?:-gov)?"
    r"(?:-(?:north|south|east|west|central){1,2}-?\d{0,2}[a-z]?)?",
    re.IGNORECASE,
)

Change = Callable[[str], str]


def other_host(host: str, change: Change) -> str:
    """A host as it is where a provider or this machine stands behind it, else a pseudonym; its port stays."""
    name, colon, port = host.rpartition(":") if re.search(r":\d+$", host) else (host, "", "")
    if re.fullmatch(_PUBLIC, name, re.IGNORECASE):
        return host
    own = _OWN_PART.fullmatch(name)
    changed = change(own[1]) + own[2] if own is not None else change(name)
    return changed + colon + port


def other_url(url: str, change: Change) -> str:
    """An address with a private host and unknown steps of its path replaced; models in it stay."""
    match = _URL.fullmatch(url)
    assert match is not None
    steps = match[3].split("/")
    found = [_step(steps[place - 1] if place else "", step, change) for place, step in enumerate(steps)]
    host = other_host(match[2], change) if match[2] else ""
    return (match[1] or "") + host + "/".join(found)


def _step(before: str, step: str, change: Change) -> str:
    verb = _VERB.fullmatch(step)
    name, tail = (verb[1], verb[2] or "") if verb is not None else (step, "")
    if name.lower() in _STEPS or before in _BEFORE_MODEL or (before in _BEFORE_PLACE and _REGION.fullmatch(name)):
        return name + tail
    return change(name) + tail


def other_region(region: str, change: Change) -> str:
    """A cloud's region as it is, anything else as a pseudonym."""
    return region if _REGION.fullmatch(region) else change(region)
