from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from builders import PRICES
from rebilled.analysis import Analysis, analyze, read
from rebilled.convert import convert
from rebilled.formats import read_path
from rebilled.model import Record, Source
from rebilled.redact import Redaction
from rebilled.redaction_plan import plan_redaction
from rebilled.reports.json import REPORT
from rebilled.reports.report import Options
from redacted import facts

SAMPLES = sorted((Path(__file__).parents[2] / "sample_traces").glob("*.jsonl"))
KEY = b"the tests' own"
STAYING = frozenset(
    (
        *("model", "modelId", "modelVersion", "role", "type", "object", "required", "timestamp", "first_token_at"),
        *("ended_at", "provider", "endpoint", "url", "region", "service_tier", "ttl", "media_type"),
    )
)
"""Keys under which values stay."""

KINDS = re.compile(
    r"toolu|chatcmpl|resp|call|msg|january|february|march|april|june|july|august|september|october|november|december"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:milli)?seconds?|minutes?|hours?|days?|weeks?|months?|years?|https?|notes?"
)
"""Words that tell the kind of an id, a date or an address."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("redacted")


@lru_cache
def written(trace: Path, folder: Path, *, plain: bool = False) -> Path:
    """The trace as plain records, without its words unless `plain`."""
    conversion = convert([trace])
    change = None if plain else plan_redaction(Redaction(KEY), conversion.trace).record
    out = folder / f"{trace.stem}-{plain}.jsonl"
    out.write_bytes(b"".join(conversion.lines(conversion.trace.steps, change)))
    return out


@lru_cache
def analysed(path: Path) -> Analysis:
    return analyze(read([path]), PRICES)


def report(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(REPORT.render(analysed(path), Options()))
    return found


# ---- the same verdicts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trace", SAMPLES, ids=lambda path: path.stem)
def test_sample_trace_has_the_same_causes_places_tokens_and_dollars(trace: Path, folder: Path) -> None:
    assert facts(analysed(written(trace, folder)).results) == facts(analysed(trace).results)


@pytest.mark.parametrize("trace", SAMPLES, ids=lambda path: path.stem)
def test_sample_trace_charges_the_same_tools_by_other_names(trace: Path, folder: Path) -> None:
    mine, theirs = report(trace)["by_tool"], report(written(trace, folder))["by_tool"]
    names = {tool["tool"]: other["tool"] for tool, other in zip(mine, theirs, strict=True)}
    servers = {tool["server"]: other["server"] for tool, other in zip(mine, theirs, strict=True)}
    assert len(set(names.values())) == len(names)
    for tool, other in zip(mine, theirs, strict=True):
        renamed = {"tool": names[tool["tool"]], "server": servers[tool["server"]]}
        assert {**tool, **renamed} == other
        assert other["tool"] is None or (other["tool"] != tool["tool"] and len(other["tool"]) == len(tool["tool"]))


def test_reshuffled_server_is_found_by_its_other_name(folder: Path) -> None:
    trace = next(path for path in SAMPLES if path.stem == "mcp-tools-reshuffled")
    (server,) = {found.verdict.servers for found in analysed(written(trace, folder)).results if found.verdict.servers}
    assert server != ("jira",)
    assert len(server[0]) == len("jira")


# ---- nothing readable ----------------------------------------------------------------------------------------------


def values(node: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text with its key; JSON inside texts is opened, line by line too."""
    if isinstance(node, dict):
        for name, item in node.items():
            yield from values(item, name)
    elif isinstance(node, list):
        for item in node:
            yield from values(item, key)
    elif isinstance(node, str):
        whole = opened(node)
        for text in [node] if whole is not None else node.splitlines():
            inner = opened(text)
            yield from values(inner, key) if inner is not None else [(key, text)]


def opened(text: str) -> Any:
    """The object or list that a text holds as JSON."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, (dict, list)) else None


def longer_words(lines: Iterable[bytes]) -> set[str]:
    """All words of more than three letters outside keys, models, roles and types."""
    return {
        word.lower()
        for line in lines
        for key, text in values(json.loads(line))
        if key not in STAYING
        for word in re.findall(r"[^\W\d_]{4,}", text)
    }


@pytest.mark.parametrize("trace", SAMPLES, ids=lambda path: path.stem)
def test_no_longer_word_of_a_sample_trace_is_left(trace: Path, folder: Path) -> None:
    before = longer_words(written(trace, folder, plain=True).read_bytes().splitlines())
    after = longer_words(written(trace, folder).read_bytes().splitlines())
    assert len(before) > 500
    left = {word for word in before & after if not KINDS.fullmatch(word) and not re.fullmatch("[a-f]+", word)}
    assert left == set()


def record(**fields: Any) -> Record:
    body = {"model": "claude-opus-5", "messages": [{"role": "user", "content": "hi"}]}
    return Record(Source("/home/anna/trace.jsonl"), **{"body": json.dumps(body).encode(), **fields})


def test_of_what_stands_around_a_body_only_what_verdicts_need_is_kept() -> None:
    found = Redaction(KEY).record(
        record(
            meta={
                "endpoint": "llm.acme.example",
                "workspace": "acme-billing",
                "region": "eu-west-1",
                "provider": "anthropic",
                "api_key_fp": "0b6f7c1e",
                "session": "anna-session",
                "user": "anna",
                "tenant_id": 123456789,
                "agent": "billing bot",
                "otel": {"service": "billing"},
                "whatever": ["secret"],
            },
            url="https://llm.acme.example/billing/v1/messages",
            error="invalid_request_error: Anna has no access to billing",
            request_id="req_0123456789ab",
        )
    )
    assert set(found.meta) == {
        "endpoint",
        "workspace",
        "region",
        "provider",
        "api_key_fp",
        "session",
        "user",
        "tenant_id",
    }
    assert (found.meta["region"], found.meta["provider"]) == ("eu-west-1", "anthropic")
    assert str(found.meta["endpoint"]) in (found.url or "")
    left = json.dumps(found.meta) + str(found.url) + str(found.error) + str(found.request_id)
    assert not re.search("acme|anna|billing|access|0123456789", left, re.IGNORECASE)
    assert (found.request_id or "").startswith("req_")


def test_a_response_keeps_its_usage_model_and_tier_and_loses_its_text() -> None:
    answer = {
        "id": "msg_01AbCdEfGhIj",
        "type": "message",
        "model": "claude-opus-5",
        "content": [{"type": "text", "text": "Dear Anna"}],
        "usage": {"input_tokens": 12345, "output_tokens": 7, "service_tier": "priority"},
        "diagnostics": {"cache_miss_reason": {"type": "tools_changed", "cache_missed_input_tokens": 12345}},
    }
    found = Redaction(KEY).record(record(response=json.dumps(answer).encode())).response or b""
    after = json.loads(found)
    assert (after["usage"], after["diagnostics"], after["model"]) == (
        answer["usage"],
        answer["diagnostics"],
        "claude-opus-5",
    )
    assert after["id"] != answer["id"]
    assert b"Anna" not in found


def test_the_pieces_of_a_stream_without_usage_are_left_out() -> None:
    events = [
        b'{"type":"message_start","message":{"id":"msg_0123456789","usage":{"input_tokens":9}}}',
        *[b'{"type":"content_block_delta","delta":{"type":"text_delta","text":"Anna"}}'] * 9,
        b'{"type":"message_delta","usage":{"output_tokens":5}}',
        b'{"type":"message_stop"}',
    ]
    found = Redaction(KEY).record(record(events=tuple(events))).events
    assert [json.loads(event)["type"] for event in found] == ["message_start", "message_delta", "message_stop"]


# ---- the key -------------------------------------------------------------------------------------------------------


def test_the_key_decides_the_words() -> None:
    plain = next(item for item in read_path(str(SAMPLES[0])) if isinstance(item, Record))
    first, second, third = (Redaction(key).record(plain).body for key in (b"one", b"two", b"one"))
    assert first == third
    assert first is not None
    assert second is not None
    assert first != second
    assert len(first) == len(second) == len(plain.body or b"")


def test_odd_bodies_are_redacted_too() -> None:
    for body in (
        b'{"model":"m","messages":[{"role":"user","content":"Anna","x":NaN}],"model":"m"}',
        b'{"model":"m","messages":[{"role":"user","content":"Anna \xff"}]}',
        b'{"model":"m","messages":[' + b"[" * 900 + b'"Anna"' + b"]" * 900 + b"]}",
        b'{"model":"m","messages":"Anna',
    ):
        found = Redaction(KEY).body(body)
        assert len(found) == len(body)
        assert b"Anna" not in found
