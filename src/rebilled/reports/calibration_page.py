"""How well the simulation fits a recording, as one HTML file that opens without a network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from rebilled.calibration import Calibration, Compared
from rebilled.misfit import REASONS
from rebilled.reports.calibration_lines import calibration_lines
from rebilled.reports.plain import plain
from rebilled.reports.report import Options

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_STYLE = """\
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; } th, td { padding: .25rem .7rem; text-align: right; }
th { border-bottom: 1px solid #999; } td:first-child, th:first-child, .text { text-align: left; }
tr:nth-child(even) td { background: #f6f7f9; } code { overflow-wrap: anywhere; } .note { color: #555; }
"""
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:; font-src data:"
)
_HEAD = ("model", "provider", "API", "steps", "input", "reported", "simulated", "error", "within 2%", "bias", "apart")
_MOST_ROWS = 500


def calibration_page(calibration: Calibration) -> bytes:
    """The page as UTF-8. Every text from the recording is escaped, and the plot needs nothing from outside."""
    from plotly.io import to_html

    plot = to_html(calibration_plot(calibration), include_plotlyjs=True, full_html=False, default_height="34rem")
    headline = calibration_lines(calibration, Options(width=1000))[0]
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        f"<title>Simulated against reported cache reads</title><style>{_STYLE}</style></head><body>",
        f"<h1>Simulated against reported cache reads</h1><p>{_text(headline)}</p>",
        plot,
        "<h2>By model</h2>",
        _table(_HEAD, _fit_rows(calibration)),
        *_section("Off by more than 2% of the input, the worst first", calibration.worst()),
        *_section("Counted apart: read from entries written outside the recording", calibration.outside),
        "</body></html>\n",
    ]
    return "\n".join(parts).encode("utf-8", "replace")


def calibration_plot(calibration: Calibration) -> Figure:
    """Reported against simulated cache reads of every step, a colour for each model; on the diagonal they agree."""
    from plotly.graph_objects import Figure, Scatter

    figure = Figure()
    most = max((max(item.reported_tokens, item.simulated_tokens) for item in calibration.compared), default=1)
    line = {"color": "#999", "dash": "dot", "width": 1}
    figure.add_trace(Scatter(x=[0, most], y=[0, most], mode="lines", name="equal", line=line, hoverinfo="skip"))
    models: dict[str, list[Compared]] = {}
    for item in calibration.compared:
        models.setdefault(item.step.model, []).append(item)
    for model, items in sorted(models.items()):
        figure.add_trace(
            Scatter(
                x=[item.reported_tokens for item in items],
                y=[item.simulated_tokens for item in items],
                mode="markers",
                name=_text(model or "(no model)"),
                marker={"symbol": ["x" if item.outside else "circle" for item in items], "size": 8, "opacity": 0.7},
                text=[_hover(item) for item in items],
                hovertemplate="%{text}<extra></extra>",
            )
        )
    figure.update_layout(
        template="plotly_white",
        xaxis_title="cache reads as reported, tokens",
        yaxis_title="cache reads as simulated, tokens",
        legend={"orientation": "h", "y": 1.1},
        margin={"l": 60, "r": 20, "t": 40, "b": 50},
    )
    return figure


def _hover(item: Compared) -> str:
    return (
        f"step {item.step.number}, {_text(item.step.model)}<br>{item.reported_tokens:,} reported, "
        f"{item.simulated_tokens:,} simulated of {item.input_tokens:,}<br>{_text(REASONS[item.reason])}"
    )


def _fit_rows(calibration: Calibration) -> list[tuple[str, ...]]:
    return [
        (
            row.model or "(no model)",
            row.provider,
            row.api,
            f"{row.steps:,}",
            f"{row.input_tokens:,}",
            f"{row.reported_tokens:,}",
            f"{row.simulated_tokens:,}",
            "" if row.weighted_error is None else f"{row.weighted_error:.2%}",
            "" if row.within_2pct is None else f"{row.within_2pct:.0%}",
            "" if row.bias is None else f"{row.bias:+.2%}",
            f"{row.outside_steps:,}",
        )
        for row in calibration.by_provider()
    ]


def _section(heading: str, items: Sequence[Compared]) -> list[str]:
    if not items:
        return []
    head = ("step", "model", "input", "reported", "simulated", "at most", "what is believed")
    rows = [
        (
            f"{item.step.number} ({item.step.source.path}"
            + (f":{item.step.source.line})" if item.step.source.line else ")"),
            item.step.model,
            f"{item.input_tokens:,}",
            f"{item.reported_tokens:,}",
            f"{item.simulated_tokens:,}",
            f"{item.reachable_tokens:,}",
            f"{REASONS[item.reason]}. {item.explanation}",
        )
        for item in items[:_MOST_ROWS]
    ]
    more = [f'<p class="note">{len(items) - _MOST_ROWS:,} more.</p>'] if len(items) > _MOST_ROWS else []
    return [f"<h2>{_text(heading)}</h2>", _table(head, rows), *more]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    names = "".join(f"<th>{_text(name)}</th>" for name in head)
    lines = ["".join(f"<td{_kind(cell)}>{_text(cell)}</td>" for cell in row) for row in rows]
    return f"<table><tr>{names}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _kind(cell: str) -> str:
    return "" if cell[:1].isdigit() or cell[:1] in "+-" else ' class="text"'


def _text(text: str) -> str:
    """Text as HTML shows it, without control characters."""
    return escape(plain(text))
