"""OTLP as protobuf, held against the real message classes."""

from __future__ import annotations

import base64
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1 import trace_pb2

from rebilled.errors import RecordError
from rebilled.formats import File, detect
from rebilled.formats.protobuf import read_traces
from rebilled.model import Record

from .build import read, write
from .damage import check_damage
from .test_otel import attributes, otlp, span


def document(*values: dict[str, Any]) -> dict[str, Any]:
    return otlp(*(span(value, traceId="ab" * 16, spanId="cd" * 8) for value in values))


def message(*spans: dict[str, Any]) -> bytes:
    """What an exporter would send for these spans, made by the real classes."""
    made: bytes = parsed_as(document(*spans)).SerializeToString()
    return made


def parsed_as(value: dict[str, Any]) -> Any:
    text = json.loads(json.dumps(value))
    for group in text["resourceSpans"]:
        for scope in group["scopeSpans"]:
            for item in scope["spans"]:
                for name in ("traceId", "spanId"):
                    if name in item:
                        item[name] = base64.b64encode(bytes.fromhex(item[name])).decode()
    return json_format.ParseDict(text, trace_pb2.TracesData(), ignore_unknown_fields=True)


def framed(parts: list[bytes], kind: str) -> bytes:
    if kind == "words":
        return b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    if kind == "varints":
        from google.protobuf.internal.encoder import _VarintBytes  # type: ignore[attr-defined]

        return b"".join(_VarintBytes(len(part)) + part for part in parts)
    return parts[0]


def saved(folder: Path, data: bytes) -> Path:
    path = folder / "traces.bin"
    path.write_bytes(data)
    return path


def essence(record: Record) -> tuple[Any, ...]:
    return (record.body, record.response, record.meta, record.started_at, record.ended_at, record.error)


@pytest.mark.parametrize("kind", ["whole", "words", "varints"])
def test_protobuf_gives_what_the_same_export_gives_as_json(tmp_path: Path, kind: str) -> None:
    spans = [attributes("msg_1"), attributes("msg_2", "openai")]
    path = saved(tmp_path, framed([message(*spans)], kind))
    with File(str(path)) as file:
        chosen = detect(file)
    assert chosen is not None
    assert chosen.name == "otlp"
    records, skips = read(path)
    wanted, _ = read(write(tmp_path, "a.json", document(*spans)))
    assert skips == []
    assert [essence(record) for record in records] == [essence(record) for record in wanted]


def test_several_messages_in_a_file_are_read(tmp_path: Path) -> None:
    parts = [message(attributes(f"msg_{number}")) for number in range(3)]
    for kind in ("words", "varints"):
        records, _ = read(saved(tmp_path, framed(parts, kind)))
        assert len(records) == 3


VALUES = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=20),
    ),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=10,
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=10), VALUES, max_size=6))
def test_every_value_survives(values: dict[str, Any]) -> None:
    data = message(values)
    again, wanted = parsed_as(read_traces(data)), trace_pb2.TracesData.FromString(data)
    spans = [value.resource_spans[0].scope_spans[0].spans[0] for value in (again, wanted)]
    assert spans[0].attributes == spans[1].attributes


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_noise_is_a_record_error_or_nothing(data: bytes) -> None:
    with contextlib.suppress(RecordError):
        assert read_traces(data)["resourceSpans"]


def test_damage_costs_nothing_that_stands_before_it() -> None:
    parts = [message(attributes(f"msg_{number}")) for number in range(3)]
    data = framed(parts, "words")
    ends = [sum(len(part) + 4 for part in parts[: place + 1]) for place in range(3)]
    check_damage(data, ends)
