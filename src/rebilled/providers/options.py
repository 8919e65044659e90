"""What a request says in `prompt_cache_options` of how it is to be cached."""

from __future__ import annotations

import msgspec

from rebilled.providers.api import dig
from rebilled.providers.content import LIFETIMES_S
from rebilled.spans import Layout, parse_json

OPTIONS_KEY = "prompt_cache_options"


class CacheOptions(msgspec.Struct, frozen=True):
    """explicit: entries end at the request's own breakpoints only. ttl_s: the lifetime asked for, None without one."""

    explicit: bool = False
    ttl_s: int | None = None


_NONE = CacheOptions()


def read_options(layout: Layout) -> CacheOptions:
    """The caching options of a body.

    OpenAI from GPT-5.6 on has `mode` and `ttl` 30m or 12h (openai 3.57.0, 2026-11-30), Moonshot `ttl` 5m or 1h
    (forum.moonshot.ai/t/613, autumn 2026).
    """
    raw = layout.value(OPTIONS_KEY)
    if raw is None or raw[:1] != b"{":
        return _NONE
    options = parse_json(raw)
    ttl = dig(options, "ttl")
    return CacheOptions(dig(options, "mode") == "explicit", LIFETIMES_S.get(ttl) if isinstance(ttl, str) else None)
