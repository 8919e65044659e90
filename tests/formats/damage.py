"""Damage to a log, and what must survive it: nothing raises, and what stands before the damage is read as before."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rebilled.model import Record

from .build import read


def identity(record: Record) -> tuple[bytes | None, bytes | None, tuple[bytes, ...]]:
    return record.body, record.response, record.events


def check_damage(data: bytes, ends: list[int], *, whole: Callable[[Record], object] = identity) -> None:
    """Cut, flip and splice a log of which record n is complete at byte `ends[n]`, and read it each time.

    whole: what of a record must be as it was.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged"
        path.write_bytes(data)
        before = [whole(record) for record in read(path)[0]]
        assert len(before) == len(ends)

        @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        @given(st.data())
        def check(choose: st.DataObject) -> None:
            at = choose.draw(st.integers(0, len(data) - 1))
            kind = choose.draw(st.sampled_from(("cut", "flip", "splice", "drop", "zero")))
            path.write_bytes(damage(data, at, kind, choose))
            records, _ = read(path)
            if at >= ends[0]:
                kept = [one for one, end in zip(before, ends, strict=True) if end <= at]
                found = [whole(record) for record in records]
                assert all(one in found for one in kept), (kind, at)

        check()


def damage(data: bytes, at: int, kind: str, choose: st.DataObject) -> bytes:
    if kind == "cut":
        return data[:at]
    if kind == "flip":
        return data[:at] + bytes([data[at] ^ choose.draw(st.integers(1, 255))]) + data[at + 1 :]
    if kind == "zero":
        return data[:at] + b"\0" * 7 + data[at + 7 :]
    other = choose.draw(st.integers(0, len(data)))
    if kind == "drop":
        return data[:at] + data[max(at, other) :]
    return data[:at] + data[other : other + choose.draw(st.integers(1, 300))] + data[at:]
