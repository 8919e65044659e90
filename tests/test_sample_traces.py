"""The sample traces are what the script writes, and their usage agrees with itself."""

import importlib.util
import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import rebilled

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "sample_traces"
SCRIPT = ROOT / "scripts" / "make_sample_traces.py"
NAMES = (
    "clock-in-system-prompt",
    "idle-gaps",
    "mcp-tools-reshuffled",
    "mcp-tools-stable",
    "model-fallback",
    "openai-schema-keys",
    "three-tenants",
    "two-agents-and-a-side-query",
)
# Steps that pay again for what was in the cache, and why.
MISSES: dict[str, dict[int, str]] = {
    "clock-in-system-prompt": dict.fromkeys(range(2, 17), "system_volatile_value"),
    "idle-gaps": dict.fromkeys((7, 12, 27), "ttl_expired"),
    "mcp-tools-reshuffled": dict.fromkeys((4, 5, 7, 8, 11, 12, 15, 16, 19, 20, 22), "tools_reordered"),
    "mcp-tools-stable": {},
    "model-fallback": dict.fromkeys((8, 17, 22), "model_changed"),
    "openai-schema-keys": dict.fromkeys((6, 11, 15), "tool_schema_reserialized"),
    "three-tenants": dict.fromkeys((4, 7), "tools_set_changed") | dict.fromkeys(range(10, 28, 3), "ttl_expired"),
    "two-agents-and-a-side-query": {27: "tool_result_edited"},
}


def load(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_sample_traces", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def truth() -> dict[str, Any]:
    printed = subprocess.run([sys.executable, SCRIPT, "--truth"], check=True, capture_output=True, text=True).stdout
    answer: dict[str, Any] = json.loads(printed)
    return answer


def test_script_writes_the_committed_files_byte_for_byte(tmp_path: Path) -> None:
    subprocess.run([sys.executable, SCRIPT, "--out", tmp_path], check=True, capture_output=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{name}.jsonl" for name in NAMES)
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (FOLDER / path.name).read_bytes(), path.name


def test_folder_holds_the_traces_and_a_readme_only_and_stays_small() -> None:
    files = sorted(FOLDER.iterdir())
    assert [file.name for file in files] == ["README.md", *(f"{name}.jsonl" for name in NAMES)]
    assert sum(file.stat().st_size for file in files) < 10_000_000


@pytest.mark.parametrize("name", NAMES)
def test_records_are_in_order_of_time_with_the_fields_of_a_log(name: str) -> None:
    records = load(name)
    assert 12 <= len(records) <= 40
    times = [datetime.fromisoformat(record["timestamp"]) for record in records]
    assert times == sorted(times)
    assert all(time.year == 2026 and time.month == 11 for time in times)
    for record in records:
        assert record["timestamp"].endswith("Z")
        assert list(record) == ["timestamp", "meta", "request", "response"]
        assert list(record["meta"]) == ["provider", "endpoint", "workspace", "session"]
        assert record["response"]["model"] == record["request"]["model"]


def test_response_ids_are_unique_over_all_traces() -> None:
    ids = [record["response"]["id"] for name in NAMES for record in load(name)]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", NAMES)
def test_usage_adds_up_to_the_size_of_the_prompt(name: str, script: ModuleType) -> None:
    for record in load(name):
        body, usage = record["request"], record["response"]["usage"]
        if "instructions" in body:
            parts = [*body["tools"], body["instructions"], *body["input"]]
            size = sum(len(script.compact(part).encode()) for part in parts)
            details = usage["input_tokens_details"]
            assert usage["input_tokens"] == script.tokens_of(size)
            assert details["cached_tokens"] + details["cache_write_tokens"] <= usage["input_tokens"]
            assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
            assert usage["output_tokens_details"]["reasoning_tokens"] < usage["output_tokens"]
            continue
        parts = [*body.get("tools", []), *body["system"]]
        for message in body["messages"]:
            parts += message["content"]
        size = sum(len(script.compact(script.without_marks(part)).encode()) for part in parts)
        size += sum(len(script.compact({"role": m["role"], "content": []})) for m in body["messages"])
        read, written = usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]
        total = usage["input_tokens"] + read + written
        assert total == script.tokens_of(size) + script.TURN_OPENING_TOKENS
        assert sum(usage["cache_creation"].values()) == written
        marked = '"cache_control"' in json.dumps(body)
        assert usage["input_tokens"] == (script.TURN_OPENING_TOKENS if marked else total)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_read_that_no_earlier_step_left_behind(name: str) -> None:
    left: dict[str, int] = {}
    for record in load(name):
        usage, model = record["response"]["usage"], record["request"]["model"]
        details = usage.get("input_tokens_details")
        read = details["cached_tokens"] if details else usage["cache_read_input_tokens"]
        written = details["cache_write_tokens"] if details else usage["cache_creation_input_tokens"]
        assert read <= left.get(model, 0)
        left[model] = max(left.get(model, 0), read + written)


@pytest.mark.parametrize("name", NAMES)
def test_only_the_steps_that_are_told_about_miss(name: str, truth: dict[str, Any]) -> None:
    missed = {miss["step"]: miss["cause"] for miss in truth[f"{name}.jsonl"]["missed"]}
    assert missed == MISSES[name]


def test_no_trace_depends_on_what_the_provider_leaves_open(script: ModuleType) -> None:
    usual = [trace.text() for trace in script.build()]
    assert usual == [trace.text() for trace in script.build(refresh_shorter=False)]
    assert usual == [trace.text() for trace in script.build(runs_are_one=False)]


def test_reshuffling_more_than_doubles_the_bill_of_the_same_run(truth: dict[str, Any]) -> None:
    shuffled, stable = truth["mcp-tools-reshuffled.jsonl"], truth["mcp-tools-stable.jsonl"]
    assert shuffled["input_tokens"] == stable["input_tokens"]
    assert 2 <= shuffled["usd"] / stable["usd"] <= 3


def test_twins_differ_in_the_order_of_one_servers_tools_only() -> None:
    for shuffled, stable in zip(load("mcp-tools-reshuffled"), load("mcp-tools-stable"), strict=True):
        assert shuffled["timestamp"][11:] == stable["timestamp"][11:]
        names = [[tool["name"] for tool in record["request"]["tools"]] for record in (shuffled, stable)]
        jira = [[name for name in one if name.startswith("mcp__jira__")] for one in names]
        assert sorted(jira[0]) == sorted(jira[1])
        places = [[index for index, name in enumerate(one) if name.startswith("mcp__jira__")] for one in names]
        assert places[0] == places[1]
        assert [n for n in names[0] if n not in jira[0]] == [n for n in names[1] if n not in jira[1]]
        assert shuffled["request"]["system"] == stable["request"]["system"]
        assert shuffled["response"]["usage"]["output_tokens"] == stable["response"]["usage"]["output_tokens"]


@pytest.mark.parametrize("name", NAMES)
def test_analyzer_finds_exactly_what_the_script_put_there(name: str) -> None:
    truth = json.loads(subprocess.run([sys.executable, SCRIPT, "--truth"], capture_output=True, check=True).stdout)
    told = truth[f"{name}.jsonl"]
    found = rebilled.analyze(FOLDER / f"{name}.jsonl")
    missed = {r.step.number: r for r in found.results if r.verdict.group > 2}
    assert {number: r.verdict.cause for number, r in missed.items()} == MISSES[name]
    for miss in told["missed"]:
        result = missed[miss["step"]]
        assert result.step.compare_to == miss["compared_with"]
        assert result.verdict.rebilled_tokens == pytest.approx(miss["rebilled_tokens"], rel=0.02)
    assert found.totals["cost"]["total_usd"] == pytest.approx(told["usd"], abs=1e-4)
    assert found.totals["rebilled_usd"] == pytest.approx(told["rebilled_usd"], rel=0.01, abs=1e-4)
    assert found.totals["input_tokens"] == told["input_tokens"]


def test_reshuffled_run_costs_two_to_three_times_its_healthy_twin() -> None:
    sick, healthy = (
        rebilled.analyze(FOLDER / f"mcp-tools-{name}.jsonl").totals["cost"]["total_usd"]
        for name in ("reshuffled", "stable")
    )
    assert 2 < sick / healthy < 3


def test_the_server_that_shuffles_is_named() -> None:
    found = rebilled.analyze(FOLDER / "mcp-tools-reshuffled.jsonl")
    assert {r.verdict.servers for r in found.results if r.verdict.group == 5} == {("jira",)}
    assert {r.verdict.detail for r in found.results if r.verdict.group == 5} == {"within_server"}
