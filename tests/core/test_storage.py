"""Contents stored in explicit caches (Gemini): joined with the calls that read them, timed and priced."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from rebilled.analysis import Analysis, analyze, read
from rebilled.convert import convert
from rebilled.pricing import Prices
from rebilled.reports.json import report_object
from rebilled.reports.report import Options
from rebilled.reports.terminal import screen
from rebilled.selection import Selection, select

HOST = "https://generativelanguage.googleapis.com/v1beta"
VERTEX = "https://aiplatform.googleapis.com/v1/projects/p1/locations/global"
MODEL = "gemini-3.8-flash"
Entry = dict[str, Any]


def entry(minute: float, method: str, url: str, body: Any, answer: Any, status: int = 200) -> Entry:
    """One entry of a HAR file, so many minutes after nine."""
    whole = datetime.fromisoformat("2026-11-03T09:00:00+00:00").timestamp() + minute * 60
    request: Entry = {"method": method, "url": url, "headers": []}
    if body is not None:
        request["postData"] = {"mimeType": "application/json", "text": json.dumps(body)}
    content = {"mimeType": "application/json", "text": json.dumps(answer)}
    started = datetime.fromtimestamp(whole).astimezone().isoformat()
    response = {"status": status, "headers": [], "content": content}
    return {"startedDateTime": started, "time": 500, "request": request, "response": response}


def created(minute: float = 0, key: str = "k1", **more: Any) -> Entry:
    body = {"model": f"models/{MODEL}", "contents": [{"role": "user", "parts": [{"text": "Handbook. " * 900}]}]}
    answer = {
        "name": f"cachedContents/{key}",
        "model": f"models/{MODEL}",
        "createTime": "2026-11-03T09:00:00Z",
        "expireTime": "2026-11-03T10:00:00Z",
        "usageMetadata": {"totalTokenCount": 100_000},
        **more,
    }
    return entry(minute, "POST", f"{HOST}/cachedContents", {**body, "ttl": "3600s"}, answer)


def asked(minute: float, key: str = "cachedContents/k1", url: str = HOST, read_: int = 100_000) -> Entry:
    body = {"cachedContent": key, "contents": [{"role": "user", "parts": [{"text": f"Question {minute}?"}]}]}
    usage = {"promptTokenCount": 100_010, "cachedContentTokenCount": read_, "candidatesTokenCount": 5}
    answer = {"responseId": f"r{minute}", "modelVersion": MODEL, "usageMetadata": usage}
    return entry(minute, "POST", f"{url}/models/{MODEL}:generateContent", body, answer)


def deleted(minute: float, key: str = "k1", status: int = 200) -> Entry:
    return entry(minute, "DELETE", f"{HOST}/cachedContents/{key}", None, {}, status)


def trace_of(tmp_path: Path, *entries: Entry) -> Path:
    path = tmp_path / "trace.har"
    path.write_text(json.dumps({"log": {"version": "1.2", "entries": list(entries)}}))
    return path


def judged(tmp_path: Path, *entries: Entry) -> Analysis:
    return analyze(read([trace_of(tmp_path, *entries)]), Prices.load())


def shown(analysis: Analysis) -> str:
    return " ".join(" ".join(screen(analysis, Options(width=100))).split())


def test_a_content_is_joined_with_its_readers_and_priced(tmp_path: Path) -> None:
    found = judged(tmp_path, created(), asked(1), asked(2), deleted(30))
    assert [result.step.stored for result in found.results] == ["k1", "k1"]
    assert found.trace.skipped == []
    (content,) = found.stored
    assert (content.tokens, content.steps, content.read_tokens) == (100_000, (1, 2), 200_000)
    assert content.deleted
    assert content.kept_s == pytest.approx(1800)
    rates = Prices.load().rates(MODEL, provider="gemini", at=content.created_at, prompt_tokens=100_000)
    assert rates is not None
    assert content.creation_usd == pytest.approx(100_000 * rates.uncached_input)
    assert content.storage_usd == pytest.approx(0.1 * 0.5 * 0.50)  # 0.1 Mtok, half an hour, $0.50
    assert content.saved_usd == pytest.approx(200_000 * (rates.uncached_input - rates.cache_read))
    parts = (content.saved_usd, content.creation_usd, content.storage_usd)
    assert None not in parts
    assert content.net_usd == pytest.approx(2 * (parts[0] or 0) - sum(part or 0 for part in parts))


def test_calls_that_store_are_neither_steps_nor_in_the_bill(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    alone, joined = judged(tmp_path, asked(1)), judged(tmp_path / "more", created(), asked(1), deleted(3))
    assert len(joined.results) == 1
    assert joined.trace.records == 1
    totals = [report_object(one, Options())["totals"]["cost"] for one in (alone, joined)]
    assert totals[0] == totals[1]


def test_a_content_without_a_call_that_deletes_it_was_kept_until_it_ran_out_at_most(tmp_path: Path) -> None:
    found = judged(tmp_path, created(), asked(1))
    assert found.stored[0].kept_s == pytest.approx(3600)
    assert "kept at most 60 min" in shown(found)


def test_a_renewed_lifetime_counts(tmp_path: Path) -> None:
    answer = {
        "name": "cachedContents/k1",
        "model": f"models/{MODEL}",
        "createTime": "2026-11-03T09:00:00Z",
        "expireTime": "2026-11-03T11:00:00Z",
        "usageMetadata": {"totalTokenCount": 100_000},
    }
    renewed = entry(50, "PATCH", f"{HOST}/cachedContents/k1", {"ttl": "4200s"}, answer)
    assert judged(tmp_path, created(), renewed, asked(70)).stored[0].kept_s == pytest.approx(7200)


def test_a_deletion_that_failed_ends_nothing(tmp_path: Path) -> None:
    found = judged(tmp_path, created(), asked(1), deleted(3, status=403))
    assert not found.stored[0].deleted
    assert [skip.reason for skip in found.trace.skipped] == ["no_request"]


def test_a_list_of_all_contents_is_a_listed_skip(tmp_path: Path) -> None:
    listed = entry(1, "GET", f"{HOST}/cachedContents?pageSize=5&key=secret", None, {"cachedContents": []})
    found = judged(tmp_path, listed, asked(2))
    assert found.stored == []
    assert [(skip.reason, skip.line) for skip in found.trace.skipped] == [("no_request", 1)]


def test_vertex_names_are_joined_whatever_stands_in_front(tmp_path: Path) -> None:
    name = "projects/123/locations/global/cachedContents/77"
    answer = {"name": name, "model": f"projects/p1/locations/global/publishers/google/models/{MODEL}"}
    times = {"createTime": "2026-11-03T09:00:00Z", "expireTime": "2026-11-03T09:05:00Z"}
    made = entry(0, "POST", f"{VERTEX}/cachedContents", {}, {**answer, **times, "usageMetadata": {}})
    call = asked(1, "projects/p1/locations/global/cachedContents/77", f"{VERTEX}/publishers/google")
    found = judged(tmp_path, made, call)
    assert [(content.key, content.model, content.steps) for content in found.stored] == [("77", MODEL, (1,))]


def test_a_step_whose_content_was_stored_elsewhere_stands_alone(tmp_path: Path) -> None:
    found = judged(tmp_path, created(key="k2"), asked(1))
    assert [(content.key, content.steps, content.saved_usd) for content in found.stored] == [("k2", (), 0.0)]
    assert "read by no step" in shown(found)


def test_a_model_without_a_price_for_storage_is_said_so_and_never_free(tmp_path: Path) -> None:
    found = judged(tmp_path, created(model="models/gemini-2.5-flash"), asked(1))
    assert found.stored[0].storage_usd is None
    assert found.stored[0].net_usd is None
    assert "the price of keeping is not known for gemini-2.5-flash" in shown(found)


def test_the_json_report_holds_each_content(tmp_path: Path) -> None:
    (told,) = report_object(judged(tmp_path, created(), asked(1), deleted(30)), Options())["stored"]
    assert (told["key"], told["steps"], told["deleted"]) == ("k1", [1], True)
    assert (told["created"], told["kept_until"][:16]) == ("2026-11-03T09:00:00.000Z", "2026-11-03T09:30")


def test_a_selection_counts_the_readers_that_are_left(tmp_path: Path) -> None:
    found = judged(tmp_path, created(), asked(1), asked(2))
    until = datetime.fromisoformat("2026-11-03T09:01:30+00:00").timestamp()
    assert select(found, Selection(until=until)).stored[0].steps == (1,)


def test_plain_records_with_an_address_are_joined_too(tmp_path: Path) -> None:
    made, ask = created(), asked(1)
    lines = [
        {
            "timestamp": one["startedDateTime"],
            "url": one["request"]["url"],
            "request": json.loads(one["request"]["postData"]["text"]),
            "response": json.loads(one["response"]["content"]["text"]),
        }
        for one in (made, ask)
    ]
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    found = analyze(read([path]), Prices.load())
    assert [(content.key, content.steps) for content in found.stored] == [("k1", (1,))]


def test_conversion_lists_what_it_leaves_out(tmp_path: Path) -> None:
    found = convert([trace_of(tmp_path, created(), asked(1))])
    assert len(list(found.lines(found.trace.steps))) == 1
    assert [skip.reason for skip in found.trace.skipped] == ["no_request"]
