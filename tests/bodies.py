"""Random bodies of every API shape, small and odd: what two laws are held against."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

from builders import ANTHROPIC, BEDROCK, CHAT, GEMINI, RESPONSES
from definition import MESSAGES_KEY, SYSTEM_KEY

TEXTS = (
    "a",
    "b",
    "ab",
    "",
    "é",
    "日本",
    "日x",
    "😀",
    "😁",
    '"',
    "\\",
    "\n",
    "a\nb",
    "1",
    "{}",
    "\u2028",
    "\x01",
    "x" * 30,
)
NAMES = ("a", "b", "c", "text", "type", "input", "x y", "é", "json", "description")
NUMBERS = (0, 1, 1.0, -1, 1.5, 10**20, 1e30, 0.1)
POINT = {"cachePoint": {"type": "default"}}
URLS = {
    ANTHROPIC: "/v1/messages",
    CHAT: "/v1/chat/completions",
    RESPONSES: "/v1/responses",
    GEMINI: "/v1/models/m:generateContent",
    BEDROCK: "/model/m/converse",
}
PARAMETERS = (
    "model",
    "speed",
    "service_tier",
    "tool_choice",
    "thinking",
    "output_config",
    "reasoning",
    "reasoning_effort",
    "text",
    "response_format",
    "parallel_tool_calls",
    "prompt_cache_key",
    "prompt_cache_retention",
    "temperature",
    "max_tokens",
)


def value(random: Random, depth: int = 2) -> Any:
    """Any JSON value."""
    kind = random.randrange(6 if depth else 4)
    if kind == 0:
        return random.choice((None, True, False))
    if kind == 1:
        return random.choice(NUMBERS)
    if kind in (2, 3):
        return random.choice(TEXTS)
    if kind == 4:
        return [value(random, depth - 1) for _ in range(random.randrange(3))]
    return mapping(random, depth)


def mapping(random: Random, depth: int = 2) -> dict[str, Any]:
    return {name: value(random, depth - 1) for name in random.sample(NAMES, random.randrange(4))}


def maybe_marked(random: Random, block: dict[str, Any]) -> dict[str, Any]:
    if random.randrange(4):
        return block
    items = [*block.items()]
    items.insert(random.randrange(len(items) + 1), ("cache_control", {"type": "ephemeral"}))
    return dict(items)


def tool(random: Random, api: str) -> dict[str, Any]:
    name, description = random.choice(("read", "write", "list")), random.choice(TEXTS)
    if api == BEDROCK:
        if not random.randrange(5):
            return dict(POINT)
        return {"toolSpec": {"name": name, "description": description, "inputSchema": {"json": mapping(random)}}}
    key = "input_schema" if api == ANTHROPIC else "parameters"
    made: dict[str, Any] = {"name": name, "description": description, key: mapping(random)}
    if not random.randrange(6):
        made["defer_loading"] = random.choice((True, False))
    return maybe_marked(random, made)


def block(random: Random, api: str) -> Any:
    words, free = random.choice(TEXTS), mapping(random)
    if api == GEMINI:
        return random.choice(({"text": words}, {"functionCall": {"name": "read", "args": free}}))
    if api == BEDROCK:
        return random.choice(({"text": words}, {"toolUse": {"toolUseId": "t", "input": free}}, dict(POINT)))
    call = {"type": "tool_use", "id": "t", "input": free}
    return maybe_marked(random, random.choice(({"type": "text", "text": words}, call)))


def message(random: Random, api: str) -> dict[str, Any]:
    roles = ["user", "user", "assistant"] + (["system", "developer"] if api in (CHAT, RESPONSES) else [])
    blocks: Any = [block(random, api) for _ in range(random.randrange(4))]
    if api in (ANTHROPIC, CHAT, RESPONSES) and not random.randrange(3):
        blocks = random.choice(TEXTS)
    return {"role": random.choice(roles), "parts" if api == GEMINI else "content": blocks}


def system(random: Random, api: str) -> Any:
    if api == GEMINI:
        return {"parts": [{"text": random.choice(TEXTS)} for _ in range(random.randrange(3))]}
    if api == RESPONSES or (api == ANTHROPIC and not random.randrange(3)):
        return random.choice(TEXTS)
    count = random.randrange(4)
    if api == BEDROCK:
        return [random.choice(({"text": random.choice(TEXTS)}, dict(POINT))) for _ in range(count)]
    return [maybe_marked(random, {"type": "text", "text": random.choice(TEXTS)}) for _ in range(count)]


def body(random: Random, api: str) -> dict[str, Any]:
    """A request body of this shape."""
    made: dict[str, Any] = {"model": "m1"}
    for name in random.sample(PARAMETERS, random.randrange(3)):
        made[name] = value(random)
    if random.randrange(4):
        listed = [tool(random, api) for _ in range(random.randrange(4))]
        if api == BEDROCK:
            made["toolConfig"] = {"tools": listed, "toolChoice": {"auto": {}}}
        else:
            made["tools"] = listed
    if api != CHAT and random.randrange(4):
        made[SYSTEM_KEY[api]] = system(random, api)
    made[MESSAGES_KEY[api]] = [message(random, api) for _ in range(random.randrange(5))]
    items = [*made.items()]
    random.shuffle(items)
    return dict(items)


def meta(random: Random) -> dict[str, Any]:
    """What is logged beside it."""
    values = {
        "endpoint": ("api.example", "other.example"),
        "workspace": ("w1", "w2"),
        "api_key_fp": ("k1", "k2", "k3"),
        "region": ("eu", "us"),
        "anthropic_beta": ("x", ["x", "y"], ["y", "x"]),
    }
    return {name: random.choice(choices) for name, choices in values.items() if random.randrange(2)}


def changed(random: Random, api: str, before: dict[str, Any]) -> dict[str, Any]:
    """The body with one or two changes somewhere in it, mostly small ones."""
    made = copy.deepcopy(before)
    key = MESSAGES_KEY[api]
    for _ in range(random.randrange(3)):
        place = random.randrange(8)
        if place == 0:
            made[random.choice(PARAMETERS)] = value(random)
        elif place == 1 and api != CHAT:
            made[SYSTEM_KEY[api]] = system(random, api)
        elif place == 2 and api != BEDROCK:
            made["tools"] = [tool(random, api) for _ in range(random.randrange(4))]
        elif place == 3:
            made[key] = [*made[key], message(random, api)]
        else:
            _change_inside(random, made)
    return _reordered(random, made) if not random.randrange(3) else made


def _change_inside(random: Random, made: dict[str, Any]) -> None:
    """Change a list or object somewhere inside: put something in, take something out, swap, or alter it."""
    holders = list(_holders(made[random.choice(list(made))]))
    if not holders:
        return
    holder = random.choice(holders)
    if isinstance(holder, list):
        places = range(len(holder))
        kind = random.randrange(4)
        if kind == 0 and len(holder) > 1:
            random.shuffle(holder)
        elif kind == 1 and holder:
            del holder[random.choice(places)]
        elif kind == 2 and holder:
            holder.append(copy.deepcopy(random.choice(holder)))
        elif holder and not isinstance(holder[0], dict):
            holder[random.choice(places)] = value(random)
        return
    fixed = ("role", "type", "content", "parts", "tools", "toolSpec", "inputSchema", "cache_control", "cachePoint")
    names = [name for name in holder if name not in fixed]
    if names:
        name = random.choice(names)
        holder[name] = random.choice(TEXTS) if isinstance(holder[name], str) else value(random)


def _holders(node: Any) -> Any:
    if isinstance(node, (dict, list)):
        yield node
        for item in node.values() if isinstance(node, dict) else node:
            yield from _holders(item)


def _reordered(random: Random, node: Any) -> Any:
    if isinstance(node, dict):
        keys = list(node)
        random.shuffle(keys)
        return {name: _reordered(random, node[name]) for name in keys}
    if isinstance(node, list):
        return [_reordered(random, item) for item in node]
    return node


def printed(random: Random, node: Any) -> bytes:
    """The JSON in one of the ways that programs print it."""
    style = random.randrange(4)
    if style == 0:
        return json.dumps(node).encode()
    if style == 1:
        return json.dumps(node, ensure_ascii=False, indent=2).encode()
    if style == 2:
        return json.dumps(node, ensure_ascii=False, separators=(",", ":")).encode()
    return json.dumps(node, separators=(" , ", " : "), indent="\t").replace("/", "\\/").encode()
