from __future__ import annotations

import pytest

from rebilled.redact.place import other_host, other_region, other_url


def hidden(text: str) -> str:
    return "".join("x" if sign.isalpha() else sign for sign in text)


@pytest.mark.parametrize(
    ("host", "other"),
    [
        ("api.anthropic.com", "api.anthropic.com"),
        ("eu.api.openai.com", "eu.api.openai.com"),
        ("bedrock-runtime.us-east-1.amazonaws.com", "bedrock-runtime.us-east-1.amazonaws.com"),
        ("us-east5-aiplatform.googleapis.com", "us-east5-aiplatform.googleapis.com"),
        ("localhost:8080", "localhost:8080"),
        ("127.0.0.1", "127.0.0.1"),
        ("acme.openai.azure.com", "xxxx.openai.azure.com"),
        ("acme.openrouter.ai", "xxxx.openrouter.ai"),
        ("llm.acme.example:8443", "xxx.xxxx.xxxxxxx:8443"),
        ("api.anthropic.com.acme.example", "xxx.xxxxxxxxx.xxx.xxxx.xxxxxxx"),
    ],
)
def test_only_hosts_of_providers_and_of_this_machine_stay(host: str, other: str) -> None:
    assert other_host(host, hidden) == other


@pytest.mark.parametrize(
    ("url", "other"),
    [
        ("https://api.anthropic.com/v1/messages", "https://api.anthropic.com/v1/messages"),
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("https://llm.acme.example/team-a/v1/messages", "https://xxx.xxxx.xxxxxxx/xxxx-x/v1/messages"),
        (
            "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:streamGenerateContent",
            "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:streamGenerateContent",
        ),
        (
            "https://us-east5-aiplatform.googleapis.com/v1/projects/acme/locations/us-east5/publishers/anthropic/models/"
            "claude-opus-5:rawPredict",
            "https://us-east5-aiplatform.googleapis.com/v1/projects/xxxx/locations/us-east5/publishers/anthropic/models/"
            "claude-opus-5:rawPredict",
        ),
        (
            "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-opus-5/converse",
            "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-opus-5/converse",
        ),
    ],
)
def test_an_address_keeps_the_api_and_the_model(url: str, other: str) -> None:
    assert other_url(url, hidden) == other


@pytest.mark.parametrize(
    ("region", "kept"),
    [("us-east-1", True), ("us-gov-west-1", True), ("europe-west4", True), ("global", True), ("acme-dc-1", False)],
)
def test_only_regions_of_clouds_stay(region: str, kept: bool) -> None:
    assert (other_region(region, hidden) == region) is kept
