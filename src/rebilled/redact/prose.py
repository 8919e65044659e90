"""Text to filler of the same length in which everything that a verdict looks for is still found at its place.

Words become pseudonyms, numbers other numbers, and what looks like a date, an id, a hash, a path or an address becomes
another one of its kind, told by the very patterns that look for changing values.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from rebilled.context import named_spans, names_context
from rebilled.providers.content import ATTRIBUTION
from rebilled.redact.signs import Signs
from rebilled.redact.words import Words
from rebilled.volatile import KINDS, git_lines

_IDENT: Final = (
    r"(?<![^\W_])(?:toolu|srvtoolu|mcptoolu|msg|call|chatcmpl|cmpl|resp|req|fc|rs|run|thread|item|gen)[_-]"
    r"(?=[A-Za-z0-9_-]*\d)[A-Za-z0-9_-]{6,}"
)
_ADDRESS: Final = r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])"
_RUN: Final = re.compile(r"[^\W_]+")
_PIECES: Final = re.compile(r"[A-Za-z]+|\d+")
_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_KEYED: Final = re.compile(r"(\b[A-Za-z_-]+=)")
_COUNTED_ID: Final = re.compile(r"functions\.(?=[^:]+:\d+$)")
_BASE64: Final = re.compile(
    r"(data:[\w/+.-]+;base64,)?((?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])(?=\D*\d)[A-Za-z0-9+/_-]{64,}={0,2})"
)
_HEX: Final = re.compile(r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{5,}", re.IGNORECASE)

_LONGEST_SIGN: Final = 3
_MONTHS: Final = frozenset(
    ["january", "february", "march", "april", "june", "july", "august", "september", "october", "november", "december"]
)
_SIBLINGS: Final = {
    before: after
    for family in (
        "january october",
        "february november december",
        "march april",
        "june july",
        "monday friday sunday",
        "thursday saturday",
        "minutes seconds",
        "minute second",
        "hours weeks years month",
        "hour days week year mins secs",
    )
    for names in [family.split()]
    for before, after in zip(names, names[1:] + names[:1], strict=True)
}
"""Words of dates and durations, each with another one that is as long."""

_NAMING: Final = {"name": "kind", "kind": "type", "type": "name", "title": "class", "class": "title"}
"""Attributes of tags that name a part, each with another one that is as long."""

_CONTEXT: Final = {"memory": "recall", "recall": "search", "search": "memory", "note": "note", "notes": "notes"}
"""Words that tell of context in headings and tags, each with another one that does."""


@lru_cache
def _shapes() -> re.Pattern[str]:
    kinds = "|".join(f"(?P<{name}>{pattern})" for name, pattern in KINDS)
    line = rf"(?P<attribution>^{ATTRIBUTION}.*$)"
    pattern = rf"{line}|(?P<ident>{_IDENT})|(?P<address>{_ADDRESS})|{kinds}"
    return re.compile(pattern, re.MULTILINE | re.IGNORECASE)


@lru_cache
def _ids() -> re.Pattern[str]:
    """What else than words stands in paths and addresses."""
    found = [pattern for name, pattern in KINDS if name in ("uuid", "hash")]
    return re.compile("|".join([_IDENT, _ADDRESS, *found]), re.MULTILINE | re.IGNORECASE)


class Prose:
    """Texts with the code book of one run.

    instructions: the texts are those of system prompts. Only there do verdicts look for changing values, for lines of
    git and for parts that hold context, so only there do the words stay recognisable by which these are told.
    """

    def __init__(self, words: Words, signs: Signs, *, instructions: bool) -> None:
        self._words = words
        self._signs = signs
        self._instructions = instructions
        self.phrases: frozenset[str] = frozenset()
        """Words of git's own that stay in the lines which hold the state of a repository."""

    def other(self, text: str) -> str:
        """The filler for a text; equal for equal texts, different for different ones."""
        data = _BASE64.fullmatch(text)
        if data is not None:
            return (data[1] or "") + self._signs.base64(data[2])
        counted = _COUNTED_ID.match(text)
        if counted is not None:
            return counted[0] + self.other(text[counted.end() :])
        kept = _Kept(text if self._instructions else "")
        found, at = [], 0
        for match in _shapes().finditer(text):
            found.append(self._plain(text, at, match.start(), kept))
            found.append(self._shape(match, kept))
            at = match.end()
        found.append(self._plain(text, at, len(text), kept))
        return "".join(found)

    # ---- shapes --------------------------------------------------------------------------------------------------

    def _shape(self, match: re.Match[str], kept: _Kept) -> str:
        kind, text = match.lastgroup, match[0]
        if kind in ("uuid", "hash", "ident"):
            return self._ident(text)
        if kind == "address":
            return self._signs.digits(text, first=0)
        if kind == "attribution":
            return text[: len(ATTRIBUTION)] + self._attribution(text[len(ATTRIBUTION) :])
        if kind in ("clock", "date"):
            return self._dated(self._signs.moment(text))
        if kind == "duration":
            return self._dated(re.sub(r"\d+", lambda run: self._signs.digits(run[0]), text))
        scheme = text.find("://") if kind == "URL" and self._instructions else -1
        start = match.start() + (scheme + 3 if scheme >= 0 else 0)
        return match.string[match.start() : start] + self._place(match.string, start, match.end(), kept)

    def _ident(self, text: str) -> str:
        """An id or hash, with the sign of its kind in front."""
        if re.match(r"mcp__", text):
            return self._plain(text, 0, len(text), _Kept(""))
        kind = re.match(rf"(?={_IDENT}$)[a-z]+[_-]|0x", text, re.IGNORECASE)
        start = kind.end() if kind is not None else 0
        return text[:start] + self._signs.opaque(text[start:])

    def _dated(self, text: str) -> str:
        """Words of dates and durations as others of them."""

        def change(match: re.Match[str]) -> str:
            word = match[0].lower()
            if not self._instructions and len(word) > _LONGEST_SIGN and word not in _MONTHS:
                return self._words.other(match[0])
            return _in_case(match[0], _SIBLINGS.get(word, match[0]))

        return re.sub(r"[A-Za-z]+", change, text)

    def _attribution(self, text: str) -> str:
        """The fields of Claude Code's attribution line: their names stay."""
        kept = _Kept("")
        fields = _KEYED.split(text)
        return "".join(
            field if place % 2 else self._plain(field, 0, len(field), kept) for place, field in enumerate(fields)
        )

    def _place(self, text: str, start: int, end: int, kept: _Kept) -> str:
        """A path or an address, with the ids in it."""
        found, at = [], start
        for match in _ids().finditer(text, start, end):
            found.append(self._plain(text, at, match.start(), kept))
            found.append(self._signs.digits(match[0], first=0) if "." in match[0] else self._ident(match[0]))
            at = match.end()
        found.append(self._plain(text, at, end, kept))
        return "".join(found)

    # ---- words and numbers -----------------------------------------------------------------------------------------

    def _plain(self, text: str, start: int, end: int, kept: _Kept) -> str:
        found, at = [], start
        for match in _RUN.finditer(text, start, end):
            found.append(text[at : match.start()])
            found.append(self._run(match, kept))
            at = match.end()
        found.append(text[at:end])
        return "".join(found)

    def _run(self, match: re.Match[str], kept: _Kept) -> str:
        """Letters and digits between other signs."""
        run, start = match[0], match.start()
        if not run.isascii():
            return self._signs.opaque(run)
        if run == "mcp" and match.string.startswith("__", match.end()):
            return run
        if run.isdigit():
            return self._signs.digits(run)
        if _HEX.fullmatch(run):
            return self._signs.opaque(run)
        return "".join(
            self._signs.digits(piece[0]) if piece[0].isdigit() else self._letters(piece[0], start + piece.start(), kept)
            for piece in _PIECES.finditer(run)
        )

    def _letters(self, run: str, start: int, kept: _Kept) -> str:
        """The words in a run of letters, cut where a capital letter follows a small one."""
        found = []
        for word in _CAMEL.split(run):
            found.append(self._word(word, start, kept))
            start += len(word)
        return "".join(found)

    def _word(self, word: str, start: int, kept: _Kept) -> str:
        if word.lower() in self.phrases and kept.holds(start):
            return word
        if kept.names_part(start) and names_context(word):
            return _in_case(word, self._context(word.lower()))
        if kept.names_attribute(start):
            return _in_case(word, _NAMING[word.lower()])
        return self._words.other(word)

    def _context(self, word: str) -> str:
        """Another word that tells of context, as long as this one."""
        if word in _CONTEXT:
            return _CONTEXT[word]
        stem = "retriev" if word.startswith("recall") and len(word) > len("retriev") else "recall"
        if word.startswith("recall") and len(word) == len("retriev"):
            return "context"
        return stem + self._words.other("context" + word)[-(len(word) - len(stem)) :]


def _in_case(word: str, other: str) -> str:
    """Another word of the same length in the upper and lower case of this one."""
    return "".join(new.upper() if old.isupper() else new for old, new in zip(word, other, strict=True))


class _Kept:
    """Where in a text words stand that tell what a part is: found when the first word is looked at."""

    def __init__(self, text: str) -> None:
        self._parts, self._attributes = named_spans(text) if text else ([], [])
        self._phrases = git_lines(text) if text else []

    def holds(self, place: int) -> bool:
        """Whether the word there belongs to a phrase of git."""
        return any(start <= place < end for start, end in self._phrases)

    def names_part(self, place: int) -> bool:
        """Whether the word there names a part of the prompt as context."""
        return any(start <= place < end for start, end in self._parts)

    def names_attribute(self, place: int) -> bool:
        """Whether the word there is an attribute that names a part."""
        return any(start <= place < end for start, end in self._attributes)
