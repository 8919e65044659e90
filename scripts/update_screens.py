"""Run every command shown in the documentation and put its real output behind it.

    python scripts/update_screens.py [--check]

A shown command is a fenced block marked `console` whose first line is `$ analyze ...`; what follows is its output.
With --check nothing is written, and a block that is out of date ends the script with 1.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "sample_traces/README.md", "docs/*.md", "CONTRIBUTING.md")
_BLOCK = re.compile(r"^```console\n\$ (analyze[^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ENVIRONMENT = {"NO_COLOR": "1", "COLUMNS": "100", "LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf-8"}


def pages() -> list[Path]:
    """The pages that show commands."""
    return [page for pattern in PAGES for page in sorted(ROOT.glob(pattern))]


def shown(page: Path) -> list[tuple[str, str]]:
    """The commands on a page with the output that stands behind each."""
    return [(match[1], match[2]) for match in _BLOCK.finditer(page.read_text(encoding="utf-8"))]


def run(command: str) -> str:
    """What the command prints on standard output, from the root of the repository."""
    words = [sys.executable, "-m", "rebilled", *shlex.split(command)[1:]]
    done = subprocess.run(words, cwd=ROOT, env={**os.environ, **_ENVIRONMENT}, capture_output=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command}: exit {done.returncode}: {done.stderr.decode(errors='replace').strip()}")
    lines = done.stdout.decode("utf-8").splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def updated(page: Path) -> str:
    """The page with every shown output as it is now."""
    text = page.read_text(encoding="utf-8")
    return _BLOCK.sub(lambda match: f"```console\n$ {match[1]}\n{run(match[1])}```", text)


def main(arguments: list[str]) -> int:
    """Write the pages, or with --check only say which are out of date."""
    stale = []
    for page in pages():
        fresh = updated(page)
        if fresh != page.read_text(encoding="utf-8"):
            stale.append(str(page.relative_to(ROOT)))
            if "--check" not in arguments:
                page.write_text(fresh, encoding="utf-8")
    print("\n".join(stale) if stale else "all shown output is up to date")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
