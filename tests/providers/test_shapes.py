"""Every API is told by its URL and by its shape, and no body of one shape is read as another."""

from __future__ import annotations

import json
from typing import Any

import pytest
from provider_calls import (
    ANTHROPIC,
    CALLS,
    CHAT,
    CONVERSE,
    GEMINI,
    OTHERS,
    RESPONSES,
    Call,
    api_called,
    layout_of,
    user,
)

from rebilled.errors import RecordError
from rebilled.model import Record, Source
from rebilled.providers import APIS, find_api
from rebilled.providers.endpoints import api_named, other_call
from rebilled.reader import read_records


def named(body: dict[str, Any], url: str = "", hint: str = "", **style: Any) -> str | None:
    found = find_api(layout_of(body, **style), url, hint)
    return found.name if found is not None else None


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_a_body_with_its_url_is_of_its_api(call: Call) -> None:
    assert named(call.body, call.url) == call.api


@pytest.mark.parametrize("call", [call for call in CALLS if call.alone], ids=lambda call: call.name)
def test_a_body_without_a_url_is_of_its_api(call: Call) -> None:
    assert named(call.body) == call.api


@pytest.mark.parametrize("call", [call for call in CALLS if call.alone], ids=lambda call: call.name)
def test_neither_white_space_nor_the_order_of_keys_changes_the_api(call: Call) -> None:
    assert named(dict(reversed(call.body.items())), indent=2) == call.api


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_a_url_that_names_an_api_leaves_no_other_in_question(call: Call) -> None:
    layout = layout_of(call.body)
    if api_named(call.url):
        assert [api.name for api in APIS if api.fits(layout.members, layout, call.url)] == [call.api]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_the_logs_own_word_for_the_api_does_no_harm(call: Call) -> None:
    assert named(call.body, call.url, call.api) == call.api


def test_a_word_for_the_api_decides_between_shapes_that_both_fit() -> None:
    body = {"model": "house-model", "max_tokens": 5, "messages": [user()]}
    assert named(body) == CHAT
    assert named(body, hint="anthropic") == ANTHROPIC
    assert named(body, hint="anthropic.messages") == ANTHROPIC


def test_bare_messages_for_an_unknown_model_are_a_chat() -> None:
    assert named({"model": "house-model", "messages": [user()]}) == CHAT


@pytest.mark.parametrize(
    "body",
    [{}, {"model": "gpt-5.5"}, {"prompt": "Once"}, {"query": "quay", "documents": []}, {"input": {"text": "quay"}}],
)
def test_what_is_no_request_is_of_no_api(body: dict[str, Any]) -> None:
    assert named(body) is None


# ---- calls that are no steps ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("url", "body"), OTHERS, ids=[url.split("/", 3)[-1] for url, _ in OTHERS])
def test_a_call_that_generates_nothing_is_listed_and_no_step(url: str, body: dict[str, Any]) -> None:
    record = Record(Source("log.jsonl", 1), json.dumps(body).encode(), url=url)
    trace = read_records([record])
    assert trace.steps == []
    assert [skip.reason for skip in trace.skipped] == ["no_request"]
    assert other_call(url) in trace.skipped[0].detail


@pytest.mark.parametrize(
    "body",
    [
        {"model": "text-embedding-3-large", "input": ["a quay"]},
        {"model": "bge-m3", "input": ["a quay"], "encoding_format": "float"},
        {"model": "omni-moderation-latest", "input": "a quay"},
        {"model": "tts-1", "input": "a quay", "voice": "alloy"},
        {"model": "models/gemini-2.5-flash", "contents": [{"parts": [{"text": "x"}]}], "ttl": "300s"},
    ],
)
def test_such_a_call_is_told_without_its_url_where_its_body_can_tell(body: dict[str, Any]) -> None:
    assert named(body) is None


def test_the_skip_says_which_call_it_was() -> None:
    with pytest.raises(RecordError, match="/v1/embeddings"):
        named({"model": "m", "input": "x"}, "https://api.openai.com/v1/embeddings?x=1")


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_no_generating_url_is_taken_for_another_call(call: Call) -> None:
    assert other_call(call.url) == ""


@pytest.mark.parametrize(
    ("url", "api"),
    [
        ("/v1/messages", ANTHROPIC),
        ("https://host/v1/messages/", ANTHROPIC),
        ("https://host/openai/v1/responses?api-version=1", RESPONSES),
        ("/v1/responses/compact", RESPONSES),
        ("/v1beta/models/m:streamGenerateContent", GEMINI),
        ("/v1internal:generateContent", GEMINI),
        ("/model/m/converse", CONVERSE),
        ("https://chat/completions.example", ""),
        ("", ""),
    ],
)
def test_a_path_names_the_api(url: str, api: str) -> None:
    assert api_named(url) == api


# ---- what a body becomes -------------------------------------------------------------------------------------------


def test_the_reference_to_a_cached_content_is_the_first_system_entry() -> None:
    layout = layout_of(
        {
            "systemInstruction": {"parts": [{"text": "One line."}]},
            "contents": [{"role": "user", "parts": [{"text": "When?"}]}],
            "cachedContent": "cachedContents/k1",
        }
    )
    assert [path for path, _ in api_called(GEMINI).system_items(layout)] == ["$.cachedContent", "$.systemInstruction"]


def test_another_cached_content_is_another_front_of_the_prompt() -> None:
    def record(line: int, cache: str) -> Record:
        body = {"cachedContent": cache, "contents": [{"role": "user", "parts": [{"text": "When?"}]}]}
        return Record(Source("log.jsonl", line), json.dumps(body).encode())

    first, same, other = read_records([record(1, "k1"), record(2, "k1"), record(3, "k2")]).steps
    assert first.sent_system.digest == same.sent_system.digest != other.sent_system.digest
