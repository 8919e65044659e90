from __future__ import annotations

from pathlib import Path

import pytest

from rebilled.formats.pairs import pair_files

from .build import body, call, compact, parsed, read_all, reply, write

STREAM = 'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":1}}}\n\n'


@pytest.mark.parametrize(
    ("request_name", "response_name"),
    [
        ("001_request.json", "001_response.json"),
        ("request-7.json", "response-7.json"),
        ("req_7.json", "res_7.json"),
        ("req.7.json", "resp.7.json"),
        ("7.prompt.json", "7.completion.json"),
        ("7.Request.json", "7.Response.txt"),
        ("a-request.json", "a-response.json.gz"),
        ("requests.json", "responses.json"),
    ],
)
def test_files_that_differ_by_the_word_are_pairs(request_name: str, response_name: str) -> None:
    paths = [f"d/{request_name}", f"d/{response_name}"]
    assert pair_files(paths) == pair_files(paths[::-1]) == [(paths[0], paths[1])]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1_request.json", "2_response.json"),
        ("d/request.json", "e/response.json"),
        ("request.json", "request2.json"),
        ("frequest.json", "fresponse.json"),
        ("requested.json", "responseed.json"),
        ("restart.json", "reqtart.json"),
    ],
)
def test_other_files_are_no_pairs(first: str, second: str) -> None:
    assert pair_files([first, second]) == [(first, None), (second, None)]


def test_a_pair_is_one_record_with_both_sides(tmp_path: Path) -> None:
    write(tmp_path, "01_request.json", body("one"), indent=2)
    write(tmp_path, "01_response.json", reply("a"), indent=2)
    write(tmp_path, "02_request.json", {"url": "https://h.test/v1/messages", "body": body("two")}, indent=2)
    write(tmp_path, "02_response.json", {"status": 200, "headers": {"request-id": "req_2"}, "body": reply("b")})
    records, skips = read_all(tmp_path)
    assert skips == []
    assert [parsed(record.response)["id"] for record in records] == ["a", "b"]
    data = (tmp_path / "01_request.json").read_bytes()
    assert records[0].body is not None
    assert records[0].body_offset is not None
    assert data[records[0].body_offset :].startswith(records[0].body)
    assert (records[1].status, records[1].request_id) == (200, "req_2")


def test_a_response_file_may_be_a_stream(tmp_path: Path) -> None:
    write(tmp_path, "1.request.json", body())
    write(tmp_path, "1.response.txt", STREAM)
    records, skips = read_all(tmp_path)
    assert (len(records), len(records[0].events), skips) == (1, 1, [])


def test_lines_pair_with_lines(tmp_path: Path) -> None:
    write(tmp_path, "requests.jsonl", body("one"), body("two"))
    write(tmp_path, "responses.jsonl", reply("a"), reply("b"))
    records, skips = read_all(tmp_path)
    assert ([parsed(record.response)["id"] for record in records], skips) == (["a", "b"], [])


def test_lines_that_do_not_match_are_listed(tmp_path: Path) -> None:
    write(tmp_path, "requests.jsonl", body("one"), body("two"))
    write(tmp_path, "responses.jsonl", reply("a"))
    records, skips = read_all(tmp_path)
    assert [record.response for record in records] == [None, None]
    assert [skip.reason for skip in skips] == ["unknown_format"]


def test_a_request_file_with_its_own_responses_does_not_lose_them(tmp_path: Path) -> None:
    write(tmp_path, "request.json", call())
    write(tmp_path, "response.json", reply("other"))
    records, _ = read_all(tmp_path)
    assert parsed(records[0].response) == reply()


def test_one_side_alone_is_still_read(tmp_path: Path) -> None:
    write(tmp_path, "1_request.json", body())
    write(tmp_path, "2_response.json", reply())
    records, skips = read_all(tmp_path)
    assert [(record.body is None, record.response is None) for record in records] == [(False, True), (True, False)]
    assert skips == []


def test_a_broken_response_leaves_the_request(tmp_path: Path) -> None:
    write(tmp_path, "1_request.json", body())
    write(tmp_path, "1_response.json", compact(reply())[:30])
    records, _ = read_all(tmp_path)
    assert len(records) == 1
    assert records[0].body is not None
