"""The dated cache rules: sound in themselves, with a source each, and chosen for the right call."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Any

import pytest

from rebilled.providers import APIS
from rebilled.providers.policy import Policy, names, plain_model, policy_of, rules

FILES = names()
LATEST = date(2026, 11, 30)
TABLES = {
    "minimum",
    "generation",
    "model_lifetime",
    "counting",
    "overhead",
    "simulation",
    "storage",
    "invalidation",
    "usage",
    "note",
}
SECTIONS = {"tools", "system", "messages", "all", "nothing", "all behind it"}


def rows(name: str) -> Iterator[dict[str, Any]]:
    data = rules(name)
    yield data
    for value in data.values():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            yield from value


def tables(name: str, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rules(name).get(table, [])
    return found


# ---- the files -----------------------------------------------------------------------------------------------------


def test_every_provider_has_its_rules() -> None:
    wanted = "anthropic bedrock vertex openai azure gemini deepseek xai mistral groq moonshot alibaba zai minimax"
    assert set(FILES) == {*wanted.split(), "fireworks", "openrouter", "cohere", "vllm", "sglang"}


@pytest.mark.parametrize("name", FILES)
def test_every_row_has_a_source_and_the_day_it_is_of(name: str) -> None:
    for row in rows(name):
        assert str(row["source"]).strip(), row
        assert date(2026, 5, 1) <= date.fromisoformat(row["as_of"]) <= LATEST, row


@pytest.mark.parametrize("name", FILES)
def test_no_source_is_a_path_of_somebodys_machine(name: str) -> None:
    for row in rows(name):
        assert not str(row["source"]).startswith(("/", "~", "file:", "http://localhost")), row


@pytest.mark.parametrize("name", FILES)
def test_a_file_says_how_its_cache_is_asked_for_where_it_ends_and_how_tokens_are_counted(name: str) -> None:
    data = rules(name)
    assert data["provider"] == name
    assert data["marks"] in ("required", "automatic", "either")
    assert data["scope"]
    assert data["title"]
    assert data.get("default_minimum_tokens", 1) > 0
    assert tables(name, "usage")
    unknown = [key for key, value in data.items() if isinstance(value, list) and value and isinstance(value[0], dict)]
    assert set(unknown) <= TABLES


@pytest.mark.parametrize("name", FILES)
def test_no_model_stands_in_two_rows_of_minima(name: str) -> None:
    listed = [model for row in tables(name, "minimum") for model in row["models"]]
    assert len(listed) == len(set(listed))
    assert all(row["tokens"] > 0 for row in tables(name, "minimum"))


@pytest.mark.parametrize("name", FILES)
def test_generations_go_from_the_newest_to_all_others(name: str) -> None:
    versions = [row["from_version"] for row in tables(name, "generation")]
    assert versions == sorted(versions, reverse=True)
    assert not versions or versions[-1] == [0, 0]


@pytest.mark.parametrize("name", FILES)
def test_every_shape_of_a_usage_row_can_be_read(name: str) -> None:
    shapes = {shape for row in tables(name, "usage") for shape in row["shape"].split(", ")}
    assert shapes <= {api.name for api in APIS}


@pytest.mark.parametrize("name", FILES)
def test_an_invalidation_names_a_change_and_what_is_lost(name: str) -> None:
    for row in tables(name, "invalidation"):
        assert row["change"]
        assert all(part in SECTIONS or part.startswith("messages from") for part in row["loses"]), row


@pytest.mark.parametrize("name", FILES)
def test_the_rules_of_counting_follow_each_other_without_gap_or_overlap(name: str) -> None:
    entries = tables(name, "counting")
    assert all(row["rule"] in ("blocks", "runs") for row in entries)
    for before, after in pairwise(entries):
        assert (date.fromisoformat(after["from"]) - date.fromisoformat(before["until"])).days == 1
    if entries:
        assert "from" not in entries[0]
        assert "until" not in entries[-1]


# ---- whose rules ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "model", "provider", "owner"),
    [
        ("anthropic.messages", "claude-opus-5", "anthropic", "anthropic"),
        ("anthropic.messages", "claude-opus-5", "bedrock", "bedrock"),
        ("anthropic.messages", "bedrock/us.anthropic.claude-opus-5-v1:0", "", "bedrock"),
        ("anthropic.messages", "claude-opus-5@20260724", "vertex", "anthropic"),
        ("bedrock.converse", "us.anthropic.claude-opus-5-v1:0", "", "bedrock"),
        ("bedrock.converse", "amazon.nova-pro-v1:0", "bedrock", "bedrock"),
        ("openai.chat", "anthropic/claude-sonnet-4.5", "openrouter", "anthropic"),
        ("openai.chat", "gpt-5.4", "openai", "openai"),
        ("openai.chat", "gpt-5.4", "azure", "azure"),
        ("openai.responses", "openai.gpt-5.6-sol", "bedrock", "openai"),
        ("openai.chat", "deepseek-v4-flash", "", "deepseek"),
        ("openai.chat", "deepseek/deepseek-v4-pro", "openrouter", "deepseek"),
        ("anthropic.messages", "deepseek-v4-flash", "deepseek", "deepseek"),
        ("openai.chat", "openai/gpt-oss-120b", "groq", "groq"),
        ("openai.chat", "groq/llama-3.3-70b", "", "groq"),
        ("openai.chat", "accounts/fireworks/models/glm-5p2", "", "fireworks"),
        ("openai.chat", "hosted_vllm/Qwen3-32B", "openai", "vllm"),
        ("openai.chat", "Qwen/Qwen3-32B", "vllm", "vllm"),
        ("openai.chat", "deepseek-ai/DeepSeek-V3", "sglang", "sglang"),
        ("openai.chat", "grok-4.7", "", "xai"),
        ("openai.chat", "codestral-latest", "", "mistral"),
        ("openai.chat", "kimi-k3", "", "moonshot"),
        ("anthropic.messages", "kimi-k3", "", "moonshot"),
        ("openai.chat", "qwen3-max", "", "alibaba"),
        ("openai.chat", "glm-5.2", "", "zai"),
        ("anthropic.messages", "MiniMax-M2.7", "minimax", "minimax"),
        ("gemini.generate_content", "gemini-2.5-pro", "gemini", "gemini"),
        ("gemini.generate_content", "gemini-2.5-pro", "vertex", "vertex"),
        ("openai.chat", "gemini-2.5-pro", "", "gemini"),
        ("cohere.chat", "command-a-03-2025", "cohere", "cohere"),
        ("openai.chat", "house-model", "", "openai"),
        ("openai.chat", "house-model", "together", "openai"),
        ("openai.chat", "house-model", "xai", "xai"),
        ("anthropic.messages", "house-model", "", "anthropic"),
        ("acme.chat", "acme-1", "acme", "openai"),
    ],
)
def test_the_rules_are_the_platforms_or_the_vendors(api: str, model: str, provider: str, owner: str) -> None:
    assert policy_of(api, model, provider).provider == owner


def test_a_provider_need_not_be_given() -> None:
    assert policy_of("openai.chat", "gpt-5.4") == policy_of("openai.chat", "gpt-5.4", "openai")


@pytest.mark.parametrize("name", FILES)
def test_every_provider_makes_a_policy(name: str) -> None:
    policy = policy_of("openai.chat", "house-model", name)
    assert policy.source
    assert policy.grain_tokens >= 1


# ---- what they say -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("claude-opus-5", 512),
        ("claude-fable-5-1", 512),
        ("claude-haiku-5-5", 512),
        ("claude-fable-5-2", 512),
        ("claude-sonnet-5", 1024),
        ("claude-opus-4-8", 1024),
        ("claude-opus-4-7", 2048),
        ("claude-haiku-4-5", 4096),
        ("claude-opus-4-6[1m]", 4096),
        ("claude-haiku-4-5-20251001", 4096),
        ("claude-3-5-haiku-20241022", 2048),
        ("claude-9-sonnet", 1024),
    ],
)
def test_the_shortest_cached_prefix_of_claude_is_that_of_the_very_model(model: str, tokens: int) -> None:
    assert policy_of("anthropic.messages", model).minimum_tokens == tokens


def test_a_model_that_is_not_listed_says_so() -> None:
    assert "not listed" in policy_of("anthropic.messages", "claude-opus-9").source
    assert "not listed" not in policy_of("anthropic.messages", "claude-opus-5").source
    assert "not listed" not in policy_of("openai.chat", "gpt-5.4").source


def test_bedrock_keeps_the_lower_figure_where_sources_disagree_and_names_the_other() -> None:
    policy = policy_of("bedrock.converse", "anthropic.claude-opus-4-7-v1:0")
    assert policy.minimum_tokens == 2048
    assert "4,096" in policy.disputed


@pytest.mark.parametrize(
    ("model", "ttl", "grain", "spacing"),
    [
        ("gpt-4.1", 3600, 128, 128),
        ("gpt-5.4-mini", 3600, 128, 128),
        ("gpt-5.5", 86400, 128, 2048),
        ("gpt-5.6-sol", 1800, 1, 0),
        ("gpt-6.1-terra-2026-10-01", 1800, 1, 0),
        ("o4-mini", 3600, 128, 128),
    ],
)
def test_the_generations_of_openai_differ_in_lifetime_and_rounding(
    model: str, ttl: float, grain: int, spacing: int
) -> None:
    for provider in ("openai", "azure"):
        policy = policy_of("openai.responses", model, provider)
        assert (policy.ttl_s, policy.grain_tokens, policy.spacing_tokens) == (ttl, grain, spacing)
        assert policy.minimum_tokens == 1024
        assert policy.needs_marks is False
    assert policy_of("openai.responses", "gpt-5.6-sol").long_ttl_s == 43200


@pytest.mark.parametrize(
    "model", ["deepseek-v4-pro", "grok-4.7", "mistral-large-latest", "glm-5.2", "kimi-k2", "qwen3-max"]
)
def test_a_lifetime_that_nobody_publishes_is_unknown(model: str) -> None:
    assert policy_of("openai.chat", model).ttl_s is None


def test_published_lifetimes_are_the_longest_a_request_can_have() -> None:
    assert policy_of("openai.chat", "kimi-k3").ttl_s == 3600
    assert policy_of("openai.chat", "llama-3.3", "groq").ttl_s == 7200


@pytest.mark.parametrize(
    ("api", "model", "needs"),
    [
        ("anthropic.messages", "claude-opus-5", True),
        ("openai.chat", "anthropic/claude-opus-5", True),
        ("bedrock.converse", "amazon.nova-pro-v1:0", True),
        ("anthropic.messages", "deepseek-v4-flash", False),
        ("anthropic.messages", "MiniMax-M2.7", False),
        ("openai.chat", "qwen3-max", False),
        ("openai.chat", "gpt-5.6-sol", False),
        ("gemini.generate_content", "gemini-2.5-pro", False),
    ],
)
def test_marks_are_needed_where_nothing_is_cached_without(api: str, model: str, needs: bool) -> None:
    assert policy_of(api, model).needs_marks is needs


@pytest.mark.parametrize(
    ("model", "key"),
    [
        ("gpt-5.4", "prompt_cache_key"),
        ("grok-4.7", "prompt_cache_key"),
        ("mistral-large-latest", "prompt_cache_key"),
        ("house-model", "prompt_cache_key"),
        ("deepseek-v4-flash", ""),
        ("gemini-3.8-flash", ""),
        ("qwen3-max", ""),
        ("kimi-k3", ""),
    ],
)
def test_only_some_providers_take_a_key_that_steers_routing(model: str, key: str) -> None:
    assert policy_of("openai.chat", model).routing_key == key


def test_gemini_behind_a_gateway_reads_in_wide_steps_and_at_home_every_token_counts() -> None:
    assert policy_of("openai.chat", "google/gemini-3-pro-preview").spacing_tokens == 2048
    assert policy_of("gemini.generate_content", "gemini-3-pro-preview").spacing_tokens == 0


def test_mistral_caches_only_with_a_key() -> None:
    policy = policy_of("openai.chat", "mistral-large-latest")
    assert (policy.opt_in, policy.minimum_tokens, policy.grain_tokens) == ("prompt_cache_key", 64, 64)


# ---- positions of the lookback -------------------------------------------------------------------------------------


def on(day: str) -> float:
    return datetime.fromisoformat(f"{day}T12:00:00").replace(tzinfo=UTC).timestamp()


def test_runs_of_tool_blocks_are_one_position_since_september_2026() -> None:
    policy = policy_of("anthropic.messages", "claude-opus-5")
    assert not policy.collapses_runs(on("2026-08-31"))
    assert policy.collapses_runs(on("2026-09-01"))
    assert policy.collapses_runs(None)


@pytest.mark.parametrize("model", ["qwen3-max", "MiniMax-M2.7"])
def test_others_that_look_back_count_every_block(model: str) -> None:
    policy = policy_of("openai.chat", model)
    assert policy.lookback_positions == 20
    assert not policy.collapses_runs(on("2026-11-01"))


def test_without_a_rule_of_its_own_the_newest_holds() -> None:
    assert Policy(True, 0, None, 1, 0, 20, "").collapses_runs(on("2026-01-01"))


# ---- names ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("logged", "plain"),
    [
        ("us.anthropic.claude-opus-5-v1:0", "claude-opus-5"),
        ("us-gov.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("arn:aws:bedrock:us-east-1:1:inference-profile/global.anthropic.claude-opus-5-v1:0", "claude-opus-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("claude-opus-4-6[1m]", "claude-opus-4-6"),
        ("anthropic/claude-sonnet-4.5:thinking", "claude-sonnet-4-5"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("amazon.nova-pro-v1:0", "nova-pro"),
    ],
)
def test_a_name_is_freed_of_what_platforms_wrap_around_it(logged: str, plain: str) -> None:
    assert plain_model(logged) == plain
