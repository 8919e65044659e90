"""Every check in one table: its id, its level, how it counts, and what assesses it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from rebilled.mcp import checks_hints as hints
from rebilled.mcp import checks_lists as lists
from rebilled.mcp import checks_server as server
from rebilled.mcp import checks_tools as tools
from rebilled.mcp.artifact import Check, Level
from rebilled.mcp.check import Outcome
from rebilled.mcp.sample import Sample


class Rule(msgspec.Struct, frozen=True):
    """One check. level: where the specification says it with a word, that word. spec, cost: its weight in each score.

    legacy: its level before 2026-07-28, where it is another one; stdio: its level on stdio, likewise.
    """

    id: str
    level: Level
    assess: Callable[[Sample], Outcome]
    spec: int = 0
    cost: int = 0
    legacy: Level | None = None
    stdio: Level | None = None

    def level_for(self, sample: Sample) -> Level:
        """The level at the revision and on the transport of a sample."""
        if self.legacy is not None and not sample.modern:
            return self.legacy
        return self.stdio if self.stdio is not None and sample.transport == "stdio" else self.level


RULES = (
    Rule("hints.ttl_present", "MUST", hints.ttl_present, spec=3),
    Rule("hints.ttl_valid", "MUST", hints.ttl_valid, spec=3),
    Rule("hints.scope_valid", "MUST", hints.scope_valid, spec=3),
    Rule("hints.scope_same_across_pages", "MUST", hints.scope_same_across_pages, spec=3),
    Rule("hints.ttl_useful", "cost", hints.ttl_useful, cost=1),
    Rule("hints.placement", "SHOULD", hints.placement, spec=1),
    Rule("hints.stable", "info", hints.stable),
    Rule("result.type_complete", "MUST", hints.type_complete, spec=3),
    Rule("list.set_per_connection", "MUST NOT", lists.set_per_connection, spec=3, cost=3, legacy="cost"),
    Rule("list.set_side_effect", "MUST NOT", lists.set_side_effect, spec=3, cost=3, legacy="cost"),
    Rule("list.order", "SHOULD", lists.order, spec=1, cost=3, legacy="cost"),
    Rule("list.definitions_stable", "cost", lists.definitions_stable, cost=3),
    Rule("list.serialisation_stable", "cost", lists.serialisation_stable, cost=2),
    Rule("list.capability_variance", "cost", lists.capability_variance, cost=1),
    Rule("page.cursor_loop", "robust", lists.cursor_loop, spec=1),
    Rule("page.limit", "robust", lists.page_limit, spec=1),
    Rule("tool.names", "SHOULD", tools.names, spec=1),
    Rule("tool.unique", "SHOULD", tools.unique, spec=1),
    Rule("tool.input_schema", "MUST", tools.input_schema, spec=3),
    Rule("tool.schema_valid", "MUST", tools.schema_valid, spec=3),
    Rule("tool.output_schema", "MUST", tools.output_schema, spec=3),
    Rule("tool.x_mcp_header", "MUST", tools.x_mcp_header, spec=3, stdio="info"),
    Rule("version.error_shape", "MUST", server.error_shape, spec=3),
    Rule("discover.present", "MUST", server.discover, spec=3),
    Rule("scope.public_on_auth", "review", server.public_on_auth),
    Rule("change.listen", "info", server.listen),
)
"""In the order in which they are shown."""

BY_ID = {rule.id: rule for rule in RULES}


def assess(sample: Sample) -> tuple[Check, ...]:
    """Every check on what one leg heard."""
    return tuple(_assess(rule, sample) for rule in RULES)


def _assess(rule: Rule, sample: Sample) -> Check:
    outcome = rule.assess(sample)
    level = rule.level_for(sample)
    in_spec = rule.spec > 0 and level not in ("cost", "info", "review")
    return Check(
        rule.id,
        level,
        outcome.result,
        outcome.evidence,
        spec=outcome.result if in_spec else None,
        prompt_cache_cost=(outcome.cost or outcome.result) if rule.cost else None,
    )
