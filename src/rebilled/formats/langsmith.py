"""LangSmith runs: model calls as LangChain saw them, with tools and parameters in their invocation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rebilled.errors import RecordError
from rebilled.formats.conversation import build_body, parse_text
from rebilled.formats.counts import Counts, first_count, first_text, hint_of, shape_of
from rebilled.formats.credentials import scrub_text, secret_keys
from rebilled.formats.file import File
from rebilled.formats.rows import counted, first_moment, kept_meta, read_rows
from rebilled.model import Record, Skip, Source
from rebilled.owner import caller_in
from rebilled.spans import dump_json

_SIGNS = (b'"run_type"', b'"trace_id"', b'"dotted_order"', b'"parent_run_id"', b'"session_id"')
_ROLES = {"human": "user", "ai": "assistant", "chat": "user", "function": "tool"}
_READ = ("cache_read", "cache_read_over_200k")
_SHORT, _LONG = ("ephemeral_5m_input_tokens",), ("ephemeral_1h_input_tokens",)
_WRITE = ("cache_creation", "cache_write")


class LangSmith:
    """Runs of type `llm`; chains and tools are no calls. Messages are LangChain's, not the wire's."""

    name = "langsmith"
    title = "LangSmith runs"
    tells = "messages rebuilt from LangChain's, usage, times; not the bytes that were sent"

    def detect(self, file: File) -> int:
        """75 where the first objects have the members of a run."""
        head = file.head
        return 75 if _SIGNS[0] in head and any(sign in head for sign in _SIGNS[1:]) and b'"inputs"' in head else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """The calls to models; other runs are counted in one Skip."""
        yield from read_rows(file, "runs", _read_run, "runs", _opened)


FORMAT = LangSmith()


def _opened(value: Any) -> Iterator[Any]:
    """A run and those that it holds as `child_runs`."""
    stack = [value]
    while stack:
        run = stack.pop()
        yield run
        children = run.get("child_runs") if isinstance(run, dict) else None
        if isinstance(children, list):
            stack += reversed(children)


def _read_run(run: dict[str, Any], source: Source) -> Record:
    if run.get("run_type") != "llm":
        raise RecordError("no_request", "not a call to a model")
    extra = _object(run.get("extra"))
    metadata, invocation = _object(extra.get("metadata")), _object(extra.get("invocation_params"))
    model = first_text(invocation, ("model", "model_name")) or first_text(metadata, ("ls_model_name",)) or ""
    shape = shape_of((first_text(metadata, ("ls_provider",)) or "").lower(), model)
    body = _read_body(_object(run.get("inputs")), invocation, shape, model)
    outputs = _object(run.get("outputs"))
    counts = _read_counts(run, outputs)
    if body is None and counts is None:
        raise RecordError("no_request", "a run with neither messages nor token counts")
    return Record(
        source,
        body=dump_json(body) if body is not None else None,
        as_sent=body is None,
        response=counted(counts, shape, _response_id(outputs) or first_text(run, ("id",)), model),
        meta=kept_meta(
            {
                "session": first_text(metadata, ("session_id", "thread_id", "conversation_id"))
                or first_text(run, ("trace_id",)),
                "trace_id": first_text(run, ("trace_id",)),
                "span": first_text(run, ("id",)),
                "parent_span": first_text(run, ("parent_run_id",)),
                "provider": hint_of(shape),
                "model": model or None,
                **caller_in(metadata),
            }
        ),
        error=scrub_text(str(run["error"]))[:300] if run.get("error") else None,
        started_at=first_moment(run, "start_time"),
        first_token_at=first_moment(run, "first_token_time"),
        ended_at=first_moment(run, "end_time"),
        request_id=first_text(run, ("id",)),
    )


def _read_body(inputs: dict[str, Any], invocation: dict[str, Any], shape: str, model: str) -> dict[str, Any] | None:
    messages = inputs.get("messages")
    if isinstance(messages, list) and messages and isinstance(messages[0], list):
        messages = messages[0]  # one list of messages a prompt of the batch
    if not isinstance(messages, list) or not messages:
        return None
    plain = [_plain_message(item) for item in messages]
    body = build_body(shape, model, plain, None, invocation.get("tools") or invocation.get("functions"))
    secrets = secret_keys(tuple(invocation))
    kept = {
        key: value
        for key, value in invocation.items()
        if key in ("tool_choice", "thinking", "response_format", "reasoning_effort", "parallel_tool_calls")
        and key not in secrets
    }
    return {**body, **kept} if body is not None else None


def _plain_message(item: Any) -> Any:
    """A message as `{role, content}`: LangChain keeps its own under `kwargs`, with its class as an id."""
    if not isinstance(item, dict):
        return item
    held = _object(item.get("kwargs")) or _object(item.get("data")) or item
    role = held.get("role") or held.get("type") or item.get("type") or _role_of_class(item.get("id"))
    found: dict[str, Any] = {"role": _ROLES.get(str(role), role), "content": held.get("content", "")}
    calls = held.get("tool_calls") or _object(held.get("additional_kwargs")).get("tool_calls")
    if isinstance(calls, list) and calls:
        found["tool_calls"] = [_plain_call(call) for call in calls]
    if held.get("tool_call_id"):
        found["tool_call_id"] = held["tool_call_id"]
    return found


def _plain_call(call: Any) -> Any:
    if not isinstance(call, dict) or "function" in call:
        return call
    arguments = call.get("args", call.get("arguments"))
    text = arguments if isinstance(arguments, str) else dump_json(arguments).decode("utf-8", "replace")
    return {"id": call.get("id"), "type": "function", "function": {"name": call.get("name"), "arguments": text}}


def _role_of_class(ident: Any) -> str:
    name = str(ident[-1]).lower() if isinstance(ident, list) and ident else ""
    return next((role for role in ("system", "human", "ai", "tool") if name.startswith(role)), "user")


def _read_counts(run: dict[str, Any], outputs: dict[str, Any]) -> Counts | None:
    """Tokens: input holds reads and writes (langsmith 0.15.1)."""
    usage = _object(outputs.get("usage_metadata")) or _message_usage(outputs)
    details = _object(usage.get("input_token_details")) or _object(parse_text(run.get("prompt_token_details")))
    reported = first_count(usage, ("input_tokens",))
    output = first_count(usage, ("output_tokens",))
    if reported is None:
        reported, output = first_count(run, ("prompt_tokens",)), first_count(run, ("completion_tokens",))
    if reported is None:
        return None
    read = sum(first_count(details, (name,)) or 0 for name in _READ[:1]) or first_count(details, _READ) or 0
    parts = [first_count(details, names) for names in (_SHORT, _LONG)]
    write = first_count(details, _WRITE)
    if write is None and any(part is not None for part in parts):
        write = sum(part or 0 for part in parts)
    return Counts.of(reported, read, write, output or 0)


def _message_usage(outputs: dict[str, Any]) -> dict[str, Any]:
    """The usage that stands in the answer's message, where a run keeps generations."""
    generations = outputs.get("generations")
    while isinstance(generations, list) and generations:
        generations = generations[0]
    message = _object(_object(generations).get("message"))
    held = _object(message.get("kwargs")) or message
    return _object(held.get("usage_metadata"))


def _response_id(outputs: dict[str, Any]) -> str | None:
    generations = outputs.get("generations")
    while isinstance(generations, list) and generations:
        generations = generations[0]
    held = _object(_object(_object(generations).get("message")).get("kwargs"))
    return first_text(_object(held.get("response_metadata")), ("id",)) or first_text(held, ("id",))


def _object(value: Any) -> dict[str, Any]:
    """The object that a value is, or spells as JSON text, as tables do."""
    value = parse_text(value)
    return value if isinstance(value, dict) else {}
