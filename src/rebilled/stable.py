"""Helpers for an agent, so that each request begins with the bytes of the one before: sort, freeze, assert.

from rebilled import stable

tools = stable.freeze(stable.sort_tools(tools), kept)   # the list of the step before, as long as it means the same
stable.assert_prefix(request_before, request_after)     # in a unit test
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from rebilled.errors import InputError

__all__ = ["assert_prefix", "freeze", "sort_tools"]

T = TypeVar("T")
_DEEPEST = 200
_AROUND = 32
_TOOLS = (("tools",), ("toolConfig", "tools"), ("functions",))
_SYSTEM = (("system",), ("instructions",), ("systemInstruction",), ("system_instruction",))
_MESSAGES = (("messages",), ("input",), ("contents",))
_MODELS = ("model", "modelId")


# ---- tools ---------------------------------------------------------------------------------------------------------


def sort_tools(tools: Iterable[T]) -> list[T]:
    """The tools by name, then by type and content, in a new list: the same whatever order servers answer in.

    Takes the shapes of Anthropic, OpenAI, Gemini and Bedrock, and objects with a `name`. Put cache marks on
    afterwards: a mark stays with its tool, and would move with it.
    """
    return sorted(tools, key=_tool_key)


def _tool_key(tool: object) -> tuple[str, str, str]:
    value = tool if isinstance(tool, Mapping) else {}
    kind = value.get("type", getattr(tool, "type", ""))
    return (_name_of(tool), kind if isinstance(kind, str) else "", json.dumps(value, sort_keys=True, default=repr))


def _name_of(tool: object) -> str:
    """A tool's name; of a list of declarations, the first name in it."""
    if not isinstance(tool, Mapping):
        name = getattr(tool, "name", "")
        return name if isinstance(name, str) else ""
    for key in ("name", "function", "toolSpec"):
        inner = tool.get(key)
        if isinstance(inner, str):
            return inner
        if isinstance(inner, Mapping) and isinstance(inner.get("name"), str):
            return str(inner["name"])
    declared = tool.get("functionDeclarations") or tool.get("function_declarations") or ()
    return min((_name_of(item) for item in declared), default="") if isinstance(declared, Sequence) else ""


# ---- freezing ------------------------------------------------------------------------------------------------------


def freeze(value: Any, kept: Any = None) -> Any:
    """What was sent before, as long as it means the same; else the value in canonical form.

    kept: what the last call gave, None at first. The very same object comes back while the value is JSON-equal to it,
    whatever the order of its keys. The canonical form is a copy with the keys of every object sorted and
    tuples as lists, so equal values are serialised alike even in different processes. Lists keep their order.
    Raises InputError for what JSON cannot hold.
    """
    fresh = _canonical(value, "$", 0)
    return kept if kept is not None and _equal(fresh, _canonical(kept, "$", 0)) else fresh


def _canonical(value: Any, path: str, depth: int) -> Any:
    if depth > _DEEPEST:
        raise InputError(f"{path[:80]}... is nested more than {_DEEPEST} deep; freeze a smaller part of it")
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"{path} is {value}, which JSON cannot hold; leave it out or give a number")
        return value
    if isinstance(value, Mapping):
        odd = next((key for key in value if not isinstance(key, str)), None)
        if odd is not None:
            raise InputError(f"{path} has the key {odd!r}, and keys in JSON are texts; turn it into one")
        return {key: _canonical(value[key], f"{path}.{key}", depth + 1) for key in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [_canonical(item, f"{path}[{place}]", depth + 1) for place, item in enumerate(value)]
    raise InputError(f"{path} is a {type(value).__name__}, which JSON cannot hold; turn it into text, numbers or lists")


def _equal(one: Any, other: Any) -> bool:
    """Whether two canonical values mean the same in JSON: true is no 1, and 1 is 1.0."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other)


# ---- asserting -----------------------------------------------------------------------------------------------------


def assert_prefix(before: Any, after: Any) -> None:
    """Assert that a request repeats the one before byte for byte and only appends to it.

    before, after: request bodies, as objects or as JSON text, of Anthropic, OpenAI, Gemini or Bedrock. Model, tools
    and system have to be the same, and the messages of the first to begin those of the second; blocks may be appended
    to its last message. A request with `previous_response_id` carries no history, so its messages are not compared.
    Cache marks do not count. Key order counts. Raises AssertionError that shows the first byte that moved, its path,
    and what stands there; InputError for what is no request.
    """
    one, other = _body(before, "before"), _body(after, "after")
    for name in _MODELS:
        if one.get(name) != other.get(name):
            raise AssertionError(_model_moved(name, one.get(name), other.get(name)))
    sections = (("tools", _TOOLS), ("system", _SYSTEM), ("messages", _MESSAGES))
    for section, places in sections:
        if section == "messages" and other.get("previous_response_id"):
            return
        path, earlier = _elements(one, places)
        later_path, later = _elements(other, places)
        follows = section != "messages" and _any_behind(one, section)
        moved = _moved(earlier, later, exact=follows, open_end=section == "messages")
        if moved is not None:
            raise AssertionError(_told(section, path or later_path, earlier, later, moved))


def _model_moved(name: str, before: Any, after: Any) -> str:
    return f"$.{name} changed from {before!r} to {after!r}: another model shares no cache entry"


def _body(value: Any, name: str) -> Mapping[str, Any]:
    if isinstance(value, (str, bytes, bytearray)):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise InputError(f"`{name}` is no JSON: {error}; give the request body as it was sent") from None
    if not isinstance(value, Mapping):
        raise InputError(f"`{name}` is a {type(value).__name__}, not a request body; give an object or its JSON text")
    if not _elements(value, _MESSAGES)[0]:
        raise InputError(f"`{name}` has no messages, input or contents; give a whole request body")
    return value


def _elements(body: Mapping[str, Any], places: Sequence[tuple[str, ...]]) -> tuple[str, list[Any]]:
    """The path of a section and its elements without cache marks; a text or object is one element."""
    for place in places:
        found: Any = body
        for key in place:
            found = found.get(key) if isinstance(found, Mapping) else None
        if found is not None:
            listed = found if isinstance(found, (list, tuple)) else [found]
            return f"$.{'.'.join(place)}", [_unmarked(item) for item in listed if not _is_point(item)]
    return "", []


def _any_behind(body: Mapping[str, Any], section: str) -> bool:
    places = (*_SYSTEM, *_MESSAGES) if section == "tools" else _MESSAGES
    return bool(_elements(body, places)[1]) or bool(_elements(body, _MESSAGES)[1])


def _is_point(value: Any) -> bool:
    return isinstance(value, Mapping) and set(value) == {"cachePoint"}


def _unmarked(value: Any) -> Any:
    """An element without the cache marks on itself and on its content blocks."""
    if not isinstance(value, Mapping):
        return value
    kept = {key: item for key, item in value.items() if key not in ("cache_control", "prompt_cache_breakpoint")}
    for key in ("content", "parts"):
        if isinstance(kept.get(key), (list, tuple)):
            kept[key] = [_unmarked(item) for item in kept[key] if not _is_point(item)]
    return kept


def _moved(earlier: list[Any], later: list[Any], *, exact: bool, open_end: bool) -> int | None:
    """The first element that is not repeated; None where all are. exact: nothing may be appended either."""
    for place, element in enumerate(earlier):
        if place >= len(later):
            return place
        last = open_end and place == len(earlier) - 1
        if _text(element) != _text(later[place]) and not (last and _goes_on(element, later[place])):
            return place
    return len(earlier) if exact and len(later) > len(earlier) else None


def _goes_on(element: Any, longer: Any) -> bool:
    """Whether a message is another one with more content blocks at its end."""
    if not isinstance(element, Mapping) or not isinstance(longer, Mapping):
        return False
    for key in ("content", "parts"):
        blocks, more = element.get(key), longer.get(key)
        if isinstance(blocks, list) and isinstance(more, list):
            return _text({**element, key: blocks}) == _text({**longer, key: more[: len(blocks)]})
    return False


def _text(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=repr)
    return text.encode("utf-8", "surrogatepass")


def _told(section: str, path: str, earlier: list[Any], later: list[Any], place: int) -> str:
    one, other = (b",".join(map(_text, elements)) for elements in (earlier, later))
    byte = _first_difference(one, other)
    start = max(0, byte - _AROUND)
    leaf = _leaf(earlier[place], later[place]) if place < min(len(earlier), len(later)) else ""
    named = _name_of(later[place] if place < len(later) else earlier[place]) if section == "tools" else ""
    where = f"{path}[{place}]{leaf}" + (f" (tool {named})" if named else "")
    shown = [_excerpt(text, start, byte) for text in (one, other)]
    return "\n".join(
        [
            f"the {section} moved at byte {byte:,}, {where}: everything from there on is billed again",
            f"  before  {shown[0][0]}",
            f"  after   {shown[1][0]}",
            f"          {' ' * shown[0][1]}^",
        ]
    )


def _first_difference(one: bytes, other: bytes) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (mine, theirs) in pairs if mine != theirs), min(len(one), len(other)))


def _excerpt(text: bytes, start: int, byte: int) -> tuple[str, int]:
    """A piece of a text around a byte, and at which character of it the byte stands."""
    front = ("…" if start else "") + _plain(text[start:byte])
    behind = _plain(text[byte : byte + _AROUND])
    return front + (behind + "…" if byte + _AROUND < len(text) else behind or "(the end)"), len(front)


def _plain(text: bytes) -> str:
    shown = text.decode("utf-8", "replace")
    return "".join(sign if sign.isprintable() else "·" for sign in shown)


def _leaf(one: Any, other: Any) -> str:
    """The path from an element to the first value in it that differs, in the order in which it is written."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for mine, theirs in zip(one, other, strict=False):
            if mine != theirs:
                return f".{theirs}"
            if _text(one[mine]) != _text(other[mine]):
                return f".{mine}{_leaf(one[mine], other[mine])}"
        keys = list(other)[len(one) :] or list(one)[len(other) :]
        return f".{keys[0]}" if keys else ""
    if isinstance(one, list) and isinstance(other, list):
        for place, (mine, theirs) in enumerate(zip(one, other, strict=False)):
            if _text(mine) != _text(theirs):
                return f"[{place}]{_leaf(mine, theirs)}"
        return f"[{min(len(one), len(other))}]"
    return ""
