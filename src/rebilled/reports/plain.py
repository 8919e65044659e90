"""Text from a trace made safe and fitting for a terminal: nothing that moves the cursor, every cell counted."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_SHOWN_AS_ESCAPE = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
_PLAIN = re.compile(r"[ -~\xa1-\xac\xae-\u02ff\u2010-\u2027]*", re.ASCII)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def plain(text: str) -> str:
    """The text with escapes for control, format and bidi characters and for lone surrogates."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(map(_shown, text))


def _shown(sign: str) -> str:
    if unicodedata.category(sign) not in _SHOWN_AS_ESCAPE:
        return sign
    code = ord(sign)
    if code < 0x100:
        return _SHORT.get(sign, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def cells(text: str) -> int:
    """How many columns of a terminal the text takes; wide characters take two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, width: int) -> str:
    """The text, or its beginning and an ellipsis where it is wider."""
    return text if cells(text) <= width else _head(text, max(0, width - 1)) + "…" * (width > 0)


def cut_middle(text: str, width: int) -> str:
    """The text, or its two ends with an ellipsis between them: for paths and names, which differ at their ends."""
    if cells(text) <= width:
        return text
    if width < 3:
        return cut(text, width)
    left = (width - 1) // 2
    return f"{_head(text, left)}…{_tail(text, width - 1 - left)}"


def pad(text: str, width: int, *, right: bool = False) -> str:
    """The text filled up with spaces to a width; right: aligned to the right."""
    space = " " * (width - cells(text))
    return space + text if right else text + space


def _head(text: str, width: int) -> str:
    if text.isascii():
        return text[:width]
    at, used = 0, 0
    for sign in text:
        used += cells(sign)
        if used > width:
            break
        at += 1
    return text[:at]


def _tail(text: str, width: int) -> str:
    if width <= 0:
        return ""
    if text.isascii():
        return text[-width:]
    at, used = len(text), 0
    for sign in reversed(text):
        used += cells(sign)
        if used > width:
            break
        at -= 1
    return text[at:]


def wrap(text: str, width: int) -> list[str]:
    """The text as lines of at most this width, broken at spaces, and inside a word only where it is too long."""
    lines: list[str] = []
    line = ""
    for word in _words(text, width):
        joined = f"{line} {word}" if line else word
        if cells(joined) <= width:
            line = joined
        else:
            lines.append(line)
            line = word
    return [*lines, line] if line or not lines else lines


def fold(text: str, width: int) -> list[str]:
    """The text as lines of exactly this width, spaces kept: for code and JSON."""
    lines: list[str] = []
    while cells(text) > width:
        piece = _head(text, width) or text[:1]
        lines.append(piece)
        text = text[len(piece) :]
    return [*lines, text]


def _words(text: str, width: int) -> Iterator[str]:
    for word in text.split():
        yield from fold(word, width)
