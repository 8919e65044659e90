"""A tool kept its name but its description or schema changed.

What happened
    Something that changes was built into a tool's definition: a session URL, a working directory, a date, a count,
    the list of files or agents that exist now, a warning that is appended after the tool has failed. Or a server
    was upgraded while the run was going on.

Why it costs
    A description looks like configuration, but for the cache it is the first text of the prompt. One byte there
    ends the match; the other tools, the system prompt and the whole history are written again. A value that changes
    at every step means no cache at all; one that changes on resume means one full write per resume.

How to recognise it
    The same tool names in the same order, one of them with another text. `json_path` says which field. If the
    change is a number, a URL or a path, it was put in by code.

Example
    step 11  {"tools":[{"name":"bash","description":"Runs a command. Logs: /s/7f3a21",...}]}
    step 12  {"tools":[{"name":"bash","description":"Runs a command. Logs: /s/c90e44",...}]}
                                                                              ^ $.tools[0].description, byte 55 of tools

What to change
    Keep definitions free of run time values:

        DESCRIPTION = "Runs a command. The first result names the log folder."
        # not: f"Runs a command. Logs: {log_url}"

    Report a failing tool in its own result, not in its description. Give the list of what exists now in the last
    user message, or through a tool that lists it. Put a tool whose text must change at the end of the list: then at
    least the tools before it are read, if a breakpoint ends there. Deploy new tool servers between runs.

Known limits
    The verdict does not say whether the edit was meant; a deployment looks like a leak of a clock, except that it
    happens once. If several tools changed, the first is named and the others are listed as movers. Changes in tools
    with `defer_loading: true` cost nothing and are not shown.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.evidence import Evidence


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    mine, theirs = evidence.before.step.tools, evidence.after.step.tools
    if mine.digest == theirs.digest or not evidence.in_range("tools"):
        return None
    found = evidence.first("tools")
    place = f" at {found.json_path}" if found is not None else ""
    name = (found.tool if found is not None else None) or "a tool"
    return f"The definition of {name} changed{place}."


CAUSE = Cause(
    code="RB204",
    name="tool_text_changed",
    title="A tool's description or schema was edited",
    section="tools",
    group=5,
    avoidable=True,
    explanation=(
        "One tool has the same name but another description or schema. It stands at the very front of the prompt, so "
        "everything behind the edited byte is billed again."
    ),
    remedy="Take what varies out of the description, and hand it over in the messages or in the tool's result.",
    doc=__doc__ or "",
    applies=applies,
)
