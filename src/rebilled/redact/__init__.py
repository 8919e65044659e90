"""A record without its words: verdicts, places and sizes stay, nothing readable does."""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping

import xxhash
from msgspec.structs import replace

from rebilled.errors import RecordError
from rebilled.model import Json, Record
from rebilled.owner import TENANT_NAMES, USER_NAMES
from rebilled.providers import APIS
from rebilled.providers.rules import names
from rebilled.redact.place import other_host, other_region, other_url
from rebilled.redact.prose import Prose
from rebilled.redact.signs import Signs
from rebilled.redact.structure import Structure
from rebilled.redact.words import Words
from rebilled.spans import element_spans, member_spans, parse_json

__all__ = ["Redaction"]

_REMEMBERED_BYTES = 64 << 20
_LONGEST_ERROR = 300
_SYSTEM_KEYS = frozenset(key for api in APIS for key in api.system_keys)
_INSTRUCTING = re.compile(rb'"role"\s*:\s*"(?:system|developer)"')
_TELLING = (b'"usage', b'"error', b"etrics", b'"response.created"', b'"message_start"', b"iagnos")
"""What the events of a stream hold from which usage, ids and errors are read."""


class Redaction:
    """Replaces what is readable in records, the same in all of them; key decides how, and must stay secret."""

    def __init__(self, key: bytes) -> None:
        secret = hashlib.blake2b(key, digest_size=32).digest()
        signs = Signs(secret)
        self._words = Words(secret)
        self._prose = Prose(self._words, signs, instructions=False)
        self._structure = Structure(self._prose.other, signs.digits)
        self._prompts = Prose(self._words, signs, instructions=True)
        self._instructions = Structure(self._prompts.other, signs.digits)
        self._memory: OrderedDict[bytes, str] = OrderedDict()
        self._size = 0

    def tie(self, words: Iterable[str], phrases: Iterable[str] = ()) -> None:
        """Let these words keep the letters that they begin with in common; call it once, before all else.

        phrases: words of git's own that must stay in system prompts, because a line was told by them that moved.
        """
        self._words.tie(words)
        self._prompts.phrases = frozenset(word.lower() for word in phrases)

    def record(self, record: Record) -> Record:
        """The record with everything readable replaced; only what a verdict needs of the rest of the log is kept."""
        text = self._prose.other
        return replace(
            record,
            body=self.body(record.body) if record.body is not None else None,
            response=self._answer(record.response) if record.response is not None else None,
            events=tuple(self._answer(event) for event in _telling(record.events)),
            meta=dict(self._meta(record.meta)),
            url=other_url(record.url, text) if record.url is not None else None,
            error=text(record.error)[:_LONGEST_ERROR] if record.error is not None else None,
            request_id=text(record.request_id) if record.request_id is not None else None,
        )

    # ---- bodies ----------------------------------------------------------------------------------------------------

    def body(self, raw: bytes) -> bytes:
        """A request body with its bytes replaced in place; parts seen before are not worked out again."""
        try:
            spans = member_spans(raw)
        except RecordError:
            return _encode(self._structure.value(_decode(raw), properties=_properties(raw), root=True))
        found: list[bytes] = []
        at = 0
        for key, (start, end) in spans.items():
            for first, last in _parts(raw, start, end):
                found.append(raw[at:first])
                found.append(self._part(key, raw[first:last], in_list=(first, last) != (start, end)))
                at = last
        found.append(raw[at:])
        return b"".join(found)

    def _part(self, key: str, raw: bytes, *, in_list: bool) -> bytes:
        mark = xxhash.xxh3_128_digest(raw) + key.encode("utf-8", "surrogatepass") + bytes([in_list])
        known = self._memory.get(mark)
        if known is None:
            structure = self._instructions if key in _SYSTEM_KEYS or _INSTRUCTING.search(raw) else self._structure
            known = structure.value(_decode(raw), key, properties=_properties(raw), root=True)
            self._remember(mark, known)
        else:
            self._memory.move_to_end(mark)
        return _encode(known)

    def _remember(self, mark: bytes, text: str) -> None:
        self._memory[mark] = text
        self._size += len(text)
        while self._size > _REMEMBERED_BYTES:
            self._size -= len(self._memory.popitem(last=False)[1])

    # ---- around them -----------------------------------------------------------------------------------------------

    def _answer(self, raw: bytes) -> bytes:
        return _encode(self._structure.value(_decode(raw), root=True))

    def _meta(self, meta: Mapping[str, Json]) -> Iterable[tuple[str, Json]]:
        text = self._prose.other
        kept: dict[str, Callable[[str], str]] = {
            "provider": lambda value: value if _is_provider(value) else text(value),
            "model": str,
            "endpoint": lambda value: self._endpoint(value),
            "region": lambda value: other_region(value, text),
            **dict.fromkeys((*TENANT_NAMES, *USER_NAMES), text),
            **dict.fromkeys(("workspace", "api_key_fp", "anthropic_beta", "anthropic_version", "session"), text),
        }
        for name, value in meta.items():
            if name in kept:
                number = isinstance(value, int) and not isinstance(value, bool)
                yield name, _changed(str(value) if number else value, kept[name])

    def _endpoint(self, value: str) -> str:
        text = self._prose.other
        return other_url(value, text) if "/" in value else other_host(value, text)


def _changed(value: Json, change: Callable[[str], str]) -> Json:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_changed(item, change) for item in value]
    return None if isinstance(value, dict) else value


def _is_provider(hint: str) -> bool:
    """Whether a log's word for a provider is one that is known here."""
    known = {*names(), *(api.provider for api in APIS), *(api.name.split(".")[0] for api in APIS)}
    word = hint.lower().replace("-", ".").replace("_", ".")
    return word.split(".")[0] in known and all(part in _known_parts() | known for part in word.split("."))


def _known_parts() -> set[str]:
    return {part for api in APIS for part in api.name.replace("_", ".").split(".")} | {"ai", "v2"}


def _telling(events: tuple[bytes, ...]) -> Iterable[bytes]:
    """The events of a stream that say more than text: the first, the last, and those with usage, ids or errors."""
    ends = (0, len(events) - 1)
    for place, event in enumerate(events):
        if place in ends or any(sign in event for sign in _TELLING):
            yield event


def _parts(raw: bytes, start: int, end: int) -> list[tuple[int, int]]:
    """The elements of a list, or the value itself."""
    try:
        return element_spans(raw, start, end) or [(start, end)]
    except ValueError:
        return [(start, end)]


def _properties(raw: bytes) -> frozenset[str]:
    """The names of all properties that schemas in a value declare."""
    if b'"required"' not in raw:
        return frozenset()
    try:
        value = parse_json(raw)
    except RecordError:
        return frozenset()
    found: set[str] = set()
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            declared = node.get("properties")
            found.update(declared if isinstance(declared, dict) else ())
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return frozenset(found)


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
