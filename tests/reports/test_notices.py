"""What providers say themselves, and leave unsaid, on the screen and in the JSON report."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from builders import ANTHROPIC, CHAT, TOOLS, Talk, analysed, history, step
from rebilled.analysis import Analysis
from rebilled.model import Breakpoint, Json, Record, Reply, Usage
from rebilled.providers.served import other_model, other_tier, server_tool_writes
from rebilled.reports.json import report_object
from rebilled.reports.notices import notices
from rebilled.reports.report import Options


def talk(calls: int, api: str = ANTHROPIC, **fields: Any) -> Talk:
    return Talk(api, turns=history(calls), **fields)


def saying(record: Record, usage: dict[str, Json] | None = None, **members: Json) -> Record:
    """The record with more in its response and its usage."""
    assert record.response is not None
    response = json.loads(record.response)
    response["usage"] |= usage or {}
    return replace(record, response=json.dumps(response | members).encode())


def rows(*records: Record) -> dict[str, str]:
    return dict(notices(analysed(records)))


def steps_of(analysis: Analysis) -> list[dict[str, Any]]:
    return [step for run in report_object(analysis, Options())["runs"] for step in run["steps"]]


def test_a_trace_of_which_nobody_says_more_has_no_such_lines() -> None:
    assert rows(step(talk(2)), step(talk(3), read=talk(2).tokens, at=20.0)) == {}


# ---- the provider's own diagnosis ----------------------------------------------------------------------------------


def test_agreement_with_the_providers_diagnosis_is_counted_and_the_first_difference_told() -> None:
    def diagnosed(kind: str) -> dict[str, Any]:
        return {"diagnostics": {"cache_miss_reason": {"type": kind, "cache_missed_input_tokens": 9}}}

    moved = step(talk(3, tools=TOOLS[::-1]), at=20.0)
    assert rows(step(talk(2)), saying(moved, **diagnosed("tools_changed")))["provider"] == (
        "its own diagnosis agrees on 1 of 1 step"
    )
    differing = rows(step(talk(2)), saying(moved, **diagnosed("system_changed")))["provider"]
    assert "agrees on 0 of 1 step" in differing
    assert "step 2, where it says system_changed and the log shows tools_reordered" in differing


def test_thinking_that_was_dropped_is_told_with_its_place() -> None:
    gone: Json = [{"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "model_binding_mismatch"}]
    found = [step(talk(2)), saying(step(talk(3), at=20.0), input_transformations=gone)]
    assert "took 1 thinking block out of the prompts of step 2" in rows(*found)["provider"]
    assert steps_of(analysed(found))[1]["input_transformations"] == gone


# ---- credit and server tools ---------------------------------------------------------------------------------------


def test_a_fallback_credit_has_a_line_of_its_own() -> None:
    redeemed: dict[str, Json] = {"fallback_credit": {"status": {"type": "redeemed"}}}
    expired: dict[str, Json] = {"fallback_credit": {"status": {"type": "not_applied", "reason": "expired"}}}
    first = saying(step(talk(2), read=4000), redeemed)
    assert "redeemed at step 1: 4,000 tokens" in rows(first)["credit"].replace("4.0k", "4,000")
    assert "did not count at step 1 (not applied: expired)" in rows(saying(step(talk(2)), expired))["credit"]
    assert steps_of(analysed([first]))[0]["fallback_credit"] == "redeemed"


HOUR, SHORT = (Breakpoint("messages", 0, 0, ttl) for ttl in (3600, 300))
WROTE = Usage(1000, 0, 900, cache_write_5m_tokens=200, cache_write_1h_tokens=700, uncached_input_tokens=100)


@pytest.mark.parametrize(
    ("reply", "marks", "tokens"),
    [
        (Reply(WROTE), (HOUR,), 200),
        (Reply(WROTE), (HOUR, SHORT), 0),
        (Reply(WROTE), (), 0),
        (Reply(replace(WROTE, write_split=False)), (HOUR,), 0),
        (Reply(WROTE, first=Usage(500, 0, 600)), (SHORT,), 300),
        (Reply(WROTE, first=Usage(500, 0, 900)), (SHORT,), 0),
        (Reply(), (HOUR,), 0),
    ],
)
def test_what_server_tools_wrote_is_told_by_runs_and_lifetimes(
    reply: Reply, marks: tuple[Breakpoint, ...], tokens: int
) -> None:
    assert server_tool_writes(reply, marks) == tokens


# ---- what was served and charged -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "answered", "provider", "other"),
    [
        ("claude-sonnet-5", "claude-haiku-5-5", "anthropic", True),
        ("openrouter/auto", "openai/gpt-5.4", "openrouter", True),
        ("claude-fable-5", "claude-fable-5-1", "anthropic", True),
        ("gpt-5.4", "gpt-5.4-mini-2026-03-05", "openai", True),
        ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929", "anthropic", False),
        ("gpt-5.4", "gpt-5.4-2026-03-05", "openai", False),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5-20250929", "openrouter", False),
        ("gemini-2.5-pro", "models/gemini-2.5-pro-preview-05-06", "gemini", False),
        ("mistral-large-latest", "mistral-large-2411", "mistral", False),
        ("claude-opus-4-6[1m]", "claude-opus-4-6", "anthropic", False),
        ("us.anthropic.claude-opus-5-v1:0", "claude-opus-5", "bedrock", False),
        ("our-deployment", "gpt-5.4", "azure", False),
        ("arn:aws:bedrock:us-east-1:1:application-inference-profile/x", "claude-opus-5", "bedrock", False),
        ("gpt-5.4", None, "openai", False),
        ("", "gpt-5.4", "openai", False),
    ],
)
def test_another_model_is_one_of_another_name_and_no_other_edition(
    asked: str, answered: str | None, provider: str, *, other: bool
) -> None:
    assert other_model(asked, answered, provider) is other


def test_a_model_that_answered_in_anothers_place_is_named() -> None:
    found = rows(step(talk(2)), saying(step(talk(3), at=20.0), model="claude-haiku-5-5"))
    assert found["served"] == "claude-haiku-5-5 answered where claude-sonnet-5 was asked for: step 2"


@pytest.mark.parametrize(
    ("factor", "said"), [(1.0, "the same"), (1.005, "the same"), (1.2, "20% more"), (0.5, "50% less")]
)
def test_dollars_that_replies_say_stand_beside_those_of_the_prices(factor: float, said: str) -> None:
    record = step(talk(40, CHAT))
    ours = analysed([record]).results[0].cost
    assert ours is not None
    charged = saying(record, {"cost": ours.total_usd * factor})
    assert said in rows(charged)["charged"]
    assert "charged" not in rows(record)
    assert steps_of(analysed([charged]))[0]["charged_usd"] == pytest.approx(ours.total_usd * factor)


# ---- terms -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "usage", "members", "told"),
    [
        (ANTHROPIC, {"speed": "fast"}, {}, "billed at fast mode: step 1"),
        (ANTHROPIC, {"inference_geo": "us"}, {}, "billed at inference in us: step 1"),
        (ANTHROPIC, {"service_tier": "batch"}, {}, "billed at service tier batch: step 1"),
        (CHAT, {}, {"service_tier": "flex"}, "billed at service tier flex: step 1"),
        (ANTHROPIC, {"speed": "standard", "inference_geo": "global", "service_tier": "standard"}, {}, None),
        (CHAT, {}, {"service_tier": "default"}, None),
    ],
)
def test_terms_that_change_the_price_are_told(
    api: str, usage: dict[str, Json], members: dict[str, Json], told: str | None
) -> None:
    found = saying(step(talk(2, api)), usage, **members)
    assert rows(found).get("terms") == told
    said = steps_of(analysed([found]))[0]
    assert said["speed"] == usage.get("speed")
    assert said["inference_geo"] == usage.get("inference_geo")
    assert said["service_tier"] == (members.get("service_tier") or usage.get("service_tier"))


@pytest.mark.parametrize(
    ("asked", "served", "other"),
    [
        ("priority", "default", True),
        ("flex", "standard", True),
        ("fast", "priority", False),
        ("standard_only", "standard", False),
        ("default", "default", False),
        ("auto", "priority", False),
        ("priority", None, False),
        (None, "priority", False),
        (7, "priority", False),
    ],
)
def test_a_tier_is_another_only_where_one_was_named(asked: Json, served: str | None, *, other: bool) -> None:
    assert other_tier(asked, served) is other


def test_a_tier_that_was_not_served_as_asked_is_told() -> None:
    asked = talk(2, CHAT, params={"service_tier": "priority"})
    found = rows(saying(step(asked), service_tier="default"))
    assert found["terms"] == "served at tier default where priority was asked for: step 1"


# ---- reads that are not told ---------------------------------------------------------------------------------------


def test_where_reads_are_not_told_the_screen_says_so_and_the_ratio_is_unknown() -> None:
    untold: dict[str, Json] = {"prompt_tokens_details": None}
    analysis = analysed([saying(step(talk(2, CHAT)), untold), saying(step(talk(3, CHAT), at=20.0), untold)])
    assert "does not say what any step read" in dict(notices(analysis))["no reads"]
    report = report_object(analysis, Options())
    assert report["totals"]["cache_hit_ratio"] is None
    assert {step["usage"]["cache_reads_reported"] for step in steps_of(analysis)} == {False}


# ---- the order in which to mend ------------------------------------------------------------------------------------


def test_a_finding_says_in_which_order_to_mend_what_moves_and_what_each_hides() -> None:
    after = talk(3, tools=TOOLS[::-1], system=("Now: 2026-11-03T09:00:01Z. " + talk(2).system[0],))
    (finding,) = report_object(analysed([step(talk(2)), step(after, at=20.0)]), Options())["findings"]
    order = finding["fix_order"]
    assert [mover["section"] for mover in order] == ["tools", "system"]
    assert order[0]["invalidated_tokens"] > order[1]["invalidated_tokens"] > 0
