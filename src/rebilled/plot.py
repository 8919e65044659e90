"""Plots of a run: where the cache was read, where it was written, and where the prefix broke."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebilled.analysis import Analysis
from rebilled.model import StepResult

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

COLOURS = {
    "cache_read_tokens": ("cache read", "#4c9f70"),
    "cache_write_tokens": ("cache write", "#e0a030"),
    "uncached_input_tokens": ("uncached input", "#b0b7c3"),
}
_BROKE = "#c0392b"


def timeline(analysis: Analysis, run_id: str | None = None) -> Figure:
    """Input tokens of every step, stacked by how they were billed, with a mark where the prefix broke.

    run_id: one run; None takes all steps in time order.
    """
    from plotly.graph_objects import Bar, Figure, Scatter

    results = [r for r in analysis.results if r.step.usage is not None and run_id in (None, r.step.run_id)]
    steps = [r.step.number for r in results]
    figure = Figure()
    for name, (label, colour) in COLOURS.items():
        figure.add_trace(
            Bar(x=steps, y=[getattr(r.step.usage, name) for r in results], name=label, marker_color=colour)
        )
    broken = [r for r in results if r.verdict.group > 1]
    if broken:
        figure.add_trace(
            Scatter(
                x=[r.step.number for r in broken],
                y=[r.step.usage.input_tokens * 1.04 for r in broken if r.step.usage is not None],
                mode="markers",
                name="the prefix broke",
                marker={"symbol": "triangle-down", "size": 11, "color": _BROKE},
                text=[_label(r) for r in broken],
                hovertemplate="%{text}<extra></extra>",
            )
        )
    figure.update_layout(
        barmode="stack",
        template="plotly_white",
        xaxis_title="step",
        yaxis_title="input tokens",
        legend={"orientation": "h", "y": 1.12},
        margin={"l": 60, "r": 20, "t": 40, "b": 50},
    )
    return figure


def _label(result: StepResult) -> str:
    place = result.verdict.divergence
    where = f"<br>{place.json_path}" if place is not None and place.json_path else ""
    usd = f"<br>${result.rebilled_usd:.4f} extra" if result.rebilled_usd else ""
    return f"step {result.step.number}: {result.verdict.cause}{where}{usd}"
