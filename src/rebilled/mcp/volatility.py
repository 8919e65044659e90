"""What in the text of a tool looks as if it changed by itself: live values told from examples and formats."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from rebilled.volatile import KINDS

_SURE_EXAMPLE = (
    *(r"e\.?g\.?", r"i\.?e\.?", "for (?:example|instance)", "examples?", "such as", "like", "ex", "RFC", "ISO"),
    *(r"format(?:ted)?(?: as)?", "defaults?(?: to| is)?", "default value"),
)
_MAYBE_EXAMPLE = (
    *("or", "and", "either", "as", "values?", "versions?", "since", "max(?:imum)?", "min(?:imum)?", "than", "between"),
    *("to", "via", "with"),
)
_EXAMPLE = re.compile(rf"\b(?:{'|'.join(_SURE_EXAMPLE)})[\s\"'`:(\[{{,]*$", re.IGNORECASE)
"""What stands in front of a value that is written down as an example or a format."""

_LISTED = re.compile(rf"(?:\b(?:{'|'.join(_MAYBE_EXAMPLE)})|[=:(\[{{,/])[\s\"'`:(\[{{]*$", re.IGNORECASE)
"""What stands in front of a value that is one of several, or a limit, unless words say that it was true just now."""

_NOW_WORDS = (
    *(
        "current(?:ly)?",
        "today(?:'s)?",
        "now",
        "as of",
        "generated(?: at| on)?",
        "last (?:updated|synced|refreshed|seen)",
    ),
    *(
        "updated(?: at| on)?",
        "at start-?up",
        "started(?: at| on)?",
        "uptime",
        "(?:session|request|trace|build)(?: id)?",
    ),
    *("commit", "pid", "host(?:name)?", "working directory", "cwd", "time(?:stamp)?(?: is)?", "date(?: is)?"),
    "expires(?: at| on)?",
)
_NOW = re.compile(rf"\b(?:{'|'.join(_NOW_WORDS)})[\s\w]{{0,12}}[\s:=(\[\"'`]*$", re.IGNORECASE)
"""What stands in front of a value that was true when the text was made."""

_HELD = r"current(?:ly)?|now|there (?:are|is)|you have|contains?|holds?|total(?: of)?|loaded|indexed|connected to|found"
_STATE = (
    "remaining|left(?! out)|pending|unread|open|active|available now|online|connected|loaded|indexed|so far|in total"
)
_LIMIT = re.compile(
    r"\b(?:than|to|most|least|over|above|below|under|first|last|next|every|each|per|max(?:imum)?|limit)\W+(?:of\W+)?$",
    re.IGNORECASE,
)
_COUNTER = re.compile(
    rf"\b(?:{_HELD})[ :(]{{1,2}}(?:\w+[ :(]{{1,2}}){{0,2}}?(?P<n>\d[\d,]*) +(?P<noun>[a-z]{{3,}})"
    rf"|\b(?P<n2>\d[\d,]*) +(?:\w+ +){{0,2}}?(?:{_STATE})\b",
    re.IGNORECASE,
)
_UNIT = re.compile(
    r"(?:characters?|bytes?|seconds?|minutes?|hours?|days?|items?|results?|tokens?|lines?|entries)$", re.IGNORECASE
)

_LOCAL = re.compile(
    r"(?<![\w/.:~-])(?:/(?:home|Users)/(?!(?:user|username|me|you|name|USER|alice|bob|example)\b)[\w.-]+(?:/[\w.@+-]+)*"
    r"|/(?:var/folders|private/var|run/user)/[\w.@+/-]+"
    r"|[A-Za-z]:\\Users\\[\w.-]+(?:\\[\w.@+-]+)*)"
    r"|\b(?:https?|wss?)://(?:localhost|127\.0\.0\.1|\[::1\]|10(?:\.\d+){3}|192\.168(?:\.\d+){2})(?::\d+)?(?![\w:.-])(?:/[^\s\"'<>)]*)?",
)
_ALWAYS = ("uuid", "hash")
_NEVER = ("path", "duration", "URL")
_SESSION_URL = re.compile(
    r"[?&/](?:session|sess|sid|token|nonce|request|trace|run|ts|timestamp)(?:[_-]?id)?[=/][\w.-]{6,}", re.IGNORECASE
)
_EPOCH = re.compile(r"1[4-9]\d{8}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?")
_FULL_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d")
_BEFORE = 60


class Found(NamedTuple):
    """A live value: its kind, the text, where it starts, and how sure it is that it moves."""

    kind: str
    text: str
    start: int
    sure: bool


@lru_cache(maxsize=32)
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE)


def volatile_kinds(text: str) -> Iterator[tuple[str, str]]:
    """The kinds of volatile values in a text with the values, longest kinds first; what stands in one is no other."""
    for kind, value, _ in _values(text):
        yield kind, value


def _values(text: str) -> Iterator[tuple[str, str, int]]:
    taken = [False] * len(text)
    for kind, pattern in KINDS:
        for match in _pattern(pattern).finditer(text):
            if match.end() > match.start() and not any(taken[match.start() : match.end()]):
                taken[match.start() : match.end()] = [True] * (match.end() - match.start())
                yield kind, match.group(), match.start()


def live_values(text: str) -> list[Found]:
    """The values in a text that look as if they were put in when it was made.

    A value behind words such as `for example`, in a list of values or in a format is none. sure: words such as
    `generated at` stand in front of it, or it is an id.
    """
    found = []
    for kind, value, start in _values(text):
        before = text[max(0, start - _BEFORE) : start]
        now = _NOW.search(before) is not None
        if kind == "URL":
            if _SESSION_URL.search(value):
                found.append(Found("session URL", value, start, True))
            continue
        if _EXAMPLE.search(before) or (_LISTED.search(before) and not now):
            continue
        if now and kind not in _NEVER:
            found.append(Found(kind, value, start, True))
        elif _is_live(kind, value):
            found.append(Found(kind, value, start, kind in _ALWAYS or _EPOCH.fullmatch(value) is not None))
    return found


def _is_live(kind: str, value: str) -> bool:
    """Whether a value alone tells that it moves: an id, a long hash, a time of one day, seconds since 1970."""
    if kind == "uuid":
        return True
    if kind == "hash":
        return len(value) >= 12 and any(sign.isdigit() for sign in value) and not value.isupper()
    return kind == "clock" and (_FULL_TIME.match(value) is not None or _EPOCH.fullmatch(value) is not None)


def counters(text: str) -> list[str]:
    """Counts of things in a text that are true for a while only: `3 open issues`, `currently 12 projects`."""
    found = []
    for match in _COUNTER.finditer(text):
        number = "n" if match.group("n") else "n2"
        behind = text[match.end(number) :].split(maxsplit=2)
        limited = _LIMIT.search(text[: match.start(number)]) is not None
        if not limited and not any(_UNIT.match(word.strip(".,;)")) for word in behind[:2]):
            found.append(match.group())
    return found


def local_places(text: str) -> list[str]:
    """Folders of one machine or user in a text, and addresses that only it can reach."""
    found = []
    for match in _LOCAL.finditer(text):
        before = text[max(0, match.start() - _BEFORE) : match.start()]
        if not _EXAMPLE.search(before):
            found.append(match.group().rstrip(".,;"))
    return found
