"""Messages, instructions and tools as tracing tools spell them, rebuilt as a request body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rebilled.errors import RecordError
from rebilled.formats.counts import ANTHROPIC
from rebilled.model import Json
from rebilled.spans import dump_json, parse_json


def parse_text(value: Any) -> Any:
    """A value that may be logged as JSON text."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return parse_json(value.encode("utf-8", "surrogatepass"))
        except RecordError:
            return value
    return value


def build_body(shape: str, model: str, messages: Any, system: Any, tools: Any) -> dict[str, Any] | None:
    """A body of GenAI messages - `{role, parts}` or plain ones - with system parts and tool definitions."""
    messages, system, tools = (parse_text(value) for value in (messages, system, tools))
    if not isinstance(messages, list):
        return None
    items = [item for item in messages if isinstance(item, dict)]
    parts = system if isinstance(system, list) else [system] if system else []
    body = _anthropic(items, parts) if shape == ANTHROPIC else _chat(items, parts)
    if isinstance(tools, list) and tools:
        body["tools"] = [_tool(tool, shape) for tool in tools]
    return {"model": model, **body}


def _anthropic(messages: list[dict[str, Any]], system: list[Any]) -> dict[str, Any]:
    blocks = [_block(part) for part in system]
    turns = []
    for message in messages:
        content = _blocks(message)
        if message.get("role") == "system":
            blocks += content
        else:
            role = message.get("role")
            turns.append({"role": "assistant" if role == "assistant" else "user", "content": content})
    return {**({"system": blocks} if blocks else {}), "messages": turns}


def _blocks(message: dict[str, Any]) -> list[Any]:
    """The content of a message as blocks, also of one that is spelled as Chat Completions does."""
    content = [_block(part) for part in _parts(message)]
    if message.get("tool_call_id"):
        return [{"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": content}]
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            block = {"type": "tool_use", "id": call.get("id"), "name": function.get("name")}
            content.append({**block, "input": parse_text(function.get("arguments"))})
    return content


def _parts(message: dict[str, Any]) -> list[Any]:
    parts = message.get("parts", message.get("content"))
    if isinstance(parts, list):
        return parts
    return [] if parts is None else [parts]


def _block(part: Any) -> Any:
    """A part as an Anthropic block; parts of unknown kinds as they are."""
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if not isinstance(part, dict):
        return {"type": "text", "text": dump_json(part).decode("utf-8", "replace")}
    kind = part.get("type")
    if kind == "text" and "content" in part:
        return {"type": "text", "text": part["content"]}
    if kind == "reasoning":
        return {"type": "thinking", "thinking": part.get("content")}
    if kind == "tool_call":
        return {
            "type": "tool_use",
            "id": part.get("id"),
            "name": part.get("name"),
            "input": parse_text(part.get("arguments")),
        }
    if kind == "tool_call_response":
        return {"type": "tool_result", "tool_use_id": part.get("id"), "content": _result(part)}
    return part


def _result(part: dict[str, Any]) -> Any:
    found = part.get("response", part.get("result"))
    return found if isinstance(found, (str, list)) else dump_json(found).decode("utf-8", "replace")


def _chat(messages: list[dict[str, Any]], system: list[Any]) -> dict[str, Any]:
    turns: list[dict[str, Any]] = []
    if system:
        turns.append({"role": "system", "content": [_content(part) for part in system]})
    for message in messages:
        if "parts" in message:
            turns += _turns(message)
        else:
            turns.append(message)
    return {"messages": turns}


def _turns(message: dict[str, Any]) -> list[dict[str, Any]]:
    """A message of parts as chat messages: each tool result is one of its own."""
    content: list[Any] = []
    calls: list[Any] = []
    found: list[dict[str, Any]] = []
    for part in _parts(message):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "tool_call":
            arguments = part.get("arguments")
            text = arguments if isinstance(arguments, str) else dump_json(arguments).decode("utf-8", "replace")
            function = {"name": part.get("name"), "arguments": text}
            calls.append({"id": part.get("id"), "type": "function", "function": function})
        elif kind == "tool_call_response":
            found.append({"role": "tool", "tool_call_id": part.get("id"), "content": _result(part)})
        else:
            content.append(_content(part))
    if content or calls or not found:
        turn: dict[str, Any] = {"role": message.get("role"), "content": content}
        if calls:
            turn["tool_calls"] = calls
        found.insert(0, turn)
    return found


def _content(part: Any) -> Any:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if isinstance(part, dict) and part.get("type") == "text" and "content" in part:
        return {"type": "text", "text": part["content"]}
    return part


def _tool(tool: Any, shape: str) -> Any:
    """A definition as the provider takes it; in another spelling than the usual one as it is."""
    tool = parse_text(tool)
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str) or "parameters" not in tool:
        return tool
    kept = {key: tool[key] for key in ("name", "description") if key in tool}
    if shape == ANTHROPIC:
        return {**kept, "input_schema": tool["parameters"]}
    return {"type": "function", "function": {**kept, "parameters": tool["parameters"]}}


def read_indexed(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Objects that are logged as flat attributes, such as `prefix.0.role`, in the order of their numbers."""
    found: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        if key.startswith(prefix + "."):
            number, _, rest = key[len(prefix) + 1 :].partition(".")
            if number.isdigit() and rest and len(number) < 7:
                found.setdefault(int(number), {})[rest] = value
    return [found[number] for number in sorted(found)]


def read_flat_messages(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Messages as OpenLLMetry (`gen_ai.prompt.N`) and OpenInference (`llm.input_messages.N.message`) flatten them."""
    legacy = read_indexed(attributes, "gen_ai.prompt")
    if legacy:
        return [_flat(item, read_indexed(item, "tool_calls"), "", item.get("content")) for item in legacy]
    messages = []
    for item in read_indexed(attributes, "llm.input_messages"):
        inner = {key.removeprefix("message."): value for key, value in item.items()}
        calls = read_indexed(inner, "tool_calls")
        contents = read_indexed(inner, "contents")
        parts = [{k.removeprefix("message_content."): v for k, v in part.items()} for part in contents]
        messages.append(_flat(inner, calls, "tool_call.function.", parts or inner.get("content")))
    return messages


def _flat(item: dict[str, Any], calls: list[dict[str, Any]], prefix: str, content: Any) -> dict[str, Any]:
    turn: dict[str, Any] = {"role": item.get("role"), "content": parse_text(content)}
    if calls:
        turn["tool_calls"] = [
            {
                "id": call.get("id", call.get("tool_call.id")),
                "type": "function",
                "function": {"name": call.get(prefix + "name"), "arguments": call.get(prefix + "arguments")},
            }
            for call in calls
        ]
    if item.get("tool_call_id"):
        turn["tool_call_id"] = item["tool_call_id"]
    return turn


def read_flat_tools(attributes: Mapping[str, Any]) -> list[Json]:
    """Tools as the same two flatten them."""
    schemas = [parse_text(item.get("tool.json_schema")) for item in read_indexed(attributes, "llm.tools")]
    if schemas:
        return schemas
    functions = read_indexed(attributes, "llm.request.functions")
    return [{**item, "parameters": parse_text(item.get("parameters"))} for item in functions]
