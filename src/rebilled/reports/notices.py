"""Lines of the screen on what providers say themselves, and on what they leave unsaid."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from rebilled.analysis import Analysis
from rebilled.causes.telling import duration
from rebilled.diagnosis import agrees, dropped, read_diagnosis
from rebilled.model import StepResult
from rebilled.providers.served import other_model, other_tier, server_tool_writes, terms_of
from rebilled.reports.amount import count, percent, steps, usd, whole
from rebilled.reports.plain import cut_middle, plain
from rebilled.storage import StoredContent

Row = tuple[str, str]
_MOST_NAMED = 3
_NAME_CELLS = 40
_LEAST_SHARE, _LEAST_USD = 0.01, 0.0001


def notices(analysis: Analysis) -> list[Row]:
    """A label and a sentence for each thing of that kind which there is in a trace."""
    results = analysis.results
    return [
        row
        for made in (_untold, _diagnosed, _dropped, _credited, _server_tools, _served, _terms, _charged)
        for row in made(results)
    ] + _stored(analysis.stored)


def _stored(contents: Sequence[StoredContent]) -> list[Row]:
    """The explicit caches that were made, and whether they have paid."""
    if not contents:
        return []
    tokens, readers = sum(one.tokens for one in contents), sorted({step for one in contents for step in one.steps})
    text = f"{whole(len(contents), 'content')} of {count(tokens)} tokens in explicit caches"
    if len(contents) == 1 and contents[0].kept_s is not None:
        text += f", kept {'' if contents[0].deleted else 'at most '}{duration(contents[0].kept_s)}"
    text += f", read by {whole(len(readers), 'step')}: " if readers else ", read by no step: "
    parts = [
        ("reads saved {}", _sum(one.saved_usd for one in contents)),
        ("storing cost {}", _sum(one.creation_usd for one in contents)),
        ("keeping {}", _sum(one.storage_usd for one in contents)),
    ]
    known = [form.format(usd(value)) for form, value in parts if value is not None]
    lacking = [form.split(" {")[0] for form, value in parts if value is None]
    text += ", ".join(known) + (", beside the bill" if known else "")
    if lacking:
        models = ", ".join(sorted({plain(one.model) or "a model without a name" for one in contents}))
        text += f"{'; ' if known else ''}the price of {' and '.join(lacking)} is not known for {cut_middle(models, 60)}"
    return [("stored", text)]


def _sum(values: Iterable[float | None]) -> float | None:
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)


def _untold(results: list[StepResult]) -> list[Row]:
    silent = [r for r in results if r.step.usage is not None and not r.step.usage.reads_reported]
    if not silent:
        return []
    where = whole(len(silent), "step") if len(silent) < len(results) else "any step"
    hint = " (vLLM does with --enable-prompt-tokens-details)" if any(r.step.provider == "vllm" for r in silent) else ""
    return [
        (
            "no reads",
            f"the provider does not say what {where} read from the cache{hint}: no loss can be told there, and all "
            "its input is priced as uncached",
        )
    ]


def _diagnosed(results: list[StepResult]) -> list[Row]:
    """How often the provider's own diagnosis and the verdicts agree, and the first step on which they do not."""
    told = []
    for result in results:
        said = read_diagnosis(result.step.reply.diagnosis)
        agreed = agrees(said, result.verdict) if said is not None else None
        if said is not None and agreed is not None:
            told.append((result, said.type, agreed))
    if not told:
        return []
    differing = [(result, kind) for result, kind, agreed in told if not agreed]
    text = f"its own diagnosis agrees on {len(told) - len(differing)} of {whole(len(told), 'step')}"
    if differing:
        result, kind = differing[0]
        more = f" and {len(differing) - 1} more" if len(differing) > 1 else ""
        text += (
            f"; it differs on step {result.step.number}{more}, where it says {plain(kind)} and the log shows "
            f"{plain(result.verdict.cause)}"
        )
    return [("provider", text)]


def _dropped(results: list[StepResult]) -> list[Row]:
    hit = [(r, dropped(r.step.reply.changed)) for r in results]
    hit = [(r, blocks) for r, blocks in hit if blocks]
    if not hit:
        return []
    total = sum(len(blocks) for _, blocks in hit)
    result, blocks = hit[0]
    return [
        (
            "provider",
            f"it took {whole(total, 'thinking block')} out of the prompts of {_steps(r for r, _ in hit)}; first "
            f"{plain(blocks[0].path)} of step {result.step.number}, {plain(blocks[0].reason)}",
        )
    ]


def _credited(results: list[StepResult]) -> list[Row]:
    redeemed = [r for r in results if r.step.reply.credit == "redeemed"]
    refused = [r for r in results if r.step.reply.credit not in (None, "redeemed")]
    rows = []
    if redeemed:
        read = sum(r.step.usage.cache_read_tokens for r in redeemed if r.step.usage is not None)
        rows.append(
            (
                "credit",
                f"a fallback credit was redeemed at {_steps(redeemed)}: {count(read)} tokens were billed as read "
                "there, also such as no earlier step had written",
            )
        )
    if refused:
        why = plain(str(refused[0].step.reply.credit).replace("_", " "))
        rows.append(("credit", f"a fallback credit did not count at {_steps(refused)} ({why})"))
    return rows


def _server_tools(results: list[StepResult]) -> list[Row]:
    wrote = [(r, server_tool_writes(r.step.reply, r.step.breakpoints)) for r in results]
    wrote = [(r, tokens) for r, tokens in wrote if tokens]
    if not wrote:
        return []
    total = sum(tokens for _, tokens in wrote)
    return [
        (
            "provider",
            f"its own tools wrote {count(total)} tokens to the cache between their runs, for 5 minutes, in "
            f"{_steps(r for r, _ in wrote)}",
        )
    ]


def _served(results: list[StepResult]) -> list[Row]:
    """Models that answered in place of those that were asked for."""
    pairs: dict[tuple[str, str], list[StepResult]] = defaultdict(list)
    for result in results:
        step = result.step
        if other_model(step.model, step.reply.model, step.provider):
            pairs[step.model, step.reply.model or ""].append(result)
    rows = [
        ("served", f"{_name(answered)} answered where {_name(asked)} was asked for: {_steps(some)}")
        for (asked, answered), some in sorted(pairs.items(), key=lambda pair: -len(pair[1]))
    ]
    more = [("served", f"and {len(rows) - _MOST_NAMED} more such pairs")] if len(rows) > _MOST_NAMED else []
    return rows[:_MOST_NAMED] + more


def _terms(results: list[StepResult]) -> list[Row]:
    """Terms that change the price, and service tiers that were not served as asked for."""
    by_term: dict[str, list[StepResult]] = defaultdict(list)
    other: dict[tuple[str, str], list[StepResult]] = defaultdict(list)
    for result in results:
        reply, asked = result.step.reply, result.step.params.scope.get("service_tier")
        for term in terms_of(reply):
            by_term[term].append(result)
        if other_tier(asked, reply.service_tier):
            other[str(asked), str(reply.service_tier)].append(result)
    rows = [("terms", f"billed at {plain(term)}: {_steps(some)}") for term, some in by_term.items()]
    rows += [
        ("terms", f"served at tier {_name(served)} where {_name(asked)} was asked for: {_steps(some)}")
        for (asked, served), some in other.items()
    ]
    return rows[: 2 * _MOST_NAMED]


def _charged(results: list[StepResult]) -> list[Row]:
    """The dollars that replies say they cost, beside those that the prices make."""
    both = [(r.step.reply.charged_usd, r.cost.total_usd) for r in results if r.cost and r.step.reply.charged_usd]
    said, ours = sum(charged or 0.0 for charged, _ in both), sum(cost for _, cost in both)
    if not both:
        return []
    off = abs(said - ours)
    if off < _LEAST_USD or off < _LEAST_SHARE * max(said, ours):
        told = f"the same as these prices make ({usd(ours)})"
    else:
        more = "more" if said > ours else "less"
        told = f"{percent(off / ours) if ours else usd(off)} {more} than the {usd(ours)} of these prices"
    return [("charged", f"the replies of {whole(len(both), 'step')} say {usd(said)}, {told}")]


def _steps(results: Iterable[StepResult]) -> str:
    numbers = [result.step.number for result in results]
    return f"step{'s' if len(numbers) > 1 else ''} {steps(numbers)}"


def _name(model: str) -> str:
    return cut_middle(plain(model), _NAME_CELLS)
