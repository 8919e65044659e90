"""Which servers' tools moved, told from the requests alone."""

from __future__ import annotations

import pytest

from builders import Talk, analysed, call_and_result, shuffled, step, tools
from rebilled.model import Record
from rebilled.reports.server_lines import server_sentences
from rebilled.servers import changes_of, with_servers

A, B, C = (("a", b"1"), ("b", b"2"), ("c", b"3"))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((A, B), (A, B), []),
        ((), (), []),
        ((A, B), (B, A), ["order"]),
        ((A, B), (A, B, C), ["set"]),
        ((A, B, C), (C, A), ["order", "set"]),
        ((A, B), (A, ("b", b"9")), ["definitions"]),
        ((A, B), (("b", b"9"), A), ["order", "definitions"]),
        ((A,), (), ["set"]),
    ],
)
def test_changes_of_a_servers_tools(before: tuple[()], after: tuple[()], expected: list[str]) -> None:
    assert changes_of(before, after) == expected


def run(*lists: tuple[str, ...]) -> list[Record]:
    first = Talk(tools=tools(*lists[0]))
    records = [step(first, at=0)]
    for place, names in enumerate(lists[1:], 1):
        grown = first.grown(*(turn for number in range(place) for turn in call_and_result(number)))
        records.append(step(grown.with_(tools=tools(*names)), at=place * 20))
    return records


START = ("mcp__jira__add", "mcp__jira__find", "mcp__git__log", "read_file")


def test_servers_that_came_late_and_those_that_stood_still_are_told() -> None:
    found = with_servers(analysed(run(START, (*START, "mcp__notes__add", "mcp__notes__find"))))
    told = list(server_sentences(found.findings[0]))
    assert told[0].startswith("tools of `notes` came or went at step 2: $")
    assert told[1] == "`git` (1), `jira` (2), the tools of no server (1) stood still"


def test_servers_that_did_the_same_at_the_same_step_share_a_sentence() -> None:
    late = ("mcp__notes__add", "mcp__wiki__find", "mcp__wiki__open")
    told = list(server_sentences(with_servers(analysed(run(START, (*START, *late)))).findings[0]))
    assert told[0].startswith("tools of `notes` and `wiki` came or went at step 2: $")
    assert len(told) == 2


def test_server_that_moved_at_several_steps_has_them_all() -> None:
    jira = ("mcp__jira__add", "mcp__jira__drop", "mcp__jira__find")
    turned = [(*shuffled(jira, *order), "read_file") for order in ((0, 1, 2), (1, 0, 2), (2, 1, 0))]
    found = with_servers(analysed(run(*turned)))
    assert [(part.server, part.steps) for part in found.findings[0].servers if part.changes] == [("jira", (2, 3))]


def test_findings_about_other_things_have_no_servers() -> None:
    first = Talk(tools=tools(*START))
    second = first.grown(*call_and_result(1)).with_(system=("Another system prompt. " * 200,))
    found = with_servers(analysed([step(first, at=0), step(second, at=20)]))
    assert found.findings
    assert all(finding.servers == () for finding in found.findings)


def test_tools_of_no_server_alone_need_no_sentence() -> None:
    found = with_servers(analysed(run(("a", "b"), ("b", "a"))))
    assert list(server_sentences(found.findings[0])) == []
    assert [part.server for part in found.findings[0].servers] == [None]
