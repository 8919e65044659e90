"""One step's prompt, read again: its elements with their paths, values and places in the logged body."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import msgspec

from rebilled.model import Json, SectionName, Step
from rebilled.providers import APIS
from rebilled.providers.api import Api
from rebilled.providers.content import clean, is_cache_point
from rebilled.providers.elements import content_list, is_attribution, tool_name
from rebilled.spans import Layout, dump_json, element_spans, member_spans, parse_json
from rebilled.trace import CONVERSATION

_PART = re.compile(r'\.([^.\[\]]+)|\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]')


class Item(msgspec.Struct, eq=False):
    """One element of a section: its path as logged and its raw text."""

    path: str
    raw: bytes
    _value: Json = None
    _parsed: bool = False

    @property
    def logged(self) -> Json:
        """The value as logged, cache marks included."""
        if not self._parsed:
            self._value, self._parsed = parse_json(self.raw), True
        return self._value

    @property
    def value(self) -> Json:
        """The value as content: without cache marks."""
        return clean(self.logged)

    @property
    def text(self) -> bytes:
        """The value as compact JSON, keys in logged order."""
        return dump_json(self.value)

    @property
    def name(self) -> str:
        """The tool's name, where the element is a tool."""
        return tool_name(self.logged)


@dataclass(eq=False)
class Prompt:
    """The sections of one step; every element is parsed when it is first asked for."""

    step: Step
    read: Callable[[Step], Layout]

    @cached_property
    def layout(self) -> Layout:
        """The spans of the body, read again when they are first needed. Raises RecordError where that fails."""
        return self.read(self.step)

    @cached_property
    def api(self) -> Api:
        """The shape of the body."""
        return next(api for api in APIS if api.name == self.step.api)

    @cached_property
    def tools(self) -> list[Item]:
        """The tools in the prefix; deferred ones are left out."""
        found = [Item(path, raw) for path, raw in self.api.tool_items(self.layout)]
        return [item for item in found if not _outside(item)]

    @cached_property
    def system(self) -> list[Item]:
        """The system entries, leading system messages included."""
        found = [Item(path, raw) for path, raw in self.api.system_items(self.layout)]
        found = [item for item in found if not is_cache_point(item.logged)]
        if self.step.drop_attribution and found and is_attribution(found[0].logged):
            found = found[1:]
        return found + self._carried() + self._messages(0, self.step.leading)

    @cached_property
    def messages(self) -> list[Item]:
        """The elements of the messages section; those that only the provider holds have the path of its response."""
        return self._held() + self._own_messages()

    def _chain(self) -> list[Prompt]:
        """The prompts that this one goes on from, the first of all first."""
        found: list[Prompt] = []
        step = self.step.goes_on_from
        while step is not None:
            found.append(Prompt(step, self.read))
            step = step.goes_on_from
        return found[::-1]

    @property
    def _holder(self) -> str:
        """The path of what names the messages that only the provider holds."""
        named = (self.step.previous_response or "").startswith(CONVERSATION)
        return "$.conversation" if named else "$.previous_response_id"

    def _carried(self) -> list[Item]:
        """The system entries among the messages that only the provider holds."""
        chain = self._chain() if self.step.carried else []
        return [Item(self._holder, item.raw) for prompt in chain for item in prompt._messages(0, prompt.step.leading)]

    def _held(self) -> list[Item]:
        """The other messages that only the provider holds."""
        return [Item(self._holder, item.raw) for prompt in self._chain() for item in prompt._own_messages()]

    def _own_messages(self) -> list[Item]:
        spans = self.layout.elements(self.api.messages_key)
        raw = self.layout.value(self.api.messages_key)
        if spans is not None:
            return self._messages(self.step.leading, len(spans))
        return [] if raw is None or raw == b"null" else [Item(f"$.{self.api.messages_key}", raw)]

    def section(self, name: SectionName) -> list[Item]:
        """The elements of tools, system or messages."""
        return self.tools if name == "tools" else self.system if name == "system" else self.messages

    def array_path(self, name: SectionName) -> str:
        """The path of the array that holds a section."""
        if name == "tools":
            return f"$.{self.api.tools_parent + '.' if self.api.tools_parent else ''}{self.api.tools_key}"
        if name == "system":
            return f"$.{self.api.system_keys[0]}" if self.api.system_keys else f"$.{self.api.messages_key}"
        return f"$.{self.api.messages_key}"

    def _messages(self, first: int, last: int) -> list[Item]:
        spans = (self.layout.elements(self.api.messages_key) or [])[first:last]
        key = self.api.messages_key
        return [
            Item(f"$.{key}[{place}]", self.layout.raw[start:end]) for place, (start, end) in enumerate(spans, first)
        ]


def _outside(item: Item) -> bool:
    """Whether an element of the tool list is no part of the prefix: a cache point or a deferred tool."""
    if b"cachePoint" not in item.raw and b"defer_loading" not in item.raw:
        return False
    value = item.logged
    return is_cache_point(value) or (isinstance(value, dict) and value.get("defer_loading") is True)


def locate(layout: Layout, path: str) -> tuple[int, int]:
    """The span of the value at a path such as `$.tools[3].name` in the body.

    Raises KeyError or IndexError where the path leads nowhere, RecordError where the body cannot be scanned.
    """
    start, end = 0, len(layout.raw)
    parts = split_path(path)
    for place, part in enumerate(parts):
        if isinstance(part, str):
            members = layout.members if place == 0 else member_spans(layout.raw[start:end])
            base = 0 if place == 0 else start
            start, end = base + members[part][0], base + members[part][1]
        else:
            spans = layout.elements(str(parts[0])) if place == 1 else element_spans(layout.raw, start, end)
            if spans is None:
                raise KeyError(path)
            start, end = spans[part]
    return start, end


def split_path(path: str) -> list[str | int]:
    """The keys and indices of a path such as `$.tools[3].input_schema["a b"]`."""
    found: list[str | int] = []
    for match in _PART.finditer(path):
        if match[1] is not None:
            found.append(match[1])
        elif match[2] is not None:
            found.append(int(match[2]))
        else:
            found.append(str(parse_json(b'"' + match[3].encode("utf-8", "surrogatepass") + b'"')))
    return found


def join_path(path: str, part: str | int) -> str:
    """A path that goes one key or index further."""
    if isinstance(part, int):
        return f"{path}[{part}]"
    plain = part != "" and not any(sign in part for sign in '.[]"\\ ') and part.isprintable()
    return f"{path}.{part}" if plain else f"{path}[{dump_json(part).decode('utf-8', 'replace')}]"


def own_path(old: Item, new: Item, tail: str) -> str:
    """The path in the earlier element: indices may differ where cache points stand in front of a block."""
    if b"cachePoint" not in old.raw and b"cachePoint" not in new.raw:
        return old.path + tail
    path, mine, theirs = old.path, old.logged, new.logged
    for part in split_path("$" + tail):
        if isinstance(part, int) and isinstance(mine, list) and isinstance(theirs, list):
            count = sum(not is_cache_point(item) for item in theirs[:part])
            places = [place for place, item in enumerate(mine) if not is_cache_point(item)]
            own: int | str = places[count] if count < len(places) else part
            theirs = theirs[part]
            mine = mine[int(own)] if int(own) < len(mine) else None
        else:
            own = part
            mine, theirs = (node.get(str(part)) if isinstance(node, dict) else None for node in (mine, theirs))
        path = join_path(path, own)
    return path


def tool_at(item: Item, path: str) -> str:
    """The name of the tool at a path inside an element of the tool list, of one declaration in Gemini's lists."""
    value = item.logged
    parts = split_path("$" + path[len(item.path) :])
    declared = value.get(str(parts[0])) if isinstance(value, dict) and len(parts) > 1 else None
    place = parts[1] if len(parts) > 1 else None
    if isinstance(declared, list) and isinstance(place, int) and place < len(declared):
        return item.name or tool_name(declared[place])
    return item.name


Loader = Callable[[Step], Prompt]


def content_of(value: Json) -> list[Json]:
    """The content blocks of a message without Bedrock's cache points; a message without a list is one block."""
    content = content_list(value)
    return [value] if content is None else [item for item in content if not is_cache_point(item)]


def texts_of(value: Json) -> str:
    """All text that a value holds, in document order, one piece a line; object keys are left out."""
    found: list[str] = []

    def walk(node: Json) -> None:
        if isinstance(node, str):
            found.append(node)
        elif isinstance(node, dict):
            for key, item in node.items():
                if key not in ("type", "role", "id", "name", "tool_use_id", "call_id", "tool_call_id"):
                    walk(item)
        elif isinstance(node, list):
            for item in node:
                walk(item)

    walk(value)
    return "\n".join(found)
