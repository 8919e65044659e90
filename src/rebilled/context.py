"""Parts of a system prompt that hold memory, context, notes or search results: by tag or by heading."""

from __future__ import annotations

import re
from functools import lru_cache

from rebilled.spans import common_prefix, common_suffix

_WORDS = r"memor(?:y|ies)|context|notes?|retriev\w*|search|recall\w*|scratchpad"
_NAMED = rf"(?:^|[^a-z])(?:{_WORDS})(?:$|[^a-z])"
_TAG = r"<(/?)([A-Za-z][\w:.-]*)(?:\s[^<>]*)?>"
_HEADING = r"^(?:#{1,6}[ \t]+(.+?)[ \t]*#*|\*\*(.+?)\*\*:?|([A-Z][\w /&-]{1,60}):)[ \t]*$"


@lru_cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiled when first needed: most traces never are."""
    return re.compile(pattern, re.IGNORECASE if pattern is _NAMED else re.MULTILINE)


def context_place(before: str, after: str) -> str | None:
    """The tag or heading of the context part in which two texts differ, or that came or went; None elsewhere."""
    old, new = before.encode("utf-8", "surrogatepass"), after.encode("utf-8", "surrogatepass")
    prefix = common_prefix(old, new)
    suffix = min(common_suffix(old, new), min(len(old), len(new)) - prefix)
    for text, data in ((after, new), (before, old)):
        start = len(data[:prefix].decode("utf-8", "ignore"))
        end = len(data[: len(data) - suffix].decode("utf-8", "ignore"))
        place = _enclosing(text, start, end) or _whole_part(text, start, end)
        if place is not None:
            return place
    return None


def _named(name: str) -> bool:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ").replace("-", " ")
    return _compiled(_NAMED).search(spaced) is not None


def _enclosing(text: str, start: int, end: int) -> str | None:
    """The innermost named tag around a region, else the named heading above it."""
    open_tags: list[str] = []
    for match in _compiled(_TAG).finditer(text, 0, start):
        if match[1]:
            if match[2] in open_tags:
                while open_tags.pop() != match[2]:
                    pass
        else:
            open_tags.append(match[2])
    for name in reversed(open_tags):
        closes = text.find(f"</{name}>", start)
        if _named(name) and (closes < 0 or closes >= end - len(name) - 3):
            return f"<{name}>"
    last = None
    for match in _compiled(_HEADING).finditer(text, 0, start):
        last = match
    if last is not None:
        title = next(part for part in last.groups() if part)
        if _named(title):
            return f"the part headed {title.strip()!r}"
    return None


def _whole_part(text: str, start: int, end: int) -> str | None:
    """The named tag or heading that a region brings along from its beginning."""
    line_start = text.rfind("\n", 0, start) + 1
    piece = text[line_start:end]
    tag = _compiled(_TAG).search(piece)
    if tag is not None and not tag[1] and _named(tag[2]) and not piece[: tag.start()].strip():
        return f"<{tag[2]}>"
    heading = _compiled(_HEADING).search(piece)
    if heading is not None and not piece[: heading.start()].strip():
        title = next(part for part in heading.groups() if part)
        if _named(title):
            return f"the part headed {title.strip()!r}"
    return None
