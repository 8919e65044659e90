"""Promises of the README and of SECURITY.md."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import rebilled

from .repository import ROOT

OFFLINE = """
import socket, sys

def refuse(*arguments, **options):
    raise AssertionError("a socket was opened")

socket.socket = socket.create_connection = socket.getaddrinfo = refuse
from rebilled.cli import main
main(sys.argv[1:])
"""
BODY: dict[str, Any] = {
    "model": "claude-sonnet-5",
    "max_tokens": 9,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "messages": [{"role": "user", "content": "Hello"}],
}
USAGE = {"input_tokens": 11, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "output_tokens": 2}
REPLY = {"id": "msg_1", "type": "message", "model": "claude-sonnet-5", "usage": USAGE}
STREAM = (
    f"event: message_start\ndata: {json.dumps({'type': 'message_start', 'message': REPLY})}\n\n"
    f"event: message_delta\ndata: {json.dumps({'type': 'message_delta', 'usage': {'output_tokens': 5}})}\n\n"
)


def offline(*words: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", OFFLINE, *words], cwd=folder, capture_output=True, text=True, check=False
    )


def test_analysis_of_models_without_a_price_opens_no_socket(tmp_path: Path) -> None:
    record = {"request": {**BODY, "model": "no-such-model"}, "response": {**REPLY, "model": "no-such-model"}}
    (tmp_path / "trace.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    done = offline("trace.jsonl", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "no price" in done.stdout


def test_other_commands_open_no_socket() -> None:
    trace = "sample_traces/mcp-tools-reshuffled.jsonl"
    for words in (
        ["diff", "4", "--trace", trace],
        ["steps", trace],
        ["prices"],
        ["providers"],
        ["formats"],
        ["causes"],
    ):
        done = offline(*words)
        assert done.returncode == 0, done.stderr


def test_show_content_none_shows_no_text_of_a_prompt() -> None:
    trace = "sample_traces/clock-in-system-prompt.jsonl"
    assert "You are a coding agent" in offline(trace).stdout
    for words in ([trace], [trace, "--json"], ["diff", "4", "--trace", trace], ["steps", trace]):
        shown = offline(*words, "--show-content", "none")
        assert shown.returncode == 0, shown.stderr
        assert "You are" not in shown.stdout
        assert "coding agent" not in shown.stdout


# ---- where traces come from ------------------------------------------------------------------------------------------


def test_log_of_claude_trace_is_read(tmp_path: Path) -> None:
    call = {
        "request": {
            "timestamp": 1_790_000_000.5,
            "method": "POST",
            "url": "https://api.anthropic.com/v1/messages",
            "headers": {"x-api-key": "sk-ant-api03-not-a-key-at-all"},
            "body": BODY,
        },
        "response": {"timestamp": 1_790_000_003.0, "status_code": 200, "headers": {}, "body_raw": STREAM},
        "logged_at": "2026-09-21T14:13:23Z",
    }
    folder = tmp_path / ".claude-trace"
    folder.mkdir()
    (folder / "log-2026-09-21.jsonl").write_text(json.dumps(call) + "\n", encoding="utf-8")
    trace = rebilled.read(folder)
    assert [(step.model, step.started_at) for step in trace.steps] == [("claude-sonnet-5", 1_790_000_000.5)]
    assert trace.steps[0].usage is not None
    assert trace.steps[0].usage.output_tokens == 5
    assert "not-a-key" not in json.dumps(rebilled.analyze(trace).report)


def test_export_of_claude_tap_is_read(tmp_path: Path) -> None:
    packet = {
        "index": 1,
        "method": "POST",
        "path": "/v1/messages?beta=true",
        "http_status": 200,
        "request": {"headers": {"Authorization": "[REDACTED]"}, "body": BODY},
        "response": {"status": 200, "headers": {}, "body": REPLY},
    }
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"session": "s-1", "agent": "claude", "packets": [packet]}), encoding="utf-8")
    assert [step.usage.input_tokens for step in rebilled.read(path).steps if step.usage] == [11]


def test_request_and_response_in_two_files_are_one_step(tmp_path: Path) -> None:
    (tmp_path / "07.request.json").write_text(json.dumps(BODY), encoding="utf-8")
    (tmp_path / "07.response.json").write_text(json.dumps(REPLY), encoding="utf-8")
    assert [step.usage.input_tokens for step in rebilled.read(tmp_path).steps if step.usage] == [11]


def test_completion_log_of_openhands_is_read(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 11, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 0}}
    call = {
        "messages": [{"role": "user", "content": "Hello"}],
        "tools": [],
        "kwargs": {"temperature": 0.0},
        "response": {"id": "c-1", "model": "claude-sonnet-5", "usage": usage},
        "timestamp": 1_790_000_000.5,
        "latency": 2.5,
    }
    (tmp_path / "claude-sonnet-5-1790000000.500.json").write_text(json.dumps(call), encoding="utf-8")
    assert [step.usage.input_tokens for step in rebilled.read(tmp_path).steps if step.usage] == [11]


def test_log_of_a_proxy_with_bodies_as_text_is_read(tmp_path: Path) -> None:
    call = {"timestamp": "2026-11-02T10:00:00Z", "request_body": json.dumps(BODY), "response_body": json.dumps(REPLY)}
    (tmp_path / "proxy.log").write_text(json.dumps(call) + "\n", encoding="utf-8")
    assert [step.usage.input_tokens for step in rebilled.read(tmp_path).steps if step.usage] == [11]
