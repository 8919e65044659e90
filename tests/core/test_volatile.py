"""Which values change by themselves, and what only looks like one."""

from __future__ import annotations

import pytest

from rebilled.volatile import changed_numbers, kind_of_change, only_volatile

FRAME = "You watch a depot.\n{}\nBe brief."
MOVED = [
    ("uuid", "Request 7d1c6a50-1e0e-4d1e-9d3a-0b5b4d7a9a01.", "Request 0e9b2f11-88c4-4a5e-a6b1-3f2a8c1d2b02."),
    ("uuid", "user_7D1C6A50-1E0E-4D1E-9D3A-0B5B4D7A9A01", "user_0E9B2F11-88C4-4A5E-A6B1-3F2A8C1D2B02"),
    ("URL", "See https://depot.example/run/1?x=a.", "See https://depot.example/run/2?x=b."),
    ("URL", "Socket ws://localhost:53122/a", "Socket ws://localhost:53999/b"),
    ("clock", "Now: 09:00", "Now: 09:31"),
    ("clock", "It is 9:05:33.120 AM CET.", "It is 11:45:01.004 PM CET."),
    ("clock", "At 2026-11-03T09:00:00Z", "At 2026-11-03T09:00:30.5+01:00"),
    ("clock", "At 2026-11-03 09:00:00 UTC", "At 2026-11-04 10:00:01 UTC"),
    ("clock", "It is 9 am.", "It is 10 am."),
    ("clock", "Tue 09:00", "Wed 10:00"),
    ("clock", "Epoch 1793696400", "Epoch 1793696431"),
    ("clock", "Epoch 1793696400123", "Epoch 1793696431456"),
    ("clock", "Local time 14:02 (UTC+2)", "Local time 15:02 (UTC+2)"),
    ("date", "Today is 2026-11-03.", "Today is 2026-11-04."),
    ("date", "Today is Tuesday, November 3, 2026.", "Today is Wednesday, November 4, 2026."),
    ("date", "Today is Tue Nov 3 2026", "Today is Wed Nov 4 2026"),
    ("date", "Today: 3rd of November 2026", "Today: 14th of December 2026"),
    ("date", "Heute: 03.11.2026", "Heute: 04.11.2026"),
    ("date", "Date: 11/03/2026", "Date: 11/04/2026"),
    ("date", "It is Monday.", "It is Tuesday."),
    ("date", "Month: November 2026", "Month: December 2026"),
    ("date", "Month: 2026-11", "Month: 2026-12"),
    ("date", "Stamp 20261103", "Stamp 20261104"),
    ("duration", "Uptime: 59 minutes", "Uptime: 1 hour, 2 minutes"),
    ("duration", "Synced 12 s ago", "Synced 3 min ago"),
    ("duration", "Running for 2h15m.", "Running for 2h16m30s."),
    ("duration", "Latency 120ms", "Latency 98ms"),
    ("duration", "Last seen 3 days ago", "Last seen 4 weeks ago"),
    ("hash", "Build a1b2c3d", "Build 9f8e7d6"),
    ("hash", "sess_8f2a91c4 is open", "sess_0b6f7c1e is open"),
    ("hash", "Session 0b6f7c1e-41d2", "Session 9ad03e55-7c18"),
    ("hash", "Run toolu_01AbCdEfGhIj23", "Run toolu_02ZyXwVuTsRq98"),
    ("hash", "Version 3.1.7.36e", "Version 3.1.7.0aa"),
    ("hash", "Token QmFzZTY0IGlzIG5vdCBlbmNyeXB0aW9u", "Token U29tZXRoaW5nIGVsc2UgZW50aXJlbHkxMjM="),
    ("hash", "at 0x7f3a21", "at 0x9b00ff"),
    ("path", "cwd: /tmp/agent-x7f", "cwd: /tmp/agent-k2d"),
    ("path", "Folder ~/work/bay", "Folder ~/work/lane/dock"),
    ("path", r"In C:\depot\bay1 now", r"In C:\depot\bay2\x now"),
    ("path", "Open file: src/bay/app.py", "Open file: src/lane.py"),
    ("git state", " M src/bay.py", " M src/bay.py\n?? notes/n1.txt"),
    ("git state", "M src/bay.py", "D src/lane.py\nA src/dock.py"),
    ("git state", "On branch main\nnothing to commit, working tree clean", "On branch main\n M a.py"),
    ("git state", "Current branch: main", "Current branch: feature/x"),
    ("git state", "Status:\n(clean)", "Status:\n M a.py"),
    ("git state", "Recent commits:\n1a2b3c4 Fix bay", "Recent commits:\n9f8e7d6 Add lane\n1a2b3c4 Fix bay"),
    ("git state", "Your branch is up to date", "Your branch is ahead of 'origin/main' by 1 commit."),
    ("git state", "## main...origin/main", "## main...origin/main [ahead 1]"),
]
KEPT = [
    ("Answer in English.", "Answer in French."),
    ("Rule 3 comes first.", "Rule 4 comes first."),
    ("Use at most 5 tools.", "Use at most 6 tools."),
    ("Version 1.2.3", "Version 1.2.4"),
    ("Version 2.1.28", "Version 2.1.29"),
    ("You are claude-opus-4-1.", "You are claude-opus-4-5."),
    ("Model gpt-5.4", "Model gpt-5.5"),
    ("Margin 12", "Margin 14"),
    ("Mark 10 lanes", "Mark 11 lanes"),
    ("Decimal 10", "Decimal 12"),
    ("Read the sun chart", "Read the mon chart"),
    ("Print in 3D.", "Print in 2D."),
    ("   - pack the crate", "   - weigh the crate"),
    ("added crates are weighed", "added crates are sealed"),
    ("face the dock first", "face the lane first"),
    ("1024 tokens at most", "2048 tokens at most"),
    ("Changes to schemas: ask first", "Changes to schemas: never"),
    ("Status reports: be brief", "Status reports: be thorough"),
    ("read-file-from-disk-v2", "write-file-to-disk-v3"),
    ("Say yes and/or no", "Say yes or no"),
    ("Colour #ff8800", "Colour #00ff88"),
    ("At 09:00 be kind.", "At 09:30 be strict."),
    ("Today is 2026-11-03. Be kind.", "Today is 2026-11-04. Be strict."),
    ("Today is 2026-11-03.", "It is 2026-11-04 today."),
    ("The room number is 12.", "The room number is 12, or 13."),
]


@pytest.mark.parametrize(("kind", "before", "after"), MOVED)
def test_a_value_that_changes_by_itself_is_told_with_its_kind(kind: str, before: str, after: str) -> None:
    old, new = FRAME.format(before), FRAME.format(after)
    assert only_volatile(old, new)
    assert kind_of_change(old, new) == kind


@pytest.mark.parametrize(("before", "after"), KEPT)
def test_what_only_looks_like_one_is_text(before: str, after: str) -> None:
    assert not only_volatile(FRAME.format(before), FRAME.format(after))


def test_equal_texts_hold_no_change() -> None:
    assert not only_volatile("At 09:00", "At 09:00")
    assert changed_numbers("a 1", "a 1") is None


@pytest.mark.parametrize(
    ("before", "after", "places"),
    [
        ("used 4 of 9 at 09:00", "used 5 of 9 at 09:01", {0}),
        ("used 4 of 9 at 09:00", "used 4 of 8 at 09:00", {1}),
        ("used 4 of 9 at 09:00", "used 4 of 9 at 09:01", set()),
        ("used 4 of 9", "spent 5 of 9", None),
        ("used 4 of 9", "used 4", None),
    ],
)
def test_numbers_that_differ_are_told_by_their_place(before: str, after: str, places: set[int] | None) -> None:
    assert changed_numbers(before, after) == places
