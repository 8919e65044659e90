"""Make the two legs of a survey in sample_mcp: of servers on this machine, one of every class.

    python scripts/make_sample_survey.py

The servers are those of the tests. Ports, and with them endpoint ids, differ from run to run; so do times.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "mcp"))

from survey_fleet import fleet  # noqa: E402

from rebilled import __version__  # noqa: E402
from rebilled.mcp.endpoints import read_endpoints  # noqa: E402
from rebilled.mcp.survey import Survey, SurveyOptions  # noqa: E402
from rebilled.mcp.survey_leg import encode_leg  # noqa: E402

DAY_S = 1_794_474_000
"""The day that the legs name: 2026-11-12, 09:00 UTC, as the other samples do."""

REVISIONS = ("2025-11-25", "2026-07-28")
LEFT_OUT = ("header mismatch", "envelope refused")
"""Of the class that keeps two legs from being compared without --allow."""


def main() -> None:
    """Ask the servers, and write a file for each revision."""
    begun = time.monotonic()
    with fleet() as addresses:
        asked = Survey(
            read_endpoints("\n".join(url for name, url in addresses.items() if name not in LEFT_OUT).encode()),
            SurveyOptions(REVISIONS, connections=1, lists=2, timeout_s=1),
            version=__version__,
            key=b"sample",
            clock=lambda: DAY_S + time.monotonic() - begun,
            shuffle=lambda _: None,
        )
        asyncio.run(asked.run())
    for leg in asked.legs():
        path = ROOT / "sample_mcp" / f"survey.{leg.options.asked_revision}.json"
        path.write_bytes(encode_leg(leg))
        print(f"{path.relative_to(ROOT)}: {len(leg.rows)} endpoints, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
