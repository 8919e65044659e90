"""Calls and files of calls, showing only what matters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rebilled.formats import find_inputs, read_input, read_path
from rebilled.model import Record, Skip

KEY = "sk-ant-api03-Zm9vYmFyYmF6cXV1eA"


def body(text: str = "hello", **more: Any) -> dict[str, Any]:
    return {"model": "claude-sonnet-5", "max_tokens": 16, "messages": [{"role": "user", "content": text}], **more}


def reply(ident: str = "msg_1", **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 3, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 5, "output_tokens": 7}
    return {"id": ident, "model": "claude-sonnet-5", "usage": usage, **more}


def call(**more: Any) -> dict[str, Any]:
    return {"request": body(), "response": reply(), **more}


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def write(folder: Path, name: str, *values: Any, indent: int | None = None) -> Path:
    """A file with each value on its own line, or pretty-printed; texts and bytes as they are."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if values and isinstance(values[0], bytes):
        path.write_bytes(b"".join(values))
    else:
        lines = [v if isinstance(v, str) else json.dumps(v, indent=indent) if indent else compact(v) for v in values]
        path.write_bytes(("\n".join(lines) + ("\n" if lines else "")).encode("utf-8", "surrogatepass"))
    return path


def read(path: Path | str) -> tuple[list[Record], list[Skip]]:
    """Records and skips of one file."""
    items = list(read_path(str(path)))
    return [i for i in items if isinstance(i, Record)], [i for i in items if isinstance(i, Skip)]


def read_one(path: Path | str) -> Record:
    """The only record of a file."""
    records, skips = read(path)
    assert len(records) == 1, (records, skips)
    assert skips == []
    return records[0]


def read_all(*paths: Path | str) -> tuple[list[Record], list[Skip]]:
    """Records and skips of everything the paths name."""
    items = [item for source in find_inputs(map(str, paths)) for item in read_input(source)]
    return [i for i in items if isinstance(i, Record)], [i for i in items if isinstance(i, Skip)]


def parsed(raw: bytes | None) -> Any:
    assert raw is not None
    return json.loads(raw)
