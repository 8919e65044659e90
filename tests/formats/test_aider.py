from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rebilled.formats import File, detect
from rebilled.model import Record, Usage
from rebilled.reader import read_records

from .build import call, compact, parsed, read, write
from .damage import check_damage

CHAT = """
# aider chat started at 2026-09-01 10:00:00

> Aider v0.86.1
> Main model: anthropic/claude-sonnet-5 with diff edit format, infinite output
> Weak model: anthropic/claude-haiku-4-5
#### mend the test

Done.

"""
TOKENS = "> Tokens: 3.6k sent, 3.4k cache write, 8.0k cache hit, 250 received. Cost: $0.01 message, $0.05 session.  \n"


def event(name: str = "message_send", model: str = "openai/gpt-5", **more: Any) -> dict[str, Any]:
    told = {"main_model": model, "prompt_tokens": 1000, "completion_tokens": 7, "total_tokens": 1007, **more}
    return {"event": name, "properties": told if name == "message_send" else {}, "user_id": "u", "time": 1788256800}


def name_of(path: Path) -> str | None:
    with File(str(path)) as file:
        found = detect(file)
    return found.name if found is not None else None


def usages(records: list[Record]) -> list[Usage | None]:
    return [step.usage for step in read_records(records).steps]


def inputs(text: str, folder: Path) -> tuple[int, int, int, int]:
    usage = usages(read(write(folder, "h.md", CHAT.encode() + text.encode()))[0])[0]
    assert usage is not None
    return usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens, usage.output_tokens


# ---- the chat history ------------------------------------------------------------------------------------------


def test_a_chat_gives_its_lines_of_tokens_in_order(tmp_path: Path) -> None:
    path = write(tmp_path, ".aider.chat.history.md", CHAT.encode() + (TOKENS * 2).encode())
    assert name_of(path) == "aider"
    records, skips = read(path)
    assert skips == []
    assert [(record.body, record.started_at) for record in records] == [(None, None), (None, None)]
    assert records[0].meta == {
        "provider": "anthropic.messages",
        "endpoint": "api.anthropic.com",
        "session": "aider 2026-09-01 10:00:00",
    }
    steps = read_records(records).steps
    assert [step.model for step in steps] == ["claude-sonnet-5"] * 2
    assert path.read_bytes()[records[1].source.byte_offset or 0 :].startswith(b"> Tokens")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # input and writes sent, reads beside them: as older versions of LiteLLM count
        ("3.6k sent, 3.4k cache write, 8.0k cache hit, 250 received.", (11_600, 8_000, 3_400, 250)),
        ("3.6k sent, 3.4k cache write, 250 received.", (3_600, 0, 3_400, 250)),
        ("200 sent, 11k cache hit, 250 received.", (11_200, 11_000, 0, 250)),
        # everything sent, and writes once more: as newer versions count
        ("15k sent, 3.4k cache write, 8.0k cache hit, 250 received.", (11_600, 8_000, 3_400, 250)),
        ("6.8k sent, 3.4k cache write, 250 received.", (3_400, 0, 3_400, 250)),
        # everything sent, no writes told
        ("12k sent, 8.0k cache hit, 1.1k received.", (12_000, 8_000, 0, 1_100)),
        ("1,234 sent, 900 cache hit, 5 received.", (1_234, 900, 0, 5)),
    ],
)
def test_what_is_sent_may_leave_out_what_was_read(tmp_path: Path, line: str, expected: tuple[int, ...]) -> None:
    assert inputs(f"> Tokens: {line}\n", tmp_path) == expected


def test_chats_that_streamed_are_summed_up_and_never_taken_for_misses(tmp_path: Path) -> None:
    streamed = (
        CHAT.replace("10:00", "09:00") + "> Tokens: 12k sent, 250 received.\n> Tokens: 13k sent, 1.2k received.\n"
    )
    text = streamed + CHAT + "> Tokens: 500 sent, 9 received.\n" + TOKENS
    records, skips = read(write(tmp_path, "h.md", text.encode()))
    assert [usage.input_tokens if usage else None for usage in usages(records)] == [500, 11_600]
    assert [(skip.line, skip.reason, skip.detail) for skip in skips] == [
        (
            11,
            "no_usage",
            "2 calls of the chat of 2026-09-01 09:00:00: 25,000 tokens in, 1,450 out; no cached tokens are told, "
            "as aider counts itself while it streams (--no-stream)",
        )
    ]


def test_a_later_model_of_a_chat_is_that_of_the_calls_behind_it(tmp_path: Path) -> None:
    text = CHAT + TOKENS + "> Main model: deepseek/deepseek-chat with diff edit format\n" + TOKENS
    steps = read_records(read(write(tmp_path, "h.md", text.encode()))[0]).steps
    assert [(step.provider, step.model) for step in steps] == [
        ("anthropic", "claude-sonnet-5"),
        ("deepseek", "deepseek-chat"),
    ]


@pytest.mark.parametrize("line", ["> Tokens: none", "> Tokens: 1.2.3k sent", "> Tokens: sent"])
def test_odd_lines_of_tokens_never_raise(tmp_path: Path, line: str) -> None:
    records, _ = read(write(tmp_path, "h.md", (CHAT + TOKENS + line + "\n" + TOKENS).encode()))
    assert len(records) >= 2


def test_a_chat_without_tokens_says_so(tmp_path: Path) -> None:
    records, skips = read(write(tmp_path, "h.md", CHAT.encode()))
    assert (records, [skip.detail for skip in skips]) == ([], ["a chat history without a line of tokens"])


# ---- the analytics log -----------------------------------------------------------------------------------------


def test_the_analytics_are_summed_up_by_model_as_they_tell_no_cached_tokens(tmp_path: Path) -> None:
    lines = [event("launched"), event(), event(), event(model="deepseek/deepseek-chat"), event("exit")]
    path = write(tmp_path, "a.jsonl", *lines, "oops")
    assert name_of(path) == "aider"
    records, skips = read(path)
    assert records == []
    why = "the analytics log tells no cached tokens, the chat history does with --no-stream"
    assert [skip.detail for skip in skips][1:] == [
        f"2 calls of openai/gpt-5: 2,000 tokens in, 14 out; {why}",
        f"1 calls of deepseek/deepseek-chat: 1,000 tokens in, 7 out; {why}",
    ]
    assert skips[0].reason == "not_json"


def test_an_analytics_log_without_calls_says_so(tmp_path: Path) -> None:
    _, skips = read(write(tmp_path, "a.jsonl", event("launched"), {"event": "exit", "properties": [1]}))
    assert [skip.detail for skip in skips] == ["an analytics log without calls to a model"]


# ---- the log of conversations ----------------------------------------------------------------------------------


def conversation(*said: str, at: str = "2026-09-01T10:00:00", answered: str | None = "2026-09-01T10:00:09") -> str:
    lines = [f"TO LLM {at}", "-------", "SYSTEM be brief", "SYSTEM ", "SYSTEM -------"]
    for text in said:
        lines += ["-------", *(f"USER {line}" for line in text.split("\n"))]
    if answered is not None:
        lines += [f"LLM RESPONSE {answered}", "ASSISTANT done"]
    return "\n".join(lines) + "\n"


def test_the_log_of_conversations_gives_the_messages_and_times(tmp_path: Path) -> None:
    text = conversation("hi\nthere") + conversation("hi\nthere", "go on", at="2026-09-01T10:01:00", answered=None)
    path = write(tmp_path, "log", text.encode())
    assert name_of(path) == "aider"
    records, skips = read(path)
    assert skips == []
    system = {"role": "system", "content": "be brief\n\n-------"}
    assert parsed(records[0].body)["messages"] == [system, {"role": "user", "content": "hi\nthere"}]
    assert parsed(records[1].body)["messages"][2] == {"role": "user", "content": "go on"}
    assert [(r.started_at, r.ended_at, r.as_sent) for r in records] == [
        (1788256800, 1788256809, False),
        (1788256860, None, False),
    ]
    assert [step.number for step in read_records(records).steps] == [1, 2]


def test_parts_of_a_message_keep_their_text_and_cache_mark(tmp_path: Path) -> None:
    lines = [
        "TO LLM 2026-09-01T10:00:00",
        "-------",
        "SYSTEM type: text",
        "SYSTEM text: line one",
        "line two",
        "-------",
    ]
    lines += ["SYSTEM cache_control: {'type': 'ephemeral'}", "-------", "USER go"]
    records, _ = read(write(tmp_path, "log", ("\n".join(lines) + "\n").encode()))
    assert parsed(records[0].body)["messages"] == [
        {
            "role": "system",
            "content": [
                {"type": "text", "text": "line one\nline two\n-------", "cache_control": {"type": "ephemeral"}}
            ],
        },
        {"role": "user", "content": "go"},
    ]


@pytest.mark.parametrize("text", ["", "LLM RESPONSE 2026-09-01T10:00:00\nx\n", "TO LLM 2026-09-01T25:00:00\n-------\n"])
def test_odd_entries_never_raise(tmp_path: Path, text: str) -> None:
    records, _ = read(write(tmp_path, "log", (conversation("a") + text + conversation("b")).encode()))
    assert len(records) in (2, 3)


# ---- all three -------------------------------------------------------------------------------------------------


def test_other_files_are_not_claimed(tmp_path: Path) -> None:
    for text in (b"# a page about aider\n> Tokens are cheap\n", b"TO LLM\n", compact(call(event="x")).encode()):
        assert name_of(write(tmp_path, "a", text)) != "aider"


@pytest.mark.parametrize("kind", ["chat", "log"])
def test_damage_costs_nothing_that_stands_before_it(kind: str) -> None:
    # a chat is read as a whole, so that a call is complete only where the next chat begins
    chats = [(CHAT + TOKENS.replace("250", str(n))).encode() for n in (251, 252, 253)]
    logs = [conversation(name, at=f"2026-09-01T10:0{n}:00").encode() for n, name in enumerate("abc")]
    texts = chats if kind == "chat" else logs
    ends = [sum(map(len, texts[: n + 1])) + len(texts[0]) * (kind == "chat") for n in range(3)]
    check_damage(b"".join(texts), ends)
