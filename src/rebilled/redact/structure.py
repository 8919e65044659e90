"""JSON text with its strings and numbers replaced in place: structure, keys, escapes and every offset stay."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import Final

import msgspec

_TOKEN: Final = re.compile(
    r'"((?:[^"\\]|\\.)*)"|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|([{}\[\]:,])|[^\s"{}\[\]:,]+', re.DOTALL
)
_LOOSE: Final = re.compile(
    r'"((?:[^"\\]|\\.)*)("|\Z)|(?<![\w.-])(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.])|\b(?:true|false|null)\b(?=\s*[,\]}])',
    re.DOTALL,
)
_ESCAPE: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.", re.DOTALL
)
_PLAIN: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_JSON_LIKE: Final = re.compile(r'\s*(?:\{\s*["}]|\[\s*(?:["{\[]|-?\d[\d.]*\s*,)|")')
_COLON: Final = re.compile(r"\s*:")
_KEY: Final = re.compile(r"[A-Za-z_$@-][A-Za-z0-9_$:-]{0,63}")
_UUID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|(?=\D*\d)[0-9a-f]{12,}", re.IGNORECASE)
_WORD: Final = re.compile(r"[a-z][a-z0-9_.-]{0,63}")
_MIME: Final = re.compile(r"[a-z]+/[a-z0-9.+-]+")
_REASON: Final = re.compile(r"[a-z_]+_(?:changed|compacted|mismatch)")
_BLOCK_PATH: Final = re.compile(r"messages\.\d{1,6}\.content\.\d{1,6}")
_MODES: Final = frozenset({"explicit", "implicit"})
"""Who chooses where cache entries end."""

_DEEPEST: Final = 6
_LITERALS: Final = frozenset(("true", "false", "null", "NaN", "Infinity", "-Infinity"))

_MODELS: Final = frozenset({"model", "modelId", "model_id", "modelVersion", "model_name"})
_TYPES: Final = frozenset({"type", "object", "role"})
_RATED: Final = frozenset({"ttl", "service_tier", "speed", "prompt_cache_retention", "inference_geo"})
"""Parameters whose value decides a price or a lifetime."""

_MEDIA: Final = frozenset({"media_type", "mimeType", "mime_type"})
_FORMATS: Final = frozenset(
    [
        "png",
        "jpeg",
        "jpg",
        "gif",
        "webp",
        "pdf",
        "csv",
        "doc",
        "docx",
        "xls",
        "xlsx",
        "html",
        "txt",
        "md",
        "mp4",
        "mov",
        "wav",
        "mp3",
        "flac",
    ]
)
_TEXTS: Final = frozenset({"text", "input_text", "output_text"})
_SCHEMA_TYPES: Final = frozenset(["string", "number", "integer", "boolean", "object", "array", "null"])
_SCHEMAS: Final = frozenset(
    [
        "input_schema",
        "inputSchema",
        "parameters",
        "schema",
        "json_schema",
        "responseSchema",
        "response_schema",
        "output_schema",
    ]
)
_FREE: Final = frozenset({"input", "arguments", "args", "response", "json"})
_NAMED: Final = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentRequired"})
_VALUES: Final = frozenset({"default", "examples", "example", "enum", "const"})
_ACCOUNT: Final = re.compile(r"(?<=:)\d{12}(?=:)")


class Zone(Enum):
    """What a part of a body is: an API's own structure, a schema, a list of named schemas, or anybody's JSON."""

    BODY = 0
    SCHEMA = 1
    NAMED = 2
    FREE = 3


class Level(msgspec.Struct):
    """One open object or list: its key, what it is, and the key that was read last in it."""

    is_object: bool
    key: str
    zone: Zone
    last: str = ""
    at_key: bool = True


class Structure:
    """Redacts JSON text. prose, number: what a text and a number become; both must keep the length in UTF-8."""

    def __init__(self, prose: Callable[[str], str], number: Callable[[str], str]) -> None:
        self._prose = prose
        self._number = number

    def value(self, text: str, key: str = "", *, properties: frozenset[str] = frozenset(), root: bool = False) -> str:
        """A JSON value that stands under a key.

        properties: the names of the schemas' properties in it. root: the value is a whole body.
        """
        found: list[str] = []
        levels: list[Level] = []
        at = 0
        for match in _TOKEN.finditer(text):
            found.append(text[at : match.start()])
            found.append(self._token(match, levels, key, properties, root=root))
            at = match.end()
        found.append(text[at:])
        return "".join(found)

    def _token(
        self, match: re.Match[str], levels: list[Level], key: str, properties: frozenset[str], *, root: bool
    ) -> str:
        level = levels[-1] if levels else None
        if match[1] is not None:
            return self._string(match[1], level, key, properties)
        if match[2] is not None:
            free = (level.zone if level is not None else Zone.BODY) is Zone.FREE
            return self.number(match[2]) if free else match[2]
        sign = match[3]
        if sign is None:
            return match[0] if match[0] in _LITERALS else self._prose(match[0])
        if sign in ("{", "["):
            name = _key_of(level) if level is not None else key
            outer = level.zone if level is not None else Zone.BODY
            top = root and len(levels) < 2
            levels.append(Level(sign == "{", name, _zone_of(outer, name, is_object=sign == "{", top=top)))
        elif sign in ("}", "]") and levels:
            levels.pop()
        elif level is not None and level.is_object:
            level.at_key = sign == ","
        return match[0]

    def _string(self, raw: str, level: Level | None, key: str, properties: frozenset[str]) -> str:
        if level is not None and level.is_object and level.at_key:
            level.last = decode(raw)
            if level.zone is Zone.NAMED or keeps_key(level.last):
                return f'"{raw}"'
            return f'"{rewrite(raw, self._prose)}"'
        name = _key_of(level) if level is not None else key
        zone = level.zone if level is not None else Zone.BODY
        if _keeps(zone, name, raw, properties):
            return f'"{raw}"'
        if zone is Zone.BODY and name in _MODELS:
            return '"' + _ACCOUNT.sub(lambda account: self._number(account[0]), raw) + '"'
        return f'"{rewrite(raw, self.text)}"'

    # ---- texts -----------------------------------------------------------------------------------------------------

    def text(self, text: str, depth: int = 0) -> str:
        """A text; JSON in it keeps its keys and its form, also where it breaks off or where more follows."""
        if depth >= _DEEPEST or _JSON_LIKE.match(text) is None:
            return self._prose(text)
        found: list[str] = []
        at, key = 0, ""
        for match in _LOOSE.finditer(text):
            found.append(self._prose(text[at : match.start()]))
            at = match.end()
            if match[3] is not None:
                found.append(self.number(match[3]))
            elif match[1] is None:
                literal = text[: match.start()].rstrip()[-1:] in (":", ",", "[")
                found.append(match[0] if literal else self._prose(match[0]))
            elif match[2] and _COLON.match(text, at):
                key = decode(match[1])
                inner = match[1] if keeps_key(key) else rewrite(match[1], self._prose)
                found.append(f'"{inner}"')
            else:
                kept = key == "type" and match[1] in _TEXTS
                inner = match[1] if kept else rewrite(match[1], lambda inner: self.text(inner, depth + 1))
                found.append(f'"{inner}{match[2]}')
        found.append(self._prose(text[at:]))
        return "".join(found)

    def number(self, text: str) -> str:
        """A JSON number as another one that is printed as long; one that a printer may change stays."""
        digits = sum(sign.isdigit() for sign in text)
        if "e" in text or "E" in text or ("." in text and digits > 15):
            return text
        return re.sub(r"\d+", lambda run: self._number(run[0]), text)


def _key_of(level: Level) -> str:
    return level.last if level.is_object else level.key


def _zone_of(outer: Zone, key: str, *, is_object: bool, top: bool) -> Zone:
    """What an object or list under a key is. top: it stands in the body itself, where `input` are messages."""
    if outer is Zone.BODY:
        if key in _SCHEMAS and is_object:
            return Zone.SCHEMA
        return Zone.FREE if key in _FREE and is_object and not top else outer
    if outer is Zone.SCHEMA:
        if key in _NAMED and is_object:
            return Zone.NAMED
        return Zone.FREE if key in _VALUES else outer
    return Zone.SCHEMA if outer is Zone.NAMED else outer


def _keeps(zone: Zone, key: str, text: str, properties: frozenset[str]) -> bool:
    """Whether a string stays: a type, a role, what decides a price, or the name of a property."""
    if zone is Zone.FREE:
        return key == "type" and text in _TEXTS
    if zone is not Zone.BODY:
        if key == "required":
            return text in properties
        return (key == "type" and text.lower() in _SCHEMA_TYPES) or (key == "$ref" and text.startswith("#"))
    if key in _TYPES or key in _RATED:
        return _WORD.fullmatch(text) is not None
    if key in _MEDIA:
        return _MIME.fullmatch(text) is not None
    if key == "mode":
        return text in _MODES
    if key == "path":
        return _BLOCK_PATH.fullmatch(text) is not None
    return (key == "format" and text in _FORMATS) or (key == "reason" and _REASON.fullmatch(text) is not None)


def keeps_key(key: str) -> bool:
    """Whether a key is a name; ids, paths and texts as keys are data."""
    return _KEY.fullmatch(key) is not None and _UUID.search(key) is None


# ---- strings -----------------------------------------------------------------------------------------------------


def decode(raw: str) -> str:
    """What a JSON string without its quotes says."""
    return _ESCAPE.sub(lambda match: _sign_of(match[0]), raw) if "\\" in raw else raw


def _sign_of(escape: str) -> str:
    if escape[1] != "u":
        return _PLAIN.get(escape[1], escape[1])
    if len(escape) == 12:
        high, low = int(escape[2:6], 16), int(escape[8:], 16)
        return chr(0x10000 + ((high - 0xD800) << 10) + low - 0xDC00)
    return chr(int(escape[2:6], 16))


def rewrite(raw: str, change: Callable[[str], str]) -> str:
    """A JSON string, without its quotes, with what it says changed sign by sign and every escape where it was."""
    if "\\" not in raw:
        return change(raw)
    changed = change(decode(raw))
    found: list[str] = []
    at = place = 0
    for match in _ESCAPE.finditer(raw):
        size = match.start() - at
        found.append(changed[place : place + size])
        place += size
        found.append(_escaped(match[0], changed[place]))
        place += 1
        at = match.end()
    found.append(changed[place:])
    return "".join(found)


def _escaped(escape: str, sign: str) -> str:
    """A sign in the way of writing of an escape."""
    if escape[1] != "u":
        return escape
    form = "{:04X}" if any(digit in "ABCDEF" for digit in escape[2:6]) else "{:04x}"
    if len(escape) == 12:
        code = ord(sign) - 0x10000
        return "\\u" + form.format(0xD800 + (code >> 10)) + "\\u" + form.format(0xDC00 + (code & 0x3FF))
    return "\\u" + form.format(ord(sign))
