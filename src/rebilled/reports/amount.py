"""Numbers as a person reads them: 12.4k tokens, $3.18, 41%, steps 4, 5, 7-9."""

from __future__ import annotations

from collections.abc import Sequence

_UNITS = ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k"))


def count(value: float) -> str:
    """A count of tokens, bytes or records in at most five characters: 950, 12.4k, 3.1M."""
    for unit, sign in _UNITS:
        if abs(value) >= unit * 0.99995:
            return f"{value / unit:.1f}{sign}"
    return f"{value:.0f}"


def whole(value: int, noun: str) -> str:
    """A number with its noun, one or several: 1 step, 12 steps, 1,024 steps."""
    several = noun if value == 1 else noun[:-1] + "ies" if noun.endswith("ry") else noun + "s"
    return f"{value:,} {several}"


def usd(value: float | None) -> str:
    """Dollars with as many digits as mean something: $1,204.50, $0.682, $0.0042; a dash where they are not known."""
    if value is None:
        return "-"
    size, sign = abs(value), "-" if value < 0 else ""
    if size == 0:
        return "$0.00"
    if size < 0.00005:
        return f"{sign}<$0.0001"
    if size >= 0.995:
        return f"{sign}${size:,.2f}"
    places = 3 if size >= 0.00995 else 4
    return f"{sign}${size:.{places}f}"


def percent(share: float) -> str:
    """A share as percent without decimals; never 0% or 100% for what is neither."""
    if 0 < share < 0.005:
        return "<1%"
    if 0.995 <= share < 1:
        return ">99%"
    return f"{share * 100:.0f}%"


def size(value: int) -> str:
    """Bytes: 950 B, 1.4 MB."""
    text = count(value).replace("k", " kB").replace("M", " MB").replace("G", " GB")
    return text if text.endswith("B") else f"{text} B"


def steps(numbers: Sequence[int], *, most: int = 12) -> str:
    """Step numbers in a row, three and more neighbours as a span, cut after `most` parts: 4, 5, 7-9."""
    parts: list[str] = []
    start = 0
    for place in range(1, len(numbers) + 1):
        if place < len(numbers) and numbers[place] == numbers[place - 1] + 1:
            continue
        first, last = numbers[start], numbers[place - 1]
        parts += [f"{first}-{last}"] if last - first > 1 else [str(n) for n in numbers[start:place]]
        start = place
    return ", ".join(parts) if len(parts) <= most else ", ".join(parts[:most]) + ", …"
