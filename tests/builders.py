"""Builders of requests, records and runs: each says only what its test is about."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import definition
from rebilled.analysis import Analysis, analyze, link
from rebilled.model import Rates, Record, Skip, Source, StepResult
from rebilled.reader import Reader
from rebilled.trace import Trace

Body = dict[str, Any]

ANTHROPIC = "anthropic.messages"
CHAT = "openai.chat"
RESPONSES = "openai.responses"
GEMINI = "gemini.generate_content"
BEDROCK = "bedrock.converse"
EVERY = (ANTHROPIC, CHAT, RESPONSES, GEMINI, BEDROCK)
MARKED = (ANTHROPIC, BEDROCK)
AUTOMATIC = (CHAT, RESPONSES, GEMINI)
OPENAI = (CHAT, RESPONSES)
MODELS = {
    ANTHROPIC: "claude-sonnet-5",
    CHAT: "gpt-5.4",
    RESPONSES: "gpt-5.4",
    GEMINI: "gemini-2.5-pro",
    BEDROCK: "us.anthropic.claude-opus-5",
}
BYTES_PER_TOKEN = 4
STEMS = (
    "crate",
    "lane",
    "shelf",
    "gauge",
    "relay",
    "depot",
    "route",
    "permit",
    "quota",
    "silo",
    "dock",
    "voucher",
    "tariff",
    "parcel",
    "ledger",
)
NINE = 1_793_696_400.0  # 2026-11-03 09:00 UTC


def words(size: int, seed: str = "") -> str:
    """Plain prose of exactly `size` characters, another one for each seed."""
    found: list[str] = []
    number = 0
    while sum(len(piece) + 1 for piece in found) < size + 1:
        digest = hashlib.blake2b(f"{seed}/{number}".encode()).digest()
        picked = [STEMS[byte % len(STEMS)] for byte in digest[:9]]
        found.append(" ".join(picked).capitalize() + ".")
        number += 1
    return " ".join(found)[:size]


# ---- a conversation, whatever the API ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """One content block: text, thinking, call, result or image."""

    kind: str
    text: str = ""
    ident: str = ""
    name: str = ""
    args: Any = None


@dataclass(frozen=True)
class Turn:
    """One message."""

    role: str
    parts: tuple[Part, ...]


def text(content: str) -> Part:
    return Part("text", content)


def thinking(content: str) -> Part:
    return Part("thinking", content)


def call(ident: str, args: Any, name: str = "read_file") -> Part:
    return Part("call", ident=ident, name=name, args=args)


def outcome(ident: str, content: str, name: str = "read_file") -> Part:
    return Part("result", content, ident=ident, name=name)


def image(data: str) -> Part:
    return Part("image", data)


def user(*parts: Part | str) -> Turn:
    return Turn("user", tuple(text(part) if isinstance(part, str) else part for part in parts))


def assistant(*parts: Part | str) -> Turn:
    return Turn("assistant", tuple(text(part) if isinstance(part, str) else part for part in parts))


@dataclass(frozen=True)
class Tool:
    """One tool."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(hash=False)


def tool(name: str, *, size: int = 400) -> Tool:
    schema = {"type": "object", "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}}}
    return Tool(name, words(size, name), schema)


def tools(*names: str, size: int = 400) -> tuple[Tool, ...]:
    return tuple(tool(name, size=size) for name in names)


SYSTEM = words(4000, "system")
TOOLS = tools("read_file", "write_file", "list_dir", "run_shell", "search_text", "git_diff")
OPENING = user(words(1500, "opening"))


@dataclass(frozen=True)
class Talk:
    """A request of any API: tools, system texts, turns, parameters, and where cache marks stand.

    marks: "tools", "system", "last" (the last block), or the number of a turn, whose last block it is.
    """

    api: str = ANTHROPIC
    tools: tuple[Tool, ...] = TOOLS
    system: tuple[str, ...] = (SYSTEM,)
    turns: tuple[Turn, ...] = (OPENING,)
    model: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    marks: tuple[str | int, ...] = ("system", "last")
    ttl: str = "5m"
    meta: Mapping[str, Any] = field(default_factory=dict)
    change: tuple[Callable[[Body], None], ...] = ()

    def grown(self, *turns: Turn) -> Talk:
        """The same with more turns at its end."""
        return replace(self, turns=self.turns + turns)

    def with_(self, **fields: Any) -> Talk:
        return replace(self, **fields)

    def edited(self, change: Callable[[Body], None]) -> Talk:
        """The same with the finished body changed in place."""
        return replace(self, change=(*self.change, change))

    @property
    def body(self) -> Body:
        """The request body, as parsed JSON."""
        made = _WRITERS[self.api](self)
        for change in self.change:
            change(made)
        return made

    @property
    def tokens(self) -> int:
        """Tokens of the whole prompt, at four bytes each."""
        return round(self.bytes / BYTES_PER_TOKEN)

    @property
    def bytes(self) -> int:
        return definition.prompt_bytes(self.defined)

    @property
    def defined(self) -> definition.Body:
        """The request as the definition sees it."""
        return definition.Body(self.api, json.loads(json.dumps(self.body)), self.meta)


def call_and_result(number: int, *, size: int = 600) -> tuple[Turn, Turn]:
    """An assistant's tool call and what came of it."""
    ident = f"call_{hashlib.blake2b(str(number).encode(), digest_size=8).hexdigest()}"
    return (
        assistant(text(words(120, f"say {number}")), call(ident, {"path": f"/srv/bay{number}.csv", "limit": number})),
        user(outcome(ident, words(size, f"result {number}"))),
    )


def history(calls: int, *, size: int = 600) -> tuple[Turn, ...]:
    """An opening and some tool calls with their results."""
    return (OPENING, *(turn for number in range(calls) for turn in call_and_result(number, size=size)))


def _marked(talk: Talk, block: Body) -> None:
    block["cache_control"] = {"type": "ephemeral"} if talk.ttl == "5m" else {"type": "ephemeral", "ttl": talk.ttl}


def _point(talk: Talk) -> Body:
    point = {"type": "default"} if talk.ttl == "5m" else {"type": "default", "ttl": talk.ttl}
    return {"cachePoint": point}


def _turns_marked(talk: Talk) -> list[int]:
    last = len(talk.turns) - 1
    places = [last if mark == "last" else mark for mark in talk.marks]
    return [place for place in places if isinstance(place, int)]


def _anthropic(talk: Talk) -> Body:
    body: Body = {"model": talk.model or MODELS[ANTHROPIC], "max_tokens": 4096, **talk.params}
    if talk.tools:
        body["tools"] = [
            {"name": t.name, "description": t.description, "input_schema": dict(t.schema)} for t in talk.tools
        ]
        if "tools" in talk.marks:
            _marked(talk, body["tools"][-1])
    if talk.system:
        body["system"] = [{"type": "text", "text": part} for part in talk.system]
        if "system" in talk.marks:
            _marked(talk, body["system"][-1])
    body["messages"] = [
        {"role": turn.role, "content": [_anthropic_part(part) for part in turn.parts]} for turn in talk.turns
    ]
    for place in _turns_marked(talk):
        _marked(talk, body["messages"][place]["content"][-1])
    return body


def _anthropic_part(part: Part) -> Body:
    if part.kind == "text":
        return {"type": "text", "text": part.text}
    if part.kind == "thinking":
        return {"type": "thinking", "thinking": part.text, "signature": "c2ln"}
    if part.kind == "call":
        return {"type": "tool_use", "id": part.ident, "name": part.name, "input": part.args}
    if part.kind == "result":
        content = [{"type": "text", "text": part.text}]
        return {"type": "tool_result", "tool_use_id": part.ident, "content": content}
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": part.text}}


def _chat(talk: Talk) -> Body:
    messages: list[Body] = [{"role": "system", "content": part} for part in talk.system]
    for turn in talk.turns:
        messages += _chat_messages(turn)
    body: Body = {"model": talk.model or MODELS[CHAT], "messages": messages, **talk.params}
    if talk.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": t.name, "description": t.description, "parameters": dict(t.schema)},
            }
            for t in talk.tools
        ]
    return body


def _chat_messages(turn: Turn) -> list[Body]:
    results = [p for p in turn.parts if p.kind == "result"]
    if results:
        return [{"role": "tool", "tool_call_id": p.ident, "content": p.text} for p in results]
    shown = [p for p in turn.parts if p.kind in ("text", "image")]
    content: Any = [_chat_part(p) for p in shown]
    if len(shown) == 1 and shown[0].kind == "text":
        content = shown[0].text
    made: Body = {"role": turn.role, "content": content}
    for part in turn.parts:
        if part.kind == "thinking":
            made["reasoning_content"] = part.text
        if part.kind == "call":
            function = {"name": part.name, "arguments": json.dumps(part.args)}
            made.setdefault("tool_calls", []).append({"id": part.ident, "type": "function", "function": function})
    return [made]


def _chat_part(part: Part) -> Body:
    if part.kind == "text":
        return {"type": "text", "text": part.text}
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{part.text}"}}


def _responses(talk: Talk) -> Body:
    items: list[Body] = []
    for turn in talk.turns:
        items += _response_items(turn)
    body: Body = {"model": talk.model or MODELS[RESPONSES], "input": items, **talk.params}
    if talk.system:
        body["instructions"] = "\n\n".join(talk.system)
    if talk.tools:
        body["tools"] = [
            {"type": "function", "name": t.name, "description": t.description, "parameters": dict(t.schema)}
            for t in talk.tools
        ]
    return body


def _response_items(turn: Turn) -> list[Body]:
    found: list[Body] = []
    for part in turn.parts:
        if part.kind == "thinking":
            found.append({"type": "reasoning", "summary": [], "encrypted_content": part.text})
        elif part.kind == "call":
            arguments = json.dumps(part.args)
            found.append({"type": "function_call", "call_id": part.ident, "name": part.name, "arguments": arguments})
        elif part.kind == "result":
            found.append({"type": "function_call_output", "call_id": part.ident, "output": part.text})
        else:
            block = (
                {"type": "input_text" if turn.role == "user" else "output_text", "text": part.text}
                if part.kind == "text"
                else {"type": "input_image", "image_url": f"data:image/png;base64,{part.text}"}
            )
            last = found[-1] if found else None
            if last is not None and last["type"] == "message":
                last["content"].append(block)
            else:
                found.append({"type": "message", "role": turn.role, "content": [block]})
    return found


def _gemini(talk: Talk) -> Body:
    body: Body = {"model": talk.model or MODELS[GEMINI], **talk.params}
    if talk.system:
        body["systemInstruction"] = {"parts": [{"text": part} for part in talk.system]}
    if talk.tools:
        declared = [{"name": t.name, "description": t.description, "parameters": dict(t.schema)} for t in talk.tools]
        body["tools"] = [{"functionDeclarations": declared}]
    body["contents"] = [
        {"role": "model" if turn.role == "assistant" else "user", "parts": [_gemini_part(p) for p in turn.parts]}
        for turn in talk.turns
    ]
    return body


def _gemini_part(part: Part) -> Body:
    if part.kind == "text":
        return {"text": part.text}
    if part.kind == "thinking":
        return {"text": part.text, "thought": True}
    if part.kind == "call":
        return {"functionCall": {"id": part.ident, "name": part.name, "args": part.args}}
    if part.kind == "result":
        return {"functionResponse": {"id": part.ident, "name": part.name, "response": {"output": part.text}}}
    return {"inlineData": {"mimeType": "image/png", "data": part.text}}


def _bedrock(talk: Talk) -> Body:
    body: Body = {"modelId": talk.model or MODELS[BEDROCK], **talk.params}
    if talk.tools:
        listed: list[Body] = [
            {"toolSpec": {"name": t.name, "description": t.description, "inputSchema": {"json": dict(t.schema)}}}
            for t in talk.tools
        ]
        body["toolConfig"] = {"tools": [*listed, _point(talk)] if "tools" in talk.marks else listed}
    if talk.system:
        body["system"] = [{"text": part} for part in talk.system]
        if "system" in talk.marks:
            body["system"].append(_point(talk))
    body["messages"] = [
        {"role": turn.role, "content": [_bedrock_part(part) for part in turn.parts]} for turn in talk.turns
    ]
    for place in _turns_marked(talk):
        body["messages"][place]["content"].append(_point(talk))
    return body


def _bedrock_part(part: Part) -> Body:
    if part.kind == "text":
        return {"text": part.text}
    if part.kind == "thinking":
        return {"reasoningContent": {"reasoningText": {"text": part.text, "signature": "c2ln"}}}
    if part.kind == "call":
        return {"toolUse": {"toolUseId": part.ident, "name": part.name, "input": part.args}}
    if part.kind == "result":
        content = [{"text": part.text}]
        return {"toolResult": {"toolUseId": part.ident, "content": content}}
    return {"image": {"format": "png", "source": {"bytes": part.text}}}


_WRITERS: dict[str, Callable[[Talk], Body]] = {
    ANTHROPIC: _anthropic,
    CHAT: _chat,
    RESPONSES: _responses,
    GEMINI: _gemini,
    BEDROCK: _bedrock,
}


# ---- records -------------------------------------------------------------------------------------------------------


def usage_of(api: str, *, read: int = 0, write: int = 0, rest: int = 0, output: int = 50) -> Body:
    """A response's usage object; `rest` is what was neither read nor written.

    Shapes without write figures get them only where `write` says so.
    """
    if api == ANTHROPIC:
        return {
            "input_tokens": rest,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": write,
            "cache_creation": {"ephemeral_5m_input_tokens": write, "ephemeral_1h_input_tokens": 0},
            "output_tokens": output,
        }
    if api == BEDROCK:
        return {
            "inputTokens": rest,
            "outputTokens": output,
            "cacheReadInputTokens": read,
            "cacheWriteInputTokens": write,
        }
    total = read + write + rest
    if api == GEMINI:
        return {"promptTokenCount": total, "cachedContentTokenCount": read, "candidatesTokenCount": output}
    details: Body = {"cached_tokens": read}
    if write:
        details["cache_write_tokens"] = write
    if api == CHAT:
        return {"prompt_tokens": total, "completion_tokens": output, "prompt_tokens_details": details}
    return {"input_tokens": total, "output_tokens": output, "input_tokens_details": details}


def response_of(api: str, usage: Body | None, *, ident: str, model: str = "") -> Body:
    """A response that says so much."""
    if api == GEMINI:
        return {"responseId": ident, "modelVersion": model or MODELS[api], "usageMetadata": usage}
    return {"id": ident, "model": model or MODELS[api], "usage": usage}


_ids = iter(range(10**9))


def record(
    body: Body | bytes,
    response: Body | None,
    *,
    at: float | None = 0.0,
    first_token: float | None = 0.5,
    meta: Mapping[str, Any] | None = None,
    events: Iterable[Body] = (),
    path: str = "run.jsonl",
    **fields: Any,
) -> Record:
    """One logged call; `at` and `first_token` are seconds, the latter after the start."""
    started = NINE + at if at is not None else None
    return Record(
        source=Source(path),
        body=body if isinstance(body, bytes) else json.dumps(body).encode(),
        response=json.dumps(response).encode() if response is not None else None,
        events=tuple(json.dumps(event).encode() for event in events),
        meta=dict(meta or {}),
        started_at=started,
        first_token_at=started + first_token if started is not None and first_token is not None else None,
        **fields,
    )


def step(
    talk: Talk,
    *,
    read: int = 0,
    write: int | None = None,
    rest: int | None = None,
    at: float | None = 0.0,
    usage: bool = True,
    ident: str = "",
    **fields: Any,
) -> Record:
    """A record of this request. Unless said otherwise all that was not read was written, where marks ask for it."""
    spare = talk.tokens - read
    marked = talk.api in MARKED and any(mark == "last" for mark in talk.marks)
    if write is None:
        write = 0 if rest is not None and talk.api not in MARKED else spare - (rest or 0) if marked else 0
    if rest is None:
        rest = max(0, spare - write)
    made = usage_of(talk.api, read=read, write=write, rest=rest) if usage else None
    answer = response_of(talk.api, made, ident=ident or f"response-{next(_ids)}", model=talk.body.get("model", ""))
    return record(talk.body, answer, at=at, meta=talk.meta, **fields)


# ---- what comes out ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FlatPrices:
    """One price for every model: $1 a million tokens of input, a tenth for reads, a quarter or all more for writes."""

    source: str = "flat"
    as_of: str = "2026-11-03"

    def rates(self, model: str, **_: Any) -> Rates | None:
        return None if model == "unpriced" else Rates(1e-6, 1e-7, 1.25e-6, 2e-6, 5e-6, "flat")


PRICES = FlatPrices()


def traced(records: Iterable[Record | Skip]) -> Trace:
    """The records as a trace, its runs told."""
    reader = Reader()
    for item in records:
        reader.add(item)
    trace = reader.finish()
    link(trace)
    return trace


def analysed(records: Iterable[Record | Skip]) -> Analysis:
    return analyze(traced(records), PRICES)


def judged(records: Iterable[Record | Skip]) -> list[StepResult]:
    """What is found about each step, in time order."""
    return analysed(records).results


def last_of(records: Iterable[Record | Skip]) -> StepResult:
    return judged(records)[-1]


def pair(before: Talk, after: Talk, *, read: int = 0, gap: float = 30.0, **fields: Any) -> StepResult:
    """What is found about a step behind the one it continues."""
    return last_of([step(before, at=0.0), step(after, read=read, at=gap, **fields)])


def causes(records: Iterable[Record | Skip]) -> list[str]:
    return [result.verdict.cause for result in judged(records)]


def compared(records: Iterable[Record | Skip]) -> list[int | None]:
    """For each step the number of the one it is compared with."""
    return [found.compare_to for found in traced(records).steps]


def shuffled(items: Sequence[Any], *places: int) -> tuple[Any, ...]:
    """The items in this order of their places."""
    return tuple(items[place] for place in places)
