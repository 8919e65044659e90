from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import rebilled

from .repository import ROOT, blocks

CALLS = (
    'client.messages.create(model="claude-sonnet-5", max_tokens=9, messages=[{"role": "user", "content": "Hello"}])',
    'client.chat.completions.create(model="gpt-5.6-sol", messages=[{"role": "user", "content": "Hello"}])',
)
ANSWERS = {
    "/v1/messages": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "content": [{"type": "text", "text": "Hi"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 11, "output_tokens": 2},
    },
    "/v1/chat/completions": {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": "gpt-5.6-sol",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 2, "total_tokens": 14},
    },
}


class Provider(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        answer = json.dumps(ANSWERS[self.path]).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture
def provider() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def run(code: str, folder: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_python_on_the_page_runs_from_the_root_of_the_repository(page: str) -> None:
    first = blocks(page, "python")[0]
    assert "import rebilled" in first
    assert "RB201" in run(first, ROOT)


def test_readme_python_is_at_most_ten_lines() -> None:
    assert len([line for line in blocks("README.md", "python")[0].splitlines() if line]) <= 10


def test_logging_code_of_the_readme_writes_a_trace_that_is_read(provider: str, tmp_path: Path) -> None:
    _, hook, anthropic, openai = blocks("README.md", "python")
    code = "\n".join([hook, anthropic, CALLS[0], openai, CALLS[1]])
    run(
        code,
        tmp_path,
        ANTHROPIC_BASE_URL=provider,
        ANTHROPIC_API_KEY="sk-ant-api03-not-a-key",
        OPENAI_BASE_URL=f"{provider}/v1",
        OPENAI_API_KEY="sk-not-a-key-either",
    )
    assert "not-a-key" not in (tmp_path / "trace.jsonl").read_text()
    trace = rebilled.read(tmp_path / "trace.jsonl")
    assert [(step.api, step.usage.input_tokens) for step in trace.steps if step.usage] == [
        ("anthropic.messages", 11),
        ("openai.chat", 12),
    ]
    assert all(step.started_at for step in trace.steps)
    assert not trace.skipped
