"""Exact tokenizers, where the extra `tokenizers` is installed: OpenAI's by splintr-rs, Claude's by ctok."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from rebilled.errors import InputError

Count = Callable[[str], int]
"""The tokens of a text by themselves, without what frames a message."""

MISSING = "exact tokens need the extra `tokenizers`: pip install 'rebilled[tokenizers]'"
_OLD = re.compile(r"gpt-(?:3\.5|4)(?![\d.o])")
_OPENAI = re.compile(r"(?:gpt-|chatgpt-|o[1-9]\b)")
_CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:-(\d{1,2}))?(?![\d])")
_MOST_CHARACTERS = 200_000


def any_tokenizer() -> bool:
    """Whether one of the packages is installed."""
    return _module("splintr") is not None or _module("ctok") is not None


def require_tokenizer() -> None:
    """Raise InputError where no tokenizer is installed at all."""
    if not any_tokenizer():
        raise InputError(MISSING)


def counter_for(model: str) -> Count | None:
    """What counts a text as this model does; None where that is not known or its package is not installed.

    model: a plain name. Texts of more than 200,000 characters are counted in parts, which may add a token each.
    """
    name = model.lower()
    if _OPENAI.match(name):
        return _openai("cl100k_base" if _OLD.match(name) else "o200k_base")
    version = claude_version(name)
    return _claude(version) if version is not None else None


def claude_version(name: str) -> str | None:
    """The version of a Claude model as ctok asks for it; None for other names."""
    found = _CLAUDE.match(name)
    return f"{found[1]}.{found[2] or 0}" if found is not None else None


@lru_cache
def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


@lru_cache
def _openai(vocabulary: str) -> Count | None:
    splintr = _module("splintr")
    if splintr is None:
        return None
    encode = splintr.Tokenizer.from_pretrained(vocabulary).encode_ordinary
    return lambda text: sum(len(encode(part)) for part in _parts(text))


@lru_cache
def _claude(version: str) -> Count | None:
    ctok = _module("ctok")
    if ctok is None:
        return None
    try:
        frame = ctok.token_count("", version)
    except NotImplementedError:
        return None
    return lambda text: sum(ctok.token_count(part, version) - frame for part in _parts(text))


def _parts(text: str) -> list[str]:
    return [text[at : at + _MOST_CHARACTERS] for at in range(0, len(text), _MOST_CHARACTERS)]
