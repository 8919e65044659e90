"""Calls that a tracer has logged twice: the span of a proxy or framework around the one of the provider's client."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from rebilled.model import Json, Step, Usage

SPAN, PARENT = "span", "parent_span"
"""What a format keeps of a span among the meta: its id, and that of the span around it."""


def wrapping(steps: Iterable[Step]) -> list[Step]:
    """The steps that only wrap others: their tokens are those of the calls directly inside them, added up.

    A call inside another one with tokens of its own (a tool that asks a model) wraps nothing. Of two that are the same
    call the one that tells more counts: its request, then its cached tokens.
    """
    by_span: dict[tuple[Json, Json], Step] = {}
    inside: dict[tuple[Json, Json], list[Step]] = defaultdict(list)
    for step in steps:
        if SPAN in step.meta:
            by_span[_place(step.meta, SPAN)] = step
        if PARENT in step.meta:
            inside[_place(step.meta, PARENT)].append(step)
    found = []
    for place, inner in inside.items():
        outer = by_span.get(place)
        if outer is not None and _adds_up(outer, inner):
            found.append(inner[0] if len(inner) == 1 and _tells(outer) > _tells(inner[0]) else outer)
    return found


def _tells(step: Step) -> tuple[bool, int]:
    usage = step.usage
    return step.has_body, usage.cache_read_tokens + usage.cache_write_tokens if usage is not None else 0


def _place(meta: Mapping[str, Json], name: str) -> tuple[Json, Json]:
    return meta.get("trace_id"), meta[name]


def _adds_up(outer: Step, inner: Iterable[Step]) -> bool:
    parts = [step for step in inner if step is not outer]
    usages = [step.usage for step in parts if step.usage is not None]
    if outer.usage is None or not usages or len(usages) < len(parts):
        return False
    return _sums([outer.usage]) == _sums(usages)


def _sums(usages: Iterable[Usage]) -> tuple[int, int]:
    known = list(usages)
    return sum(usage.input_tokens for usage in known), sum(usage.output_tokens for usage in known)
