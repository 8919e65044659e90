"""A probe on a screen (stub)."""

from rebilled.mcp.artifact import Probe
from rebilled.reports.style import Pen


def probe_lines(probe: Probe, width: int, pen: Pen) -> list[str]:
    """Lines."""
    out = [probe.verdict, str(probe.scores)]
    for leg in probe.legs:
        out.append(f"{leg.revision} {leg.verdict} {leg.complete} {leg.messages} {leg.timing.list_ms_median}")
        for c in leg.checks:
            out.append(f"  {c.id} {c.level} {c.result} {c.evidence}")
    out += [str(u) for u in probe.not_spoken]
    return out
