"""The response format or its schema changed, and cached tokens were lost.

What happened
    `text`, `response_format`, `output_config.format` or Gemini's `responseSchema` differs: the last step of an
    agent asks for JSON, a schema is generated per question, `text.verbosity` was changed.

Why it costs
    A schema is part of what the model reads. OpenAI's older guide places it before the system message, and its
    guide of 2026-09-20 lists `text.format` and `text.verbosity` among the settings that change the rendered prefix.
    Anthropic's page on structured outputs says that another `output_config.format` invalidates the cache of the
    conversation (quoted about 2026-09). So most of the prompt may be written again.

How to recognise it
    Contents are equal up to the new messages, only the format differs, and the read drops, often at the last step
    of each run.

Example
    step 11  {"text":{"format":{"type":"text"}}}
    step 12  {"text":{"format":{"type":"json_schema","name":"report",...}}}
                                        ^ $.text, byte 27 of message_level

What to change
    Send the format from the first step on, if the model can work under it. Or add a tool from the start that takes
    the final result as its input:

        {"name": "submit_report", "input_schema": REPORT_SCHEMA}

    Or ask for JSON in the last message and check it in code. Generate a schema once and send the same bytes each
    time.

Known limits
    How much is lost is not documented exactly: for Anthropic the tools and the system prompt may or may not
    survive. The usage says what happened. For Gemini it is not documented at all. The order of keys in a response
    schema is not compared, since no source says whether it counts; should it count, the loss ends in RB901.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.causes.telling import messages_cached, part_changed, tell_parameter
from rebilled.evidence import Evidence


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    if not messages_cached(evidence):
        return None
    names: tuple[str, ...] = ("text", "response_format", "generationConfig.responseSchema")
    if part_changed(evidence, "output_config", "format", inside=True):
        names = (*names, "output_config")
    return tell_parameter(evidence, "message_level", names, "{name} changed from {old} to {new}.")


CAUSE = Cause(
    code="RB403",
    name="output_format_changed",
    title="The output format changed",
    section="params",
    group=7,
    avoidable=True,
    explanation=(
        "The response schema or text format differs from the step before. Providers render it into the front of the "
        "prompt, so cached content behind it is billed again."
    ),
    remedy="Use one format for the whole run, or ask for JSON in the last message and validate it yourself.",
    doc=__doc__ or "",
    applies=applies,
)
