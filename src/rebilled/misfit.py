"""Why a step's reported cache read is not the predicted one, as far as the evidence tells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec

from rebilled.lineage import lifetime
from rebilled.model import Outcome, Step, StepResult, Usage
from rebilled.providers.engine import Engine, engine_for

REASONS = {
    "exact": "predicted to the token",
    "outside": "needs an entry written outside the recording",
    "several_runs": "the provider ran the prompt several times in one call",
    "random_miss": "an implicit cache that promises nothing; its average is predicted",
    "rounding": "within one step of the provider's own counting",
    "expired_entry_hit": "an entry past its lifetime still hit",
    "farther_lookback": "found farther back than the rules look",
    "below_minimum": "shorter than the published minimum, and read",
    "hidden_tokens": "the input holds tokens that stand in no text of the request",
    "older_entry": "the newest entry was not found, an older one was",
    "nothing_found": "nothing was read, though the rules say that an entry stood there",
    "told_by_verdict": "the report's own verdict explains it",
    "estimated_size": "the entry was found; its size was estimated from bytes",
    "unknown": "nothing in the recording explains it",
}
"""What is believed about a difference, in a few words each."""

_CLOSE_TOKENS = 8
_CLOSE_SHARE = 0.02
_SIZE_SHARE = 0.3
_HIDDEN_TOKENS = 1000
_HIDDEN_FACTOR = 2.0
_NO_REASON = ("none", "divergence_without_cost", "first_request", "other_lineage", "server_side_unexplained")


class Sight(msgspec.Struct, frozen=True):
    """What is known of one step: what was predicted, what could have been read at most, and what was reported."""

    result: StepResult
    outcome: Outcome
    most: Outcome
    usage: Usage
    steps: Mapping[int, Step]

    @property
    def step(self) -> Step:
        """The step itself."""
        return self.result.step

    @property
    def engine(self) -> Engine:
        """The rules that hold for it."""
        return engine_for(self.step)

    @property
    def reported(self) -> int:
        """Cache reads as reported, in tokens."""
        return self.usage.cache_read_tokens

    @property
    def error(self) -> int:
        """Simulated minus reported cache reads, in tokens."""
        return self.outcome.read - self.reported

    def earlier(self) -> Iterator[Step]:
        """The steps that this one continues, nearest first."""
        at = self.steps.get(self.step.compare_to or 0)
        seen = {self.step.number}
        while at is not None and at.number not in seen:
            seen.add(at.number)
            yield at
            at = self.steps.get(at.compare_to or 0)

    def near(self, tokens: float, share: float = 0.0) -> bool:
        """Whether the reported read is as good as so many tokens."""
        grain = self.engine.interval_tokens if self.engine.mode == "prefix" else 1
        return abs(self.reported - tokens) <= max(_CLOSE_TOKENS, grain, share * tokens)


def reason_of(sight: Sight) -> tuple[str, str]:
    """The reason that is believed, one of REASONS, and what speaks for it in this case as a sentence."""
    if not sight.error:
        return "exact", ""
    for reason, told in _RULES:
        sentence = told(sight)
        if sentence:
            return reason, sentence
    return "unknown", "Nothing in the recording explains the difference."


def _several_runs(sight: Sight) -> str:
    if sight.step.reply.rounds:
        return (
            f"The prompt ran {sight.step.reply.rounds + 1} times for the provider's own tools; the usage adds them up."
        )
    if sight.outcome.runs > 1:
        return f"The input is about {sight.outcome.runs} times the prompt: the usage adds up several runs of it."
    return ""


def _random_miss(sight: Sight) -> str:
    rate = sight.engine.hit_rate
    if rate >= 1 or sight.reported > sight.most.read + _CLOSE_TOKENS:
        return ""
    return f"This cache finds about {rate:.0%} of what it holds, at random; the average was predicted."


def _rounding(sight: Sight) -> str:
    grain = sight.engine.interval_tokens
    if sight.engine.mode != "prefix" or abs(sight.error) > grain or not sight.reported or not sight.outcome.read:
        return ""
    return f"The difference is no more than the {grain:,} tokens in which this cache is filled."


def _expired_entry_hit(sight: Sight) -> str:
    writer = sight.steps.get(sight.most.entry or 0)
    if sight.error >= 0 or writer is None or not sight.near(sight.most.read, _SIZE_SHARE):
        return ""
    lived = _lifetime(writer)
    last = max((s.started_at for s in (writer, *sight.earlier()) if s.started_at is not None), default=None)
    if lived is None or last is None or sight.step.started_at is None or sight.step.started_at - last <= lived:
        return ""
    gap = sight.step.started_at - last
    return (
        f"The entry of step {writer.number} was read {gap:,.0f} s after its last use; its lifetime is {lived:,.0f} s."
    )


def _lifetime(step: Step) -> float | None:
    if step.breakpoints:
        return float(max(mark.ttl_s for mark in step.breakpoints))
    return lifetime(step, None)


def _farther_lookback(sight: Sight) -> str:
    writer = sight.most.entry
    if sight.error >= 0 or sight.engine.mode == "prefix" or writer is None or sight.outcome.entry == writer:
        return ""
    if not sight.near(sight.most.read, _SIZE_SHARE):
        return ""
    return f"The entry of step {writer} stands farther back than the {sight.engine.lookback} positions looked at."


def _below_minimum(sight: Sight) -> str:
    minimum = sight.engine.minimum_tokens
    if sight.error >= 0 or not 0 < sight.reported < minimum:
        return ""
    return f"It read {sight.reported:,} tokens, fewer than the {minimum:,} published as the shortest cached prefix."


def _hidden_tokens(sight: Sight) -> str:
    """The input grew by far more than its bytes did, as measured by the prompt of the step that it continues."""
    before = sight.steps.get(sight.step.compare_to or 0)
    usage = before.prompt_usage if before is not None else None
    if before is None or usage is None or not usage.input_tokens or not before.prompt_bytes:
        return ""
    rate = usage.input_tokens / before.prompt_bytes
    told = usage.input_tokens + max(0, sight.step.prompt_bytes - before.prompt_bytes) * rate * _HIDDEN_FACTOR
    more = sight.usage.input_tokens - told
    if more < _HIDDEN_TOKENS:
        return ""
    return (
        f"The input is {sight.usage.input_tokens - usage.input_tokens:,} tokens longer than that of step "
        f"{before.number}, far more than its texts are: where the provider's own tokens stand is not known."
    )


def _older_entry(sight: Sight) -> str:
    if sight.error <= 0 or not sight.reported:
        return ""
    for place, step in enumerate(sight.earlier()):
        usage = step.left_usage
        if usage is None:
            continue
        if place == 0 and sight.near(usage.cache_read_tokens):
            return (
                f"It read what step {step.number} had read: that step's own entry was not there yet, or not where "
                "this request went."
            )
        ends = usage.cache_read_tokens + usage.cache_write_tokens if usage.writes_reported else usage.input_tokens
        if place and (sight.near(usage.cache_read_tokens) or sight.near(ends)):
            return f"It read the entry of the older step {step.number}; the newer ones were not found."
    return _same_read(sight)


def _same_read(sight: Sight) -> str:
    """Another step of the recording that read as many tokens to the token points at one stored prefix."""
    numbers = [
        step.number
        for step in sight.steps.values()
        if step.number < sight.step.number
        and step.model == sight.step.model
        and step.usage is not None
        and step.usage.cache_read_tokens == sight.reported
    ]
    if not numbers:
        return ""
    return f"Step {numbers[-1]} read the same {sight.reported:,} tokens: a shorter entry was found than the newest one."


def _told_by_verdict(sight: Sight) -> str:
    """A verdict about time, place or parameters; what a moved byte costs is in the prediction already."""
    verdict = sight.result.verdict
    elsewhere = verdict.section in ("none", "params") and verdict.group > 1
    return verdict.explanation if sight.error > 0 and elsewhere and verdict.cause not in _NO_REASON else ""


def _nothing_found(sight: Sight) -> str:
    if sight.error <= 0 or sight.reported:
        return ""
    writer = f" that step {sight.outcome.entry} left" if sight.outcome.entry is not None else ""
    return f"Nothing was read of the prefix{writer}: it was dropped early, or this request went to another machine."


def _estimated_size(sight: Sight) -> str:
    writer = sight.steps.get(sight.outcome.entry or 0)
    if writer is None or not sight.reported or writer.left_usage is None:
        return ""
    left = writer.left_usage.cache_read_tokens + writer.left_usage.cache_write_tokens
    told = abs(sight.outcome.read - left) <= _CLOSE_TOKENS if writer.left_usage.writes_reported else False
    if told or not sight.near(sight.outcome.read, _SIZE_SHARE):
        return ""
    return f"The prefix shared with step {writer.number} was reported by no step; its tokens were told from its bytes."


_RULES: tuple[tuple[str, Callable[[Sight], str]], ...] = (
    ("several_runs", _several_runs),
    ("random_miss", _random_miss),
    ("rounding", _rounding),
    ("expired_entry_hit", _expired_entry_hit),
    ("below_minimum", _below_minimum),
    ("farther_lookback", _farther_lookback),
    ("hidden_tokens", _hidden_tokens),
    ("older_entry", _older_entry),
    ("told_by_verdict", _told_by_verdict),
    ("nothing_found", _nothing_found),
    ("estimated_size", _estimated_size),
)
"""In the order in which they are asked; the first that has evidence is believed."""
