"""Run notebooks/explore_run.ipynb and write its output into it.

    python scripts/run_notebook.py [--check]

Timeline plots get a still picture beside the interactive one, drawn here from the same values, because the places that
show notebooks run no scripts. With --check nothing is written, and output that is out of date ends the script with 1.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import nbformat
from nbclient import NotebookClient

FILES: Any = nbformat
"""The same module, whose functions carry no types."""
ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = ROOT / "notebooks" / "explore_run.ipynb"
PLOTLY = "application/vnd.plotly.v1+json"
STILL = "image/svg+xml"
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 860, 320, 70, 40, 40


def executed() -> Any:
    """The notebook, run from the root of the repository in a fresh kernel, without what differs from run to run."""
    notebook = FILES.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}).execute()
    for cell in notebook.cells:
        cell.metadata = {}
        for output in cell.get("outputs", ()):
            if PLOTLY in output.get("data", {}):
                output["data"] = _with_picture(output["data"])
    notebook.metadata.pop("language_info", None)
    return notebook


def texts(notebook: Any) -> list[str]:
    """Every text that the cells put out, still pictures included; interactive plots hold the same values."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if output.output_type == "stream":
                found.append(output.text)
            elif output.output_type == "error":
                found.append("\n".join(output.traceback))
            else:
                found += [_joined(output.data[kind]) for kind in ("text/plain", STILL) if kind in output.data]
    return found


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


# ---- the still picture ---------------------------------------------------------------------------------------------


def _with_picture(data: dict[str, Any]) -> dict[str, Any]:
    """The output of a plot with a still picture, and without the template, which is most of its bytes."""
    plot = data[PLOTLY]
    plot["layout"].pop("template", None)
    plot["layout"]["plot_bgcolor"] = "white"
    return {PLOTLY: plot, STILL: draw(plot["data"]), "text/plain": "a timeline plot"}


def draw(traces: list[dict[str, Any]]) -> str:
    """Stacked bars and marks as SVG, from the traces of a plotly figure with whole numbers for x."""
    bars = [trace for trace in traces if trace["type"] == "bar"]
    steps = [int(step) for step in bars[0]["x"]]
    tallest = max(sum(float(trace["y"][at]) for trace in bars) for at in range(len(steps))) * 1.1
    slot = (_WIDTH - _LEFT - 10) / len(steps)
    scale = (_HEIGHT - _TOP - _BOTTOM) / tallest
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
        'font-family="sans-serif" font-size="12" fill="#333">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        *_axis(tallest, scale),
    ]
    heights = [0.0] * len(steps)
    for trace in bars:
        for at, value in enumerate(trace["y"]):
            height = float(value) * scale
            heights[at] += height
            if height >= 0.05:
                x, y = _LEFT + (at + 0.1) * slot, _HEIGHT - _BOTTOM - heights[at]
                lines.append(_box(x, y, slot * 0.8, height, trace["marker"]["color"]))
    for trace in traces:
        if trace["type"] == "scatter":
            lines += _marks(trace, steps, slot, scale)
    lines += [_text(_LEFT + (at + 0.5) * slot, _HEIGHT - 22, str(step)) for at, step in enumerate(steps)]
    return "\n".join([*lines, _text(_WIDTH / 2, _HEIGHT - 4, "step"), *_legend(traces), "</svg>"])


def _axis(tallest: float, scale: float) -> Iterator[str]:
    sizes = (10**power * first for power in range(12) for first in (1, 2, 5))
    apart = next(size for size in sizes if tallest / size <= 6)
    for value in range(0, int(tallest) + 1, apart):
        y = _HEIGHT - _BOTTOM - value * scale
        yield f'<line x1="{_LEFT}" x2="{_WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e3e7eb"/>'
        yield _text(_LEFT - 8, y + 4, f"{value:,}", "end")


def _marks(trace: dict[str, Any], steps: list[int], slot: float, scale: float) -> Iterator[str]:
    for step, value in zip(trace["x"], trace["y"], strict=True):
        x, y = _LEFT + (steps.index(int(step)) + 0.5) * slot, _HEIGHT - _BOTTOM - float(value) * scale
        points = f"{x - 5:.1f},{y - 9:.1f} {x + 5:.1f},{y - 9:.1f} {x:.1f},{y - 1:.1f}"
        yield f'<polygon points="{points}" fill={quoteattr(trace["marker"]["color"])}/>'


def _legend(traces: Iterable[dict[str, Any]]) -> Iterator[str]:
    x = float(_LEFT)
    for trace in traces:
        yield _box(x, 10, 12, 12, trace["marker"]["color"])
        yield _text(x + 18, 20, trace["name"], "start")
        x += 40 + 7.5 * len(trace["name"])


def _box(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill={quoteattr(colour)}/>'


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def main(arguments: list[str]) -> int:
    """Write the notebook's output, or with --check only say whether it is up to date."""
    fresh = executed()
    if texts(fresh) == texts(FILES.read(NOTEBOOK, as_version=4)):
        print("the notebook's output is up to date")
        return 0
    if "--check" in arguments:
        print(f"the output of {NOTEBOOK.name} is out of date; run python scripts/{Path(__file__).name}")
        return 1
    FILES.write(fresh, NOTEBOOK)
    print(f"wrote {NOTEBOOK.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
