"""Values that change by themselves: clocks, dates, durations, ids, hashes, paths, and the state of a repository."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?"
_ZONE = r"(?:\s?(?:Z|(?:UTC|GMT)(?:[+-]\d{1,2}(?::\d\d)?)?|[ECMP][SD]T|CES?T|BST|IST|JST)\b|\s?[+-]\d\d:?\d\d\b)"
_UNIT = (
    r"(?:[mµun]s|milliseconds?|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?|weeks?|months?|yrs?|years?"
    r"|(?-i:[smhdy]))"
)
_SPAN = rf"\d+(?:[.,]\d+)*\s?{_UNIT}"
_ORDINAL = r"\d{1,2}(?:st|nd|rd|th)?"
_BEGIN, _END = r"(?<![^\W_])", r"(?![^\W_])"

KINDS: Final[tuple[tuple[str, str], ...]] = (
    ("uuid", rf"{_BEGIN}[0-9a-f]{{8}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{12}}{_END}"),
    ("URL", r"\b(?:https?|wss?|file|ftp)://[^\s<>\"')\]]+"),
    (
        "clock",
        rf"\b\d{{4}}-\d\d-\d\d[T ]\d{{1,2}}:\d\d(?::\d\d(?:[.,]\d+)?)?{_ZONE}?"
        rf"|\b(?:{_DAY},?\s+)?\d{{1,2}}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s?[ap]\.?m\b\.?)?{_ZONE}?"
        rf"|\b\d{{1,2}}\s?[ap]\.?m\b\.?{_ZONE}?"
        r"|\b1[4-9]\d{8}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?\b",
    ),
    (
        "date",
        r"\b\d{4}[-/.]\d{1,2}[-/.]\d{1,2}\b|\b\d{1,2}[-/]\d{1,2}[-/]\d{2}(?:\d{2})?\b|\b\d{1,2}\.\d{1,2}\.\d{4}\b"
        r"|\b20\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\b|\b20\d\d-(?:0[1-9]|1[0-2]|W\d\d)\b|\bQ[1-4]\s20\d\d\b"
        rf"|\b(?:{_DAY},?\s+)?{_MONTH}\s+{_ORDINAL}\b(?:,?\s+\d{{4}}\b)?"
        rf"|\b(?:{_DAY},?\s+)?(?:the\s+)?{_ORDINAL}\s+(?:of\s+)?{_MONTH}(?:,?\s+\d{{4}}\b)?"
        rf"|\b{_MONTH}\s+\d{{4}}\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b",
    ),
    ("duration", rf"{_BEGIN}(?<!-){_SPAN}(?:(?:,\s*|\s+and\s+|\s*){_SPAN})*\b(?:\s+ago\b)?"),
    (
        "hash",
        rf"{_BEGIN}(?<!#)(?:[0-9a-f]{{2,}}-)*(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{{5,128}}(?:-[0-9a-f]{{2,}})*{_END}"
        rf"|{_BEGIN}(?:(?=[a-z0-9]*\d[a-z])[a-z0-9]{{10,}}|(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{{16,}}){_END}={{0,2}}"
        r"|(?<![\w+/-])(?-i:(?=[\w+/-]*[a-z])(?=[\w+/-]*[A-Z])(?=[\w+/-]*\d[\w+/-]*)[A-Za-z0-9+/_-]{24,}={0,2})(?![\w+/-])"
        r"|\b0x[0-9a-f]+\b|\b\d+(?:\.\d+)+\.(?=[0-9a-f]*[a-f])[0-9a-f]{2,40}\b",
    ),
    (
        "path",
        r"(?:(?<=\s)|(?<=[\"'`(=:])|^)(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.@+-]+)+[/\\]?"
        r"|(?<![\w/.@+-])[\w.@+-]+(?:/[\w.@+-]+)*/[\w@+-][\w.@+-]*\.[a-z]\w{0,7}\b",
    ),
)
_ALL = "|".join(f"(?:{pattern})" for _, pattern in KINDS)
_NUMBER = r"(?<![\w.])-?\d+(?:[.,]\d+)*(?![\w])"
_FILE = r"(?:\"[^\"\n]+\"|\S+)"
_GIT_LINE = (
    rf"^(?:(?! {{2}})[ MADRCUT?!]{{2}} {_FILE}(?: -> {_FILE})?|[ \t]*(?:[MADRCU]|\?\?)[ \t]+{_FILE}"
    r"|(?=[a-f]*\d)[0-9a-f]{7,40} \S.*|## \S+\.{3}\S+.*|## .*\[(?:ahead|behind) \d+.*\]"
    r"|(?:On|Current) branch:?.*|(?:Git )?[Bb]ranch: ?\S+|Main branch.*|Your branch .*|HEAD detached .*|\(clean\)"
    r"|(?:nothing to commit|no changes added to commit).*|.*working tree clean\)?"
    r"|Changes (?:not staged for commit|to be committed):.*|Untracked files:.*|Unmerged paths:.*|[ \t]*\(use \"git .*"
    r"|(?:Git user|(?:[Gg]it )?[Ss]tatus|(?:HEAD|(?:Last|Latest|Recent) commits?) *):.*"
    r"|[ \t]*(?:modified|new file|deleted|renamed|both modified):.*"
    r"|[ \t]*\S+ +\| +\d+ [+-]+|[ \t]*\d+ files? changed.*)$"
)
_GIT_WORD = (
    r"\b(?:current|git|branch|main|your|head|detached|clean|nothing|to|commit(?:s|ted)?|no|changes|added|working|tree|not"
    r"|staged|for|untracked|unmerged|paths|use|user|status|last|latest|recent|modified|new|deleted|renamed|both|files?"
    r"|changed|be|on|ahead|behind)\b"
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


def git_lines(text: str) -> list[tuple[int, int]]:
    """Where the words of git's own phrases stand, in the lines that hold the state of a repository."""
    if _compiled(_GIT_WORD, fold=True).search(text) is None:
        return []
    return [
        word.span()
        for line in _compiled(_GIT_LINE).finditer(text)
        for word in _compiled(_GIT_WORD, fold=True).finditer(text, *line.span())
    ]


def only_volatile(before: str, after: str) -> bool:
    """Whether two texts differ in volatile values alone."""
    return before != after and levelled(before) == levelled(after)


def changed_numbers(before: str, after: str) -> frozenset[int] | None:
    """Which of the bare numbers differ, by their place among them; None where more than volatile values differs too."""
    if before == after or levelled(before, numbers=True) != levelled(after, numbers=True):
        return None
    mine, theirs = (_compiled(_NUMBER).findall(levelled(text)) for text in (before, after))
    return frozenset(place for place, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b)


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
