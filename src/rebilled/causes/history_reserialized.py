r"""An old message says the same but is written with other bytes.

What happened
    The history was rebuilt from parsed objects, a database or another API's shape, and the result is equal in
    meaning only: keys of a tool call's input in another order, `1.0` for `1`, an escaped `\u00e9` for the letter, a
    trimmed line end, `"content": "text"` for a list with one text block, an empty list for a missing field.
    Resuming a saved conversation and passing through a gateway are the usual moments.

Why it costs
    The match ends at the first such byte. All later messages are written again, although nobody changed a word. If
    each step rebuilds the history differently, the messages are never read at all.

How to recognise it
    Both sides of the divergence look the same to a person. Parsed, and with keys sorted, they are equal.

Example
    step 11  {"messages":[{"role":"user","content":"Find it"},
              {"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"rg","input":{"q":"x","n":5}}]},...]}
    step 12  {"messages":[{"role":"user","content":"Find it"},
              {"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"rg","input":{"n":5,"q":"x"}}]},...]}
                                           $.messages[1].content[0].input, byte 118 of messages ^

What to change
    Store what went over the wire, and send that again:

        history.append(response_json["content"])       # as received, not model_dump() of a parsed copy
        save(json.dumps(history, ensure_ascii=False))  # and load without a detour through your own classes

    Tool arguments that arrive as a JSON string (OpenAI's `arguments`) stay that string; do not parse and dump them.
    If you must produce JSON, fix key order, separators and escapes in one function. Choose strings or blocks, once.

Known limits
    White space between JSON tokens and escapes at the level of the body itself never count, since parsing removes
    them; inside a string, such as `arguments` or a tool's result, they are content. Anthropic merges neighbouring
    messages of one role and takes a string as one text block (SDK types, 2026-11-30), so some of these changes cost
    nothing there: with full reads the verdict is RB001. Key order counts only inside free-form JSON.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.evidence import Evidence
from rebilled.model import Json
from rebilled.normal import normal
from rebilled.prompt import content_of


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    if evidence.starts or not evidence.differs("messages") or not evidence.in_range("messages"):
        return None
    mine, theirs = evidence.histories
    if len(theirs) < len(mine):
        return None
    for place, (old, new) in enumerate(zip(mine, theirs, strict=False)):
        if normal(old.value) != normal(new.value) and not (place == len(mine) - 1 and grown(old.value, new.value)):
            return None
    found = evidence.first("messages")
    place_ = f", first at {found.json_path}" if found is not None else ""
    return f"The history means the same, but is written in another way{place_}."


def grown(old: Json, new: Json) -> bool:
    """Whether the last message means the same and gained content blocks at its end."""
    mine, theirs = content_of(old), content_of(new)
    if len(theirs) <= len(mine):
        return False
    return all(normal(a) == normal(b) for a, b in zip(mine, theirs, strict=False))


CAUSE = Cause(
    code="RB501",
    name="history_reserialized",
    title="Old messages were written differently",
    section="messages",
    group=8,
    avoidable=True,
    explanation=(
        "An old message means the same but has other bytes: keys in another order, other escapes or white space, or a "
        "string instead of blocks. Everything from there on is billed again."
    ),
    remedy=(
        "Keep each message exactly as it was first sent or received, and append that; never rebuild history from "
        "parsed objects."
    ),
    doc=__doc__ or "",
    applies=applies,
)
