"""A request's breakpoints with their lifetimes, and what they say of its writes."""

from __future__ import annotations

import msgspec

from rebilled.model import Breakpoint, Node, Reply, Section
from rebilled.providers.api import Api, dig
from rebilled.providers.content import LIFETIMES_S, MARK_KEY
from rebilled.providers.options import CacheOptions
from rebilled.spans import Layout, parse_json


def section_marks(name: str, section: Section) -> tuple[Breakpoint, ...]:
    """The breakpoints on a section's blocks."""
    place = "tools" if name == "tools" else "system"
    return tuple(Breakpoint(place, mark.block, 0, mark.ttl_s) for mark in section.marks)  # type: ignore[arg-type]


def shift_system(marks: tuple[Breakpoint, ...]) -> tuple[Breakpoint, ...]:
    """The breakpoints once the first system entry is no part of the prompt."""
    moved = []
    for mark in marks:
        if mark.section != "system":
            moved.append(mark)
        elif mark.element > 0:
            moved.append(msgspec.structs.replace(mark, element=mark.element - 1))
    return tuple(moved)


def automatic_mark(
    layout: Layout, marks: tuple[Breakpoint, ...], history: Node, leading: int
) -> tuple[Breakpoint, ...]:
    """Anthropic's top-level `cache_control`: a breakpoint on the last block (prompt-caching page, 2026-08-21)."""
    raw = layout.value(MARK_KEY)
    if raw is None or raw == b"null" or history.message is None:
        return marks
    ttl = 3600 if dig(parse_json(raw), "ttl") == "1h" else 300
    last = Breakpoint("messages", leading + history.depth - 1, max(0, len(history.message.blocks) - 1), ttl)
    return marks if any(m.section == "messages" and m.element == last.element for m in marks) else (*marks, last)


def with_lifetimes(marks: tuple[Breakpoint, ...], options: CacheOptions) -> tuple[Breakpoint, ...]:
    """The breakpoints with a lifetime each: one without its own has the request's, half an hour at least (OpenAI)."""
    if all(mark.ttl_s for mark in marks):
        return marks
    asked = options.ttl_s or LIFETIMES_S["30m"]
    return tuple(mark if mark.ttl_s else msgspec.structs.replace(mark, ttl_s=asked) for mark in marks)


_LONGER_S = (LIFETIMES_S["1h"], LIFETIMES_S["12h"])


def asked_lifetimes(api: Api, marks: tuple[Breakpoint, ...], options: CacheOptions) -> set[int]:
    """The lifetimes of all that a request can write, in seconds."""
    asked = {mark.ttl_s for mark in marks}
    if api.provider == "openai" and not options.explicit:
        asked.add(options.ttl_s or LIFETIMES_S["30m"])
    return asked


def settle_writes(reply: Reply, asked: set[int]) -> Reply:
    """Writes reported without their lifetimes: the longer one where the whole request asks for it, else the shorter."""
    usage = reply.usage
    if usage is None or usage.write_split or not asked or any(ttl not in _LONGER_S for ttl in asked):
        return reply
    hour = msgspec.structs.replace(usage, cache_write_5m_tokens=0, cache_write_1h_tokens=usage.cache_write_tokens)
    return msgspec.structs.replace(reply, usage=hour)
