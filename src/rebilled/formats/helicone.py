"""Helicone's requests, as its export and its API give them: the body as sent, the answer, and counts beside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rebilled.errors import RecordError
from rebilled.formats.conversation import parse_text
from rebilled.formats.counts import Counts, first_count, first_text, shape_of
from rebilled.formats.credentials import scrub_text, scrub_url
from rebilled.formats.file import File
from rebilled.formats.rows import counted, first_moment, kept_meta, read_rows
from rebilled.model import Record, Skip, Source
from rebilled.owner import caller_in
from rebilled.spans import dump_json

_SIGNS = (b'"request_created_at"', b'"response_created_at"', b'"helicone_user"', b'"request_properties"')
_MODEL = ("model_override", "response_model", "request_model", "model")
_READ = ("prompt_cache_read_tokens", "cache_read_tokens")
_WRITE = ("prompt_cache_write_tokens", "cache_write_tokens")


class Helicone:
    """One row a request. Bodies behind a signed URL are not fetched."""

    name = "helicone"
    title = "Helicone requests"
    tells = "bodies where they stand in the row, usage, times and sessions"

    def detect(self, file: File) -> int:
        """80 where the first objects have the members of a row."""
        head = file.head
        known = sum(sign in head for sign in _SIGNS)
        return 80 if known >= 2 and (b'"request_body"' in head or b'"prompt_tokens"' in head) else 0

    def read(self, file: File) -> Iterator[Record | Skip]:
        """The requests; rows without a body and without counts are counted in one Skip."""
        yield from read_rows(file, "data", _read_row, "rows")


FORMAT = Helicone()


def _read_row(row: dict[str, Any], source: Source) -> Record:
    model = first_text(row, _MODEL) or ""
    provider = (first_text(row, ("provider",)) or "").lower()
    body, response = parse_text(row.get("request_body")), parse_text(row.get("response_body"))
    answered = _answer(response)
    if answered is None:
        answered = counted(_read_counts(row), shape_of(provider, model), first_text(row, ("response_id",)), model)
    if not isinstance(body, dict) and answered is None:
        raise RecordError("no_request", "a row with neither a body nor token counts")
    started, ended = first_moment(row, "request_created_at"), first_moment(row, "response_created_at")
    waited = first_count(row, ("time_to_first_token",))
    url = first_text(row, ("request_path", "target_url"))
    address, host, mark = scrub_url(url) if url else (None, None, None)
    status = first_count(row, ("response_status",))
    properties = row.get("request_properties")
    session = first_text(properties, ("Helicone-Session-Id",)) if isinstance(properties, dict) else None
    return Record(
        source,
        body=dump_json(body) if isinstance(body, dict) else None,
        as_sent=not isinstance(body, dict),
        response=answered,
        meta=kept_meta(
            {
                "session": session,
                "endpoint": host,
                "provider": provider or None,
                "model": model or None,
                **caller_in(properties, {"user": row.get("request_user_id") or row.get("user_id")}),
                "api_key_fp": mark,
            }
        ),
        url=address,
        status=status if status is not None and 100 <= status < 600 else None,
        error=scrub_text(str(row["error"]))[:300] if row.get("error") else None,
        started_at=started,
        first_token_at=started + waited / 1000 if started is not None and waited else None,
        ended_at=ended,
        request_id=first_text(row, ("request_id", "id")),
    )


def _answer(response: Any) -> bytes | None:
    """The logged answer where it holds usage; Helicone keeps streams as the whole answer, or as a list of chunks."""
    if isinstance(response, dict):
        held = "usage" in response or "usageMetadata" in response
        return dump_json(response) if held else None
    return None


def _read_counts(row: dict[str, Any]) -> Counts | None:
    reported, output = first_count(row, ("prompt_tokens",)), first_count(row, ("completion_tokens",))
    if reported is None and output is None:
        return None
    read, write = first_count(row, _READ) or 0, first_count(row, _WRITE)
    return Counts.of(reported or 0, read, write, output or 0)
