"""Values that change by themselves: clocks, dates, durations, ids, hashes, paths, and the state of a repository."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
_ZONE = r"(?:\s?(?:Z|UTC|GMT|[ECMP][SD]T|CES?T|BST|IST|JST)\b|\s?[+-]\d\d:?\d\d\b)"
_UNIT = r"(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|weeks?)"

KINDS: Final[tuple[tuple[str, str], ...]] = (
    ("uuid", r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"),
    ("URL", r"\b(?:https?|wss?|file|ftp)://[^\s<>\"')\]]+"),
    (
        "clock",
        rf"\b\d{{4}}-\d\d-\d\d[T ]\d{{1,2}}:\d\d(?::\d\d(?:[.,]\d+)?)?{_ZONE}?"
        rf"|\b\d{{1,2}}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s?[ap]\.?m\b\.?)?{_ZONE}?"
        r"|\b1[4-9]\d{8}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?\b",
    ),
    (
        "date",
        rf"\b\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}\b|\b\d{{1,2}}[-/.]\d{{1,2}}[-/.]\d{{2,4}}\b"
        rf"|\b(?:{_DAY},?\s+)?{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+\d{{4}})?\b"
        rf"|\b(?:{_DAY},?\s+)?\d{{1,2}}(?:st|nd|rd|th)?\s+{_MONTH}(?:,?\s+\d{{4}})?\b|\b{_DAY}\b",
    ),
    ("duration", rf"\b\d+(?:\.\d+)?\s?{_UNIT}(?:\s?\d+(?:\.\d+)?\s?{_UNIT})*(?:\s+ago)?\b"),
    (
        "hash",
        r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{5,128}\b"
        r"|\b(?=[A-Za-z0-9_-]*\d)(?=[A-Za-z0-9_-]*[A-Za-z])[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)*(?<=[A-Za-z0-9_-]{16})\b"
        r"|\b\d+(?:\.\d+)+\.(?=[0-9a-f]*[a-f])[0-9a-f]{2,40}\b",
    ),
    ("path", r"(?:(?<=\s)|(?<=[\"'`(=:])|^)(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.@+-]+)+[/\\]?"),
)
_ALL = "|".join(f"(?:{pattern})" for _, pattern in KINDS)
_NUMBER = r"(?<![\w.])-?\d+(?:[.,]\d+)*(?![\w])"
_GIT_LINE = (
    r"^(?:[ MADRCUT?!]{2} \S.*|\s*(?:[MADRCU]|\?\?)\s+\S+|[0-9a-f]{4,40} \S.*"
    r"|(?:On|Current) branch:?.*|Main branch.*|Your branch .*|HEAD detached .*|nothing to commit.*|\(clean\)|"
    r"(?:Changes|Untracked files|Git user|Status|Recent commits)\b.*:.*|\s*(?:modified|new file|deleted|renamed):.*)$"
)
_ATTRIBUTION = r"^x-anthropic-billing-header:.*$"
SIGN: Final = "\u0000"


@lru_cache
def _compiled(pattern: str, *, fold: bool = False) -> re.Pattern[str]:
    """Compiled when first needed: most traces never are."""
    return re.compile(pattern, re.MULTILINE | (re.IGNORECASE if fold else 0))


def levelled(text: str, *, numbers: bool = False) -> str:
    """The text with every volatile value replaced by one sign, and lines of git state taken out.

    numbers: also level bare numbers.
    """
    text = _compiled(_ATTRIBUTION).sub(SIGN, text)
    text = _compiled(_GIT_LINE).sub("", text)
    text = _compiled(_ALL, fold=True).sub(SIGN, text)
    if numbers:
        text = _compiled(_NUMBER).sub(SIGN, text)
    return re.sub(r"\n{2,}", "\n", text).strip()


def only_volatile(before: str, after: str, *, numbers: bool = False) -> bool:
    """Whether two texts differ in volatile values alone."""
    return before != after and levelled(before, numbers=numbers) == levelled(after, numbers=numbers)


def kind_of_change(before: str, after: str) -> str:
    """What kind of volatile value changed first, in a word; `value` where no single kind explains it."""
    if _compiled(_ATTRIBUTION).findall(before) != _compiled(_ATTRIBUTION).findall(after):
        return "request hash"
    if _compiled(_GIT_LINE).findall(before) != _compiled(_GIT_LINE).findall(after):
        return "git state"
    for name, pattern in KINDS:
        found = _compiled(pattern, fold=True)
        if found.findall(before) != found.findall(after):
            return name
    return "number" if _compiled(_NUMBER).findall(before) != _compiled(_NUMBER).findall(after) else "value"
