"""The shape of a file that no format knows: its keys and the types of its values, and never a value."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

from rebilled.model import Json

_DEEPEST = 4
_MOST_KEYS = 40
_LONGEST_KEY = 48
_LOOKED_AT = 4 << 20
_VALUES = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE), "(uuid)"),
    (re.compile(r"[^\s@]+@[^\s@]+\.\w+"), "(address)"),
    (re.compile(r"\w+://\S+|(?:[A-Za-z]:)?[/\\]\S*|[^/\\\s]+[/\\]\S+[/\\]\S*"), "(path)"),
    (re.compile(r"\d{4}-\d\d-\d\d.*"), "(date)"),
    (re.compile(r"[\d.,:+-]+"), "(number)"),
    (re.compile(r"(?:[a-z]{2,8}[-_])*(?=\w*\d)[0-9A-Za-z]{20,}=*|[0-9a-f]{16,}"), "(id)"),
)
"""Keys that are values themselves, and what is shown for them."""
_COLUMN = re.compile(r"\s*[A-Za-z_][\w.-]*\s*")
_TAG = re.compile(rb"<([A-Za-z_][\w.:-]{0,47})[\s>/]")


def shape_of_file(file: Any) -> Json:
    """The shape of what a file holds: JSON, YAML, the columns of a CSV, the tags of XML; else only how much."""
    head = bytes(file.buffer[file.start : min(file.size, file.start + _LOOKED_AT)])
    if not head:
        return "nothing"
    for read in (_json, _xml, _yaml, _csv):
        found = read(head)
        if found is not None:
            return found
    if b"\0" in head or not _is_text(head):
        return {"binary": f"{file.size:,} bytes, the first are {head[:4].hex(' ')}"}
    lines = head.split(b"\n")
    return {"text": f"{len(lines):,} lines, the longest of {max(map(len, lines)):,} bytes"}


def _is_text(head: bytes) -> bool:
    try:
        head[:65536].decode()
    except UnicodeDecodeError as error:
        return error.start > 65530  # a character that was cut
    return True


def _json(head: bytes) -> Json:
    from rebilled.errors import RecordError
    from rebilled.spans import parse_json

    for text in (head, head.split(b"\n", 1)[0]):
        try:
            return shape_of(parse_json(text))
        except RecordError:
            continue
    return None


def _xml(head: bytes) -> Json:
    """The names of the tags; the text is not parsed, so nothing in it is expanded."""
    if head.lstrip()[:1] != b"<":
        return None
    names = dict.fromkeys(match.group(1).decode() for match in _TAG.finditer(head))
    return {"tags": [masked(name) for name in list(names)[:_MOST_KEYS]]} if names else None


def _yaml(head: bytes) -> Json:
    from rebilled.formats.plain_yaml import load_plain

    if not _is_text(head) or b":" not in head:
        return None
    try:
        value = load_plain(head[: 256 << 10])
    except Exception:  # whatever it is, it is no YAML
        return None
    return {"yaml": shape_of(value)} if isinstance(value, (dict, list)) else None


def _csv(head: bytes) -> Json:
    """The names of the columns and the types in the next line, where both have as many."""
    text = head[: 64 << 10].decode("utf-8", "replace")
    for sign in (",", "\t", ";"):
        try:
            rows = [row for _, row in zip(range(2), csv.reader(io.StringIO(text), delimiter=sign), strict=False)]
        except csv.Error:
            continue
        if len(rows) > 1 and len(rows[0]) == len(rows[1]) > 1 and all(map(_COLUMN.fullmatch, rows[0])):
            cells = [masked(cell.strip()) for cell in rows[0]]
            types = ["number" if re.fullmatch(r"-?[\d.]+", cell) else "text" for cell in rows[1]]
            return {"columns": dict(zip(cells[:_MOST_KEYS], types, strict=False))}
    return None


def masked(key: str) -> str:
    """A key as it is, or what kind of value it looks like: ids, addresses and paths are no names."""
    from rebilled.formats.credentials import scrub_text

    kind = next((word for pattern, word in _VALUES if pattern.fullmatch(key)), None)
    if kind is None and (len(key) > _LONGEST_KEY or scrub_text(key) != key):
        kind = f"(a text of {len(key)} characters)"
    return kind or key


def shape_of(value: Json, depth: int = 0) -> Json:
    """Keys and types of a value, never the values: objects by key, lists by their first element."""
    if isinstance(value, dict):
        if depth >= _DEEPEST:
            return "object"
        found: dict[str, Json] = {}
        for key, item in list(value.items())[:_MOST_KEYS]:
            found.setdefault(masked(str(key)), shape_of(item, depth + 1))
        if len(value) > _MOST_KEYS:
            found["..."] = f"{len(value) - _MOST_KEYS} more keys"
        return found
    if isinstance(value, list):
        return [shape_of(value[0], depth + 1), f"{len(value)} elements"] if value and depth < _DEEPEST else ["list"]
    names = {bool: "true or false", int: "number", float: "number", str: "text", type(None): "null"}
    return names.get(type(value), "another value")
