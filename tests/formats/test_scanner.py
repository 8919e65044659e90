from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rebilled.errors import RecordError
from rebilled.formats.scanner import Scanner
from rebilled.spans import member_spans

from .build import body, compact


def history(steps: int, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": f"{number} " + "x" * 4000} for number in range(steps)]
    return {**body(), "messages": messages, **more}


def strictly_valid(raw: bytes) -> bool:
    try:
        member_spans(raw)
    except RecordError:
        return False
    return True


def test_a_longer_history_gives_the_same_members_as_a_fresh_scan() -> None:
    scanner = Scanner()
    for steps in range(1, 20):
        raw = compact(history(steps, system="s", tools=[])).encode()
        assert scanner.scan(raw) == Scanner().scan(raw) == {
            "model": b'"', "max_tokens": b"1", "messages": b"[", "system": b'"', "tools": b"["
        }  # fmt: skip


def test_a_fault_behind_the_shared_part_is_found() -> None:
    scanner = Scanner()
    raw = compact(history(12, system="s")).encode()
    assert scanner.scan(raw) is not None
    for broken in (
        raw[:-1],
        raw + b"}",
        raw.replace(b'"system":"s"', b'"system":NaN'),
        raw[:-1] + b',"model":"twice"}',
    ):
        scanner.scan(raw)
        assert scanner.scan(broken) is None


def test_a_body_that_ends_within_the_shared_part_is_scanned_whole() -> None:
    scanner = Scanner()
    scanner.scan(compact(history(12)).encode())
    assert scanner.scan(compact(history(5)).encode()) is not None


@settings(max_examples=150, deadline=None)
@given(steps=st.integers(5, 9), cut=st.integers(0, 400), patch=st.binary(max_size=6), spaced=st.booleans())
def test_any_change_near_the_end_is_judged_as_a_strict_parser_judges_it(
    steps: int, cut: int, patch: bytes, spaced: bool
) -> None:
    scanner = Scanner()
    separators = (", ", ": ") if spaced else (",", ":")
    raw = json.dumps(history(steps, system="s", tools=[{"name": "t"}]), separators=separators).encode()
    scanner.scan(raw)
    changed = raw[: len(raw) - cut] + patch + raw[len(raw) - cut + len(patch) :]
    assert (scanner.scan(changed) is not None) == strictly_valid(changed)
