"""Run docs/still-tools.md, its servers, agent and commands, and put the real output behind each command.

python scripts/run_guide.py
python scripts/run_guide.py --folder FOLDER    runs it there, prints the outputs, and leaves the page as it is
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "end_to_end"))


def main() -> int:
    """Write the page, or run it in a folder."""
    from guide import PAGE, guide, outputs, updated

    parser = argparse.ArgumentParser(description="Run docs/still-tools.md.")
    parser.add_argument("--folder", type=Path, help="run it in this folder, and leave the page as it is")
    folder: Path | None = parser.parse_args().folder
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        with guide(folder.resolve()) as (found, _):
            for commands, text in outputs(found):
                print("".join(f"$ {line}\n" for line in commands.splitlines()) + text)
        return 0
    with tempfile.TemporaryDirectory() as inner, guide(Path(inner)) as (found, _):
        printed = outputs(found)
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8"), printed), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {len(printed)} outputs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
