"""Input tokens that no text of a request accounts for: hidden prompts, a provider's own tools, images; dated data."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from rebilled.model import Block, Step
from rebilled.providers.rules import plain_model, rules

_FORCED = ("any", "tool")


def tool_prompt_tokens(step: Step) -> int:
    """Tokens of the hidden system prompt about tools; 0 without tools, and for models of which none is known.

    Source: Anthropic's pricing page, 2026-08-21; `overhead` in data/anthropic.toml.
    """
    if not step.tools.blocks:
        return 0
    row = next(_rows("tool_prompt", step.model), None)
    if row is None:
        return 0
    return int(row.get("forced_tokens", row["tokens"])) if _forced(step) else int(row["tokens"])


def _forced(step: Step) -> bool:
    choice = step.params.message_level.get("tool_choice")
    kind = choice.get("type") if isinstance(choice, dict) else choice
    return kind in _FORCED


def own_tool_tokens(step: Step, block: Block) -> int:
    """Tokens of one of the provider's own tools beside its bytes; 0 for all others."""
    if not block.kind:
        return 0
    return next((int(row["tokens"]) for row in _rows("tool", step.model) if block.kind.startswith(row["tool"])), 0)


def image_tokens(step: Step, width: int, height: int) -> int | None:
    """Tokens of an image by its size in pixels; None where the model's way of counting is not known."""
    row = next(_rows("image", step.model), None)
    if row is None:
        return None
    side = int(row["pixels"])
    return min(int(row["tokens"]), -(-width // side) * -(-height // side))


def _rows(kind: str, model: str) -> Iterator[dict[str, Any]]:
    """The rows of a kind that hold for a model, in the order of the file."""
    name = plain_model(model)
    if not name.startswith("claude"):
        return
    for row in _of_kind(kind):
        if name in row.get("models", (name,)):
            yield row


@lru_cache
def _of_kind(kind: str) -> tuple[dict[str, Any], ...]:
    return tuple(row for row in rules("anthropic").get("overhead", ()) if row["kind"] == kind)
