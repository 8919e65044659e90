"""What one API's bodies look like: where the sections stand, which parameters count, how usage reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from rebilled.model import Json, Parameters, Reply
from rebilled.providers.content import canonical, clean
from rebilled.spans import Layout, dump_json, parse_json

SCOPE: Final = (
    "model",
    "modelId",
    "meta.endpoint",
    "meta.region",
    "meta.workspace",
    "meta.api_key_fp",
    "meta.anthropic_beta",
    "speed",
    "service_tier",
)
MESSAGE_LEVEL: Final = (
    "tool_choice",
    "thinking",
    "output_config",
    "reasoning",
    "reasoning_effort",
    "text",
    "response_format",
    "parallel_tool_calls",
    "toolConfig.toolChoice",
    "toolConfig",
    "generationConfig.thinkingConfig",
    "generationConfig.responseSchema",
)
ROUTING: Final = ("prompt_cache_key", "prompt_cache_retention")
_NAMES = (*SCOPE, *MESSAGE_LEVEL, *ROUTING)
_IN_BODY = frozenset(name.partition(".")[0] for name in _NAMES if not name.startswith("meta."))
_IN_META = tuple(name[5:] for name in _NAMES if name.startswith("meta."))


class Api(msgspec.Struct, frozen=True):
    """One API shape. A body becomes steps' sections through the keys named here.

    name: e.g. `anthropic.messages`. provider: who bills it, unless the endpoint says otherwise.
    fits(keys, body, url): how surely a body is of this shape, 0 for not at all.
    read_reply(response, events): usage made disjoint, ids and errors; response is None where there was none.
    leading_system: leading system/developer items of the messages are the system section (OpenAI's shapes).
    """

    name: str
    provider: str
    title: str
    fits: Callable[[Mapping[str, tuple[int, int]], Layout, str], int]
    read_reply: Callable[[Json, Sequence[Json]], Reply]
    messages_key: str
    tools_key: str = "tools"
    tools_parent: str = ""
    system_keys: tuple[str, ...] = ()
    leading_system: bool = False

    def tool_items(self, layout: Layout) -> list[tuple[str, bytes]]:
        """The raw tools with their paths as logged."""
        path = f"$.{self.tools_key}"
        if self.tools_parent:
            path = f"$.{self.tools_parent}.{self.tools_key}"
            holder = layout.value(self.tools_parent)
            if holder is None or holder[:1] != b"{":
                return []
            layout = Layout.of(holder)
        spans = layout.elements(self.tools_key)
        return [(f"{path}[{place}]", layout.raw[a:b]) for place, (a, b) in enumerate(spans or ())]

    def system_items(self, layout: Layout) -> list[tuple[str, bytes]]:
        """The raw system entries outside the messages, with their paths as logged."""
        found: list[tuple[str, bytes]] = []
        for key in self.system_keys:
            raw = layout.value(key)
            if raw is None or raw == b"null":
                continue
            spans = layout.elements(key)
            if spans is None:
                found.append((f"$.{key}", raw))
            else:
                found += [(f"$.{key}[{place}]", layout.raw[a:b]) for place, (a, b) in enumerate(spans)]
        return found

    def parameter_texts(self, layout: Layout, meta: Mapping[str, Json]) -> list[object]:
        """The raw texts that `parameters` reads, as a key to remember its answer by."""
        found: list[object] = [(name, layout.value(name)) for name in layout.members if name in _IN_BODY]
        for name in _IN_META:
            value = meta.get(name)
            found.append(str(value) if isinstance(value, (dict, list)) else value)
        return found

    def parameters(self, layout: Layout, meta: Mapping[str, Json]) -> Parameters:
        """The parameter groups of a body, cleaned, in the order of the definition."""
        scope, level, routing = (self._group(names, layout, meta) for names in (SCOPE, MESSAGE_LEVEL, ROUTING))
        compared = dict(scope)
        if "meta.workspace" in scope:
            compared.pop("meta.api_key_fp", None)
        return Parameters(
            scope=scope,
            message_level=level,
            routing=routing,
            scope_key=canonical_group(compared),
            level_key=canonical_group(level),
            routing_key=canonical_group(routing),
        )

    def _group(self, names: tuple[str, ...], layout: Layout, meta: Mapping[str, Json]) -> dict[str, Json]:
        found: dict[str, Json] = {}
        for name in names:
            if name.startswith("meta."):
                value = meta.get(name[5:])
            else:
                head, _, rest = name.partition(".")
                if head not in layout.members or (name in PARAMETER_OWNERS and self.name not in PARAMETER_OWNERS[name]):
                    continue
                raw = layout.value(head)
                value = clean(parse_json(raw)) if raw is not None else None
                if rest:
                    value = value.get(rest) if isinstance(value, dict) else None
            if value is not None:
                found[name] = value
        return found


PARAMETER_OWNERS: Final = {
    "toolConfig": frozenset({"gemini.generate_content"}),
    "toolConfig.toolChoice": frozenset({"bedrock.converse"}),
    "generationConfig.thinkingConfig": frozenset({"gemini.generate_content"}),
    "generationConfig.responseSchema": frozenset({"gemini.generate_content"}),
}
"""Parameters whose names mean something else, or nothing, in other APIs."""


def canonical_group(group: Mapping[str, Json]) -> str:
    """A parameter group as text that is equal wherever it means the same."""
    return dump_json({name: canonical(value) for name, value in group.items()}).decode("utf-8", "surrogatepass")


# ---- reading usage ---------------------------------------------------------------------------------------------


def count(holder: Json, *path: str) -> int:
    """A non-negative token count at a path of keys; 0 where it is missing or no whole number."""
    value = dig(holder, *path)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0
    return max(0, int(value)) if value == value and abs(value) < 1e15 else 0


def dig(holder: Json, *path: str) -> Json:
    """The value at a path of keys, None where any is missing."""
    for key in path:
        holder = holder.get(key) if isinstance(holder, dict) else None
    return holder


def text_at(holder: Json, *path: str) -> str | None:
    """The text at a path of keys, None where it is missing or no text."""
    value = dig(holder, *path)
    return value if isinstance(value, str) and value else None


def error_text(holder: Json) -> str | None:
    """The error that a response carries, as `type: message`; None where it carries none."""
    error = dig(holder, "error")
    if isinstance(error, str) and error:
        return error
    if not isinstance(error, dict) or not error:
        return None
    parts = [part for part in (text_at(error, "type") or text_at(error, "code"), text_at(error, "message")) if part]
    return ": ".join(parts) or "error"
