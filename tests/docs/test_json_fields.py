"""docs/json.md against real output, both ways."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import rebilled
from rebilled.mcp.survey_leg import decode_leg
from rebilled.mcp.survey_pair import refusals
from rebilled.reports.pair_lines import pair_object

from .repository import ROOT, output, tables

SHAPE = re.compile(r"\b[A-Z][A-Z_]{2,}\b")
SAMPLES = ROOT / "sample_traces"
RECORDING = ROOT / "sample_mcp" / "jira.tee.jsonl"
SURVEY_LEGS = tuple(ROOT / "sample_mcp" / f"survey.{revision}.json" for revision in ("2025-11-25", "2026-07-28"))
OBJECTS = ("object", "object or null")
"""Types of fields whose members depend on what else is there."""

LINTS = (
    "analyze mcp lint sample_mcp/jira.tee.jsonl --model claude-sonnet-4-5 --json",
    "analyze mcp lint sample_traces/mcp-tools-reshuffled.jsonl --json",
)
_ASK = "analyze mcp probe --json --pause 0 --connections 2 --lists 2 --model claude-sonnet-4-5"
_SERVER = f"{shlex.quote(sys.executable)} tests/mcp/faulty_server.py"
PROBES = (
    f"{_ASK} --all-lists --read x://a -- {_SERVER} other_lists --era legacy",
    f"{_ASK} --revision 2026-07-28 -- {_SERVER} shuffle",
)
DIFFS = ("analyze diff 4 --trace sample_traces/mcp-tools-reshuffled.jsonl --json",)

PAIR = ("mcp-tools-reshuffled", "mcp-tools-stable")


def documented() -> dict[str, dict[str, str]]:
    return {name: rows for name, rows in tables("docs/json.md").items() if SHAPE.fullmatch(name)}


def type_of(row: str) -> str:
    return row.split("|")[0].strip()


def walk(value: Any, shape: str, docs: dict[str, dict[str, str]], seen: dict[str, set[str]]) -> None:
    """Check an object against its table, and what it holds against theirs."""
    if isinstance(value, list):
        for item in value:
            walk(item, shape, docs, seen)
        return
    assert isinstance(value, dict), f"{shape} is {value!r}"
    assert set(value) == set(docs[shape]), f"the table {shape} of docs/json.md"
    seen[shape] |= set(value)
    for field, inner in value.items():
        text = type_of(docs[shape][field])
        if inner is None:
            assert "null" in text, f"{shape}.{field} is null, and docs/json.md says {text}"
            continue
        assert text != "null", f"{shape}.{field} is {inner!r}, and docs/json.md says null"
        assert isinstance(inner, list) == text.startswith("list of"), f"{shape}.{field}: {text}"
        if text in OBJECTS:
            continue
        found = SHAPE.search(text)
        if found is not None:
            walk(inner, found[0], docs, seen)
        else:
            parts = inner if isinstance(inner, list) else [inner]
            assert not any(isinstance(part, dict) for part in parts), f"{shape}.{field} has no table in docs/json.md"


def diagnosed(folder: Path) -> Path:
    """A trace in which the provider says itself why it missed."""
    request = {
        "model": "claude-sonnet-5",
        "max_tokens": 9,
        "system": "x",
        "messages": [{"role": "user", "content": "Hi"}],
    }
    reason = {"type": "system_changed", "cache_missed_input_tokens": 5}
    response = {
        "id": "msg_1",
        "model": "claude-sonnet-5",
        "usage": {"input_tokens": 11, "output_tokens": 2},
        "diagnostics": {"cache_miss_reason": reason},
        "input_transformations": [{"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "x"}],
    }
    path = folder / "diagnosed.jsonl"
    path.write_text(json.dumps({"request": request, "response": response}) + "\n", encoding="utf-8")
    return path


def stored(folder: Path) -> Path:
    """A trace of a content that is stored, and of a prompt that begins with it."""
    host, name = "https://generativelanguage.googleapis.com/v1beta", "cachedContents/k1"
    model = "gemini-3.8-flash"
    contents = [{"role": "user", "parts": [{"text": "Which tide?"}]}]
    made = {"name": name, "model": f"models/{model}", "usageMetadata": {"totalTokenCount": 9000}}
    times = {"createTime": "2026-11-03T09:00:00Z", "expireTime": "2026-11-03T09:05:00Z"}
    usage = {"promptTokenCount": 9010, "cachedContentTokenCount": 9000, "candidatesTokenCount": 3}
    calls = [
        (f"{host}/cachedContents", {"model": f"models/{model}", "contents": contents}, made | times),
        (
            f"{host}/models/{model}:generateContent",
            {"cachedContent": name, "contents": contents},
            {"usageMetadata": usage},
        ),
    ]
    path = folder / "stored.jsonl"
    lines = [json.dumps({"url": url, "request": request, "response": response}) for url, request, response in calls]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def copy_of(name: str, folder: Path) -> Path:
    """A sample trace at a path of its own."""
    path = folder / f"{name}.jsonl"
    path.write_bytes((SAMPLES / path.name).read_bytes())
    return path


def endpoints(folder: Path) -> str:
    """A list with one endpoint where nobody listens, and one that is left out; with the folder to write to."""
    path = folder / "list.txt"
    path.write_text("http://127.0.0.1:1/mcp\nhttp://example.com/mcp\n", encoding="utf-8")
    return f"{path} -o {folder}"


def misfits(folder: Path) -> Path:
    """A trace with a step that read less than its entry, and one that read what no step has left."""
    lines = []
    for number, read in enumerate((0, 0, 3900)):
        said = [("user" if at % 2 == 0 else "assistant", f"Turn {at}") for at in range(2 * number)]
        last = [{"type": "text", "text": "Last", "cache_control": {"type": "ephemeral"}}]
        turns = [*({"role": role, "content": text} for role, text in said), {"role": "user", "content": last}]
        system = [{"type": "text", "text": f"Rules {'of the depot ' * 900}{number > 1}"}]
        body = {"model": "claude-sonnet-5", "max_tokens": 9, "system": system, "messages": turns}
        usage = {"input_tokens": 0, "cache_read_input_tokens": read, "cache_creation_input_tokens": 4000 - read}
        lines.append(
            json.dumps({"request": body, "response": {"id": f"msg_{number}", "usage": usage | {"output_tokens": 1}}})
        )
    path = folder / "misfits.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    docs, found = documented(), defaultdict[str, set[str]](set)
    reports = [rebilled.analyze(SAMPLES).report, rebilled.analyze(diagnosed(tmp_path_factory.mktemp("trace"))).report]
    reports.append(rebilled.analyze(SAMPLES, mcp=RECORDING).report)
    reports.append(rebilled.analyze(stored(tmp_path_factory.mktemp("stored"))).report)
    for report in reports:
        assert report["schema"] == "rebilled.report/1"
        walk(report, "REPORT", docs, found)
    for command in DIFFS:
        diff = json.loads(output(command))
        assert diff["schema"] == "rebilled.diff/1"
        walk(diff, "DIFF", docs, found)
    for command in LINTS:
        lint = json.loads(output(command))
        assert lint["schema"] == "rebilled.mcp-lint/1"
        walk(lint, "LINT", docs, found)
    for command in PROBES:
        probe = json.loads(output(command))
        assert probe["schema"] == "rebilled.mcp-probe/1"
        walk(probe, "PROBE", docs, found)
    survey = json.loads(output(f"analyze mcp survey {endpoints(tmp_path_factory.mktemp('survey'))} --json"))
    assert survey["schema"] == "rebilled.mcp-survey/1"
    walk(survey, "SURVEY", docs, found)
    for leg in SURVEY_LEGS:
        walk(json.loads(leg.read_bytes()), "SURVEY_LEG", docs, found)
    pair = json.loads(output(f"analyze mcp compare {SURVEY_LEGS[0]} {SURVEY_LEGS[1]} --json"))
    assert pair["schema"] == "rebilled.mcp-compare/1"
    walk(pair, "PAIR", docs, found)
    legs = [decode_leg(leg.read_bytes(), leg.name) for leg in SURVEY_LEGS]
    walk(pair_object(None, refusals(legs[0], legs[0])), "PAIR", docs, found)
    studied = json.loads(output("analyze whatif sample_traces/mcp-tools-reshuffled.jsonl --json"))
    assert studied["schema"] == "rebilled.whatif/1"
    walk(studied, "WHATIF", docs, found)
    calibrated = json.loads(output(f"analyze calibrate {misfits(tmp_path_factory.mktemp('fit'))} --json"))
    assert calibrated["schema"] == "rebilled.calibration/1"
    walk(calibrated, "CALIBRATION", docs, found)
    for pair in (
        ("mcp-tools-reshuffled", "mcp-tools-stable"),
        ("idle-gaps", "idle-gaps"),
        ("idle-gaps", "model-fallback"),
    ):
        one, other = (copy_of(name, tmp_path_factory.mktemp("side")) for name in pair)
        compared = json.loads(output(f"analyze compare {one} {other} --json"))
        assert compared["schema"] == "rebilled.compare/1"
        walk(compared, "COMPARE", docs, found)
    return found


def test_every_field_of_real_output_is_documented(seen: dict[str, set[str]]) -> None:
    assert {"REPORT", "STEP", "DIVERGENCE", "DIFF"} <= set(seen)


@pytest.mark.parametrize("shape", sorted(documented()))
def test_every_documented_field_is_in_real_output(shape: str, seen: dict[str, set[str]]) -> None:
    assert seen[shape] == set(documented()[shape])


def test_every_field_has_its_line() -> None:
    assert all(
        len(row.split("|")) == 2 and row.split("|")[1].strip()
        for rows in documented().values()
        for row in rows.values()
    )
