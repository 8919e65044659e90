"""A trace beside probes: the right server is named with its fault, and what is not certain is not claimed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from builders import EVERY, MARKED, Talk, Tool, analysed, call_and_result, step, words
from rebilled.analysis import Analysis
from rebilled.mcp.joining import join
from rebilled.mcp.witness import Size, Witness, Word
from rebilled.model import Record, ServerPart
from rebilled.reports.json import report_object
from rebilled.reports.markdown import render as render_markdown
from rebilled.reports.report import Options
from rebilled.reports.terminal import render as render_terminal

JIRA = ("add_comment", "close_issue", "find_issues", "open_issue")
GIT = ("git_diff", "git_log", "git_show")
BUILT_IN = ("read_file", "run_shell")
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
FAULT = "returned its 4 tools in another order in 6 of 9 lists"


def one(name: str, size: int) -> Tool:
    return Tool(name, words(size, name), SCHEMA)


def sized(names: Sequence[str], base: int, prefix: str = "") -> list[Tool]:
    return [one(f"{prefix}{name}", base + 7 * place) for place, name in enumerate(names)]


def listed(*, prefix: bool = True) -> list[Tool]:
    jira, git = ("mcp__jira__", "mcp__git__") if prefix else ("", "")
    return [*sized(BUILT_IN, 300), *sized(JIRA, 400, jira), *sized(GIT, 500, git)]


def run(*lists: Sequence[Tool], **talk: Any) -> list[Record]:
    """A step with each of these tool lists, behind a first one with the first; all after a change miss everything."""
    found, turns = [], 0
    before: Sequence[Tool] | None = None
    current = Talk(tools=tuple(lists[0]), **talk)
    for place, tools in enumerate((lists[0], *lists)):
        read = current.tokens if before is not None and list(before) == list(tools) else 0
        if before is not None:
            turns += 1
            current = current.grown(*call_and_result(turns)).with_(tools=tuple(tools))
        automatic = talk.get("api") not in (None, *MARKED)
        rest = current.tokens - read if automatic else None
        found.append(step(current, at=place * 20, read=read, rest=rest))
        before = tools
    return found


def moved(tools: Sequence[Tool], *names: str) -> list[Tool]:
    """The tools with those of these names (their ends) in the opposite order."""
    places = [place for place, tool in enumerate(tools) if tool.name.endswith(names)]
    found = list(tools)
    for place, other in zip(places, reversed(places), strict=True):
        found[place] = tools[other]
    return found


def witness(name: str = "jira", tools: Sequence[Tool] = (), names: Sequence[str] = (), **words_: Word) -> Witness:
    chosen = tools or sized(JIRA, 400)
    sizes = tuple(Size(len(tool.description), len(json.dumps(SCHEMA, separators=(",", ":")))) for tool in chosen)
    said = words_ or {"order": Word("list.order", "fail", FAULT)}
    return Witness(name, f"{name}.json", "2026-11-30T09:00:00Z", 9, sizes, frozenset(names), said)


def part(analysis: Analysis, server: str | None) -> ServerPart:
    return next(part for part in analysis.findings[0].servers if part.server == server)


def text(analysis: Analysis) -> str:
    return " ".join(render_terminal(analysis, Options(width=400)).decode().split())


TOOLS = listed()
SHUFFLED = analysed(run(TOOLS, moved(TOOLS, *JIRA)))


# ---- the sentence ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", EVERY)
def test_server_its_fault_its_steps_and_their_dollars_are_named_on_every_api(api: str) -> None:
    joined = join(analysed(run(TOOLS, moved(TOOLS, *JIRA), api=api)), [witness()])
    jira = part(joined, "jira")
    assert (jira.changes, jira.steps, jira.tools) == (("order",), (3,), 4)
    assert jira.rebilled_usd is not None
    assert jira.rebilled_usd > 0
    assert f"server `jira` {FAULT}: this moved at step 3: $" in text(joined)


def test_servers_that_stood_still_are_listed_without_steps() -> None:
    joined = join(SHUFFLED, [witness()])
    assert [(found.server, found.changes) for found in joined.findings[0].servers] == [
        ("jira", ("order",)),
        ("git", ()),
        (None, ()),
    ]


def test_json_and_markdown_say_it_too() -> None:
    joined = join(SHUFFLED, [witness()])
    report = report_object(joined, Options())
    assert report["probes"][0] | {"note": ""} == {
        "probe": "jira",
        "source": "jira.json",
        "probed": "2026-11-30T09:00:00Z",
        "recorded": False,
        "tools": 4,
        "lists": 9,
        "server": "jira",
        "how": "name_and_sizes",
        "certain": True,
        "note": "",
    }
    told = report["findings"][0]["servers"][0]["probes"][0]
    assert told["check"] == "list.order"
    assert told["said"].startswith(f"server `jira` {FAULT}: this moved at step 3: $")
    assert FAULT in render_markdown(joined, Options(show_content="none")).decode().replace("\\", "")


def test_probe_that_saw_it_hold_still_points_at_the_client() -> None:
    word = Word("list.order", "pass", "kept its 4 tools in one order in 9 lists")
    assert "yet its tools moved at step 3" in text(join(SHUFFLED, [witness(order=word)]))


def test_fault_of_another_kind_is_not_blamed() -> None:
    word = Word("list.definitions_stable", "fail", "changed the definitions of 2 tools in 9 lists")
    joined = join(SHUFFLED, [witness(definitions=word)])
    assert part(joined, "jira").accusations == ()
    assert "No probe of server `jira` says why its tools moved at step 3" in text(joined)


def test_probe_of_a_server_that_stood_still_says_nothing() -> None:
    joined = join(SHUFFLED, [witness("git", sized(GIT, 500))])
    assert all(not found.accusations for found in joined.findings[0].servers)


def test_merge_in_another_order_is_no_servers_fault() -> None:
    merged = [*TOOLS[:2], *TOOLS[6:], *TOOLS[2:6]]
    joined = join(analysed(run(TOOLS, merged)), [witness()])
    assert all(not found.changes for found in joined.findings[0].servers)
    assert "No server moved its own tools" in text(joined)


def test_tools_that_went_are_those_of_their_server() -> None:
    word = Word("list.set_per_connection", "fail", "listed 3 to 4 tools on its connections, in 9 lists")
    joined = join(analysed(run(TOOLS, TOOLS[:5] + TOOLS[6:])), [witness(set=word)])
    assert part(joined, "jira").changes == ("set",)
    assert "listed 3 to 4 tools on its connections, in 9 lists: this moved at step 3" in text(joined)


def test_edited_definition_is_that_of_its_server() -> None:
    edited = [one(tool.name, 999) if tool.name.endswith("git_log") else tool for tool in TOOLS]
    joined = join(analysed(run(TOOLS, edited)), [witness()])
    assert part(joined, "git").changes == ("definitions",)
    assert part(joined, "jira").changes == ()


# ---- whose probe it is -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["jira", "JIRA", "@acme/mcp-server-jira", "mcp-jira", "jira-mcp-server", "jira_server.py"]
)
def test_name_of_a_package_is_the_servers(name: str) -> None:
    found = join(SHUFFLED, [witness(name)]).probes[0]
    assert (found.server, found.how, found.certain) == ("jira", "name_and_sizes", True)


def test_other_name_is_told_by_the_sizes_of_its_tools() -> None:
    found = join(SHUFFLED, [witness("atlassian")]).probes[0]
    assert (found.server, found.how, found.certain) == ("jira", "sizes", True)


def test_same_name_with_other_tools_is_not_certain() -> None:
    joined = join(SHUFFLED, [witness("jira", sized(JIRA, 900))])
    assert (joined.probes[0].server, joined.probes[0].certain) == ("jira", False)
    assert "perhaps another one of this name" in text(joined)


def test_sizes_that_fit_two_servers_are_not_told_apart() -> None:
    twins = [*sized(JIRA, 400, "mcp__jira__"), *sized(JIRA, 400, "mcp__bugs__")]
    joined = join(analysed(run(twins, moved(twins, "__open_issue", "__add_comment"))), [witness("atlassian")])
    assert (joined.probes[0].server, joined.probes[0].how) == (None, "ambiguous")
    assert all(not found.accusations for found in joined.findings[0].servers)


def test_probe_of_something_else_is_said_to_be_nobodys() -> None:
    joined = join(SHUFFLED, [witness("weather", sized(("now", "tomorrow"), 50))])
    assert (joined.probes[0].server, joined.probes[0].how) == (None, "none")
    assert "not found in this trace" in text(joined)


def test_two_probes_of_one_server_are_both_heard() -> None:
    again = Word("list.order", "pass", "kept its 4 tools in one order in 9 lists")
    joined = join(SHUFFLED, [witness(), witness("jira", order=again)])
    assert [found.certain for found in joined.probes] == [True, True]
    assert [found.result for found in part(joined, "jira").accusations] == ["fail", "pass"]


def test_recording_is_matched_by_the_names_of_its_tools() -> None:
    found = join(SHUFFLED, [witness("anything", sized(JIRA, 900), names=JIRA)]).probes[0]
    assert (found.server, found.how, found.certain) == ("jira", "names", True)


# ---- tools without a server in their names ---------------------------------------------------------------------------


PLAIN = listed(prefix=False)


@pytest.mark.parametrize("names", [(), JIRA])
def test_plain_tools_are_found_by_sizes_or_names(names: Sequence[str]) -> None:
    joined = join(analysed(run(PLAIN, moved(PLAIN, *JIRA))), [witness(names=names)])
    assert (joined.probes[0].server, joined.probes[0].how) == ("jira", "names" if names else "sizes")
    assert (part(joined, "jira").changes, part(joined, "jira").tools) == (("order",), 4)
    assert part(joined, None).changes == ()
    assert f"server `jira` {FAULT}: this moved at step 3" in text(joined)


def test_plain_tools_of_the_same_sizes_are_not_guessed() -> None:
    alike = [*PLAIN, *(one(f"copy_{tool.name}", len(tool.description)) for tool in PLAIN[2:6])]
    joined = join(analysed(run(alike, moved(alike, *JIRA))), [witness()])
    assert (joined.probes[0].how, joined.probes[0].server) == ("ambiguous", None)
    assert all(not found.accusations for found in joined.findings[0].servers)


def test_without_a_probe_nothing_is_said_of_probes() -> None:
    joined = join(SHUFFLED, [])
    assert joined.probes == ()
    assert "probe" not in text(joined)
