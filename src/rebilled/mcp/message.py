"""JSON-RPC messages as bytes: written, taken apart, and kept as the bytes that came."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
import orjson

from rebilled.errors import RecordError
from rebilled.mcp.fault import ProbeError
from rebilled.model import Json
from rebilled.spans import parse_json

MAX_DEPTH = 64
METHOD_NOT_FOUND = -32601
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
INVALID_PARAMS = -32602
MODERN_CODES = frozenset({HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION})
"""Error codes that only a server of 2026-07-28 or later has (specification 2026-07-28, basic, read 2026-08-22)."""

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_REVISION = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_MOST_REVISIONS = 20
_MOST_CODE = 2**31


class Message(msgspec.Struct, frozen=True):
    """One message as it came. id: as JSON text, empty where it has none; method: of a request or notification.

    result: its bytes; code, data: of an error; status: of HTTP; ms: how long the answer took; session: the session id
    that came in the headers, kept for the next request only.
    """

    id: bytes = b""
    method: str | None = None
    result: bytes | None = None
    code: int | None = None
    data: Json = None
    status: int | None = None
    ms: float = 0.0
    session: str | None = None

    @property
    def is_answer(self) -> bool:
        """Whether this is a response, with a result or an error."""
        return self.method is None and (self.result is not None or self.code is not None)

    @property
    def supported(self) -> tuple[str, ...]:
        """The revisions that an error names as supported; other texts in that list as `other`."""
        named = self.data.get("supported") if isinstance(self.data, dict) else None
        return revisions(named)


def revisions(value: Json) -> tuple[str, ...]:
    """The revisions in a list that a server wrote; whatever does not look like one becomes `other`."""
    if not isinstance(value, list):
        return ()
    return tuple(revision_word(item) for item in value[:_MOST_REVISIONS])


def revision_word(value: Json) -> str:
    """A revision as a server wrote it, or `other`."""
    return value if isinstance(value, str) and _REVISION.fullmatch(value) else "other"


def encode(method: str, params: Mapping[str, Any] | None, id_: int | str | None = None) -> bytes:
    """A request, or a notification where there is no id, as compact JSON."""
    body: dict[str, Any] = {"jsonrpc": "2.0"}
    if id_ is not None:
        body["id"] = id_
    body["method"] = method
    if params:
        body["params"] = params
    return orjson.dumps(body)


def refusal(id_: bytes, method: str) -> bytes:
    """The answer to a request from the server: an empty result for `ping`, else that we have no such method."""
    if method == "ping":
        return b'{"jsonrpc":"2.0","id":%s,"result":{}}' % id_
    return b'{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"Method not found"}}' % (id_, METHOD_NOT_FOUND)


def decode(frame: bytes) -> Message | None:
    """The message in a frame; None where it is none (not JSON, not UTF-8, no JSON-RPC)."""
    try:
        frame.decode("utf-8")
        members = _MEMBERS.decode(frame)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return None
    if _text(members.get("jsonrpc")) != "2.0":
        return None
    id_ = bytes(members["id"]) if "id" in members else b""
    method = _text(members.get("method"))
    if method is not None:
        return Message(id_, method)
    if "error" in members:
        return _error(id_, members["error"])
    return Message(id_, result=bytes(members["result"])) if "result" in members else None


def _error(id_: bytes, raw: msgspec.Raw) -> Message | None:
    value = _value(raw)
    code = value.get("code") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(code, int) or isinstance(code, bool) or abs(code) > _MOST_CODE:
        return None
    return Message(id_, code=code, data=value.get("data"))


def _text(raw: msgspec.Raw | None) -> str | None:
    value = None if raw is None else _value(raw)
    return value if isinstance(value, str) else None


def _value(raw: msgspec.Raw) -> Json:
    try:
        return parse_json(raw)
    except RecordError:
        return None


def members_of(raw: bytes) -> dict[str, msgspec.Raw]:
    """The members of a JSON object as bytes. Raises ProbeError where it is no object."""
    try:
        return _MEMBERS.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        raise ProbeError("not_mcp", "the result is no JSON object") from None


def value_of(raw: bytes | msgspec.Raw) -> Json:
    """The value in bytes, at most 64 deep. Raises ProbeError for what is no JSON or nested deeper."""
    data = bytes(raw)
    if _depth(data) > MAX_DEPTH:
        raise ProbeError("too_deep", f"the answer is nested deeper than {MAX_DEPTH} levels")
    try:
        return parse_json(data)
    except RecordError as error:
        raise ProbeError("not_mcp", f"the answer cannot be read: {error.reason}") from None


_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_STEPS = {ord("{"): 1, ord("["): 1, ord("}"): -1, ord("]"): -1}


def _depth(data: bytes) -> int:
    """How deep brackets are nested, outside of strings."""
    deepest = level = 0
    for sign in _STRINGS.sub(b"", data).translate(None, delete=_NO_BRACKETS):
        level += _STEPS[sign]
        deepest = max(deepest, level)
    return deepest


_NO_BRACKETS = bytes(sign for sign in range(256) if sign not in _STEPS)
