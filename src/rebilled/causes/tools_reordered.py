"""The same tools, each unchanged, stand in another order.

What happened
    Both steps carry the same set of tool definitions, byte for byte, in two orders. Nobody edited anything. The
    list was put together anew, by something with no fixed order: a hash map (Go shuffles its iteration on purpose),
    a set, several MCP servers merged in the order in which they happened to answer, a database query without ORDER
    BY.

Why it costs
    The prompt is tools, then system, then messages, and a cache matches from the front. A swap at the second tool
    leaves at most one tool to read, and on Anthropic not even that, as entries end only at breakpoints. The tools
    may be small; what stands behind them, the system prompt and the whole history, is not, and all of it is written
    again.

How to recognise it
    `cache_read_tokens` drops to about nothing on steps where nothing was changed, often at random, often only in
    production where the tool servers are real. Sorted by name the two lists are equal; as sent they are not.

Example
    step 11  {"tools":[{"name":"mcp__jira__add_comment",...},{"name":"mcp__jira__create_issue",...}]}
    step 12  {"tools":[{"name":"mcp__jira__create_issue",...},{"name":"mcp__jira__add_comment",...}]}
                                           ^ $.tools[0].name, byte 20 of tools

What to change
    In the client, where the lists of all servers come together:

        tools = sorted(tools, key=lambda tool: tool["name"])        # OpenAI Chat: tool["function"]["name"]

    Compare by code point, as `sorted` does, not by locale: two hosts may collate differently. Fetch the list once
    per run, not before each step. MCP servers of revision 2026-07-28 say in `ttlMs` for how long a list may be
    kept, and announce changes with `notifications/tools/list_changed`.

    In a server, sort before you answer `tools/list`. The same revision asks for a deterministic order (SHOULD), and
    gives prompt caches as a reason; any fixed order will do.

    A deliberate order is fine too, if it is the same each time. A test for it: build the list twice, in two
    processes, and compare the bytes.

Known limits
    If one tool was also edited in the same step, the set is no longer the same and the verdict is RB202, RB203 or
    RB204. Tools with `defer_loading: true` are outside the cached prefix and are not looked at. The log shows the
    merged list only: which server shuffled is told from the `mcp__server__` prefix of names where there is one. No
    provider is known to sort tools by itself; should one do so, the usage shows no loss and the verdict is RB001.
"""

from __future__ import annotations

from collections import Counter

from rebilled.causes.cause import Cause
from rebilled.causes.telling import join, moved_servers, tell_order, tool_marks
from rebilled.evidence import Evidence


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    mine, theirs = evidence.before.step.tools, evidence.after.step.tools
    if mine.digest == theirs.digest or not evidence.in_range("tools"):
        return None
    old, new = (Counter(mark for _, mark in tool_marks(prompt)) for prompt in (evidence.before, evidence.after))
    if old != new:
        return None
    return tell_order(*names(evidence))


def order_kind(evidence: Evidence) -> str | None:
    """`within_server`, `between_servers` or `both`."""
    moved, merged = moved_servers(*names(evidence))
    return ("both" if merged else "within_server") if moved else "between_servers"


def advise(evidence: Evidence) -> str | None:
    """Where to sort: in the server that moved, or where the lists are merged."""
    moved, _ = moved_servers(*names(evidence))
    servers = [name for name in moved if name]
    if not moved:
        return "Merge the lists of the servers in a fixed order, not in the order in which they answer."
    if not servers:
        return None
    whose = f"server{'s' if len(servers) > 1 else ''} {join(servers)}"
    return f"Sort the tools of {whose} by name, in the server or just before the request is built, and keep that list."


def names(evidence: Evidence) -> tuple[list[str], list[str]]:
    """The tools' names before and now, in order."""
    before, after = ([name for name, _ in tool_marks(prompt)] for prompt in (evidence.before, evidence.after))
    return before, after


CAUSE = Cause(
    code="RB201",
    name="tools_reordered",
    title="The tools came in another order",
    section="tools",
    group=5,
    avoidable=True,
    explanation=(
        "The same tools were sent in another order. Tools are the first thing in the prompt, so everything behind the "
        "first one that moved no longer matches and is billed again."
    ),
    remedy="Sort the tools by name just before the request is built, and keep the sorted list for the whole run.",
    doc=__doc__ or "",
    applies=applies,
    advice=advise,
    detail=order_kind,
)
