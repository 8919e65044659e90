from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rebilled.model import Record

from .build import KEY, body, call, read, read_one, reply, write

NAMES = ["x-api-key", "authorization", "api-key", "x-goog-api-key", "cookie", "set-cookie", "proxy-authorization"]


def spell(name: str, style: int) -> str:
    return [name, name.upper(), name.title(), name.replace("-", "_"), "HTTP_" + name.upper().replace("-", "_")][style]


def shapes(name: str, value: str) -> list[Any]:
    return [
        {name: value},
        {name: [value]},
        [[name, value]],
        [{"name": name, "value": value}],
        [{"key": name, "value": value}],
        [name, value],
        f"{name}: {value}\r\nHost: h.test",
    ]


def places(headers: Any) -> list[dict[str, Any]]:
    return [
        {"request": {"headers": headers, "body": body()}, "response": reply()},
        {"request": body(), "response": {"headers": headers, "body": reply()}},
        {"request": body(), "response": {"headers": headers, **reply()}},
        {"request": body(), "headers": headers, "response": reply()},
        {"request": body(), "request_headers": headers, "response": reply(), "response_headers": headers},
        {"request": body(headers=headers, extra_headers=headers), "response": reply()},
        {**body(), "headers": headers, "response": reply()},
        call(meta={"headers": headers, "session": "s"}),
        call(metadata={"requestHeaders": headers}),
        {"headers": headers, "body": body(), "response": {"response_headers": headers, **reply()}},
        {"data": {"headers": headers, "request": {"httpHeaders": headers, "body": body()}}},
        {"request": {"extra_headers": headers, **body("x" * 20_000)}, "response": reply()},
    ]


def everything(record: Record) -> str:
    return repr(record)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(
    name=st.sampled_from(NAMES),
    style=st.integers(0, 4),
    secret=st.text("ABCDEFGHJKabcdefghjk0123456789", min_size=20, max_size=40).map(lambda s: "zQ" + s),
    scheme=st.sampled_from(["", "Bearer ", "bearer ", "Basic "]),
)
def test_no_spelling_of_a_header_carries_a_credential_into_a_record(
    tmp_path: Path, name: str, style: int, secret: str, scheme: str
) -> None:
    for headers in shapes(spell(name, style), scheme + secret):
        records, skips = read(write(tmp_path, "a.jsonl", *places(headers)))
        assert len(records) == len(places(headers)), skips
        for record in records:
            assert secret not in everything(record)


@pytest.mark.parametrize("headers", shapes("X-Api-Key", KEY))
def test_a_key_in_the_request_headers_leaves_its_fingerprint(tmp_path: Path, headers: Any) -> None:
    record = read_one(write(tmp_path, "a.jsonl", {"request": {"headers": headers, "body": body()}}))
    assert len(str(record.meta["api_key_fp"])) == 8


def test_a_key_has_one_fingerprint_in_either_header(tmp_path: Path) -> None:
    logged = [
        {"request": {"headers": h, "body": body()}} for h in ({"x-api-key": KEY}, {"Authorization": f"Bearer {KEY}"})
    ]
    records, _ = read(write(tmp_path, "a.jsonl", *logged))
    assert records[0].meta["api_key_fp"] == records[1].meta["api_key_fp"]


def test_a_logged_fingerprint_is_kept(tmp_path: Path) -> None:
    logged = {"meta": {"api_key_fp": "k-1"}, "request": {"headers": {"x-api-key": KEY}, "body": body()}}
    assert read_one(write(tmp_path, "a.jsonl", logged)).meta["api_key_fp"] == "k-1"


@pytest.mark.parametrize(
    "value", ["Bearer eyJhbGci.e30.x", "AWS4-HMAC-SHA256 Credential=A/b", "[REDACTED]", "sk-***", "***"]
)
def test_what_changes_by_the_hour_or_is_masked_has_no_fingerprint(tmp_path: Path, value: str) -> None:
    logged = {"request": {"headers": {"authorization": value}, "body": body()}}
    assert "api_key_fp" not in read_one(write(tmp_path, "a.jsonl", logged)).meta


def test_keys_in_meta_body_and_errors_are_taken_out(tmp_path: Path) -> None:
    logged = {
        "meta": {"api_key": KEY, "note": f"sent Bearer {KEY}", "nested": [{"access_token": KEY}]},
        "request": {**body(), "api_key": KEY},
        "response": {"error": {"type": "authentication_error", "message": f"invalid key {KEY}"}},
    }
    record = read_one(write(tmp_path, "a.jsonl", logged))
    assert KEY not in repr((record.meta, record.body, record.error))
    assert not record.as_sent


def test_account_headers_give_the_workspace_and_beta_headers_the_beta(tmp_path: Path) -> None:
    headers = {
        "OpenAI-Organization": "org-1",
        "openai-project": "proj-2",
        "Anthropic-Beta": "a,b",
        "anthropic-version": "v",
    }
    meta = read_one(write(tmp_path, "a.jsonl", {"request": {"headers": headers, "body": body()}})).meta
    assert meta == {"workspace": "org-1/proj-2", "anthropic_beta": "a,b", "anthropic_version": "v"}
