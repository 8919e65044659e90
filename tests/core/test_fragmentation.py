"""Tool sets of callers that each have their own: counted, billed, and what one for all would have saved."""

from __future__ import annotations

import importlib.util
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import rebilled
from builders import CHAT, GEMINI, Talk, analysed, assistant, shuffled, step, tools, user, words
from rebilled.analysis import Analysis
from rebilled.analysis import analyze as analyze_trace
from rebilled.fragmentation import Fragmentation, ToolTokens
from rebilled.model import Record
from rebilled.pricing import Prices
from rebilled.selection import Selection, select

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "sample_traces" / "three-tenants.jsonl"
ABC, ABD = tools("a", "b", "c", size=3000), tools("a", "b", "d", size=3000)


def talk(number: int, listed: Any, **fields: Any) -> Talk:
    """A conversation of its own, with marks at the end of the tools, of the system prompt and of the prompt."""
    opening = user(f"task {number}: {words(80, str(number))}")
    return Talk(tools=tuple(listed), turns=(opening,), marks=("tools", "system", "last"), **fields)


def of(*records: Record) -> list[Fragmentation]:
    return analysed(records).fragmentation


def one(*records: Record) -> Fragmentation:
    (found,) = of(*records)
    return found


# ---- what is counted -------------------------------------------------------------------------------------------------


def test_two_callers_with_tools_of_their_own_are_two_sets() -> None:
    found = one(
        step(talk(1, ABC, meta={"tenant": "acme"}), at=0),
        step(talk(2, ABD, meta={"tenant": "birch"}), at=60),
        step(talk(3, ABC, meta={"tenant": "acme"}), at=120, read=2000),
    )
    assert (found.by, found.owners, found.steps, found.model) == ("tenant", 2, 3, "claude-sonnet-5")
    rows = {each.names: (each.tools, each.steps, each.starts, each.warm_starts, each.warm) for each in found.sets}
    assert rows == {("acme",): (3, 2, 2, 1, True), ("birch",): (3, 1, 1, 0, False)}
    assert found.shared.tools == 4
    assert found.shared.several == 0


def test_callers_with_the_same_tools_share_a_set() -> None:
    logged = [("acme", ABC), ("birch", ABC), ("cedar", ABD)]
    found = one(*(step(talk(at, own, meta={"user": who}), at=60 * at) for at, (who, own) in enumerate(logged)))
    assert [(each.owners, each.names) for each in found.sets] == [(2, ("acme", "birch")), (1, ("cedar",))]


def test_tool_with_two_definitions_is_said_and_the_one_most_steps_send_is_taken() -> None:
    other = (*ABC[:2], tools("c", size=5000)[0])
    found = one(*(step(talk(at, own), at=60 * at) for at, own in enumerate([ABC, ABC, other])))
    assert (len(found.sets), found.shared.tools, found.shared.several) == (2, 3, 1)
    assert found.shared.added_tokens < 0


def test_many_callers_are_counted_and_the_first_are_named() -> None:
    logged = [step(talk(at, ABC, meta={"tenant": f"t{at}"}), at=60 * at) for at in range(30)]
    found = one(*logged, step(talk(99, ABD, meta={"tenant": "last"}), at=9000))
    largest = max(found.sets, key=lambda each: each.owners)
    assert (largest.owners, len(largest.names), largest.names[0]) == (30, 10, "t0")


def test_warmth_is_told_by_what_was_reported_else_by_the_rules() -> None:
    told = one(
        step(talk(1, ABC), at=0), step(talk(2, ABC), at=60), step(talk(3, ABD), at=90, usage=False)
    )  # the second could have read, and did not
    assert [each.warm_starts for each in told.sets] == [0, 0]
    silent = one(
        step(talk(1, ABC), at=0),
        step(talk(2, ABD), at=30),
        step(talk(3, ABC), at=60, usage=False),
    )
    assert sum(each.warm_starts for each in silent.sets) == 1


# ---- silent ----------------------------------------------------------------------------------------------------------


def grown(own: Any, later: Any) -> list[Record]:
    """A run whose tools are others at its second step."""
    first = talk(1, own)
    second = first.grown(assistant("well"), user("go on")).with_(tools=tuple(later))
    return [step(first, at=0), step(second, at=30), step(second.grown(assistant("so"), user("more")), at=60)]


@pytest.mark.parametrize(
    "records",
    [
        [step(talk(1, ABC)), step(talk(2, ABC), at=60)],
        [step(talk(1, ABC)), step(talk(2, shuffled(ABC, 2, 0, 1)), at=60)],
        [step(talk(1, ABC)), step(talk(2, ()), at=60), step(talk(3, ABC), at=90)],
        [step(talk(1, ())), step(talk(2, ()), at=60)],
        [step(talk(1, ABC)), step(talk(2, ABD, model="claude-opus-4-5"), at=60)],
        [step(talk(1, ABC)), step(talk(2, ABD, api=CHAT, model="claude-sonnet-4-5"), at=60)],
        [step(talk(1, ABC))],
        grown(ABC, ABD),
        grown(ABC, (*ABC, *tools("d"))),
        grown(ABC, shuffled(ABC, 1, 2, 0)),
    ],
    ids=["same", "shuffled", "without_tools", "no_tools", "models", "apis", "one", "swapped", "added", "moved"],
)
def test_trace_in_which_no_two_runs_have_other_tools_has_no_fragmentation(records: list[Record]) -> None:
    assert of(*records) == []


def test_trace_without_bodies_has_none() -> None:
    logged = [step(talk(at, own, meta={"session": "s"}), at=60 * at) for at, own in enumerate([ABC, ABD])]
    analysis = analysed([replace(each, body=None) for each in logged])
    assert len(analysis.results) == 2
    assert analysis.fragmentation == []


@pytest.mark.parametrize("name", ["mcp-tools-reshuffled", "openai-schema-keys", "clock-in-system-prompt", "idle-gaps"])
def test_sample_whose_tools_only_move_has_none(name: str) -> None:
    assert rebilled.analyze(ROOT / "sample_traces" / f"{name}.jsonl").inner.fragmentation == []


def test_tools_that_move_in_a_run_are_counted_with_its_set() -> None:
    found = one(*grown(ABC, shuffled(ABC, 2, 1, 0)), step(talk(2, ABD), at=90))
    assert sorted((each.variants, each.steps) for each in found.sets) == [(1, 1), (2, 3)]


# ---- dollars ---------------------------------------------------------------------------------------------------------


@lru_cache
def sample() -> Analysis:
    return analyze_trace(rebilled.read(SAMPLE), Prices.load(None))


@lru_cache
def script() -> Any:
    spec = importlib.util.spec_from_file_location("make_sample_traces", ROOT / "scripts" / "make_sample_traces.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_what_one_set_for_all_saves_is_what_the_same_gateway_pays_less_with_one() -> None:
    """The sample's own cache bills the trace again with every tenant sent the tools of all."""
    made = script()
    apart, together = (made.three_tenants(made.MarkedCache(), shared=shared).truth()["usd"] for shared in (False, True))
    (found,) = sample().fragmentation
    assert (found.by, found.owners, len(found.sets), found.shared.tools) == ("user", 3, 3, 46)
    assert found.shared.saves_usd == pytest.approx(apart - together, rel=0.01)
    assert found.shared.low_usd is not None
    assert found.shared.high_usd is not None
    assert found.shared.low_usd <= apart - together <= found.shared.high_usd
    assert [(each.starts, each.warm) for each in found.sets] == [(3, False)] * 3


def test_one_set_for_agents_that_share_little_costs_more_and_says_so() -> None:
    found = rebilled.analyze(ROOT / "sample_traces" / "two-agents-and-a-side-query.jsonl").inner.fragmentation
    assert [(each.shared.saves_usd or 0.0) < -0.001 for each in found] == [True]
    assert found[0].shared.added_tokens > 0


def test_caches_of_different_accounts_are_not_shared_by_one_set() -> None:
    def records(*accounts: str) -> list[Record]:
        logged = [(ABC, accounts[0]), (ABD, accounts[1])] * 3
        return [
            step(talk(at, own, meta={"workspace": account, "tenant": own[2].name}), at=400.0 * at)
            for at, (own, account) in enumerate(logged)
        ]

    apart, alike = one(*records("w1", "w2")), one(*records("w1", "w1"))
    assert (apart.shared.saves_usd or 0.0) <= 0
    assert len(apart.sets) == len(alike.sets) == 2


def test_model_without_a_price_has_tokens_and_no_dollars() -> None:
    found = one(*(step(talk(at, own, model="unpriced"), at=60 * at) for at, own in enumerate([ABC, ABD])))
    assert found.billed.total > 0
    assert (found.billed.written_usd, found.shared.saves_usd, found.shared.share) == (None, None, None)


def test_trace_without_usage_has_sets_and_no_tokens() -> None:
    found = one(*(step(talk(at, own), at=60 * at, usage=False) for at, own in enumerate([ABC, ABD])))
    assert (found.billed, found.shared.saves_usd, found.shared.added_tokens) == (ToolTokens(), None, 0)
    assert all(each.tokens > 0 for each in found.sets)


def test_order_that_moved_too_is_told_apart() -> None:
    records = [step(talk(at, own), at=400.0 * at) for at, own in enumerate([ABC, ABD])]
    moved = talk(7, ABC)
    for at in range(4):
        records.append(step(moved, at=1000.0 + 30 * at))
        turned = shuffled(ABC, *((2, 0, 1), (1, 0, 2), (0, 2, 1), (2, 1, 0))[at])
        moved = moved.grown(assistant(f"so {at}"), user("and then?")).with_(tools=turned)
    found = one(*records)
    assert found.shared.order_usd is not None
    assert found.shared.order_usd > 0
    assert one(*records[:2], records[2]).shared.order_usd == 0


def test_selection_counts_its_own_steps_and_no_others() -> None:
    whole = sample()
    (found,) = select(whole, Selection(until=whole.results[9].step.started_at)).fragmentation
    assert (found.steps, sum(each.steps for each in found.sets)) == (9, 9)
    assert select(whole, Selection(until=whole.results[3].step.started_at)).fragmentation == []


def test_models_are_told_apart_the_dearest_first() -> None:
    dear = [
        step(talk(at, tools(*names, size=9000), model="claude-opus-4-5"), at=at)
        for at, names in enumerate(("ab", "cd"))
    ]
    cheap = [
        step(talk(9 + at, tools(*names), model="claude-haiku-4-5"), at=9 + at) for at, names in enumerate(("ab", "cd"))
    ]
    assert [each.model for each in of(*cheap, *dear)] == ["claude-opus-4-5", "claude-haiku-4-5"]


@pytest.mark.parametrize("api", [CHAT, GEMINI])
def test_uncached_tools_of_other_apis_are_counted_as_such(api: str) -> None:
    found = one(*(step(talk(at, own, api=api), at=60 * at) for at, own in enumerate([ABC, ABD])))
    assert found.billed.written == 0
    assert found.billed.uncached == sum(each.tokens for each in found.sets)


# ---- laws ------------------------------------------------------------------------------------------------------------

NAMES = st.lists(st.sampled_from("abcdefgh"), min_size=0, max_size=5, unique=True)
CALLS = st.lists(
    st.tuples(st.integers(0, 4), NAMES, st.integers(0, 3), st.floats(0, 1), st.floats(0, 1), st.booleans()),
    min_size=1,
    max_size=12,
)


def recorded(calls: list[tuple[int, list[str], int, float, float, bool]]) -> list[Record]:
    """Calls of several conversations and tenants, with any tools and any split of their input."""
    found = []
    for at, (conversation, names, tenant, read, write, usage) in enumerate(calls):
        asked = talk(conversation, tools(*names, size=600), meta={"tenant": f"t{tenant}"})
        reads = int(asked.tokens * read)
        writes = int((asked.tokens - reads) * write)
        rest = asked.tokens - reads - writes
        found.append(step(asked, at=100.0 * at, read=reads, write=writes, rest=rest, usage=usage))
    return found


@given(CALLS)
def test_tokens_are_conserved_and_shares_sum(calls: list[tuple[int, list[str], int, float, float, bool]]) -> None:
    analysis = analysed(recorded(calls))
    for found in analysis.fragmentation:
        members = [r.step for r in analysis.results if r.step.tools.blocks and r.step.model == found.model]
        assert len(found.sets) >= 2
        assert sum(each.steps for each in found.sets) == found.steps == len(members)
        whole = ToolTokens()
        for each in found.sets:
            billed = each.billed
            assert min(billed.read, billed.written, billed.uncached) >= 0
            assert billed.total <= each.tokens * each.steps
            assert 0 <= each.warm_starts <= each.starts <= each.steps
            assert 1 <= each.owners <= found.owners
            whole += billed
        assert whole == found.billed
        reported = [step.usage for step in members if step.usage is not None]
        assert whole.total <= sum(usage.input_tokens for usage in reported)
        assert whole.read <= sum(usage.cache_read_tokens for usage in reported)
        assert whole.written <= sum(usage.cache_write_tokens for usage in reported)
        shares = sum(found.share(each) for each in found.sets)
        assert shares == pytest.approx(1.0 if whole.unread else 0.0)
        paid = sum(r.cost.total_usd for r in analysis.results if r.cost is not None)
        assert whole.written_usd is not None
        assert whole.written_usd <= paid + 1e-9
        assert found.shared.tools == len({block.name for step in members for block in step.tools.blocks})


@given(CALLS)
def test_trace_with_one_set_of_tools_has_no_fragmentation(
    calls: list[tuple[int, list[str], int, float, float, bool]],
) -> None:
    assert of(*recorded([(a, ["a", "b"], c, d, e, f) for a, _, c, d, e, f in calls])) == []


@given(CALLS, st.randoms(use_true_random=False))
def test_order_of_the_tools_makes_no_other_set(
    calls: list[tuple[int, list[str], int, float, float, bool]], dice: Any
) -> None:
    mixed = [(a, dice.sample(names, len(names)), c, d, e, f) for a, names, c, d, e, f in calls]
    before, after = (of(*recorded(each)) for each in (calls, mixed))
    assert [[each.steps for each in found.sets] for found in before] == [
        [each.steps for each in found.sets] for found in after
    ]
