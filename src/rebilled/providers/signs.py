"""What tells the API of a body that no URL names: its own keys, the kinds of its blocks, the roles of its messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from rebilled.errors import RecordError
from rebilled.model import Json
from rebilled.spans import Layout, parse_json

_HEAD = 1 << 16
_CHAT = re.compile(rb'"role"\s*:\s*"(?:tool|function)"|"(?:tool_calls|image_url|input_audio|reasoning_content)"\s*:')
_MESSAGES = re.compile(rb'"type"\s*:\s*"(?:tool_use|tool_result|thinking|redacted_thinking)"')
_THINKS = re.compile(rb'"budget_tokens"|"adaptive"')


def any_of(members: Mapping[str, tuple[int, int]], names: Iterable[str]) -> bool:
    """Whether a body has a member of one of these names."""
    return any(name in members for name in names)


def head(layout: Layout, key: str) -> bytes:
    """The beginning of a member's text, empty where the body has no such member."""
    start, end = layout.members.get(key, (0, 0))
    return layout.raw[start : min(end, start + _HEAD)]


def text_of(layout: Layout, key: str) -> str:
    """A text member, empty where it is missing or no text."""
    raw = layout.value(key)
    value = parse_json(raw) if raw is not None and raw[:1] == b'"' else ""
    return value if isinstance(value, str) else ""


def first_message(layout: Layout, key: str = "messages") -> dict[str, Json]:
    """The first message, empty where there is none."""
    try:
        spans = layout.elements(key)
        value = parse_json(layout.raw[slice(*spans[0])]) if spans else None
    except RecordError:
        return {}
    return value if isinstance(value, dict) else {}


def speaks_chat(layout: Layout) -> bool:
    """Whether messages call tools, answer them or show media as only Chat Completions bodies do."""
    return _CHAT.search(head(layout, "messages")) is not None


def speaks_messages(layout: Layout) -> bool:
    """Whether messages hold blocks of kinds that only Anthropic Messages bodies have."""
    return _MESSAGES.search(head(layout, "messages")) is not None


def thinks_like_claude(layout: Layout) -> bool:
    """Whether `thinking` has a form that only Claude takes; GLM, Kimi and DeepSeek take `{"type": "enabled"}` too."""
    return _THINKS.search(head(layout, "thinking")) is not None


def untyped_blocks(layout: Layout) -> bool:
    """Whether the first message has content blocks without a `type`, as only Bedrock Converse bodies do."""
    content = first_message(layout).get("content")
    return isinstance(content, list) and bool(content) and all(_untyped(block) for block in content)


def _untyped(block: Json) -> bool:
    return isinstance(block, dict) and bool(block) and "type" not in block and "role" not in block
