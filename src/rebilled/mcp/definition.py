"""One tool as a client or a request defines it, whatever the API: its name, its texts, its schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Literal, NamedTuple

from rebilled.causes.telling import server_of
from rebilled.mcp.listing import canonical
from rebilled.model import Json
from rebilled.providers.content import clean
from rebilled.spans import dump_json

Shape = Literal["mcp", "anthropic", "openai.chat", "openai.responses", "gemini", "bedrock", "hosted", "none"]

_MODEL_KEYS = ("name", "description", "inputSchema")
"""What of an MCP tool clients hand on to a model; title, annotations, icons, outputSchema and _meta stay with them."""

_SCHEMA_KEYS = {"input_schema": "anthropic", "inputSchema": "mcp", "parameters": "openai.responses"}
_LISTS = ("functionDeclarations", "function_declarations")
_KEYS = (*_SCHEMA_KEYS, *_LISTS, "function", "toolSpec", "parametersJsonSchema", "name")


class Schema(NamedTuple):
    """A schema of a tool: its value, and the keys that lead to it from the tool."""

    value: Json
    path: tuple[str, ...]


class Text(NamedTuple):
    """A text of a tool that a model reads: where it stands, and the text. keyword: the last key on the way."""

    path: tuple[str | int, ...]
    text: str
    keyword: str


class Definition:
    """One tool as defined. value: its own object, the declaration inside a wrapper; whole: as it stands in the list."""

    def __init__(self, value: Json, shape: Shape, whole: Json = None, *, duplicate_keys: bool = False) -> None:
        self.value = value
        self.shape = shape
        self.whole = value if whole is None else whole
        self.duplicate_keys = duplicate_keys

    @property
    def members(self) -> Mapping[str, Json]:
        """The members of the tool, none where it is no object."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def name(self) -> str:
        """The tool's name; empty where it has none that is a text, its type where it is a provider's own tool."""
        name = self.members.get("type" if self.shape == "hosted" and "name" not in self.members else "name")
        return name if isinstance(name, str) else ""

    @property
    def server(self) -> str | None:
        """The MCP server in a name such as `mcp__server__tool`."""
        return server_of(self.name)

    @property
    def description(self) -> str:
        """The tool's description, empty where it has none."""
        text = self.members.get("description")
        return text if isinstance(text, str) else ""

    @cached_property
    def input_schema(self) -> Schema | None:
        """The schema of the arguments, None where there is none; it may be no object at all."""
        for key in ("inputSchema", "input_schema", "parametersJsonSchema", "parameters"):
            if key in self.members:
                value = self.members[key]
                if self.shape == "bedrock" and isinstance(value, dict) and "json" in value:
                    return Schema(value["json"], (key, "json"))
                return Schema(value, (key,))
        return None

    @property
    def output_schema(self) -> Schema | None:
        """The schema of the results, None where there is none."""
        return Schema(self.members["outputSchema"], ("outputSchema",)) if "outputSchema" in self.members else None

    @property
    def own_dialect(self) -> bool:
        """Whether the schema of the arguments is written in Gemini's own words, which are not JSON Schema."""
        return self.shape == "gemini" and self.input_schema is not None and self.input_schema.path == ("parameters",)

    @cached_property
    def compact(self) -> bytes:
        """The tool as compact JSON, as it stands in the list, without cache marks."""
        return dump_json(clean(self.whole))

    @cached_property
    def canonical(self) -> bytes:
        """The same with sorted keys."""
        return canonical(clean(self.whole))

    @cached_property
    def prompt_bytes(self) -> int:
        """Bytes of what a model is given of it."""
        if self.shape != "mcp":
            return len(self.compact)
        return len(dump_json({key: self.members[key] for key in _MODEL_KEYS if key in self.members}))

    @cached_property
    def texts(self) -> tuple[Text, ...]:
        """Every text that a model reads: the description, and the strings of the schema of the arguments."""
        own = [Text(("description",), self.description, "description")] if self.description else []
        schema = self.input_schema
        return (*own, *(_strings(schema.value, schema.path, "") if schema is not None else ()))


def _strings(value: Json, path: tuple[str | int, ...], keyword: str) -> Iterator[Text]:
    if isinstance(value, str):
        yield Text(path, value, keyword)
    elif isinstance(value, dict):
        for key, child in value.items():
            yield from _strings(child, (*path, key), key)
    elif isinstance(value, list):
        for place, child in enumerate(value):
            yield from _strings(child, (*path, place), keyword)


def definitions_of(value: Json, *, duplicate_keys: bool = False) -> list[Definition]:
    """The tools that one element of a tool list defines: one, or several where it is Gemini's list of declarations."""
    if not isinstance(value, dict):
        return [Definition(value, "none", duplicate_keys=duplicate_keys)]
    for key in _LISTS:
        declared = value.get(key)
        if isinstance(declared, list):
            return [Definition(one, "gemini", duplicate_keys=duplicate_keys) for one in declared]
    for key, shape in (("function", "openai.chat"), ("toolSpec", "bedrock")):
        inner = value.get(key)
        if isinstance(inner, dict):
            return [Definition(inner, shape, value, duplicate_keys=duplicate_keys)]  # type: ignore[arg-type]
    return [Definition(value, _shape_of(value), duplicate_keys=duplicate_keys)]


def _shape_of(value: Mapping[str, Json]) -> Shape:
    kind = value.get("type")
    if isinstance(kind, str) and kind not in ("function", "custom") and "inputSchema" not in value:
        return "hosted"
    for key, shape in _SCHEMA_KEYS.items():
        if key in value:
            return "gemini" if key == "parameters" and "type" not in value else shape  # type: ignore[return-value]
    if "parametersJsonSchema" in value:
        return "gemini"
    return "mcp" if kind is None else "openai.responses"


def looks_defined(value: Json) -> bool:
    """Whether a value looks like an element of a tool list."""
    return isinstance(value, dict) and any(key in value for key in _KEYS)
