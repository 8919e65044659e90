"""Tagged netstrings, the encoding of mitmproxy's files: where values stand, without building those not asked for.

A value is its length in decimal digits, a colon, its bytes, and one byte that says what they are: `,` bytes, `;` UTF-8
text, `#` an integer, `^` a number, `!` true or false, `~` null, `]` a list, `}` an object.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from mmap import mmap
from typing import NamedTuple

from rebilled.errors import RecordError

_MOST_DIGITS = 12
_KINDS = b",;#^!~]}"
_MOST_VALUES = 100_000
"""No flow has as many members, headers or messages; a damaged file may seem to."""


class Value(NamedTuple):
    """One value: what it is, where its length stands, and where its bytes start and end."""

    buffer: bytes | mmap
    kind: bytes
    at: int
    start: int
    end: int

    @property
    def text(self) -> bytes | None:
        """The bytes of a text or a byte string; None for anything else."""
        return self.buffer[self.start : self.end] if self.kind in (b",", b";") else None

    @property
    def number(self) -> float | None:
        """A finite number; None for anything else."""
        if self.kind not in (b"#", b"^") or self.end - self.start > 40:
            return None
        try:
            found = float(self.buffer[self.start : self.end])
        except ValueError:
            return None
        return found if isfinite(found) else None


def read_value(buffer: bytes | mmap, at: int, end: int) -> Value:
    """The value that begins at a place; the next one begins one byte behind its end.

    Raises RecordError: `truncated` where it would go beyond the end, `not_tnetstring` where none begins there.
    """
    head = buffer[at : min(end, at + _MOST_DIGITS + 1)]
    digits, colon, _ = head.partition(b":")
    if not colon or not digits.isdigit():
        whole = len(head) > _MOST_DIGITS or not (head.isdigit() or not head)
        raise RecordError("not_tnetstring" if whole else "truncated", "no length of a value stands here")
    start = at + len(digits) + 1
    stop = start + int(digits)
    if stop >= end:
        raise RecordError("truncated", "a value ends behind what is there")
    kind = buffer[stop : stop + 1]
    if kind not in _KINDS:
        raise RecordError("not_tnetstring", "a value does not end where it says")
    return Value(buffer, kind, at, start, stop)


def read_items(value: Value) -> Iterator[Value]:
    """The elements of a list, or the keys and values of an object by turns; nothing for other values.

    Raises RecordError as `read_value` does, and `too_large` for a list of too many.
    """
    at, left = value.start, _MOST_VALUES
    while value.kind in (b"]", b"}") and at < value.end:
        item = read_value(value.buffer, at, value.end)
        yield item
        at, left = item.end + 1, left - 1
        if not left:
            raise RecordError("too_large", f"a list of more than {_MOST_VALUES:,} values")


def read_members(value: Value | None) -> dict[str, Value]:
    """The members of an object by name; none for other values. Raises RecordError as `read_items` does."""
    if value is None or value.kind != b"}":
        return {}
    items = list(read_items(value))
    names = [(item.text or b"").decode("utf-8", "replace") for item in items[::2]]
    return dict(zip(names, items[1::2], strict=False))
