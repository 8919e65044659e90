"""Time `analyze report FOLDER` over folders of many small files, and count what it opens.

    python benchmarks/many_files.py [--files 5000 10000 20000]

Each file is one call of a run of its own; all share tools and system prompt, as the calls of a batch do. Prints for
each folder the seconds, and the seconds a file as a ratio to the first folder: 1.0 throughout is linear. Files are
counted by the audit events of Python's `open`: each is opened once to be told what it is and read, and again for what
the verdict on it needs of its text.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = """
import sys
opened = {}
def note(event, arguments):
    if event == "open" and isinstance(arguments[0], str) and arguments[0].startswith(sys.argv[1]):
        opened[arguments[0]] = opened.get(arguments[0], 0) + 1
sys.addaudithook(note)
from rebilled import cli
try:
    cli.main(["report", sys.argv[1], "--json"])
except SystemExit:
    pass
files = [count for name, count in opened.items() if name.endswith(".json")]
sys.stderr.write(f"{len(files)} {sum(files)}")
"""


def fill(folder: Path, count: int) -> None:
    """Write so many files, five hundred a folder."""
    system = [{"type": "text", "text": "You are careful. " * 200, "cache_control": {"type": "ephemeral"}}]
    for number in range(count):
        place = folder / f"{number // 500:03d}"
        place.mkdir(exist_ok=True)
        minute, second = divmod(number, 60)
        hour, minute = divmod(minute, 60)
        usage = {"input_tokens": 9, "cache_read_input_tokens": 900, "output_tokens": 5}
        record = {
            "timestamp": f"2026-11-01T{hour:02d}:{minute:02d}:{second:02d}Z",
            "request": {
                "model": "claude-sonnet-4-5",
                "max_tokens": 9,
                "system": system,
                "messages": [{"role": "user", "content": f"Question {number * 7919 % 1_000_003}"}],
            },
            "response": {"id": f"msg_{number}", "model": "claude-sonnet-4-5", "usage": usage},
        }
        (place / f"{number:05d}.json").write_text(json.dumps(record), encoding="utf-8")


def measure(count: int) -> tuple[float, str]:
    """Seconds for a folder of so many files, and how many files were opened how often."""
    with tempfile.TemporaryDirectory() as name:
        fill(Path(name), count)
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", PROGRAM, name], capture_output=True, text=True, check=True)
        seconds = time.perf_counter() - start
        steps = json.loads(done.stdout)["inputs"]["steps"]
        if steps != count:
            raise SystemExit(f"{steps} steps of {count}")
    return seconds, done.stderr


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="+", default=[5000, 10_000, 20_000], metavar="COUNT")
    first = 0.0
    for count in parser.parse_args().files:
        seconds, opened = measure(count)
        first = first or seconds / count
        files, times = opened.split()
        ratio = seconds / count / first
        print(f"{count:>6} files  {seconds:6.1f} s  ratio a file {ratio:.2f}  {files} files opened {times} times")


if __name__ == "__main__":
    main()
