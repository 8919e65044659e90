"""Surveys of a few addresses, fast."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from rebilled.cli import main
from rebilled.mcp.endpoints import read_endpoints
from rebilled.mcp.survey import Survey, SurveyOptions
from rebilled.mcp.survey_leg import Leg, Row

TWO = ("2025-11-25", "2026-07-28")


def survey_of(addresses: Iterable[str], **given: Any) -> Survey:
    """A survey that asks nobody yet."""
    shuffle = given.pop("shuffle", lambda _: None)
    options = SurveyOptions(**{"revisions": TWO, "connections": 1, "lists": 2, "timeout_s": 1, "pause_ms": 0, **given})
    endpoints = read_endpoints("\n".join(addresses).encode(), private=options.private)
    return Survey(endpoints, options, version="0", key=b"k", clock=time.time, shuffle=shuffle)


def surveyed(*addresses: str, **given: Any) -> list[Leg]:
    """The legs of a survey."""
    asked = survey_of(addresses, **given)
    asyncio.run(asked.run())
    return asked.legs()


def row_at(address: str, revision: str = "2026-07-28", **given: Any) -> Row:
    """The row of one endpoint."""
    (leg,) = surveyed(address, revisions=(revision,), **given)
    return leg.rows[0]


def run_main(capture: pytest.CaptureFixture[bytes], *words: str | Path) -> tuple[int, str, str]:
    """Run a command in this process: exit code, standard output, standard error."""
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    out, err = capture.readouterr()
    return int(str(ended.value.code or 0)), out.decode(), err.decode()
