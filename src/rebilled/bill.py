"""What a step was billed: its rates, its dollars, and both by account."""

from __future__ import annotations

from typing import Protocol

from rebilled.ledger import extra_usd, own_usage, paid_ledger, token_ledger, with_others
from rebilled.model import Rates, Step, StepResult, Usage, Verdict
from rebilled.providers.policy import policy_for


class PriceList(Protocol):
    """What the pipeline asks of prices."""

    def rates(
        self,
        model: str,
        *,
        provider: str,
        at: float | None,
        prompt_tokens: int,
        service_tier: str | None = None,
        speed: str | None = None,
        batch: bool = False,
        inference_geo: str | None = None,
        endpoint: str | None = None,
    ) -> Rates | None:
        """Dollars per token for one call, None where it has no price."""
        ...

    @property
    def source(self) -> str:
        """Where the prices come from."""
        ...

    @property
    def as_of(self) -> str:
        """The day on which they were checked."""
        ...


def priced(step: Step, verdict: Verdict, prices: PriceList) -> StepResult:
    """A step with its verdict, its accounts and its dollars."""
    if step.usage is None:
        return StepResult(step, verdict)
    own = own_usage(step.usage, step.reply.others)
    needs_marks = policy_for(step).needs_marks
    tokens = token_ledger(own, verdict.rebilled_tokens or 0, needs_marks=needs_marks)
    everything = with_others(tokens, [(usage, None) for _, usage in step.reply.others])
    rates = rates_of(step, prices, own.input_tokens)
    others = [(usage, rates_of(step, prices, usage.input_tokens, model)) for model, usage in step.reply.others]
    if rates is None or any(found is None for _, found in others):
        return StepResult(step, verdict, everything)
    costs = [found.cost(usage) for usage, found in others if found is not None]
    return StepResult(
        step=step,
        verdict=verdict,
        tokens=everything,
        cost=sum(costs, rates.cost(own)),
        paid=with_others(paid_ledger(own, tokens, rates), others),
        rebilled_usd=_extra(own, verdict.rebilled_tokens, rates),
        cacheable_usd=_extra(own, verdict.uncached_repeat_tokens, rates),
    )


def _extra(usage: Usage, tokens: int | None, rates: Rates) -> float | None:
    return extra_usd(usage, tokens, rates) if tokens is not None else None


def rates_of(step: Step, prices: PriceList, prompt_tokens: int | None = None, model: str = "") -> Rates | None:
    """The dollars per token that a step was billed at; `model` names another one that was billed along with it."""
    if prompt_tokens is None:
        prompt_tokens = step.usage.input_tokens if step.usage is not None else 0
    endpoint = step.meta.get("endpoint")
    requested = step.params.scope.get("service_tier")
    tier = step.reply.service_tier or (requested if isinstance(requested, str) and requested != "auto" else None)
    speed = step.reply.speed or step.params.scope.get("speed")
    return prices.rates(
        model or (step.reply.model if step.reply.model and step.provider != "bedrock" else step.model),
        provider=step.provider,
        at=step.started_at,
        prompt_tokens=prompt_tokens,
        service_tier=tier,
        speed=speed if isinstance(speed, str) else None,
        inference_geo=step.reply.inference_geo,
        endpoint=endpoint if isinstance(endpoint, str) else None,
    )
