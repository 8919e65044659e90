"""The system prompt has the same text, in other blocks or with other white space.

What happened
    The words are equal; the segmentation or the white space is not. One code path sends a string and another a list
    of blocks, two blocks are joined into one, a proxy trims the end, a line break was added between two parts.
    Often the normal step and a special one (compaction, resume, retry) build the prompt with different code.

Why it costs
    The prefix is compared as rendered, not as read by a person. At the first differing byte the match ends: the
    tools may still be read, the rest of the system prompt and all messages are written again.

How to recognise it
    Join all text of both system prompts and remove white space: the results are equal. The raw sections are not.

Example
    step 11  {"system":[{"type":"text","text":"Be brief."},{"type":"text","text":"Use Go."}]}
    step 12  {"system":[{"type":"text","text":"Be brief.Use Go."}]}
                                                        ^ $.system[0].text, byte 32 of system

What to change
    One function, called by every path that sends a request, with a result that is kept for the run:

        SYSTEM = [{"type": "text", "text": part} for part in parts]      # never .strip(), never "".join()

    Turn off prompt "clean-up" in proxies and gateways. If an API needs one string, use one string everywhere.

Known limits
    Anthropic's SDK types say that a string equals one text block, so string against one-block list may cost nothing
    there; if the usage shows no loss, the verdict is RB001. Whether providers join neighbouring blocks before they
    hash is not documented. A change of one space inside a code sample counts as reshaped, though it may matter to
    the model.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.evidence import Evidence


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    if not evidence.differs("system") or not evidence.in_range("system"):
        return None
    before, after = evidence.system_texts
    if "".join(before.split()) != "".join(after.split()):
        return None
    mine, theirs = len(evidence.before.system), len(evidence.after.system)
    cut = (
        f"it was cut into {mine} and is now cut into {theirs} parts" if mine != theirs else "only its white space moved"
    )
    return f"The system prompt says the same, word for word: {cut}."


CAUSE = Cause(
    code="RB301",
    name="system_reshaped",
    title="The system prompt was cut or joined differently",
    section="system",
    group=6,
    avoidable=True,
    explanation=(
        "The system prompt says the same as before, but in other blocks or with other white space. To the cache that "
        "is another prompt, and everything behind it is billed again."
    ),
    remedy="Build the system blocks in one place for all calls, and do not strip, join or split them on the way.",
    doc=__doc__ or "",
    applies=applies,
)
