"""Every format of the registry, side by side: told by content, kept through a conversion, never broken by damage."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rebilled.formats import FORMATS, File, detect
from round_trip import rewritten, told

from . import (
    test_aider,
    test_claude_code,
    test_claude_tap,
    test_cline,
    test_codex,
    test_har,
    test_inspect,
    test_langfuse,
    test_litellm,
    test_mini_swe_agent,
    test_openhands,
    test_openhands_events,
    test_otel,
    test_otlp,
    test_pi,
    test_raw_http,
    test_rows,
    test_table,
    test_vcr,
)
from .build import body, call, compact, read, reply
from .damage import damage
from .flows import dump, flow

NAMES = ("a", "b", "c")


def lines(*values: object) -> bytes:
    return "".join(compact(value) + "\n" for value in values).encode()


def table(form: str) -> bytes:
    rows = [test_rows.langsmith(name) for name in NAMES]
    with tempfile.TemporaryDirectory() as folder:
        return test_table.saved(Path(folder), form, rows).read_bytes()


def codex() -> bytes:
    counts = [test_codex.count(100 * n, test_codex.usage(100), n) for n in range(1, 4)]
    return lines(test_codex.META, test_codex.TURN, *counts)


SAMPLES: dict[str, Callable[[], bytes]] = {
    "aider": lambda: test_aider.CHAT.encode() + test_aider.TOKENS.encode(),
    "bedrock-log": lambda: lines(*map(test_rows.bedrock, NAMES)),
    "claude-code": lambda: lines(
        test_claude_code.user(), *(test_claude_code.assistant(f"m{n}", f"a{n}") for n in range(3))
    ),
    "claude-tap": lambda: lines(*(test_claude_tap.line(name, number) for number, name in enumerate(NAMES))),
    "cline": lambda: compact(
        [test_cline.SAID, *(test_cline.shown(test_cline.NOW + number) for number in range(3))]
    ).encode(),
    "codex": codex,
    "csv": lambda: table("csv"),
    "har": lambda: compact(test_har.archive(*map(test_har.entry, NAMES))).encode(),
    "helicone": lambda: lines(*map(test_rows.helicone, NAMES)),
    "inspect": lambda: compact(test_inspect.log(test_inspect.sample("x", *map(test_inspect.event, NAMES)))).encode(),
    "json": lambda: json.dumps({"calls": [call(response=reply(name)) for name in NAMES]}, indent=1).encode(),
    "jsonl": lambda: lines(*(call(response=reply(name)) for name in NAMES)),
    "langfuse": lambda: lines(*map(test_langfuse.generation, NAMES)),
    "langsmith": lambda: lines(*map(test_rows.langsmith, NAMES)),
    "litellm": lambda: lines(*map(test_litellm.payload, NAMES)),
    "mini-swe-agent": lambda: compact(
        test_mini_swe_agent.trajectory(*(test_mini_swe_agent.answer(name) for name in NAMES))
    ).encode(),
    "mitmproxy": lambda: b"".join(
        dump(flow(compact(body(name)).encode(), compact(reply(name)).encode())) for name in NAMES
    ),
    "openhands": lambda: lines(*map(test_openhands.completion, NAMES)),
    "openhands-events": lambda: lines(
        test_openhands_events.SYSTEM,
        *(test_openhands_events.action(n, test_openhands_events.response(f"r{n}")) for n in range(3)),
    ),
    "otel": lambda: compact(test_otel.otlp(*(test_otel.span(test_otel.attributes(name)) for name in NAMES))).encode(),
    "otlp": lambda: test_otlp.framed([test_otlp.message(test_otel.attributes(name)) for name in NAMES], "words"),
    "parquet": lambda: table("parquet"),
    "pi": lambda: lines(test_pi.HEADER, *(test_pi.line(f"l{n}", test_pi.answer(f"m{n}")) for n in range(3))),
    "raw-http": lambda: b"".join(test_raw_http.curl(name) for name in NAMES),
    "vcr": lambda: test_vcr.cassette(*map(test_vcr.interaction, NAMES)),
}


def saved(folder: Path, name: str) -> Path:
    """The sample under a name that says nothing of what it is."""
    path = folder / "log"
    path.write_bytes(SAMPLES[name]())
    return path


def test_every_format_has_a_sample() -> None:
    assert set(SAMPLES) == {form.name for form in FORMATS}


@pytest.mark.parametrize("name", SAMPLES)
def test_it_is_told_by_its_content(tmp_path: Path, name: str) -> None:
    with File(str(saved(tmp_path, name))) as file:
        found = detect(file)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize("name", SAMPLES)
def test_what_it_tells_survives_a_conversion(tmp_path: Path, name: str) -> None:
    path = saved(tmp_path, name)
    before = told([path])
    assert before
    assert told([rewritten([path], tmp_path / "out" / "plain.jsonl")]) == before


@pytest.mark.parametrize("name", SAMPLES)
def test_damage_never_raises_and_is_never_silent(tmp_path: Path, name: str) -> None:
    data, path = SAMPLES[name](), tmp_path / "log"

    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(st.data())
    def check(choose: st.DataObject) -> None:
        kind = choose.draw(st.sampled_from(("cut", "flip", "splice", "drop", "zero")))
        path.write_bytes(damage(data, choose.draw(st.integers(0, len(data) - 1)), kind, choose))
        records, skips = read(path)
        assert records or skips

    check()
