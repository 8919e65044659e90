"""The request side of a logged call: where the body stands, and what is known about the call around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rebilled.errors import RecordError
from rebilled.formats.credentials import secret_keys
from rebilled.formats.parts import Members, Names, Part, split_object, text_of

REQUEST_KEYS = Names(
    (
        "request",
        "req",
        "request_body",
        "requestBody",
        "raw_request",
        "rawRequest",
        "llm_request",
        "api_request",
    )
)
BODY_KEYS = Names(
    ("body", "body_json", "json", "parsed_body", "body_raw", "raw_body", "data", "payload", "params", "kwargs")
)
_DEPTH = 4
_DECISIVE = Names(("messages", "contents", "input", "prompt", "model", "modelId"))


class Request(NamedTuple):
    """A request as logged: its body, None where the log has none, and the wrapper around the body, if any."""

    body: Part | None
    wrapper: Members | None = None


def is_body(members: Members) -> bool:
    """Whether an object looks like a request body: messages, contents, or a model with input or prompt."""
    present = members.shape[_DECISIVE]
    return bool(present) and holds_body({key: members.first_byte(key) for key in present})


def holds_body(first: Mapping[str, bytes]) -> bool:
    """The same, from the first byte of each member's value."""
    if first.get("messages") == b"[" or first.get("contents") == b"[":
        return True
    named = first.get("model") == b'"' or first.get("modelId") == b'"'
    return named and (first.get("input") in (b"[", b'"') or first.get("prompt") in (b"[", b'"'))


def read_request(part: Part, depth: int = 0) -> Request:
    """The body in a request as logged: the request itself, JSON text, or a member such as `body` of either kind.

    Raises RecordError where the request is an object that no JSON parser reads.
    """
    if depth > _DEPTH:
        return Request(None)
    if part.text[:1] == b'"':
        text = text_of(part) or b""
        start = text.lstrip()[:1]
        if start != b"{":
            return Request(None)
        try:
            return read_request(Part(text.strip(), None, part.exact), depth + 1)
        except RecordError:
            return Request(None)
    if part.text[:1] != b"{":
        return Request(None)
    return read_members(split_object(part), depth)


def read_members(members: Members, depth: int = 0) -> Request:
    """The same for an object whose members are known."""
    if is_body(members):
        return Request(strip_body(members))
    for key in members.shape[BODY_KEYS]:
        inner = members.get(key)
        found = read_request(inner, depth + 1) if inner is not None else None
        if found is not None and found.body is not None:
            return Request(found.body, members)
    return Request(None, members)


def strip_body(members: Members) -> Part:
    """A body without the credentials that some clients log among its parameters."""
    secrets = secret_keys(members.shape.names)
    return members.without(secrets) if secrets else members.part
