"""Raw elements of a body to blocks: parsed once, remembered by the hash of their bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import msgspec
import orjson
import xxhash

from rebilled.model import Block, Json, Mark, Message, Section
from rebilled.providers.content import ATTRIBUTION, canonical, clean, is_cache_point, mark_ttl, point_ttl
from rebilled.spans import dump_json, parse_plain

_POOR_ID = re.compile(r"functions\.[^:]+:\d+|[a-zA-Z_-]*\d{0,3}")
"""Call ids that are counted up anew in every conversation tie nothing together."""
_ID_HOLDERS = ("toolUse", "toolResult", "functionCall")
_ID_KEYS = ("id", "tool_use_id", "call_id", "tool_call_id", "toolUseId")


class MarkedMessage(msgspec.Struct, frozen=True):
    """A message and the cache marks that this logged copy of it carries."""

    message: Message
    marks: tuple[Mark, ...]


class SystemSection(msgspec.Struct, frozen=True):
    """A system section; `bare` is the same without Claude Code's attribution line, where it has one."""

    full: Section
    bare: Section | None = None
    line: bytes = b""


class Elements(msgspec.Struct):
    """The memory of every element seen: raw bytes -> digest, size, marks."""

    messages: dict[bytes, MarkedMessage] = msgspec.field(default_factory=dict)
    blocks: dict[bytes, tuple[Block, int | None] | None] = msgspec.field(default_factory=dict)
    sections: dict[bytes, Section] = msgspec.field(default_factory=dict)
    systems: dict[bytes, SystemSection] = msgspec.field(default_factory=dict)

    def message(self, raw: bytes) -> MarkedMessage:
        """The message that these bytes hold. Raises RecordError where they are no JSON."""
        key = xxhash.xxh3_128_digest(raw)
        found = self.messages.get(key)
        if found is None:
            found = self.messages[key] = read_message(raw)
        return found

    def tools(self, raw: bytes, elements: Callable[[], Iterable[bytes]]) -> Section:
        """The tool section whose array has these bytes; `elements` gives its tools where it is a new one.

        Deferred tools are not in the prefix and are left out.
        """
        key = xxhash.xxh3_128_digest(raw)
        found = self.sections.get(key)
        if found is None:
            found = self.sections[key] = self._read_tools(elements())
        return found

    def _read_tools(self, raws: Iterable[bytes]) -> Section:
        found: list[Block] = []
        marks: list[Mark] = []
        for raw in raws:
            read = self._tool(raw)
            if isinstance(read, int):
                if found:
                    marks.append(Mark(len(found) - 1, read))
            elif read is not None:
                if read[1] is not None:
                    marks.append(Mark(len(found), read[1]))
                found.append(read[0])
        return section_of(found, marks)

    def _tool(self, raw: bytes) -> tuple[Block, int | None] | int | None:
        key = xxhash.xxh3_128_digest(raw)
        if key not in self.blocks:
            value, plain = parse_plain(raw)
            if is_cache_point(value):
                return point_ttl(value)
            deferred = isinstance(value, dict) and value.get("defer_loading") is True
            block = block_of(value, plain=plain, name=tool_name(value))
            self.blocks[key] = None if deferred else (block, mark_ttl(value))
        return self.blocks[key]

    def system_section(self, raws: list[bytes], *, attribution: bool) -> SystemSection:
        """The system section of these elements; with `attribution`, also without Claude Code's first line."""
        key = xxhash.xxh3_128_digest(b"\x00".join(raws)) + bytes([attribution])
        found = self.systems.get(key)
        if found is None:
            found = self.systems[key] = self._read_system(raws, attribution=attribution)
        return found

    def _read_system(self, raws: list[bytes], *, attribution: bool) -> SystemSection:
        found: list[Block] = []
        marks: list[Mark] = []
        line = b""
        for place, raw in enumerate(raws):
            value, plain = parse_plain(raw)
            if is_cache_point(value):
                if found:
                    marks.append(Mark(len(found) - 1, point_ttl(value)))
                continue
            if attribution and place == 0 and is_attribution(value):
                line = raw
            ttl = mark_ttl(value)
            if ttl is not None:
                marks.append(Mark(len(found), ttl))
            found.append(block_of(value, plain=plain))
        full = section_of(found, marks)
        if not line:
            return SystemSection(full)
        shifted = [Mark(mark.block - 1, mark.ttl_s) for mark in marks if mark.block > 0]
        return SystemSection(full, section_of(found[1:], shifted), line)


def section_of(blocks: list[Block], marks: list[Mark]) -> Section:
    """A section of these blocks in order."""
    digest = xxhash.xxh3_128_digest(b"".join(block.digest for block in blocks)) if blocks else b""
    size = sum(block.size for block in blocks) + max(0, len(blocks) - 1)
    return Section(tuple(blocks), digest, size, tuple(marks))


def block_of(value: Json, *, plain: bool, name: str = "") -> Block:
    """The block of a parsed element."""
    text = compact(canonical(clean(value)), plain=plain)
    return Block(kind=kind_of(value), digest=xxhash.xxh3_128_digest(text), size=len(text), name=name)


def compact(value: Json, *, plain: bool) -> bytes:
    """Compact JSON; by the fast printer where it prints the same as Python's json."""
    if plain:
        try:
            return orjson.dumps(value)
        except TypeError:
            pass
    return dump_json(value)


def read_message(raw: bytes) -> MarkedMessage:
    """The message that these bytes hold, with its blocks, ids and marks."""
    value, plain = parse_plain(raw)
    marked = b"cache_control" in raw or b"cachePoint" in raw or b"prompt_cache_breakpoint" in raw
    bare = canonical(clean(value) if marked else value)
    text = compact(bare, plain=plain)
    digest = xxhash.xxh3_128_digest(text)
    content = content_list(bare)
    if content is None:
        blocks: tuple[Block, ...] = (Block(kind=kind_of(bare), digest=digest, size=len(text)),)
    else:
        blocks = tuple(_bare_block(item, plain=plain) for item in content)
    ids = ids_of(bare) if b'"id"' in raw or b'_id"' in raw or b'Id"' in raw else ()
    message = Message(role_of(bare), digest, len(text), blocks, ids)
    return MarkedMessage(message, tuple(_marks_of(value)) if marked else ())


def _bare_block(value: Json, *, plain: bool) -> Block:
    text = compact(value, plain=plain)
    return Block(kind=kind_of(value), digest=xxhash.xxh3_128_digest(text), size=len(text))


def _marks_of(value: Json) -> Iterator[Mark]:
    """The cache marks in a message, by the block they stand on or, for Bedrock's points, behind."""
    content = content_list(value)
    place = 0
    for item in [value] if content is None else content:
        if is_cache_point(item):
            if place:
                yield Mark(place - 1, point_ttl(item))
            continue
        ttl = mark_ttl(item)
        if ttl is not None:
            yield Mark(place, ttl)
        place += 1


def content_list(value: Json) -> list[Json] | None:
    """The list of content blocks of a message, under the key its API uses; None where it has no list."""
    if isinstance(value, dict):
        for key in ("content", "parts"):
            content = value.get(key)
            if isinstance(content, list):
                return content
    return None


def role_of(value: Json) -> str:
    """The message's role; the item's type where an API gives none."""
    if isinstance(value, dict):
        role = value.get("role") or value.get("type")
        return role if isinstance(role, str) else ""
    return "user" if isinstance(value, str) else ""


def kind_of(value: Json) -> str:
    """What kind of block this is, in Anthropic's words where there are several."""
    if not isinstance(value, dict):
        return "text"
    kind = value.get("type")
    if isinstance(kind, str):
        return kind
    for key in ("text", "toolUse", "toolResult", "reasoningContent", "image", "functionCall", "functionResponse"):
        if key in value:
            return key
    return "message" if "role" in value else "object"


def tool_name(value: Json) -> str:
    """The tool's name in any API's shape, empty where it has none."""
    if not isinstance(value, dict):
        return ""
    for holder in (value, value.get("function"), value.get("toolSpec")):
        if isinstance(holder, dict) and isinstance(holder.get("name"), str):
            return str(holder["name"])
    kind = value.get("type")
    return kind if isinstance(kind, str) else ""


def is_attribution(value: Json) -> bool:
    """Whether a system block is Claude Code's attribution line."""
    text = value.get("text") if isinstance(value, dict) else None
    return isinstance(text, str) and text.startswith(ATTRIBUTION)


def ids_of(value: Json) -> tuple[str, ...]:
    """The message's own id and the tool-call ids in it."""
    found: list[str] = []
    if isinstance(value, dict):
        holders: list[Json] = [value, *(content_list(value) or [])]
        calls = value.get("tool_calls")
        if isinstance(calls, list):
            holders += calls
        for holder in holders:
            if isinstance(holder, dict):
                _add_ids(holder, found)
                for key in _ID_HOLDERS:
                    part = holder.get(key)
                    if isinstance(part, dict):
                        _add_ids(part, found)
    return tuple(found)


def _add_ids(part: dict[str, Json], found: list[str]) -> None:
    for key in _ID_KEYS:
        if key in part:
            name = part[key]
            if isinstance(name, str) and not _POOR_ID.fullmatch(name) and name not in found:
                found.append(name)
