"""Time `analyze report FILE --json` against `orjson.loads` of every line of the same file, whole processes, in turn.

    python benchmarks/speed.py [--mb 300] [--rounds 5] [--runs 4]

The file is a synthetic one: runs that resend a growing history, with forty tools of which every tenth step sends
another order. Prints the median seconds of both and the median of the rounds' ratios; machines are noisy, so only the
ratio compares.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WORDS = ("branch", "commit", "deploy", "handler", "index", "latency", "ledger", "module", "packet", "parser", "query")
STEPS_PER_RUN = 200
MARK = {"type": "ephemeral"}


def prose(source: random.Random, size: int) -> str:
    """About `size` characters of words."""
    return " ".join(source.choices(WORDS, k=max(1, size // 7)))


def make_tools(source: random.Random) -> list[dict[str, Any]]:
    """Forty tool definitions of three servers."""
    return [
        {
            "name": f"mcp__{('files', 'issues', 'metrics')[place % 3]}__call_{place:02d}",
            "description": prose(source, 700),
            "input_schema": {
                "type": "object",
                "properties": {f"arg{n}": {"type": "string", "description": prose(source, 90)} for n in range(6)},
            },
        }
        for place in range(40)
    ]


def run_of(number: int, tools: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The records of one run, a growing history; every tenth step has its tools shuffled."""
    source = random.Random(number)
    system = [{"type": "text", "text": prose(source, 10_000), "cache_control": MARK}]
    history: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": prose(source, 2_000)}]}]
    before = 0
    for step in range(1, STEPS_PER_RUN + 1):
        order = source.sample(tools, len(tools)) if step % 10 == 0 else tools
        last = {**history[-1], "content": [{**history[-1]["content"][0], "cache_control": MARK}]}
        body = {"model": "claude-sonnet-4-5", "messages": [*history[:-1], last], "system": system, "tools": order}
        total = len(json.dumps(body, separators=(",", ":"))) // 4
        read = before if order is tools else 0
        before = total if order is tools else before
        usage = {"input_tokens": 0, "cache_read_input_tokens": read, "cache_creation_input_tokens": total - read}
        answer = {"id": f"msg_{number}_{step}", "model": body["model"], "usage": usage | {"output_tokens": 200}}
        yield {"timestamp": 1_793_000_000 + 20 * step, "request": body, "response": answer}
        call = f"toolu_{number}_{step}"
        use = {"type": "tool_use", "id": call, "name": tools[0]["name"], "input": {"arg0": prose(source, 200)}}
        result = {"type": "tool_result", "tool_use_id": call, "content": prose(source, 2_400)}
        history += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


def write_trace(path: Path, size_mb: float, runs: int) -> int:
    """Write at least `size_mb` megabytes of interleaved runs; gives the bytes written."""
    tools = make_tools(random.Random(0))
    live, made, written = [run_of(number, tools) for number in range(runs)], runs, 0
    with path.open("w", encoding="utf-8") as file:
        while written < size_mb * 1e6:
            for place, run in enumerate(live):
                record = next(run, None)
                if record is None:
                    live[place], made = run_of(made, tools), made + 1
                    continue
                written += file.write(json.dumps(record, separators=(",", ":")) + "\n")
    return written


def timed(command: list[str]) -> float:
    """Wall seconds of a command that must succeed."""
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main() -> None:
    """Make the trace, run both programs in turn, print what they took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=float, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=4)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.jsonl"
        size = write_trace(trace, chosen.mb, chosen.runs) / 1e6
        parse = "import sys, orjson\nfor line in open(sys.argv[1], 'rb'): orjson.loads(line)"
        mine = [sys.executable, "-m", "rebilled", "report", str(trace), "--json"]
        theirs = [sys.executable, "-c", parse, str(trace)]
        pairs = [(timed(mine), timed(theirs)) for _ in range(chosen.rounds)]
    for name, column in (("analyze", 0), ("orjson", 1)):
        seconds = statistics.median(pair[column] for pair in pairs)
        print(f"{name:8s} {seconds:6.2f} s  {size / seconds:6.0f} MB/s")
    print(f"ratio    {statistics.median(a / b for a, b in pairs):6.2f}  on {size:.0f} MB, {chosen.rounds} rounds")


if __name__ == "__main__":
    main()
