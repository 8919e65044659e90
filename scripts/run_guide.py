"""Run docs/still-tools.md, its servers, agent and commands, and put the real output behind each command.

python scripts/run_guide.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "end_to_end"))


def main() -> int:
    """Write the page."""
    from guide import PAGE, guide, outputs, updated

    with tempfile.TemporaryDirectory() as folder, guide(Path(folder)) as (found, _):
        printed = outputs(found)
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8"), printed), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {len(printed)} outputs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
