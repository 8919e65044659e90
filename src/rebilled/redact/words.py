"""Words to other words of the same length: the same for the same word everywhere, never those of a language.

A pseudonym is drawn with a secret key, so that it cannot be looked up. It has no vowels and none of the letters of
hexadecimal numbers, so it never looks like a date, a unit or a hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

LETTERS: Final = "ghjklmnpqrstvwxyz"
_SPARE: Final = "bcdfaeiou"
_SHORTEST: Final = 3
_REMEMBERED: Final = 12
"""Longer words do not meet by chance."""

_TAKEN: Final = frozenset(
    (
        "hrs",
        "yrs",
        "mst",
        "pst",
        "gmt",
        "jst",
        "wst",
        "http",
        "https",
        "html",
        "mcp",
        "xml",
        "sql",
        "pypy",
        "pytz",
        "rhythm",
    )
)
"""Words without vowels that mean something, to a reader or to whoever looks for clocks."""

_TRIES: Final = 200


class Words:
    """The code book of one run."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._known: dict[str, str] = {}
        self._used: set[str] = set()
        self._branches: dict[str, dict[str, str]] = {}

    def tie(self, words: Iterable[str]) -> None:
        """Give these words pseudonyms that share as many first letters as they do; call it once, before all else.

        Where two of them stand at the same place of two prompts, the first byte that differs stays where it is.
        """
        lowered = sorted({word.lower() for word in words if word}, key=lambda word: (len(word) >= _SHORTEST, word))
        for word in lowered:
            short = len(word) < _SHORTEST
            made = "".join(self._branch(word, place, kept=short) for place in range(len(word)))
            self._known[word] = word if short else made
            self._used.add(self._known[word])

    def _branch(self, word: str, place: int, *, kept: bool) -> str:
        """The letter that stands for the one at a place, different from those of the words that part here."""
        node = self._branches.setdefault(word[:place], {})
        letter = word[place]
        if letter not in node:
            used = set(node.values())
            free = [letter] if kept and letter not in used else [sign for sign in LETTERS if sign not in used]
            free = free or [sign for sign in _SPARE if sign not in used]
            node[letter] = free[self._draw(f"branch {word[:place]} {letter}", 1)[0] % len(free)]
        return node[letter]

    def other(self, word: str) -> str:
        """The pseudonym of a word of ASCII letters, in its upper and lower case; words of one or two letters stay."""
        lowered = word.lower()
        found = self._known.get(lowered) or self._make(lowered)
        if word == lowered:
            return found
        if word.isupper():
            return found.upper()
        return "".join(new.upper() if old.isupper() else new for old, new in zip(word, found, strict=True))

    def _make(self, word: str) -> str:
        if len(word) < _SHORTEST:
            return word
        for attempt in range(_TRIES):
            letters = LETTERS if attempt < _TRIES // 2 else LETTERS + _SPARE[:4]
            drawn = self._draw(f"{attempt} {word}", len(word))
            found = "".join(letters[byte % len(letters)] for byte in drawn)
            if found not in self._used and found not in _TAKEN and found != word:
                break
        if len(word) < _REMEMBERED:
            self._used.add(found)
            self._known[word] = found
        return found

    def _draw(self, text: str, size: int) -> bytes:
        """Bytes that the key and the text decide."""
        found = b""
        while len(found) < size:
            seed = f"{len(found)} {text}".encode("utf-8", "surrogatepass")
            found += hashlib.blake2b(seed, key=self._key).digest()
        return found[:size]
