"""AWS Bedrock's model invocation log, as it lands in S3 or CloudWatch: JSON lines, often gzipped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rebilled.errors import RecordError
from rebilled.formats.conversation import parse_text
from rebilled.formats.counts import first_count, first_text
from rebilled.formats.credentials import scrub_text
from rebilled.formats.file import File
from rebilled.formats.rows import first_moment, kept_meta, read_rows
from rebilled.model import Json, Record, Skip, Source
from rebilled.owner import caller_in
from rebilled.spans import dump_json

_SIGN = re.compile(rb'"schemaType"\s*:\s*"ModelInvocationLog"')
_MESSAGE = re.compile(rb'\\"schemaType\\"\s*:\s*\\"ModelInvocationLog\\"')
_STREAMS = ("InvokeModelWithResponseStream", "ConverseStream")
_PATHS = {"InvokeModel": "invoke", "Converse": "converse"}


class BedrockLog:
    """One object a call; bodies over 100 KB stand in S3 and are listed as missing."""

    name = "bedrock-log"
    title = "Bedrock invocation log"
    tells = "bodies up to 100 KB, usage and one time a call; no session unless requestMetadata names one"

    def detect(self, file: File) -> int:
        """90 where the content says that it is such a log."""
        return 90 if _SIGN.search(file.head) or _MESSAGE.search(file.head) else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """The calls, and a Skip for each body that is kept elsewhere."""
        missing: list[Skip] = []

        def read_row(row: dict[str, Any], source: Source) -> Record:
            record, where = _read_call(row, source)
            if where:
                missing.append(Skip(source.path, source.line, "body_elsewhere", f"the request body stands in {where}"))
            return record

        for item in read_rows(file, "events", read_row, "entries", _opened):
            yield item
            yield from missing
            missing.clear()
        yield from missing


FORMAT = BedrockLog()


def _opened(value: Any) -> list[Any]:
    """The entry itself, or the one that a CloudWatch event carries as text."""
    if isinstance(value, dict) and "schemaType" not in value and "message" in value:
        return [parse_text(value["message"])]
    return [value]


def _read_call(row: dict[str, Any], source: Source) -> tuple[Record, str]:
    if row.get("schemaType") != "ModelInvocationLog":
        raise RecordError("no_request", "not an entry of the invocation log")
    given, answered = _object(row.get("input")), _object(row.get("output"))
    body = given.get("inputBodyJson")
    elsewhere = first_text(given, ("inputBodyS3Path",)) or ""
    response, events = _read_response(given, answered)
    if not isinstance(body, dict) and response is None and not events:
        raise RecordError("no_request", "an entry with neither a body nor token counts")
    model = first_text(row, ("modelId",)) or ""
    region = first_text(row, ("inferenceRegion", "region"))
    operation = first_text(row, ("operation",)) or ""
    error = first_text(row, ("errorCode",))
    record = Record(
        source,
        body=dump_json(body) if isinstance(body, dict) else None,
        as_sent=not isinstance(body, dict),
        response=response,
        events=events,
        meta=kept_meta(
            {
                "provider": "bedrock",
                "endpoint": f"bedrock-runtime.{region}.amazonaws.com" if region else "bedrock-runtime.amazonaws.com",
                "region": region,
                "workspace": first_text(row, ("accountId",)),
                "model": model or None,
                "session": _session(row),
                **caller_in(row.get("requestMetadata")),
            }
        ),
        url=_url(operation, model, region),
        error=scrub_text(error)[:300] if error else None,
        started_at=first_moment(row, "timestamp"),
        request_id=first_text(row, ("requestId",)),
    )
    return record, "" if isinstance(body, dict) else scrub_text(elsewhere)


def _url(operation: str, model: str, region: str | None) -> str | None:
    plain = "InvokeModel" if operation.startswith("InvokeModel") else "Converse"
    path = _PATHS[plain] + ("-stream" if operation in _STREAMS else "")
    host = f"bedrock-runtime.{region}.amazonaws.com" if region else "bedrock-runtime.amazonaws.com"
    return f"https://{host}/model/{model}/{path}" if model else None


def _session(row: dict[str, Any]) -> str | None:
    """What groups calls: metadata of the request that names a session; there is no other such id in this log."""
    metadata = _object(row.get("requestMetadata"))
    return first_text(metadata, ("session", "session_id", "sessionId", "conversation_id", "trace_id"))


def _read_response(given: dict[str, Any], answered: dict[str, Any]) -> tuple[bytes | None, tuple[bytes, ...]]:
    body = answered.get("outputBodyJson")
    if isinstance(body, list):
        events = tuple(dump_json(event) for event in body if isinstance(event, dict))
        if events:
            return None, events
    if isinstance(body, dict) and isinstance(body.get("usage"), dict):
        return dump_json(body), ()
    return _counted(given, answered, body), ()


def _counted(given: dict[str, Any], answered: dict[str, Any], body: Any) -> bytes | None:
    """The counts that the log keeps beside the bodies, in the shape of Converse: its input leaves out the cached."""
    total = first_count(given, ("inputTokenCount",))
    output = first_count(answered, ("outputTokenCount",))
    if total is None and output is None:
        return dump_json(body) if isinstance(body, dict) else None
    usage: dict[str, Json] = {"inputTokens": total or 0, "outputTokens": output or 0}
    read = first_count(given, ("cacheReadInputTokenCount",))
    write = first_count(given, ("cacheWriteInputTokenCount",))
    if read is not None:
        usage["cacheReadInputTokens"] = read
    if write is not None:
        usage["cacheWriteInputTokens"] = write
    return dump_json({"usage": usage})


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
