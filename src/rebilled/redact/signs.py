"""Ids, hashes, numbers and data to others of their kind, sign by sign: what begins alike begins alike afterwards."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache
from typing import Final

_CLASSES: Final = ("0123456789", "abcdef", "ghijklmnopqrstuvwxyz", "ABCDEF", "GHIJKLMNOPQRSTUVWXYZ")
_PLACES: Final = {sign: (group, place) for group in _CLASSES for place, sign in enumerate(group)}
_BASE64: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_BASE64_PLACES: Final = {sign: place for place, sign in enumerate(_BASE64)}
_PIECE: Final = 16
_FOLDING: Final = frozenset("µμΜſıİK")
"""Letters that case folding makes equal to others; they stay, and nothing becomes one of them."""

_PLANES: Final = {2: (0x80, 0x800), 3: (0x800, 0x10000), 4: (0x10000, 0x2A6E0)}
_ENDS: Final = {
    "0": ("0", "123456789"),
    "1": ("012", "3456789"),
    "2": ("0123", "45678", "9"),
    "3": ("01", "23456789"),
}
"""Second digits of a two-digit part of a moment that may stand for one another, so that no month has 34 days."""


class Signs:
    """Replaces signs with a keystream that the signs before them decide."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def _state(self, kind: str) -> bytes:
        return hashlib.blake2b(kind.encode(), key=self._key, digest_size=8).digest()

    def _next(self, state: bytes, sign: str) -> bytes:
        return hashlib.blake2b(state + sign.encode("utf-8", "surrogatepass"), key=self._key, digest_size=8).digest()

    def opaque(self, text: str) -> str:
        """An id or hash as another one: digits stay digits, letters letters, hexadecimal ones hexadecimal."""
        state, found = self._state("opaque"), []
        for sign in text:
            held = _PLACES.get(sign)
            if held is not None:
                group, place = held
                found.append(group[(place + state[0]) % len(group)])
            else:
                found.append(self._letter(sign, state) if sign > "\x7f" else sign)
            state = self._next(state, sign)
        return "".join(found)

    def _letter(self, sign: str, state: bytes) -> str:
        """A letter or digit outside ASCII as another one of its category and length in UTF-8; other signs stay."""
        category = unicodedata.category(sign)
        if category == "Nd":
            value = unicodedata.decimal(sign)
            return chr(ord(sign) - value + (value + state[0]) % 10)
        if category[0] != "L" or sign in _FOLDING:
            return sign
        size = len(sign.encode("utf-8", "surrogatepass"))
        letters, places = _alphabet(category, size)
        place = places.get(sign)
        return letters[(place + int.from_bytes(state, "big")) % len(letters)] if place is not None else sign

    def digits(self, text: str, *, first: int = 2) -> str:
        """A number as another one: its first digits and its zeros stay, so it keeps its size and its form."""
        state, found = self._state("digits"), []
        for place, sign in enumerate(text):
            found.append(_turned(sign, "123456789", state[0]) if place >= first else sign)
            state = self._next(state, sign)
        return "".join(found)

    def moment(self, text: str) -> str:
        """The digits of a date or time as those of another one."""
        state, found = self._state("moment"), []
        for run in re.split(r"(\d+)", text):
            for place, sign in enumerate(run):
                found.append(_moment_digit(run, place, state[0]) if sign.isdigit() else sign)
                state = self._next(state, sign)
        return "".join(found)

    def base64(self, text: str) -> str:
        """Base64 as other base64 of the same length."""
        state, found = self._state("base64"), []
        for start in range(0, len(text), _PIECE):
            piece = text[start : start + _PIECE]
            stream = hashlib.blake2b(state, key=self._key, digest_size=_PIECE).digest()
            for sign, byte in zip(piece, stream, strict=False):
                place = _BASE64_PLACES.get(sign)
                found.append(_BASE64[(place + byte) % 62] if place is not None else sign)
            state = hashlib.blake2b(state + piece.encode(), key=self._key, digest_size=8).digest()
        return "".join(found)


def _turned(sign: str, group: str, by: int) -> str:
    place = group.find(sign)
    return group[(place + by) % len(group)] if place >= 0 else sign


def _moment_digit(run: str, place: int, by: int) -> str:
    """One digit of a run of digits in a date or time: the leading ones stay, so that it remains possible."""
    sign, size = run[place], len(run)
    if size == 8 and run.startswith("20"):
        if place < 4:
            return _turned(sign, "0123456789", by) if place >= 2 else sign
        start = place // 2 * 2
        size, run, place = 2, run[start : start + 2], place - start
    if size == 2:
        groups = _ENDS.get(run[0], ("0123456789",))
        return next(_turned(sign, group, by) for group in groups if sign in group) if place else sign
    return _turned(sign, "0123456789", by) if place >= 2 else sign


@lru_cache
def _alphabet(category: str, size: int) -> tuple[str, dict[str, int]]:
    """All letters of a Unicode category that are as long in UTF-8, and their places; built when first needed."""
    signs = map(chr, range(*_PLANES.get(size, (0, 0))))
    letters = "".join(sign for sign in signs if unicodedata.category(sign) == category and sign not in _FOLDING)
    return letters, {sign: place for place, sign in enumerate(letters)}
