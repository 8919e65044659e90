"""Legs of a survey written by hand: only what matters to a test is said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from rebilled.mcp.endpoints import set_digest
from rebilled.mcp.survey_leg import SCHEMA, Leg, LegOptions, ListRow, Opening, Row, Tool, tally_of

LEGACY, MODERN = "2025-11-25", "2026-07-28"
BOTH, NONE = "RESULT_LEVEL_HINT", "no_cache_hint_declared"


def options(revision: str, **given: Any) -> LegOptions:
    """The usual options at a revision."""
    usual = LegOptions(revision, 3, 3, 10, 5, 60, 250, 1, 1, 1, 64, 4, private=False, robots=True, user_agent="a")
    return msgspec.structs.replace(usual, **given)


def one_list(canonical: str = "a", **given: Any) -> ListRow:
    """A list whose definitions have this digest."""
    long = canonical * 64
    return msgspec.structs.replace(
        ListRow(0, 0, "sample", 1, 2, 9, long, long, long, "a" * 16, "integer", 5, "private", "complete", 1.0), **given
    )


def row(number: int, verdict: str, revision: str = MODERN, **given: Any) -> Row:
    """The row of an endpoint, opened at the revision asked for where it gave a list."""
    listed = "HINT" in verdict or verdict == NONE
    modern = revision == MODERN
    usual = Row(
        endpoint_id=f"{number:016x}",
        transport="http",
        verdict=verdict,
        asked_revision=revision,
        era=("modern" if modern else "legacy") if listed else None,
        spoken_revision=revision if listed else None,
        hint_required_here=listed and modern,
        ttl_zero=False,
        complete=listed,
        cut=None,
        open=Opening(200, None, True, 1.0),
        supported_versions=(),
        tools_capability=True if listed else None,
        list_changed=None,
        lists=(one_list(),) if listed else (),
        checks={},
    )
    return msgspec.structs.replace(usual, **given)


def leg(revision: str, verdicts: Sequence[str | Row], **given: Any) -> Leg:
    """A whole leg with a row for each verdict, by number."""
    rows = tuple(row(at, one, revision) if isinstance(one, str) else one for at, one in enumerate(verdicts))
    usual = Leg(
        schema=SCHEMA,
        tool=Tool("rebilled", "0", "a" * 64),
        started="2026-11-12T09:00:00Z",
        finished="2026-11-12T09:05:00Z",
        complete=True,
        options=options(revision),
        endpoints=len(rows),
        endpoint_set_sha256=set_digest(one.endpoint_id for one in rows),
        rows=rows,
        tally=tally_of(rows),
        not_claimed=("Nothing.",),
    )
    return msgspec.structs.replace(usual, **given)


def pair_of_legs(**right: Any) -> tuple[Leg, Leg]:
    """Two legs that may be compared; right: what is otherwise in the second."""
    return leg(LEGACY, [NONE, NONE, "not_mcp"]), leg(MODERN, [BOTH, "legacy_only", "not_mcp"], **right)
