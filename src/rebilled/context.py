"""Parts of a system prompt that hold memory, context, notes or search results: by tag or by heading."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

_WORDS = r"memor(?:y|ies)|contexts?|notes?|retriev\w*|search|recall\w*|scratchpad"
_NAMED = rf"(?:^|[^a-z])(?:{_WORDS})(?:$|[^a-z])"
_BARE = _WORDS.replace(r"\w", "[a-z]")
_WORD = rf"(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z]))(?i:{_BARE})(?:(?![A-Za-z])|(?<=[a-z])(?=[A-Z]))"
"""One of these words, as a word of its own or as a part of a name in camel case."""
_TAG = r"<(/?)([A-Za-z][\w:.-]*)((?:\s[^<>]*)?)>"
_NAMING = r"\b(?:name|type|id|kind|title|class)\s*=\s*[\"']([^\"']*)[\"']"
_HEADING = (
    r"^(?:(#{1,6})[ \t]+(.+?)[ \t]*#*|\*\*(.+?)\*\*:?|([A-Z][\w /&-]{1,60}):|[=~-]{2,} *(\w.*?) *[=~-]{2,}"
    r"|\[([A-Z][\w /&-]{1,60})\])[ \t]*$"
)
_LOWEST = 7
"""The level of headings that are no Markdown titles: below all of those."""

Region = tuple[int, int, str]
"""Where a named part begins and ends, and what names it."""


@lru_cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiled when first needed: most traces never are."""
    return re.compile(pattern, re.IGNORECASE if pattern is _NAMED else re.MULTILINE)


def context_place(before: Sequence[str], after: Sequence[str]) -> str | None:
    """The tag or heading of the context part in which two prompts differ, or that came or went; None elsewhere.

    before, after: the texts of their entries. A heading reaches to the next one of its level, at most to the end of
    its entry.
    """
    ways = [(before, after)]
    if len(before) != len(after):
        ways.append((["\n".join(before)], ["\n".join(after)]))
    for mine, theirs in ways:
        (old_rest, old), (new_rest, new) = _taken_apart(mine), _taken_apart(theirs)
        if old_rest == new_rest and old != new:
            kept = set(old) & set(new)
            return next(name for part in (*new, *old) if part not in kept for name in part[:1])
    return None


def _taken_apart(texts: Sequence[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """What stands outside the named parts, by words, and every named part with its text."""
    rest: list[str] = []
    parts: list[tuple[str, str]] = []
    for text in texts:
        for find in (_tagged, _headed):
            kept, at = [], 0
            for start, end, name in find(text):
                kept.append(text[at:start])
                parts.append((name, text[start:end]))
                at = end
            text = "\n".join([*kept, text[at:]])
        rest += text.split()
    return rest, parts


def names_context(name: str) -> bool:
    """Whether a tag or heading says that it holds context."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ").replace("-", " ")
    return _compiled(_NAMED).search(spaced) is not None


def _tagged(text: str) -> Iterator[Region]:
    """The outermost named tags that are closed again."""
    reached = 0
    tags = list(_compiled(_TAG).finditer(text))
    for place, tag in enumerate(tags):
        if tag.start() < reached or tag[1] or not _names_context(tag):
            continue
        depth = 0
        for other in tags[place:]:
            if other[2] == tag[2] and not other[3].endswith("/"):
                depth += -1 if other[1] else 1
            if not depth:
                reached = other.end()
                yield tag.start(), reached, f"<{tag[2]}>"
                break


def named_spans(text: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Where words stand that name parts as context, in tags and headings; and attributes of tags that name parts."""
    if _compiled(_WORD).search(text) is None:
        return [], []
    places: list[tuple[int, int]] = []
    attributes: list[tuple[int, int]] = []
    for tag in _compiled(_TAG).finditer(text):
        places.append(tag.span(2))
        for naming in _compiled(_NAMING).finditer(tag[3]):
            start = tag.start(3) + naming.start()
            attributes.append((start, start + len(naming[0].split("=")[0].rstrip())))
            places.append((tag.start(3) + naming.start(1), tag.start(3) + naming.end(1)))
    places += [match.span() for match in _compiled(_HEADING).finditer(text)]
    words = [word for start, end in places for word in _compiled(_WORD).finditer(text, start, end)]
    named = [word.span() for word in words if names_context(word[0])]
    return named, [span for span in attributes if text[slice(*span)].lower() != "id"]


def _names_context(tag: re.Match[str]) -> bool:
    return names_context(tag[2]) or any(names_context(value) for value in _compiled(_NAMING).findall(tag[3]))


def _headed(text: str) -> Iterator[Region]:
    """The parts under a named heading, each to the next heading of the same or a higher level."""
    headings = [(match.start(), _level(match), _title(match)) for match in _compiled(_HEADING).finditer(text)]
    reached = 0
    for place, (start, level, title) in enumerate(headings):
        if start < reached or not names_context(title):
            continue
        reached = next((at for at, other, _ in headings[place + 1 :] if other <= level), len(text))
        yield start, reached, f"the part headed {title.strip()!r}"


def _level(heading: re.Match[str]) -> int:
    return len(heading[1]) if heading[1] else _LOWEST


def _title(heading: re.Match[str]) -> str:
    return next(part for part in heading.groups()[1:] if part)
