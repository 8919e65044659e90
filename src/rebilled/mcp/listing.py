"""One list, all its pages: the bytes as they came, and what is the same whatever the spelling."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from rebilled.mcp.artifact import Phase
from rebilled.mcp.client import Session
from rebilled.mcp.fault import ProbeError
from rebilled.mcp.message import Message, members_of, value_of
from rebilled.model import Json
from rebilled.spans import dump_json

_LIST = msgspec.json.Decoder(list[msgspec.Raw])
ITEMS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
"""The list methods, and the member of their result that holds the list."""

_NAMES = ("name", "uri", "uriTemplate")
_HINTS = ("ttlMs", "cacheScope")


class Bounds(msgspec.Struct, frozen=True):
    """How far a list is followed."""

    max_bytes: int = 8 << 20
    max_pages: int = 50
    max_tools: int = 2000


class Hints(msgspec.Struct, frozen=True):
    """The caching hints of one result, as values; `absent` is told from null. elsewhere: where else hints stand."""

    ttl: Json
    scope: Json
    result_type: Json
    has_ttl: bool
    has_scope: bool
    has_type: bool
    elsewhere: tuple[str, ...] = ()


class Item(msgspec.Struct, frozen=True):
    """One element of a list: digests of its name, its bytes as sent, compact, and with sorted keys."""

    name: str
    raw: bytes
    compact: bytes
    canonical: bytes


class Listing(msgspec.Struct, frozen=True):
    """One walk through all pages. at: its place in the order of asking, counted from 0 over a leg.

    ended: why the walk stopped: `end`, `cursor_loop`, `page_limit`, `item_limit`. raw_bytes: the items as sent.
    """

    method: str
    connection: int
    n: int
    at: int
    phase: Phase
    items: tuple[Item, ...]
    pages: tuple[Hints, ...]
    raw: str
    raw_bytes: int
    ended: str
    ms: float

    @property
    def order(self) -> tuple[str, ...]:
        """The keyed digests of the names, in the order sent."""
        return tuple(item.name for item in self.items)

    @property
    def members(self) -> tuple[str, ...]:
        """The same, sorted: what is listed, whatever the order."""
        return tuple(sorted(self.order))


class Store(msgspec.Struct):
    """The definitions seen in a leg, each once: compact JSON by its digest. key: of this run, for names."""

    key: bytes
    texts: dict[bytes, bytes] = msgspec.field(default_factory=dict)
    names: dict[str, Json] = msgspec.field(default_factory=dict)
    known: dict[bytes, Item] = msgspec.field(default_factory=dict)
    duplicate_keys: int = 0

    def item(self, raw: bytes) -> Item:
        """The digests of one element. Raises ProbeError where it cannot be read."""
        digest = hashlib.sha256(raw).digest()
        found = self.known.get(digest)
        if found is None:
            found = self.known[digest] = self._new(raw, digest)
        return found

    def value(self, item: Item) -> Json:
        """The element itself."""
        return value_of(self.texts[item.compact])

    def _new(self, raw: bytes, digest: bytes) -> Item:
        value = value_of(raw)
        self.duplicate_keys += has_duplicate_keys(raw)
        compact = dump_json(value)
        key = hashlib.sha256(compact).digest()
        self.texts[key] = compact
        name = name_of(value)
        token = keyed(self.key, dump_json(name))
        self.names.setdefault(token, name)
        return Item(token, digest, key, hashlib.sha256(canonical(value)).digest())


def name_of(value: Json) -> Json:
    """What an element is known by: its name or URI; itself where it has none."""
    if isinstance(value, dict):
        for member in _NAMES:
            if member in value:
                return value[member]
    return value


def canonical(value: Json) -> bytes:
    """Compact JSON with sorted keys: equal for what differs only in spelling or key order."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def keyed(key: bytes, text: bytes) -> str:
    """A digest that nobody can guess a text from without the key: 16 hexadecimal digits of HMAC-SHA-256."""
    return hmac.new(key, text, hashlib.sha256).hexdigest()[:16]


def has_duplicate_keys(raw: bytes) -> bool:
    """Whether some object in this JSON has a key twice."""
    found = False

    def look(pairs: list[tuple[str, Any]]) -> None:
        nonlocal found
        found = found or len({name for name, _ in pairs}) < len(pairs)

    json.loads(raw.decode("utf-8", "replace"), object_pairs_hook=look)
    return found


async def walk(
    session: Session, method: str, store: Store, bounds: Bounds, *, at: int = 0, phase: Phase = "sample"
) -> Listing:
    """Read a list from its first page to its last. Raises ProbeError where a page cannot be had or read."""
    pages: list[Hints] = []
    raws: list[bytes] = []
    items: list[Item] = []
    asked: set[str] = set()
    taken, ms, ended = 0, 0.0, ""
    params: dict[str, Json] = {}
    while not ended:
        answer = await session.call(method, params)
        result = _result(answer, method)
        ms += answer.ms
        taken += len(answer.result or b"")
        raw, found = _items(answer, result, method)
        raws.append(raw)
        items += [store.item(bytes(item)) for item in found]
        pages.append(hints_of(result, found))
        ended, params = _next(result, asked, len(pages), len(items), bounds)
        if taken > bounds.max_bytes:
            raise ProbeError("too_large", f"a list is longer than {bounds.max_bytes:,} bytes")
    listing = listing_of(
        method,
        connection=session.number,
        n=session.lists,
        at=at,
        phase=phase,
        raws=raws,
        items=items,
        pages=pages,
        ended=ended,
        ms=ms,
    )
    session.lists += 1
    return listing


def listing_of(
    method: str,
    *,
    connection: int,
    n: int,
    at: int,
    raws: Sequence[bytes],
    items: Sequence[Item],
    pages: Sequence[Hints],
    ms: float,
    phase: Phase = "sample",
    ended: str = "end",
) -> Listing:
    """The list that these pages make."""
    return Listing(
        method=method,
        connection=connection,
        n=n,
        at=at,
        phase=phase,
        items=tuple(items),
        pages=tuple(pages),
        raw=hashlib.sha256(b"".join(raws)).hexdigest(),
        raw_bytes=sum(map(len, raws)),
        ended=ended,
        ms=ms,
    )


def _next(
    result: Mapping[str, msgspec.Raw], asked: set[str], pages: int, items: int, bounds: Bounds
) -> tuple[str, dict[str, Json]]:
    """Why the walk ends, or nothing and the parameters of the next page.

    Any value that is not null is a cursor, the empty text too (specification 2026-07-28, pagination).
    """
    cursor = value_of(result.get("nextCursor", b"null"))
    if cursor is None:
        return "end", {}
    mark = json.dumps(cursor)
    if mark in asked:
        return "cursor_loop", {}
    if pages >= bounds.max_pages:
        return "page_limit", {}
    if items > bounds.max_tools:
        return "item_limit", {}
    asked.add(mark)
    return "", {"cursor": cursor}


def _result(answer: Message, method: str) -> dict[str, msgspec.Raw]:
    if answer.result is None:
        raise ProbeError(
            f"list_error_{answer.code}",
            f"{method} is answered with error {answer.code}",
            status=answer.status,
            code=answer.code,
            supported=answer.supported,
        )
    return members_of(answer.result)


def _items(answer: Message, result: Mapping[str, msgspec.Raw], method: str) -> tuple[bytes, list[msgspec.Raw]]:
    """As `items_of`, with the status of HTTP in the error."""
    try:
        return items_of(result, method)
    except ProbeError as fault:
        fault.status = answer.status
        raise


def items_of(result: Mapping[str, msgspec.Raw], method: str) -> tuple[bytes, list[msgspec.Raw]]:
    """The list in a result as it came, and its elements. Raises ProbeError where there is none."""
    raw = bytes(result.get(ITEMS[method], b""))
    try:
        return raw, _LIST.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        raise ProbeError("no_tool_list", f"the result of {method} holds no list") from None


def hints_of(result: Mapping[str, msgspec.Raw], items: list[msgspec.Raw] | None = None) -> Hints:
    """The caching hints of a result, with the other places where some stand."""
    return Hints(
        ttl=value_of(result.get("ttlMs", b"null")),
        scope=value_of(result.get("cacheScope", b"null")),
        result_type=value_of(result.get("resultType", b"null")),
        has_ttl="ttlMs" in result,
        has_scope="cacheScope" in result,
        has_type="resultType" in result,
        elsewhere=tuple(_elsewhere(result, items or [])),
    )


def _elsewhere(result: Mapping[str, msgspec.Raw], items: list[msgspec.Raw]) -> list[str]:
    found = []
    meta = value_of(result.get("_meta", b"null"))
    if isinstance(meta, dict) and any(_is_hint(key) for key in meta):
        found.append("_meta")
    if any(b'"ttlMs"' in bytes(item) and _holds_hint(value_of(item)) for item in items):
        found.append("items")
    return found


def _holds_hint(item: Json) -> bool:
    if not isinstance(item, dict):
        return False
    places = (item, item.get("_meta"), item.get("annotations"))
    return any(isinstance(place, dict) and any(map(_is_hint, place)) for place in places)


def _is_hint(key: str) -> bool:
    return key.rpartition("/")[2] in _HINTS
