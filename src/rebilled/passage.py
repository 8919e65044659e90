"""The texts and pictures in a step's blocks, read again where tokens are to be counted."""

from __future__ import annotations

from rebilled.errors import RecordError
from rebilled.model import Json, SectionName, Step
from rebilled.prompt import Loader, Prompt, content_of
from rebilled.providers.picture import picture_of, pixels_of

_TEXT_KEYS = ("text", "content", "output")
_TEXT_KINDS = ("", "text", "input_text", "output_text", "message", "function_call_output")


def values_of(step: Step, load: Loader, section: SectionName, element: int) -> list[Json]:
    """The content blocks of one system entry or message; empty where the body can no longer be read."""
    try:
        return _values(load(step), section, element)
    except RecordError:
        return []


def _values(prompt: Prompt, section: SectionName, element: int) -> list[Json]:
    items = prompt.section(section)
    if element >= len(items):
        return []
    return content_of(items[element].value) if section == "messages" else [items[element].value]


def text_in(value: Json) -> str | None:
    """The text of a block that is nothing but text; None for calls, media and mixed content."""
    if not isinstance(value, dict):
        return value if isinstance(value, str) else None
    kind = value.get("type")
    if (kind if isinstance(kind, str) else "") not in _TEXT_KINDS or value.get("tool_calls"):
        return None
    found = [value[key] for key in _TEXT_KEYS if value.get(key) is not None]
    return found[0] if len(found) == 1 and isinstance(found[0], str) else None


def pixels_in(value: Json) -> tuple[int, int] | None:
    """Width and height of the picture in a block, where it is sent along and its file says so."""
    data = picture_of(value)
    return pixels_of(data) if data is not None else None
