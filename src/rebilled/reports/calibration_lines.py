"""How well the simulation fits a recording, as JSON values and on the screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import asdict

from rebilled.calibration import Calibration, Compared, Fitness
from rebilled.reports.amount import count, whole
from rebilled.reports.plain import cut_middle, pad, plain, wrap
from rebilled.reports.report import Options
from rebilled.reports.style import Pen

POOR = 0.10
"""From this weighted error on the simulation is called poor; what-if ranges are widened from there too."""
_SHOWN = 5
_MODEL = 26
_HEAD = ("model", "steps", "input", "reported", "simulated", "error", "within 2%", "bias")


def calibration_object(calibration: Calibration, *, paths: Sequence[str] = ()) -> dict[str, Any]:
    """`rebilled.calibration/1`."""
    return {
        "schema": "rebilled.calibration/1",
        "paths": list(paths),
        "total": _numbers(calibration.total),
        "by_provider": [
            {"provider": row.provider, "api": row.api, "model": row.model, "rules": row.rules, **_numbers(row)}
            for row in calibration.by_provider()
        ],
        "worst": [_compared_object(item) for item in calibration.worst()],
        "outside": [_compared_object(item) for item in calibration.outside],
        "left_out": asdict(calibration.left_out),
    }


def _numbers(row: Fitness) -> dict[str, Any]:
    return {
        "steps": row.steps,
        "input_tokens": row.input_tokens,
        "reported_read_tokens": row.reported_tokens,
        "simulated_read_tokens": row.simulated_tokens,
        "weighted_error": row.weighted_error,
        "within_2pct": row.within_2pct,
        "bias": row.bias,
        "run_bias": row.run_bias,
        "hit_rate": row.hit_rate,
        "outside_steps": row.outside_steps,
        "outside_read_tokens": row.outside_tokens,
    }


def _compared_object(item: Compared) -> dict[str, Any]:
    step = item.step
    return {
        "number": step.number,
        "run_id": step.run_id,
        "source": {"path": step.source.path, "line": step.source.line},
        "provider": step.provider,
        "api": step.api,
        "model": step.model,
        "input_tokens": item.input_tokens,
        "reported_read_tokens": item.reported_tokens,
        "simulated_read_tokens": item.simulated_tokens,
        "reachable_read_tokens": item.reachable_tokens,
        "reason": item.reason,
        "explanation": item.explanation,
    }


def calibration_lines(calibration: Calibration, options: Options) -> list[str]:
    """The screen: the fit in a sentence, a table by provider and model, what is counted apart, the worst steps."""
    pen = Pen(options.colour)
    total = calibration.total
    lines = [pen.paint(line, "strong") for line in wrap(_headline(total), options.width)]
    if total.steps or total.outside_steps:
        lines += ["", *_table(calibration.by_provider(), options.width)]
    for text in (*_notes(calibration), *_apart(calibration)):
        lines += ["", *wrap(text, options.width)]
    return lines + list(_worst(calibration, options, pen))


def _headline(total: Fitness) -> str:
    if total.weighted_error is None:
        return "No step can be compared: none of them has a body and a usage and goes on from another step."
    fit = "Too far off to trust a what-if closely" if total.weighted_error >= POOR else "The simulation fits"
    return (
        f"{fit}: simulated cache reads are off by {total.weighted_error:.2%} of the input of "
        f"{whole(total.steps, 'step')}; {total.within_2pct or 0:.0%} of the steps are within 2%."
    )


def _table(rows: Sequence[Fitness], width: int) -> list[str]:
    cells: list[tuple[str, ...]] = [_HEAD]
    group = ""
    for row in sorted(rows, key=lambda row: (row.provider, row.api)):
        name = f"{row.provider}, {row.api}"
        if name != group:
            cells.append((name,))
            group = name
        cells.append(_cells(row))
    widths = [max(len(line[place]) for line in cells if len(line) > 1) for place in range(1, len(_HEAD))]
    first = max(_MODEL, width - sum(widths) - 2 * len(widths))
    first = min(first, max(_MODEL, *(len(line[0]) + 2 for line in cells)))
    return [_line(line, first, widths) for line in cells]


def _line(line: tuple[str, ...], first: int, widths: Sequence[int]) -> str:
    if len(line) == 1:
        return plain(line[0])
    name = line[0] if line is _HEAD else f"  {plain(line[0])}"
    rest = "  ".join(pad(cell, width, right=True) for cell, width in zip(line[1:], widths, strict=True))
    return f"{pad(cut_middle(name, first), first)}  {rest}".rstrip()


def _cells(row: Fitness) -> tuple[str, ...]:
    return (
        row.model or "(no model)",
        f"{row.steps:,}",
        count(row.input_tokens),
        count(row.reported_tokens),
        count(row.simulated_tokens),
        "-" if row.weighted_error is None else f"{row.weighted_error:.2%}",
        "-" if row.within_2pct is None else f"{row.within_2pct:.0%}",
        "-" if row.bias is None else f"{row.bias:+.2%}",
    )


def _notes(calibration: Calibration) -> Iterator[str]:
    for row in calibration.by_provider():
        if row.hit_rate is not None and row.steps:
            bias = (
                f"; no long run as a whole is off by more than {abs(row.run_bias):.1%}"
                if row.run_bias is not None
                else ""
            )
            yield (
                f"{plain(row.model)}: this cache finds about {row.hit_rate:.0%} of what it holds, at random. "
                f"The average is predicted, so single steps are off{bias}."
            )


def _apart(calibration: Calibration) -> Iterator[str]:
    outside, left = calibration.outside, calibration.left_out
    if outside:
        numbers = ", ".join(str(item.step.number) for item in outside[:_SHOWN]) + (", …" * (len(outside) > _SHOWN))
        yield (
            f"Counted apart: {whole(len(outside), 'step')} ({numbers}) read {count(calibration.total.outside_tokens)} "
            "tokens from entries that no step of the recording has written."
        )
    parts = [
        f"{number:,} {text}"
        for number, text in (
            (left.no_compared_step, "that continue no step of the recording"),
            (left.no_body, "without a body"),
            (left.no_usage, "without usage"),
        )
        if number
    ]
    if parts:
        yield f"Not compared: {', '.join(parts)}."


def _worst(calibration: Calibration, options: Options, pen: Pen) -> Iterator[str]:
    worst = calibration.worst()
    if not worst:
        return
    shown = worst[: options.top]
    yield ""
    yield f"Off by more than 2% of their input: {whole(len(worst), 'step')}; the worst first:"
    for item in shown:
        step = item.step
        line = f":{step.source.line}" if step.source.line is not None else ""
        yield pen.paint(
            f"step {step.number}: {item.simulated_tokens:,} simulated, {item.reported_tokens:,} reported of "
            f"{item.input_tokens:,}, {item.reason}",
            "warning",
        )
        yield "  " + cut_middle(plain(f"{step.source.path}{line}"), options.width - 2)
        yield from (f"  {text}" for text in wrap(item.explanation, options.width - 2))
    if len(worst) > len(shown):
        yield f"{len(worst) - len(shown):,} more; --json has all of them."
