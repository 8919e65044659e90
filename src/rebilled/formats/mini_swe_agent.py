"""mini-swe-agent trajectories: one list of messages, whose answers hold the responses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from rebilled.errors import RecordError
from rebilled.formats.counts import first_text, split_model
from rebilled.formats.credentials import secret_keys
from rebilled.formats.elements import open_document, read_document, read_elements
from rebilled.formats.file import File
from rebilled.formats.parts import Members, Part
from rebilled.formats.times import moment_of
from rebilled.model import Json, Record, Skip, Source
from rebilled.spans import dump_json, parse_json

_SIGN = re.compile(rb'"mini_version"\s*:|"trajectory_format"\s*:\s*"mini-swe-agent')
_TAIL_BYTES = 4096
_NOT_SENT = frozenset({"drop_params", "extra_headers", "headers", "api_base", "base_url", "timeout", "model"})


class MiniSweAgent:
    """A document with `info` and `messages`; each answer's request is all messages before it."""

    name = "mini-swe-agent"
    title = "mini-swe-agent trajectory"
    tells = "messages as given to LiteLLM, usage, times; no tools, which are not logged"

    def detect(self, file: File) -> int:
        """70 where the document says that it is a trajectory, at its beginning or its end."""
        if file.head[file.start :].lstrip()[:1] != b"{" or b'"messages"' not in file.head:
            return 0
        tail = file.read(max(file.start, file.size - _TAIL_BYTES), _TAIL_BYTES)
        return 70 if _SIGN.search(file.head) or _SIGN.search(tail) else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """A Record for each answer."""
        document = read_document(file)
        run = _read_run(document)
        texts: list[bytes] = []
        answers = 0
        for number, part in enumerate(read_elements(document, ("messages",), file.path), 1):
            if isinstance(part, Skip):
                yield part
                continue
            try:
                message = parse_json(part.text)
            except RecordError as error:
                yield Skip(file.path, number, error.reason, error.detail)
                continue
            if not isinstance(message, dict):
                continue
            if message.get("role") == "assistant":
                answers += 1
                yield _read_answer(message, run, texts, Source(file.path, number, part.at))
            texts.append(dump_json({key: value for key, value in message.items() if key != "extra"}))
        if not answers:
            yield Skip(file.path, None, "no_request", "a trajectory without answers")


FORMAT = MiniSweAgent()


class _Run(NamedTuple):
    """What holds for all calls of a trajectory."""

    head: bytes
    meta: dict[str, Json]


def _read_run(document: Part) -> _Run:
    """The model, its parameters and the session, as far as the document can be read."""
    outer = open_document(document, ())
    config = open_document(document, ("info", "config", "model"))
    host, model = split_model(_text(config, "model_name") or "")
    part = config.get("model_kwargs") if config is not None else None
    given = parse_json(part.text) if part is not None else None
    parameters = given if isinstance(given, dict) else {}
    secrets = secret_keys(tuple(parameters))
    kept = {key: value for key, value in parameters.items() if key not in _NOT_SENT and key not in secrets}
    found: dict[str, Json] = {
        "provider": "openai.chat",
        "session": _text(outer, "instance_id"),
        "endpoint": host,
        "agent": "mini-swe-agent",
    }
    meta: dict[str, Json] = {key: value for key, value in found.items() if value is not None}
    return _Run(dump_json({"model": model, **kept})[:-1] + b',"messages":[', meta)


def _text(members: Members | None, key: str) -> str | None:
    part = members.get(key) if members is not None else None
    value = parse_json(part.text) if part is not None else None
    return value if isinstance(value, str) and value else None


def _read_answer(message: dict[str, Any], run: _Run, texts: list[bytes], source: Source) -> Record:
    extra = message.get("extra")
    held: dict[str, Any] = extra if isinstance(extra, dict) else {}
    response = held.get("response")
    ended = moment_of(held.get("timestamp"))
    created = moment_of(response.get("created")) if isinstance(response, dict) else None
    started = created if created is not None and (ended is None or created <= ended) else ended
    meta = dict(run.meta)
    if isinstance(response, dict) and str(first_text(response, ("id",))).startswith("gen-"):
        meta.setdefault("endpoint", "openrouter.ai")  # its ids begin so
    return Record(
        source,
        body=run.head + b",".join(texts) + b"]}",
        as_sent=False,
        response=dump_json(response) if isinstance(response, dict) else None,
        meta=meta,
        started_at=started,
        ended_at=ended,
    )
