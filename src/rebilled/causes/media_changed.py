"""An image, document or audio part of an old message is no longer the same.

What happened
    An attachment was sent as image data once and as a file name or a note from then on, was encoded or scaled anew,
    got a fresh signed URL, or was removed to save tokens.

Why it costs
    The part stands in an old message, often the first, and all behind it is written again. On Anthropic, adding or
    removing an image anywhere loses the messages' entries (prompt caching page, 2026-08-21). On OpenAI images and
    files are part of the prefix, and an image's `detail` has to be the same as well.

How to recognise it
    The first unequal block is an image, document, file or audio part on one side. The loss comes once, on the step
    after the picture was pasted, or at each step if URLs are signed anew.

Example
    step 11  {"messages":[{"role":"user","content":[{"type":"image","source":{...}},{"type":"text",...}]}]}
    step 12  {"messages":[{"role":"user","content":[{"type":"text","text":"[Image: bay12.png]"},{"type":"text",...}]}]}
                                                             ^ $.messages[0].content[0].type, byte 35 of messages

What to change
    Encode once and keep the result with the message, or upload once and keep the file id:

        {"type": "image", "source": {"type": "file", "file_id": FILE_ID}}

    If the picture shall not stay in the history, do not send it in the main run: describe it in a side call and add
    the description. Give signed URLs a lifetime longer than the run.

Known limits
    Media are compared by what the body holds. A URL that stays the same although the picture behind it changed
    looks equal; two URLs of one picture look different, and whether a provider hashes the URL or the content is not
    documented. Logs often cut base64 data, so that two pictures can look the same.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.causes.telling import is_media
from rebilled.evidence import Evidence


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    if evidence.starts or not evidence.differs("messages") or not evidence.in_range("messages"):
        return None
    before, after = evidence.first_blocks()
    if not is_media(before) and not is_media(after):
        return None
    what = (
        "was replaced" if is_media(before) and not is_media(after) else "came in" if not is_media(before) else "changed"
    )
    return f"An image, document or other media block {what} in the history."


CAUSE = Cause(
    code="RB506",
    name="media_changed",
    title="An image or file in the history changed",
    section="messages",
    group=8,
    avoidable=True,
    explanation=(
        "An image, document or other attachment of an old message was replaced, re-encoded or removed. The content "
        "behind it is billed again."
    ),
    remedy=(
        "Keep attachments in the history as they were first sent, with the same bytes, the same reference and the "
        "same detail."
    ),
    doc=__doc__ or "",
    applies=applies,
)
