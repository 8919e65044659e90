"""Steps whose log holds tokens but no bodies: time, model and lifetime can be told, what moved can not."""

from __future__ import annotations

import json

from rebilled.analysis import Judge, link
from rebilled.model import Json, Record, Source, StepResult
from rebilled.reader import read_records

OPUS, HAIKU = "claude-opus-4-5", "claude-haiku-4-5"


def call(
    number: int,
    at: float,
    *,
    read: int = 0,
    write: int = 0,
    hour: bool = False,
    model: str = OPUS,
    session: str = "s",
    said: Json = None,
) -> Record:
    usage: dict[str, Json] = {
        "input_tokens": 3,
        "output_tokens": 10,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": write,
        "cache_creation": {
            "ephemeral_5m_input_tokens": 0 if hour else write,
            "ephemeral_1h_input_tokens": write if hour else 0,
        },
    }
    response: dict[str, Json] = {"type": "message", "id": f"msg_{number}", "model": model, "usage": usage}
    if said is not None:
        response["diagnostics"] = said
    return Record(
        source=Source("log.jsonl", number),
        body=None,
        response=json.dumps(response).encode(),
        meta={"session": session},
        started_at=at,
    )


def causes(*records: Record) -> list[str]:
    return [found.verdict.cause for found in judged(*records)]


def judged(*records: Record) -> list[StepResult]:
    trace = read_records(records)
    link(trace)
    judge = Judge(trace)
    return [StepResult(step, judge.verdict(step)) for step in trace.steps]


def test_reading_all_that_was_cached_is_no_miss() -> None:
    assert causes(call(1, 0, write=9000), call(2, 60, read=9000, write=100)) == ["first_request", "none"]


def test_a_pause_longer_than_five_minutes_is_an_expiry_and_a_shorter_one_is_not() -> None:
    assert causes(call(1, 0, write=9000), call(2, 301, write=9100))[1] == "ttl_expired"
    assert causes(call(1, 0, write=9000), call(2, 299, write=9100))[1] == "body_not_logged"


def test_one_hour_writes_live_for_an_hour() -> None:
    assert causes(call(1, 0, write=9000, hour=True), call(2, 3599, write=9100, hour=True))[1] == "body_not_logged"
    assert causes(call(1, 0, write=9000, hour=True), call(2, 3601, write=9100, hour=True))[1] == "ttl_expired"


def test_another_lifetime_is_told() -> None:
    assert causes(call(1, 0, write=9000, hour=True), call(2, 60, write=9100))[1] == "ttl_tier_changed"


def test_another_model_is_told() -> None:
    assert causes(call(1, 0, write=9000), call(2, 60, write=9100, model=HAIKU))[1] == "model_changed"


def test_back_on_a_model_the_live_entry_of_that_model_counts() -> None:
    found = causes(
        call(1, 0, write=9000),
        call(2, 60, write=9100, model=HAIKU),
        call(3, 120, read=9000, write=300),
    )
    assert found[2] == "none"


def test_sessions_are_kept_apart() -> None:
    assert causes(call(1, 0, write=9000, session="a"), call(2, 60, write=9000, session="b"))[1] == "other_lineage"


def test_a_conversation_that_became_shorter_is_blamed_for_no_more_than_it_holds() -> None:
    found = judged(call(1, 0, write=90_000), call(2, 60, read=0, write=5_000))[1]
    assert found.verdict.cause == "body_not_logged"
    assert found.verdict.rebilled_tokens == 5_003


def test_nobody_is_blamed_without_a_body_and_the_provider_is_quoted() -> None:
    said: Json = {"cache_miss_reason": {"type": "tools_changed", "cache_missed_input_tokens": 8000}}
    found = judged(call(1, 0, write=9000), call(2, 60, write=9100, said=said))[1].verdict
    assert not found.avoidable
    assert found.confidence == "likely"
    assert "tools_changed" in found.explanation


def test_usage_of_a_responses_call_is_not_read_as_anthropics() -> None:
    usage: Json = {"input_tokens": 9000, "input_tokens_details": {"cached_tokens": 8000}, "output_tokens": 5}
    response = json.dumps({"id": "resp_1", "model": "gpt-5.5", "usage": usage}).encode()
    trace = read_records([Record(source=Source("log.jsonl", 1), body=None, response=response)])
    read = trace.steps[0].usage
    assert trace.steps[0].api == "openai.responses"
    assert read is not None
    assert (read.input_tokens, read.cache_read_tokens, read.uncached_input_tokens) == (9000, 8000, 1000)
