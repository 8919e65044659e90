"""The set of tool names differs from the step before.

What happened
    A tool came or went in the middle of a run: an MCP server connected late or dropped out, tools are switched on
    when a task seems to need them, a final or summarising call is sent with fewer tools or none, two modes with
    different tool sets take turns.

Why it costs
    The change sits in the first section. What is read ends there; the rest of the tools, the system prompt and all
    messages are written again. A tool appended at the end of the list saves the tools before it at best, if a
    breakpoint ended there. When sets take turns, each has an entry of its own, and both must be kept alive and
    extended separately.

How to recognise it
    The tool names of the two steps differ. Typical places: the first steps after start-up, the last step of a run,
    a compaction or title call that runs over the whole history with `tools` left out.

Example
    step 11  {"tools":[{"name":"read_file"},{"name":"run_tests"}]}
    step 12  {"tools":[{"name":"read_file"},{"name":"run_tests"},{"name":"browser_open"}]}
                                                                ^ $.tools[2], byte 41 of tools

What to change
    Wait until all servers have answered before the first step, then hold the list for the run. For calls that must
    not use tools, keep the list and forbid the use:

        "tools": TOOLS,                         # the same bytes as ever
        "tool_choice": {"type": "none"}         # Anthropic: loses the messages, keeps tools and system

    On OpenAI `tool_choice: "none"` and `allowed_tools` restrict use without touching the prefix (prompt caching
    guide, 2026-09-20).

    For large or late tools: Anthropic's tool search with `defer_loading: true` keeps definitions out of the prefix
    until they are found; `tool_addition` and `tool_removal` blocks in a mid-conversation system message (beta
    `mid-conversation-tool-changes-2026-07-01`; Bedrock Converse: toolAddition, toolRemoval) change the set at the
    end of the prompt. OpenAI has tool search and developer items with additional tools from GPT-6 on.

Known limits
    A renamed tool counts as one removed and one added. If the user installed something in the middle of a run, the
    change was wanted; it is still listed as avoidable, since it could have been appended. Only the definitions in
    the body are seen: a server-side toolset entry (such as `mcp_toolset`) that expands to other tools looks
    unchanged.
"""

from __future__ import annotations

from collections import Counter

from rebilled.causes.cause import Cause
from rebilled.causes.telling import tool_marks
from rebilled.evidence import Evidence


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    mine, theirs = evidence.before.step.tools, evidence.after.step.tools
    if mine.digest == theirs.digest or not evidence.in_range("tools"):
        return None
    before, after = ([name for name, _ in tool_marks(prompt)] for prompt in (evidence.before, evidence.after))
    old, new = Counter(before), Counter(after)
    if old == new:
        return None
    parts = [tell("added", list((new - old).elements())), tell("removed", list((old - new).elements()))]
    return f"{len(before)} tools became {len(after)}: {'; '.join(part for part in parts if part)}."


def tell(word: str, names: list[str]) -> str:
    """A short list of tool names, empty for none."""
    if not names:
        return ""
    rest = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{word} {', '.join(names[:3])}{rest}"


CAUSE = Cause(
    code="RB202",
    name="tools_set_changed",
    title="Tools were added or removed",
    section="tools",
    group=5,
    avoidable=True,
    explanation=(
        "The list of tools has other names than before. Tools stand in front of everything else, so the system prompt "
        "and the history behind the change are billed again."
    ),
    remedy=(
        "Send the same tools in every step of a run; restrict their use with `tool_choice` or load rare ones through "
        "tool search."
    ),
    doc=__doc__ or "",
    applies=applies,
)
