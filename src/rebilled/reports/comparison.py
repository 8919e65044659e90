"""Two steps side by side: what `analyze diff` shows on a screen and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from rebilled.model import Divergence, Rates, Step, StepResult, TokenMethod, Usage, Verdict
from rebilled.providers.policy import policy_for
from rebilled.reports.json import divergence_object
from rebilled.reports.report import Options

BYTES_PER_TOKEN = 3.7
"""For bodies whose log reports no tokens: about what Claude and GPT models make of JSON and English (2026)."""


class Comparison(msgspec.Struct, frozen=True):
    """A step compared with an earlier one.

    before_name, after_name: what the user called them. told: the two were named by hand, so the earlier one need not
    be the one that the later continues. rates: dollars per token of the later step, None where it has no price.
    """

    before: Step
    after: Step
    before_name: str
    after_name: str
    verdict: Verdict
    rebilled_usd: float | None = None
    rates: Rates | None = None
    told: bool = True

    @property
    def identical(self) -> bool:
        """Whether both prompts and the parameters that a cache looks at are the same."""
        return not self.verdict.movers and self.added_messages == 0

    @property
    def added_messages(self) -> int:
        """How many messages the later step has more."""
        return self.after.history.depth - self.before.history.depth

    @property
    def usage(self) -> Usage | None:
        """The tokens that tell how many bytes are a token: the later step's, else the earlier one's."""
        return self.after.usage or self.before.usage

    @property
    def token_method(self) -> TokenMethod:
        """Where the figures in tokens come from."""
        if self.after.usage is not None:
            return "reported"
        return "calibrated" if self.before.usage is not None else "estimated"

    @property
    def tokens_per_byte(self) -> float:
        """Tokens of one byte of the prompt."""
        step = self.after if self.after.usage is not None else self.before
        if step.usage is None or not step.prompt_bytes:
            return 1 / BYTES_PER_TOKEN
        return step.usage.input_tokens / step.prompt_bytes

    @property
    def shared_prefix_bytes(self) -> int:
        """Bytes of tools, system and messages up to the first that differs; all of them where only more was added."""
        places = [found.prefix_offset for found in self.verdict.movers if found.prefix_offset is not None]
        return min(places, default=min(self.before.prompt_bytes, self.after.prompt_bytes))

    @property
    def shared_prefix_tokens(self) -> int:
        """The same in tokens."""
        return round(self.shared_prefix_bytes * self.tokens_per_byte)

    def tokens_behind(self, found: Divergence) -> int:
        """Tokens of the later step that stand behind a difference."""
        if self.after.usage is not None:
            return found.invalidated_tokens
        if found.section != "params":
            size = self.after.prompt_bytes - (found.prefix_offset or 0)
        else:
            size = self.after.history.size if found.group == "message_level" else self.after.prompt_bytes
        return max(0, round(size * self.tokens_per_byte))

    def potential_usd(self, tokens: int) -> float | None:
        """What this many tokens cost more when they are written or sent uncached than when they are read."""
        if self.rates is None:
            return None
        policy = policy_for(self.after)
        marked = policy.needs_marks and self.after.breakpoints
        hour = marked and all(mark.ttl_s >= 3600 for mark in self.after.breakpoints)
        rate = self.rates.cache_write_1h if hour else self.rates.cache_write_5m if marked else self.rates.uncached_input
        return tokens * (rate - self.rates.cache_read)


def compare_result(result: StepResult, before: Step, rates: Rates | None) -> Comparison:
    """The comparison of a step with the one it continues, as the report has it."""
    return Comparison(
        before=before,
        after=result.step,
        before_name=f"step {before.number}",
        after_name=f"step {result.step.number}",
        verdict=result.verdict,
        rebilled_usd=result.rebilled_usd,
        rates=rates,
        told=False,
    )


def diff_object(found: Comparison, options: Options) -> dict[str, Any]:
    """`rebilled.diff/1` of the contract."""
    verdict = found.verdict
    movers = [
        divergence_object(replace(mover, invalidated_tokens=found.tokens_behind(mover)), options)
        for mover in verdict.movers
    ]
    return {
        "schema": "rebilled.diff/1",
        "before": _side(found.before, found.before_name),
        "after": _side(found.after, found.after_name),
        "identical": found.identical,
        "divergence": movers[0] if movers else None,
        "movers": movers,
        "code": verdict.code,
        "cause": verdict.cause,
        "contributing": list(verdict.contributing),
        "confidence": verdict.confidence,
        "explanation": verdict.explanation,
        "remedy": verdict.remedy,
        "avoidable": verdict.avoidable,
        "shared_prefix_bytes": found.shared_prefix_bytes,
        "shared_prefix_tokens": found.shared_prefix_tokens,
        "rebilled_tokens": verdict.rebilled_tokens,
        "uncached_repeat_tokens": verdict.uncached_repeat_tokens,
        "rebilled_usd": found.rebilled_usd,
        "token_method": found.token_method,
    }


def _side(step: Step, name: str) -> Mapping[str, Any]:
    return {
        "name": name,
        "source": asdict(step.source),
        "provider": step.provider,
        "api": step.api,
        "model": step.model,
        "request_id": step.request_id,
        "response_id": step.reply.response_id,
    }
