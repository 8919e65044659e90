"""Raw JSON to spans: where the members and elements of a body stand, without building objects.

A run resends its history, so a body mostly repeats an earlier one byte for byte. `Layout.of` therefore takes
earlier layouts: what lies inside the common raw prefix and suffix keeps its spans, and only the middle is scanned.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

import msgspec
import orjson

from rebilled.errors import RecordError
from rebilled.model import Json

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_KEY = re.compile(rb'[\s,]*"((?:[^"\\]|\\.)*)"\s*:\s*', re.DOTALL)
_GAP = re.compile(rb"[\s,]*")
_END = re.compile(rb"\s*\}\s*$")
_CHUNK = 1 << 16


# ---- values ----------------------------------------------------------------------------------------------------


def is_plain(value: Json) -> bool:
    """Whether a value that orjson read holds no number that it may read or print otherwise than Python's json.

    Those are fractions, numbers with exponents, and integers too long for 64 bits, all of which orjson reads as
    floats.
    """
    kind = type(value)
    if kind is dict or kind is list:
        for item in value.values() if kind is dict else value:  # type: ignore[union-attr]
            if type(item) is not str and not is_plain(item):
                return False
        return True
    return kind is not float


def parse_json(raw: bytes | msgspec.Raw) -> Json:
    """The value as Python's json reads it: integers exact, NaN and lone surrogates kept, last duplicate key wins.

    Raises RecordError with reason `not_json` or `too_deep`.
    """
    return parse_plain(raw)[0]


def parse_plain(raw: bytes | msgspec.Raw) -> tuple[Json, bool]:
    """The same, and whether orjson prints the value as Python's json does."""
    data = bytes(raw)
    try:
        value: Json = orjson.loads(data)
        if is_plain(value):
            return value, True
    except (orjson.JSONDecodeError, RecursionError):
        pass
    try:
        slow: Json = json.loads(data.decode("utf-8", "replace"))
        return slow, False
    except RecursionError:
        raise RecordError("too_deep", "nested deeper than a JSON parser goes") from None
    except ValueError as error:
        raise RecordError("not_json", f"not JSON: {error}") from None


def dump_json(value: Json) -> bytes:
    """Compact JSON as Python's json prints it: no spaces, no ASCII escapes, keys in their order, UTF-8."""
    try:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    except RecursionError:
        raise RecordError("too_deep", "nested deeper than a JSON printer goes") from None
    return text.encode("utf-8", "surrogatepass")


# ---- comparing bytes -------------------------------------------------------------------------------------------


def common_prefix(a: bytes, b: bytes, known: int = 0) -> int:
    """How many leading bytes two texts share, the first `known` of which are; works at memory speed."""
    limit = min(len(a), len(b))
    low, size = known, 256
    while low < limit and a[low : low + size] == b[low : low + size]:
        low += size
        size = min(2 * size, _CHUNK)
    if low >= limit:
        return limit
    high = min(low + size, limit)
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_suffix(a: bytes, b: bytes) -> int:
    """How many trailing bytes two texts share."""
    limit, size_a, size_b = min(len(a), len(b)), len(a), len(b)
    low = 0
    while low < limit:
        step = min(_CHUNK, limit - low)
        if a[size_a - low - step : size_a - low] != b[size_b - low - step : size_b - low]:
            break
        low += step
    high = min(low + _CHUNK, limit)
    while low < high:
        middle = (low + high + 1) // 2
        if a[size_a - middle : size_a - low] == b[size_b - middle : size_b - low]:
            low = middle
        else:
            high = middle - 1
    return low


# ---- spans -----------------------------------------------------------------------------------------------------


def member_spans(raw: bytes) -> dict[str, tuple[int, int]]:
    """Where each member's value of a JSON object stands: key -> first byte and the byte behind it.

    Raises RecordError: `not_json`, `too_deep`, or `odd_json` where keys repeat, so that spans would mislead.
    """
    try:
        values = _OBJECT.decode(raw)
    except RecursionError:
        raise RecordError("too_deep", "nested deeper than a JSON parser goes") from None
    except msgspec.ValidationError:
        raise RecordError("no_request", "not a JSON object") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RecordError("not_json", f"not JSON: {error}") from None
    found: dict[str, tuple[int, int]] = {}
    at = raw.index(b"{") + 1
    for key, value in values.items():
        match = _KEY.match(raw, at)
        size = memoryview(value).nbytes
        if match is None:
            raise RecordError("odd_json", "a key stands twice")
        start = match.end()
        head = min(16, size)
        if raw[start : start + head] != bytes(memoryview(value)[:head]) or not _same_key(match[1], key):
            raise RecordError("odd_json", "a key stands twice")
        at = start + size
        found[key] = (start, at)
    if _END.match(raw, at) is None:
        raise RecordError("odd_json", "a key stands twice")
    return found


def _same_key(raw: bytes, key: str) -> bool:
    return raw == key.encode("utf-8", "surrogatepass") or b"\\" in raw


def element_spans(raw: bytes, start: int, end: int) -> list[tuple[int, int]] | None:
    """Where each element of the JSON array at [start, end) stands; None when the value there is no array."""
    if raw[start : start + 1] != b"[":
        return None
    found: list[tuple[int, int]] = []
    at = start + 1
    for value in _ARRAY.decode(raw[start:end]):
        match = _GAP.match(raw, at)
        assert match is not None
        at = match.end() + memoryview(value).nbytes
        found.append((match.end(), at))
    return found


class Layout(msgspec.Struct):
    """The spans of one body: its members, and the elements of those arrays that may repeat.

    shared_with: the earlier layout it was built upon, or None. shared_elements: of array `shared_key`, how many
    leading elements are byte for byte those of that layout.
    tag: whatever the reader of the body wants to find again from a layout that builds upon this one.
    stem: a beginning of the body that later ones are told by to repeat it.
    """

    raw: bytes
    members: dict[str, tuple[int, int]]
    arrays: dict[str, list[tuple[int, int]]] = msgspec.field(default_factory=dict)
    shared_with: Layout | None = None
    shared_key: str = ""
    shared_elements: int = 0
    tag: object = None
    stem: bytes = b""

    def value(self, key: str) -> bytes | None:
        """The raw text of a member, None where the body has no such key."""
        span = self.members.get(key)
        return self.raw[span[0] : span[1]] if span is not None else None

    def elements(self, key: str) -> list[tuple[int, int]] | None:
        """The spans of an array member's elements; None where the member is missing or no array."""
        known = self.arrays.get(key)
        if known is None:
            span = self.members.get(key)
            known = element_spans(self.raw, *span) if span is not None else None
            if known is not None:
                self.arrays[key] = known
        return known

    @classmethod
    def from_value(cls, value: dict[str, Json]) -> Layout:
        """A layout of a body that only Python's json can read (NaN, lone surrogates), printed anew."""
        layout, at, texts = cls(b"", {}), 1, []
        for key, item in value.items():
            name = dump_json(key) + b":"
            parts = [dump_json(part) for part in item] if isinstance(item, list) else []
            text = b"[" + b",".join(parts) + b"]" if isinstance(item, list) else dump_json(item)
            start = at + len(name)
            layout.members[key] = (start, start + len(text))
            if isinstance(item, list):
                spans, inner = [], start + 1
                for part in parts:
                    spans.append((inner, inner + len(part)))
                    inner += len(part) + 1
                layout.arrays[key] = spans
            texts.append(name + text)
            at = start + len(text) + 1
        layout.raw = b"{" + b",".join(texts) + b"}"
        return layout

    @classmethod
    def of(cls, raw: bytes, earlier: Iterable[Layout] = (), *, key: str = "", repeated: bytes = b"") -> Layout:
        """The layout of a body, built upon that earlier one of which it repeats the most of array `key`.

        repeated: a beginning known to be shared with the earlier layout whose stem this very object is.
        Raises RecordError as `member_spans` does.
        """
        candidates = list(earlier)
        base, shared = _closest(raw, candidates, repeated)
        if base is not None:
            built = _build_upon(base, raw, shared, key)
            if built is not None:
                return built
        layout = cls(raw, member_spans(raw))
        _share_array(layout, candidates, key)
        return layout


def _closest(raw: bytes, candidates: list[Layout], repeated: bytes) -> tuple[Layout | None, int]:
    """The layout whose body shares the longest prefix with this one, and how many bytes that is."""
    best, shared = None, 0
    for candidate in candidates if repeated else ():
        if candidate.stem is repeated:
            return candidate, common_prefix(candidate.raw, raw, len(repeated))
    for candidate in candidates:
        other = candidate.raw
        probe = slice(max(0, shared - 256), shared + 1)
        if other[probe] != raw[probe]:
            continue
        prefix = common_prefix(other, raw)
        if prefix > shared:
            best, shared = candidate, prefix
            if prefix * 10 > len(other) * 9:
                break
    return best, shared


def _share_array(layout: Layout, candidates: list[Layout], key: str) -> None:
    """Take over the spans of array `key` as far as an earlier body has the same elements there."""
    span = layout.members.get(key)
    if span is None or layout.raw[span[0] : span[0] + 1] != b"[":
        return
    text = layout.raw[span[0] : span[1]]
    best, keep = None, 0
    for candidate in candidates:
        elements, place = candidate.arrays.get(key), candidate.members.get(key)
        if not elements or place is None or elements[0][1] - place[0] > len(text):
            continue
        first = candidate.raw[place[0] : elements[0][1] + 1]
        if text[: len(first)] != first:
            continue
        shared = place[0] + common_prefix(candidate.raw[place[0] : place[1]], text)
        count = _elements_within(elements, shared)
        if count > keep:
            best, keep = candidate, count
            if keep >= len(elements) - 1:
                break
    if best is None:
        return
    move = span[0] - best.members[key][0]
    kept = [(a + move, b + move) for a, b in best.arrays[key][:keep]]
    gap = _GAP.match(layout.raw, kept[-1][1])
    assert gap is not None
    rest = element_spans(b"[" + layout.raw[gap.end() : span[1]], 0, span[1] - gap.end() + 1)
    back = gap.end() - 1
    layout.arrays[key] = kept + [(a + back, b + back) for a, b in rest or ()]
    layout.shared_with, layout.shared_key, layout.shared_elements = best, key, keep


def _build_upon(base: Layout, raw: bytes, shared: int, key: str) -> Layout | None:
    """A layout from the spans of `base` and a scan of the middle only; None where that cannot be proved right.

    The prefix ends behind an element of array `key`, so the parser stands between two elements there; the suffix
    begins at the end of a member's value. If what lies between parses when wrapped in the same nesting, the
    whole body does, with exactly these spans.
    """
    elements = base.arrays.get(key)
    span = base.members.get(key)
    if not elements or span is None or shared <= elements[0][1]:
        return None
    count = _elements_within(elements, shared)
    if count == 0:
        return None
    keep = count - 1 if count == len(elements) and shared <= span[1] - 1 else count
    if keep == 0:
        return None
    prefix_end = elements[keep - 1][1]
    suffix = min(common_suffix(base.raw, raw), len(base.raw) - prefix_end, len(raw) - prefix_end)
    names = list(base.members)
    place = names.index(key)
    tail = len(base.raw) - suffix
    resume = next((n for n in names[place:] if base.members[n][1] >= tail), None)
    if resume is None:
        return None
    shift = len(raw) - len(base.raw)
    return _stitch(base, raw, (key, place, keep, prefix_end), (resume, names.index(resume), shift))


def _elements_within(elements: list[tuple[int, int]], limit: int) -> int:
    """How many leading elements end before byte `limit`, with at least one byte behind them in common."""
    low, high = 0, len(elements)
    while low < high:
        middle = (low + high) // 2
        if elements[middle][1] < limit:
            low = middle + 1
        else:
            high = middle
    return low


def _stitch(base: Layout, raw: bytes, front: tuple[str, int, int, int], back: tuple[str, int, int]) -> Layout | None:
    key, place, keep, prefix_end = front
    resume, resume_place, shift = back
    names = list(base.members)
    resume_end = base.members[resume][1] + shift
    if resume_end < prefix_end:
        return None
    gap = _GAP.match(raw, prefix_end)
    assert gap is not None
    head = b'{"":['
    middle = raw[gap.end() : resume_end]
    if raw.count(b",", prefix_end, gap.end()) != (middle[:1] != b"]"):
        return None
    try:
        spans = member_spans(head + middle + b"}")
    except RecordError:
        return None
    fresh = list(spans)
    inner = element_spans(head + middle, *spans[fresh[0]])
    if inner is None or (inner == [] and middle[:1] != b"]"):
        return None
    move = gap.end() - len(head)
    members: dict[str, tuple[int, int]] = {name: base.members[name] for name in names[:place]}
    start = base.members[key][0]
    members[key] = (start, spans[fresh[0]][1] + move)
    for name in fresh[1:]:
        members[name] = (spans[name][0] + move, spans[name][1] + move)
    for name in names[resume_place + 1 :]:
        members[name] = (base.members[name][0] + shift, base.members[name][1] + shift)
    if len(members) != place + len(fresh) + len(names) - resume_place - 1:
        return None  # a key of the middle stands elsewhere too
    layout = Layout(raw, members, shared_with=base, shared_key=key, shared_elements=keep)
    layout.arrays[key] = base.arrays[key][:keep] + [(a + move, b + move) for a, b in inner]
    return layout
