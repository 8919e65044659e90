"""The page about a list that holds still, run: three real servers, the real clients, a model API that keeps a cache."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import guide as pages
import pytest

import rebilled
from mcp import Client, StdioServerParameters
from rebilled.mcp import AsyncToolListCache, Policy, follow_changes, from_client


class Told:
    """What the page's commands printed and wrote."""

    def __init__(self, folder: Path, found: pages.Guide, printed: list[tuple[str, str]]) -> None:
        self.folder = folder
        self.printed = printed
        self.calls = found.api.calls
        self.before, self.held = (json_report(folder / name) for name in ("calls.jsonl", "held.jsonl"))


def json_report(path: Path) -> dict[str, Any]:
    return rebilled.analyze(path).report


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    folder = tmp_path_factory.mktemp("guide")
    with pages.guide(folder) as (found, _):
        yield Told(folder, found, pages.outputs(found))


def steady(page: str) -> str:
    """The page without the sizes of the logs, which hold times and ports of as many digits as they happen to have."""
    return re.sub(r"\(\d+\.\d kB\)", "(SIZE)", page)


def steps_of(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for run in report["runs"] for step in run["steps"]]


def test_page_shows_what_its_commands_print(told: Told) -> None:
    page = pages.PAGE.read_text(encoding="utf-8")
    assert len(told.printed) == len(re.findall(r"^```text$", page, re.MULTILINE))
    assert steady(page) == steady(pages.updated(page, told.printed)), "run python scripts/run_guide.py"


def test_every_call_is_in_the_log_with_the_usage_that_it_was_billed_by(told: Told) -> None:
    logged = [*pages.lines_of(told.folder / "calls.jsonl"), *pages.lines_of(told.folder / "held.jsonl")]
    assert [json.loads(line["request"]) for line in logged] == [call.body for call in told.calls]
    billed = [(call.read, call.written, call.rest) for call in told.calls]
    read = [
        (usage["cache_read_tokens"], usage["cache_write_tokens"], usage["uncached_input_tokens"])
        for usage in (step["usage"] for report in (told.before, told.held) for step in steps_of(report))
    ]
    assert read == billed


def test_shuffling_server_is_named_with_what_it_cost_and_no_other(told: Told) -> None:
    calls = told.calls[: len(pages.PLAN) + 1]
    lost = {number: calls[number - 2].read + calls[number - 2].written for number in pages.BUSY}
    rates = 3.75e-6 - 0.30e-6
    moved = [step for step in steps_of(told.before) if step["cause"] == "tools_reordered"]
    assert {step["number"]: step["rebilled_tokens"] for step in moved} == lost
    totals = told.before["totals"]
    assert totals["tool_churn"] == {
        "steps": len(pages.BUSY),
        "rebilled_tokens": sum(lost.values()),
        "rebilled_usd": pytest.approx(sum(lost.values()) * rates),
    }
    assert totals["rebilled_tokens"] == sum(lost.values())
    by_server: dict[str, int] = {}
    for row in told.before["by_tool"]:
        by_server[row["server"]] = by_server.get(row["server"], 0) + row["rebilled_tokens"]
    assert by_server == {"tickets": sum(lost.values())}
    (finding,) = told.before["findings"]
    parts = {part["server"]: (part["changes"], sorted(part["steps"])) for part in finding["servers"]}
    assert parts == {"tickets": (["order"], sorted(pages.BUSY)), "files": ([], []), "wiki": ([], [])}


def test_same_loop_with_the_list_held_still_bills_no_token_again(told: Told) -> None:
    totals = told.held["totals"]
    assert (totals["steps"], totals["rebilled_tokens"], totals["tool_churn"]["steps"]) == (11, 0, 0)
    assert told.held["findings"] == []
    before, held = told.calls[:11], told.calls[11:]
    assert [sum((call.read, call.written, call.rest)) for call in held] == [
        sum((call.read, call.written, call.rest)) for call in before
    ]
    assert [call.read for call in held[1:]] == [call.read + call.written for call in held[:-1]]
    assert len({json.dumps(call.body["tools"]) for call in held}) == 1
    assert len({json.dumps(call.body["tools"]) for call in before}) == len(pages.BUSY) + 1


def test_list_that_is_fetched_at_every_step_from_a_busy_server_holds_still_too(tmp_path: Path) -> None:
    held = next(code for code in pages.blocks("python") if code.startswith("# held.py"))
    with pages.guide(tmp_path) as (found, crowd):
        assert "policy=GATEWAY" in held
        held = held.replace("import GATEWAY", "import MODERN").replace("policy=GATEWAY", "policy=MODERN")
        (tmp_path / "held.py").write_text(held)
        crowd.set(True)
        found.run("python held.py held.jsonl")
        assert all(call.read for call in found.api.calls[1:])
    totals = json_report(tmp_path / "held.jsonl")["totals"]
    assert (totals["steps"], totals["rebilled_tokens"], totals["tool_churn"]["steps"]) == (11, 0, 0)


@pytest.mark.parametrize("listening", [True, False])
def test_cache_hears_of_a_change_through_the_real_client(listening: bool) -> None:
    """Over stdio at the newest revision; who does not listen goes on with what it has while that is fresh."""

    async def main() -> tuple[list[str], list[str]]:
        async def told(message: Any) -> None:
            cache.on_message(message)

        target = StdioServerParameters(command=sys.executable, args=[str(pages.SERVER), "tickets"])
        async with Client(target, message_handler=told) as client:
            cache = AsyncToolListCache(from_client(client), policy=Policy(min_ttl_ms=600_000))
            before = (await cache.get()).names
            if not listening:
                await client.call_tool("close", {"ticket": "for good"})
                return before, (await cache.get()).names
            async with client.listen(tools_list_changed=True) as changes:
                await client.call_tool("close", {"ticket": "for good"})
                async for _ in changes:
                    return before, (await cache.get()).names
        raise AssertionError("no change was told")

    before, after = asyncio.run(asyncio.wait_for(main(), 30))
    assert "close" in before
    assert ("close" in after) != listening


def test_cache_that_follows_the_real_client_hears_of_a_change() -> None:
    async def main() -> tuple[list[str], list[str]]:
        target = StdioServerParameters(command=sys.executable, args=[str(pages.SERVER), "tickets"])
        async with Client(target) as client:
            cache = AsyncToolListCache(from_client(client), policy=Policy(min_ttl_ms=600_000))
            following = asyncio.create_task(follow_changes(client, cache))
            await asyncio.sleep(0.3)
            before = (await cache.get()).names
            await client.call_tool("close", {"ticket": "for good"})
            for _ in range(200):
                after = (await cache.get()).names
                if after != before:
                    break
                await asyncio.sleep(0.02)
            following.cancel()
            return before, after

    before, after = asyncio.run(asyncio.wait_for(main(), 30))
    assert set(before) - set(after) == {"close"}
