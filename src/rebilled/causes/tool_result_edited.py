r"""The result of an earlier tool call is no longer what it was.

What happened
    A clean-up replaced old results by a placeholder, cut them to a maximum length once they were old, or read a
    file anew. Some agents do that in the background after a pause or at a certain size; Anthropic's context editing
    does it on the server.

Why it costs
    The old result stands in the middle of the history. From its first changed byte on, all later messages are
    written again. To clear 5,000 tokens that would be read at a tenth of the price, 60,000 tokens behind them are
    written at 1.25. When results are cleared one by one, each step pays that.

How to recognise it
    The first unequal block is a `tool_result`, a `tool` message or a `function_call_output`, and the new text is
    shorter or a placeholder.

Example
    step 11  {"input":[{"role":"user","content":"Check bay 12"},{"type":"function_call","call_id":"c1","name":"ls",
              "arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"scale.log belt.log"}]}
    step 12  {"input":[{"role":"user","content":"Check bay 12"},{"type":"function_call","call_id":"c1","name":"ls",
              "arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"[cleared]"}]}
                                                $.input[2].output, byte 166 of messages ^

What to change
    Decide about size when the result is new:

        output = run(tool)
        if len(output) > 8_000:
            path = save(output)
            output = output[:4_000] + f"\n[cut; the whole text is in {path}]"

    Clear old results only in large batches, together with a compaction, or when the entry has expired anyway: after
    a pause longer than the lifetime it costs nothing extra.

Known limits
    Clearing makes the prompt smaller, which is worth something near the context limit; the figure holds only the
    price, not that gain. Server-side context editing leaves the body as it was and cannot be seen in a diff: such a
    loss ends in RB901. A result that differs only in key order or white space is RB501.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.causes.telling import is_tool_result
from rebilled.evidence import Evidence


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    if evidence.starts or not evidence.differs("messages") or not evidence.in_range("messages"):
        return None
    before, _ = evidence.first_blocks()
    pair = evidence.first_pair("messages")
    message = pair[0].value if pair is not None and pair[0] is not None else None
    if not is_tool_result(before) and not is_tool_result(message):
        return None
    found = evidence.first("messages")
    return f"An old tool result was changed{f' at {found.json_path}' if found is not None else ''}."


CAUSE = Cause(
    code="RB505",
    name="tool_result_edited",
    title="An old tool result was changed",
    section="messages",
    group=8,
    avoidable=True,
    explanation=(
        "The result of an earlier tool call was cleared, shortened or refreshed. Everything behind it in the history "
        "is billed again."
    ),
    remedy="Shorten a result before you send it the first time; if you must clear old ones, clear many at once.",
    doc=__doc__ or "",
    applies=applies,
)
