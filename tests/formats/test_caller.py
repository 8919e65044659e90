"""For whom a call was made, as each kind of log says it: the reader gives its tenant and its user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rebilled.owner import named_owners, owners_of
from rebilled.reader import read_records

from .build import call, read, write
from .test_langfuse import generation
from .test_litellm import payload
from .test_otel import attributes, otlp, span
from .test_rows import bedrock, helicone, langsmith


def owners(path: Path) -> dict[str, str]:
    """The owners of the only call of a file, by their kind."""
    (step,) = read_records(read(path)[0]).steps
    return {owner.kind: owner.name for owner in owners_of(step)}


def spans(**values: Any) -> dict[str, Any]:
    return otlp(span(attributes() | {name.replace("__", "."): value for name, value in values.items()}))


def in_langsmith(**values: Any) -> dict[str, Any]:
    run = langsmith()
    run["extra"]["metadata"] |= values
    return run


BOTH = [
    ("plain, meta", call(meta={"tenant": "acme", "user": "anna"})),
    ("plain, metadata", call(metadata={"tenant_id": "acme", "user_id": "anna"})),
    ("plain, beside the request", call(tenantId="acme", user_id="anna")),
    ("OTel", spans(tenant__id="acme", enduser__id="anna")),
    ("OTel, metadata of OpenInference", spans(user__id="anna", metadata='{"tenant": "acme"}')),
    (
        "OTel, properties of Traceloop",
        spans(traceloop__association__properties__tenant_id="acme", traceloop__association__properties__user_id="anna"),
    ),
    ("OTel, metadata of Langfuse", spans(langfuse__user__id="anna", langfuse__trace__metadata__tenant="acme")),
    ("LiteLLM, team and end user", payload(end_user="anna", metadata={"user_api_key_team_id": "acme"})),
    ("LiteLLM, organization", payload(metadata={"user_api_key_org_id": "acme", "user_api_key_user_id": "anna"})),
    (
        "LiteLLM, metadata of the request",
        payload(
            end_user="anna", metadata={"requester_metadata": {"tenant": "acme"}, "user_api_key_team_id": "everybody"}
        ),
    ),
    ("LiteLLM, row of the spend log", payload(end_user="anna", team_id="acme", metadata='{"a": 1}')),
    ("Langfuse", generation(userId="anna", metadata={"tenant": "acme"})),
    ("Langfuse, metadata as text", generation(userId="anna", metadata='{"customer_id": "acme"}')),
    ("Helicone", helicone(request_user_id="anna", request_properties={"Tenant-Id": "acme"})),
    ("LangSmith", in_langsmith(tenant="acme", user_id="anna")),
    ("Bedrock", bedrock(requestMetadata={"tenant": "acme", "user": "anna"})),
]


@pytest.mark.parametrize("value", [value for _, value in BOTH], ids=[name for name, _ in BOTH])
def test_log_that_names_tenant_and_user_tells_both(tmp_path: Path, value: dict[str, Any]) -> None:
    found = owners(write(tmp_path, "a.jsonl", value))
    assert (found["tenant"], found["user"]) == ("acme", "anna")


NOBODY = [
    ("LiteLLM", payload()),
    ("Langfuse", generation(metadata=["acme"])),
    ("Helicone", helicone(request_properties="acme")),
    ("Helicone, the account of the export", helicone(organization_id="ours")),
    ("LangSmith", in_langsmith(tenant={"id": "acme"})),
    ("Bedrock", bedrock(requestMetadata=None)),
    ("OTel", spans(metadata="acme")),
]


@pytest.mark.parametrize("value", [value for _, value in NOBODY], ids=[name for name, _ in NOBODY])
def test_log_that_names_nobody_has_only_session_and_run(tmp_path: Path, value: dict[str, Any]) -> None:
    assert set(owners(write(tmp_path, "a.jsonl", value))) <= {"session", "run"}


def test_tenants_of_a_gateway_are_told_apart_by_its_log(tmp_path: Path) -> None:
    rows = [payload(f"chatcmpl-{team}", metadata={"user_api_key_team_id": team}) for team in ("acme", "birch")]
    steps = read_records(read(write(tmp_path, "a.jsonl", *rows))[0]).steps
    assert {owner.name for owner in named_owners(steps).values()} == {"acme", "birch"}
