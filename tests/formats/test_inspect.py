from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from rebilled.reader import read_records

from .build import KEY, compact, parsed, read, write
from .damage import check_damage


def event(ident: str, **more: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 64}}
    request = {
        "messages": [{"role": "system", "content": "attachment://abc"}, {"role": "user", "content": ident}],
        "tools": None,
        "extra_headers": {"x-irid": "changes"},
        "api_key": KEY,
        "model": "gpt-4o-mini",
    }
    return {
        "event": "model",
        "timestamp": "2026-09-01T06:00:00.5-04:00",
        "completed": "2026-09-01T06:00:03.5-04:00",
        "model": "openai/gpt-4o-mini",
        "output": {"usage": {"input_tokens": 100, "output_tokens": 7, "total_tokens": 107}},
        "call": {"request": request, "response": {"id": ident, "model": "gpt-4o-mini", "usage": usage}},
        **more,
    }


def sample(name: str, *events: Any) -> dict[str, Any]:
    return {"id": name, "epoch": 1, "events": [{"event": "state"}, *events], "uuid": "u-" + name, "attachments": KEPT}


KEPT = {"abc": "a long text"}


def log(*samples: Any) -> dict[str, Any]:
    return {"version": 2, "status": "success", "eval": {"model": "openai/gpt-4o-mini"}, "samples": list(samples)}


def archive(*samples: dict[str, Any], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as made:
        made.writestr("_journal/start.json", "{}")
        for item in samples:
            made.writestr(f"samples/{item['id']}_epoch_1.json", json.dumps(item))
        made.writestr("header.json", "{}")
    return buffer.getvalue()


@pytest.mark.parametrize("indent", [None, 2])
def test_a_call_says_everything_about_itself(tmp_path: Path, indent: int | None) -> None:
    text = json.dumps(log(sample("x", event("a"), event("b")), sample("y", event("c"))), indent=indent)
    records, skips = read(write(tmp_path, "a.json", text))
    assert skips == []
    system = {"role": "system", "content": "a long text"}
    assert parsed(records[0].body) == {"messages": [system, {"role": "user", "content": "a"}], "model": "gpt-4o-mini"}
    assert [parsed(record.response)["id"] for record in records] == ["a", "b", "c"]
    assert [record.meta["session"] for record in records] == ["u-x", "u-x", "u-y"]
    assert (records[0].started_at, records[0].ended_at) == (1788256800.5, 1788256803.5)
    assert KEY not in repr(records)
    step = read_records(records).steps[0]
    assert step.usage is not None
    assert (step.provider, step.api, step.usage.cache_read_tokens) == ("openai", "openai.chat", 64)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_archives_are_read(tmp_path: Path, method: int) -> None:
    records, skips = read(
        write(tmp_path, "a.eval", archive(sample("x", event("a")), sample("y", event("b")), method=method))
    )
    assert ([parsed(record.response)["id"] for record in records], skips) == (["a", "b"], [])


@pytest.mark.parametrize(
    ("usage", "total"),
    [
        ({"input_tokens": 10, "output_tokens": 7, "total_tokens": 77, "input_tokens_cache_read": 60}, 70),
        ({"input_tokens": 70, "output_tokens": 7, "total_tokens": 77, "input_tokens_cache_read": 60}, 70),
    ],
)
def test_counts_are_inspects_own_where_the_call_was_not_kept(tmp_path: Path, usage: dict[str, int], total: int) -> None:
    records, _ = read(write(tmp_path, "a.json", log(sample("x", event("a", call=None, output={"usage": usage})))))
    step = read_records(records).steps[0]
    assert step.usage is not None
    assert (step.has_body, step.usage.input_tokens, step.usage.cache_read_tokens) == (False, total, 60)


def test_a_missing_attachment_costs_the_body_only(tmp_path: Path) -> None:
    one = sample("x", event("a")) | {"attachments": {}}
    records, _ = read(write(tmp_path, "a.json", log(one)))
    assert [(record.body, parsed(record.response)["id"]) for record in records] == [(None, "a")]


def test_pending_calls_and_other_events_are_no_calls(tmp_path: Path) -> None:
    one = sample("x", event("a", pending=True), {"event": "tool"}, 3, event("b"))
    records, skips = read(write(tmp_path, "a.json", log(one)))
    assert ([parsed(record.response)["id"] for record in records], skips) == (["b"], [])


@pytest.mark.parametrize("value", [log(), log(sample("x")), log(1), {**log(), "samples": None}])
def test_a_log_without_calls_says_so(tmp_path: Path, value: Any) -> None:
    records, skips = read(write(tmp_path, "a.json", value))
    assert (records, [skip.reason for skip in skips]) == ([], ["no_request"])


@pytest.mark.parametrize("odd", [event("x", call={"request": [1], "response": 3}, output=3), event("x", timestamp=[])])
def test_odd_events_never_raise(tmp_path: Path, odd: Any) -> None:
    records, _ = read(write(tmp_path, "a.json", log(sample("x", odd, event("a")))))
    assert parsed(records[-1].response)["id"] == "a"


def test_other_archives_are_not_claimed(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        made.writestr("a.txt", "x")
    assert [skip.reason for skip in read(write(tmp_path, "a.zip", buffer.getvalue()))[1]] == ["unknown_format"]


def ident(record: Any) -> Any:
    return parsed(record.response)["id"] if record.response else None


def test_damage_costs_nothing_that_stands_before_it() -> None:
    data = compact(log(sample("x", event("a"), event("b")), sample("y", event("c")))).encode()
    ends = [data.index(text) + len(text) for text in (compact(event(name)).encode() for name in "abc")]
    check_damage(data, ends, whole=ident)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_damage_to_an_archive_costs_nothing_that_stands_before_it(method: int) -> None:
    data = archive(*(sample(name, event(name)) for name in "abc"), method=method)
    starts = [at for at in range(len(data)) if data.startswith(b"PK\x03\x04", at)]
    check_damage(data, starts[2:5], whole=ident)
