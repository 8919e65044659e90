"""The step was sent while the step that writes its prefix had not yet begun to answer.

What happened
    Several requests with the same beginning went out together: parallel subagents, a batch of questions about one
    document, a retry that did not wait. An entry can be read once the response of its writer begins (Anthropic,
    prompt caching page, 2026-08-21). Those that started before that found nothing.

Why it costs
    Each of n parallel requests writes the common prefix and none reads it: n writes at 1.25 instead of one write
    and n - 1 reads at a tenth or less.

How to recognise it
    A group of steps with start times within a few seconds, all with a like `cache_write_tokens` and a read of 0.
    Later steps with the same prefix do read it.

Example
    step 11  start 09:00:00.000  first token 09:00:04.000  read 0  write 7,927
    step 12  start 09:00:00.150  first token 09:00:04.250  read 0  write 7,927
    no byte differs in the shared prefix; step 12 started 3.85 s too early to read it

What to change
    Let one go ahead:

        first = await ask(tasks[0], on_first_token=ready.set)      # or a request with max_tokens=0
        await ready.wait()
        rest = await asyncio.gather(*(ask(task) for task in tasks[1:]))

    Waiting for the first token is enough, not for the whole answer. The shared part must end with a breakpoint
    before the tasks differ, or there is nothing to share (RB601). OpenAI offers `prewarm: true` (Responses, from
    GPT-5.6 on).

Known limits
    The time of the first token is seldom logged. Without it one second after the writer's start is assumed, and the
    verdict is `likely` at best. Clocks of two machines may differ by more than the gap. OpenAI does not say when an
    entry becomes readable. If speed matters more than price, sending all at once may be right.
"""

from __future__ import annotations

from rebilled.causes.cause import Cause
from rebilled.evidence import Evidence


def applies(evidence: Evidence) -> str | None:
    """What happened in this case, None where the cause does not apply."""
    late = evidence.before_first_token_s
    if late is None or late <= 0 or evidence.read_before:
        return None
    return (
        f"It started {late:.1f} s before the first byte of the response that wrote the entry: not yet there to be read."
    )


CAUSE = Cause(
    code="RB701",
    name="written_too_late",
    title="Sent before the entry could be read",
    section="none",
    group=10,
    avoidable=True,
    explanation=(
        "This step started before the step that writes the shared prefix had begun to answer, so the entry was not "
        "readable yet. The same prefix was written twice."
    ),
    remedy="Send one request first, wait for its first token, then send the others.",
    doc=__doc__ or "",
    applies=applies,
)
