"""Where the tools to be examined come from: a file of definitions, a recording of a server, or a trace of requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from rebilled.analysis import Progress, read
from rebilled.errors import InputError, RecordError
from rebilled.formats.file import File
from rebilled.formats.walk import Input, find_inputs
from rebilled.mcp.definition import Definition, definitions_of, looks_defined
from rebilled.mcp.lint_rule import ToolList
from rebilled.mcp.listing import has_duplicate_keys
from rebilled.mcp.recording import is_recording, read_recording, tool_lists
from rebilled.model import Json
from rebilled.prompt import Prompt
from rebilled.spans import parse_json
from rebilled.trace import Trace

MAX_BYTES = 64 << 20
"""A larger file is read as a trace, line by line."""

_CALLS = ("messages", "contents", "request", "response", "body", "entries", "log", "interactions", "input")
_MOST_LISTS = 2000


class Found(msgspec.Struct):
    """What was read. pairs: lists that followed one another; trace: where it is one.

    skipped: how many lists could not be read again.
    """

    kind: Literal["definitions", "trace", "recording"]
    name: str
    lists: tuple[ToolList, ...]
    pairs: tuple[tuple[int, int], ...]
    trace: Trace | None = None
    skipped: int = 0


def read_source(paths: Sequence[str], *, progress: Progress | None = None) -> Found:
    """The tool lists in these paths. Raises InputError where there are none."""
    if len(paths) == 1:
        found = _read_one(paths[0])
        if found is not None:
            return found
    trace = read(paths, progress=progress)
    lists, pairs, skipped = _lists_of(trace)
    if not lists:
        raise InputError(_nothing(paths, trace))
    return Found("trace", ", ".join(paths), lists, pairs, trace, skipped)


def _nothing(paths: Sequence[str], trace: Trace) -> str:
    named = ", ".join(map(repr, paths[:3]))
    if trace.steps:
        return f"{named}: none of its {len(trace.steps):,} steps carries tools, so there is nothing to lint"
    hint = "give a tools/list result, a JSON list of tools, a recording of `analyze mcp tee`, or a trace"
    first = f" ({trace.skipped[0].detail})" if trace.skipped else ""
    return f"{named}: no tool definitions were found{first}; {hint}"


# ---- files of definitions --------------------------------------------------------------------------------------------


def _read_one(path: str) -> Found | None:
    """What one file holds, None where it is none of definitions. Raises InputError where it cannot be opened."""
    if path != "-" and any(not isinstance(one, Input) or one.path != path for one in find_inputs([path])):
        return None
    try:
        with File(path) as file:
            if file.size > MAX_BYTES and not is_recording(file.head):
                return None
            data = bytes(file.data())[file.start : file.size]
    except RecordError as error:
        raise InputError(f"{path!r} {error.detail}") from None
    if is_recording(data):
        lists = tuple(_recorded(data, path))
        if not lists:
            raise InputError(f"{path!r}: the recording holds no answer to tools/list; record a client that lists tools")
        return Found("recording", path, lists, _in_a_row(lists))
    lists = tuple(_documents(data))
    if not lists:
        if path == "-":
            raise InputError("standard input holds no tool definitions; give a trace as a file")
        return None
    return Found("definitions", path, lists, _in_a_row(lists))


def _in_a_row(lists: Sequence[ToolList]) -> tuple[tuple[int, int], ...]:
    return tuple((at - 1, at) for at in range(1, len(lists)))


def _recorded(data: bytes, path: str) -> Iterator[ToolList]:
    for place, items in enumerate(tool_lists(read_recording(data, path)), 1):
        yield ToolList(_definitions(items), f"list {place}")


def _documents(data: bytes) -> Iterator[ToolList]:
    """The tool lists of a JSON document, or of a file with one in each line."""
    try:
        values = [(parse_json(data), data)]
    except RecordError:
        values = []
        for line in data.splitlines():
            if line.strip():
                try:
                    values.append((parse_json(line), line))
                except RecordError:
                    return
    found = [(items, raw) for value, raw in values for items in _lists_in(value)]
    if not found or len(found) < len(values):
        return
    for place, (items, raw) in enumerate(found[:_MOST_LISTS], 1):
        tools = _definitions(items, duplicates=_has_duplicates(raw))
        yield ToolList(tools, f"list {place}" if len(found) > 1 else "")


def _has_duplicates(raw: bytes) -> bool:
    try:
        return has_duplicate_keys(raw)
    except (ValueError, RecursionError):
        return False


def _lists_in(value: Json) -> list[list[Json]]:
    """The tool lists in a JSON value: itself, a result, an answer, a request, or several of them; none otherwise."""
    if isinstance(value, dict):
        items = _items_of(value)
        return [items] if items is not None else []
    if not isinstance(value, list) or not value:
        return []
    if any(looks_defined(item) and not _is_call(item) for item in value):
        return [value]
    each = [_lists_in(item) if isinstance(item, dict) else [] for item in value]
    return [items for found in each for items in found] if all(each) else []


def _is_call(value: Json) -> bool:
    return isinstance(value, dict) and any(key in value for key in _CALLS)


def _items_of(value: dict[str, Json]) -> list[Json] | None:
    """The tools of an object that holds a list of them, itself where it is a tool; None for anything else."""
    for holder in (value.get("result"), value, value.get("toolConfig"), value.get("params")):
        if isinstance(holder, dict):
            tools = holder.get("tools")
            if isinstance(tools, list) and not (holder is value and _is_call(value)):
                return tools
    return [value] if looks_defined(value) and not _is_call(value) and _has_schema(value) else None


def _has_schema(value: dict[str, Json]) -> bool:
    return any(
        key in value for key in ("inputSchema", "input_schema", "functionDeclarations", "function", "toolSpec")
    ) or ("parameters" in value and "name" in value)


def _definitions(items: Sequence[Json], *, duplicates: bool = False) -> tuple[Definition, ...]:
    return tuple(tool for item in items for tool in definitions_of(item, duplicate_keys=duplicates))


# ---- traces ----------------------------------------------------------------------------------------------------------


def _lists_of(trace: Trace) -> tuple[tuple[ToolList, ...], tuple[tuple[int, int], ...], int]:
    """Every different tool list of a trace once, which followed which, and how many could not be read again."""
    places: dict[tuple[str, bytes], int] = {}
    steps: dict[int, list[int]] = {}
    lists: list[tuple[Definition, ...]] = []
    gone = 0
    for step in trace.steps:
        key = (step.api, step.tools.digest)
        if not step.tools.blocks or not step.has_body:
            continue
        if key not in places and len(lists) < _MOST_LISTS:
            try:
                items = [item.value for item in Prompt(step, trace.layout).tools]
            except RecordError:
                gone += 1
                continue
            places[key] = len(lists)
            lists.append(_definitions(items))
        if key in places:
            steps.setdefault(places[key], []).append(step.number)
    found = tuple(ToolList(tools, f"step {steps[at][0]}", tuple(steps[at])) for at, tools in enumerate(lists))
    return found, tuple(_followed(trace, places)), gone


def _followed(trace: Trace, places: dict[tuple[str, bytes], int]) -> Iterator[tuple[int, int]]:
    """For each step that continues another, both with tools, the places of their lists."""
    for step in trace.steps:
        before = trace.step(step.compare_to) if step.compare_to is not None else None
        if before is not None and before.api == step.api and step.tools.blocks and before.tools.blocks:
            pair = places.get((before.api, before.tools.digest)), places.get((step.api, step.tools.digest))
            if pair[0] is not None and pair[1] is not None:
                yield pair[0], pair[1]
