"""Bodies that only Python's json reads are compared like any other."""

from __future__ import annotations

import json

import pytest

from builders import ANTHROPIC, OPENING, TOOLS, Talk, call_and_result, judged, record, response_of, usage_of

ODD = {
    "NaN": ('"limit": 1', '"limit": NaN'),
    "a number beyond a float": ('"limit": 1', '"limit": 1e999'),
    "an integer beyond 64 bits": ('"limit": 1', '"limit": 123456789012345678901234567890'),
    "half of a surrogate pair": ('"limit": 1', '"limit": "\\ud83d"'),
    "a key that stands twice": ('"max_tokens": 4096', '"max_tokens": 1, "max_tokens": 4096'),
    "a section that stands twice": ('"max_tokens": 4096', '"messages": [], "max_tokens": 4096'),
    "deep nesting": ('"limit": 1', f'"limit": {"[" * 300}{"]" * 300}'),
}


def odd(talk: Talk, name: str) -> bytes:
    plain, strange = ODD[name]
    raw = json.dumps(talk.body)
    assert plain in raw
    return raw.replace(plain, strange).encode()


@pytest.mark.parametrize("name", ODD)
def test_an_odd_body_is_read_and_compared(name: str) -> None:
    talk = Talk(ANTHROPIC, turns=(OPENING, *call_and_result(1)))
    grown = talk.grown(*call_and_result(2))
    shuffled = grown.with_(tools=TOOLS[::-1])
    size = talk.tokens
    usages = [
        usage_of(ANTHROPIC, write=size),
        usage_of(ANTHROPIC, read=size, write=300),
        usage_of(ANTHROPIC, write=size),
    ]
    records = [
        record(odd(made, name), response_of(ANTHROPIC, usage, ident=f"r{place}"), at=20.0 * place)
        for place, (made, usage) in enumerate(zip((talk, grown, shuffled), usages, strict=True))
    ]
    found = [result.verdict for result in judged(records)]
    assert [verdict.cause for verdict in found] == ["first_request", "none", "tools_reordered"]
    place = found[2].divergence
    assert place is not None
    assert (place.json_path, place.byte_offset) == ("$.tools[0].name", 9)


@pytest.mark.parametrize("name", [name for name in ODD if "twice" not in name])
def test_an_odd_value_that_changed_is_found(name: str) -> None:
    talk = Talk(ANTHROPIC, turns=(OPENING, *call_and_result(1)))
    raws = [json.dumps(talk.body).encode(), odd(talk, name)]
    answers = [response_of(ANTHROPIC, usage_of(ANTHROPIC, write=talk.tokens), ident=f"s{n}") for n in range(2)]
    found = judged(record(raw, answer, at=0.0) for raw, answer in zip(raws, answers, strict=True))[1].verdict
    assert found.divergence is not None
    assert found.divergence.json_path == "$.messages[1].content[1].input.limit"
