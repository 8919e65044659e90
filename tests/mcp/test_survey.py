"""A survey of forty endpoints at two revisions: each in its class, the tally right, and no word of anybody's kept."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import faulty_server
import jsonschema
import msgspec
import pytest
from survey_fleet import FLEET, JSON, LEGACY, MODERN, Message, always, error, fleet, good, is_modern, reply, scripted
from surveying import TWO, row_at, run_main, survey_of, surveyed

from rebilled.errors import InputError
from rebilled.mcp.endpoints import read_endpoints
from rebilled.mcp.survey_leg import Leg, decode_leg, encode_leg, faults
from rebilled.mcp.survey_pair import pair, refusals
from rebilled.mcp.survey_rate import spoken_of
from rebilled.mcp.verdict import HINTED
from rebilled.reports.pair_lines import pair_lines, pair_object
from rebilled.reports.style import Pen
from rebilled.reports.survey_lines import survey_lines
from rebilled.reports.survey_page import survey_page
from rebilled.reports.survey_words import meaning


class Done(NamedTuple):
    """A survey of the fleet by the command line, and all that it left. names: of the members by endpoint id."""

    code: int
    legs: dict[str, Leg]
    names: dict[str, str]
    written: dict[str, str]
    out: str
    err: str
    json: Any


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    folder = tmp_path_factory.mktemp("survey")
    path = folder / "fleet.txt"
    with fleet() as addresses:
        path.write_text("# forty\n\n" + "\n".join(addresses.values()) + "\n", encoding="utf-8")
        words = ("mcp", "survey", path, "-o", folder, "--timeout", "1", "--connections", "2", "--lists", "2", "--json")
        code, out, err = _run(*words, "--revision", LEGACY, "--revision", MODERN)
        endpoints = read_endpoints(path.read_bytes())
    names = {one.endpoint_id: name for one, name in zip(endpoints.asked, addresses, strict=True)}
    files = {file.name: file.read_text(encoding="utf-8") for file in sorted(folder.glob("fleet.*")) if file != path}
    legs = {rev: decode_leg(files[f"fleet.{rev}.json"].encode(), rev) for rev in TWO}
    screen = "\n".join(survey_lines(list(legs.values()), endpoints, "fleet.txt", ["a"], 100, Pen()))
    compared = pair(*legs.values())
    files |= {"screen": screen, "pair": "\n".join(pair_lines(compared, 100, Pen()))}
    files |= {"pair.json": json.dumps(pair_object(compared, ())), "json": out}
    return Done(code, legs, names, files, screen, err, json.loads(out))


def _run(*words: str | Path) -> tuple[int, str, str]:
    import subprocess
    import sys

    ran = subprocess.run([sys.executable, "-m", "rebilled", *map(str, words)], capture_output=True, check=False)
    return ran.returncode, ran.stdout.decode(), ran.stderr.decode()


# ---- the tally -------------------------------------------------------------------------------------------------------


def test_some_unreachable_endpoints_are_no_failure(done: Done) -> None:
    assert (done.code, done.err) == (0, "")
    assert sorted(done.written) == [
        *("fleet.2025-11-25.json", "fleet.2026-07-28.json", "fleet.md"),
        *("json", "pair", "pair.json", "screen"),
    ]


@pytest.mark.parametrize("name", FLEET)
def test_endpoint_is_in_its_class_at_both_revisions(name: str, done: Done) -> None:
    ids = {name: id_ for id_, name in done.names.items()}
    found = tuple(done.legs[revision].by_id[ids[name]].verdict for revision in TWO)
    assert found == (FLEET[name].legacy, FLEET[name].modern)


def test_tally_of_both_legs_is_right(done: Done) -> None:
    for revision, expected in ((LEGACY, "legacy"), (MODERN, "modern")):
        leg = done.legs[revision]
        assert leg.tally == Counter(getattr(member, expected) for member in FLEET.values())
        assert sum(leg.tally.values()) == len(leg.rows) == leg.endpoints == 40
        assert (leg.complete, faults(leg), leg.options.asked_revision) == (True, [], revision)


def test_every_class_has_its_words(done: Done) -> None:
    assert all(meaning(name) != "of no known class" for leg in done.legs.values() for name in leg.tally)


def test_rate_of_hints_is_of_the_lists_that_were_spoken_at_that_revision(done: Done) -> None:
    (modern,) = spoken_of(done.legs[MODERN])
    lists = Counter(member.modern in HINTED for member in FLEET.values())[True]
    legacy = Counter(member.legacy in HINTED for member in FLEET.values())[True]
    assert (modern.spoken_revision, modern.required) == (MODERN, True)
    assert (modern.both.part, modern.both.of, modern.ttl_zero.part) == (5, lists, 1)
    older = {spoken.spoken_revision: spoken.both for spoken in spoken_of(done.legs[LEGACY])}
    assert {revision: (both.part, both.of) for revision, both in older.items()} == {
        "2025-11-25": (1, legacy - 1),
        "2025-06-18": (0, 1),
    }


def test_codes_of_a_refusal_are_kept(done: Done) -> None:
    rows = {done.names[id_]: row for id_, row in done.legs[MODERN].by_id.items()}
    assert (rows["400 page"].open.http, rows["400 page"].open.body_is_jsonrpc) == (400, False)
    assert (rows["legacy only"].open.http, rows["legacy only"].open.jsonrpc_code) == (400, -32000)
    assert rows["other modern"].supported_versions == ("2027-01-01",)
    assert rows["login"].open.body_is_jsonrpc is None
    assert rows["list error"].cut is not None
    assert (rows["list error"].cut.http, rows["list error"].cut.jsonrpc_code) == (200, -32603)


def test_what_was_asked_and_what_was_spoken_are_told_apart(done: Done) -> None:
    row = next(row for id_, row in done.legs[LEGACY].by_id.items() if done.names[id_] == "older revision")
    assert (row.asked_revision, row.spoken_revision, row.era) == (LEGACY, "2025-06-18", "legacy")
    assert not row.hint_required_here


def test_lists_that_move_are_found_by_the_checks(done: Done) -> None:
    rows = {done.names[id_]: row for id_, row in done.legs[MODERN].by_id.items()}
    assert (rows["shuffle"].checks["list.order"], rows["good"].checks["list.order"]) == ("warn", "pass")
    assert rows["key order"].checks["list.serialisation_stable"] == "fail"
    assert "came in several orders" in done.out


def test_json_tells_lines_and_files_beside_the_legs(done: Done) -> None:
    assert done.json["schema"] == "rebilled.mcp-survey/1"
    assert [entry["line"] for entry in done.json["lines"]] == list(range(3, 43))
    assert [Path(name).name for name in done.json["files"]] == [
        "fleet.2025-11-25.json",
        "fleet.2026-07-28.json",
        "fleet.md",
    ]


# ---- what is kept ----------------------------------------------------------------------------------------------------


def test_artifact_keeps_its_schema(done: Done) -> None:
    schema = msgspec.json.schema(Leg)
    for revision in TWO:
        jsonschema.Draft202012Validator(schema).validate(json.loads(done.written[f"fleet.{revision}.json"]))


def test_no_word_of_a_server_and_no_address_is_written(done: Done) -> None:
    words = [
        *faulty_server.SECRET_WORDS.split(),
        *faulty_server.NAMES,
        "Café",
        "127.0.0.1",
        "localhost",
        "no-such-host",
        "/mcp",
    ]
    for name, text in done.written.items():
        assert not [word for word in words if word in text], name


HOSTILE = ("<script>alert(1)</script>", "\x1b[31mred\x1b[0m", "**bold** [link](http://evil.example)", "| --- |", "`x`")
MARKS = ("script", "\x1b", "\\u001b", "bold", "evil", "alert", "red\\", "`x`")


def hostile_text(message: Message) -> tuple[int, dict[str, str], bytes]:
    """A server that answers rightly, with bad texts wherever a text can stand."""
    text = " ".join(HOSTILE)
    head = {"content-type": "application/json", "mcp-session-id": "<script>", "server": "<script>", "x-a": "<b>alert"}
    schema = {"type": "object", "properties": {text: {"type": "string", "x-mcp-header": text, "description": text}}}
    tool = {"name": text, "title": text, "description": text, "inputSchema": schema, "outputSchema": {text: text}}
    tool |= {"annotations": {text: text}, "_meta": {text: text}}
    info = {"name": text, "version": text}
    common = {"resultType": text, "ttlMs": text, "cacheScope": text, "_meta": {text: text}, text: text}
    results = {
        "initialize": {
            "protocolVersion": LEGACY,
            "capabilities": {"tools": {text: text}, text: text},
            "serverInfo": info,
        },
        "server/discover": {"supportedVersions": [MODERN, text, "٢٠٢٦-٠٧-٢٨"], "capabilities": {"tools": {}}, **common},
        "tools/list": {"tools": [tool], **common},
    }
    if message["method"] not in results:
        return 202, head, b""
    status, _, body = reply(message, results[message["method"]])
    return status, head, body


def hostile_error(message: Message) -> tuple[int, dict[str, str], bytes]:
    """A server that refuses everything with bad texts."""
    data = {"supported": list(HOSTILE), "requested": HOSTILE[0], HOSTILE[1]: HOSTILE[2]}
    if "id" not in message:
        return 202, {}, b""
    fault = {"code": -32022, "message": " ".join(HOSTILE), "data": data}
    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": fault}).encode()
    return 400, {"content-type": "application/json", "www-authenticate": "alert"}, body


@pytest.mark.parametrize("script", [hostile_text, hostile_error, always(400, " ".join(HOSTILE).encode())])
def test_bad_texts_reach_neither_artifact_nor_page_nor_screen(script: Any) -> None:
    with scripted(script) as address:
        legs = surveyed(address)
        endpoints = read_endpoints(address.encode())
    compared = pair(*legs)
    written = [
        *(encode_leg(leg).decode() for leg in legs),
        survey_page(legs).decode(),
        "\n".join(survey_lines(legs, endpoints, "list.txt", ["a.json"], 100, Pen())),
        "\n".join(pair_lines(compared, 100, Pen())),
        json.dumps(pair_object(compared, ())),
    ]
    assert not [mark for mark in MARKS for text in written if mark in text]
    assert "٢" not in "".join(written)


def test_hostile_list_is_still_classed() -> None:
    with scripted(hostile_text) as address:
        row = row_at(address)
    assert (row.verdict, row.supported_versions) == ("INVALID_HINT", ("2026-07-28", "other", "other"))
    assert {(entry.scope, entry.result_type, entry.ttl_type) for entry in row.lists} == {("other", "other", "string")}


# ---- manners ---------------------------------------------------------------------------------------------------------


def test_no_tool_is_called_and_nothing_else_is_asked() -> None:
    seen: list[str] = []
    server = faulty_server.Server("listen_good")
    connection = server.connect()

    def script(message: Message) -> tuple[int, dict[str, str], bytes]:
        seen.append(message["method"])
        status, answer = server.answer(message, connection)
        return (status, {}, b"") if answer is None else (status, JSON, server.encode(answer))

    with scripted(script) as address:
        surveyed(address)
    assert set(seen) == {"initialize", "notifications/initialized", "server/discover", "tools/list"}


@pytest.mark.parametrize(("status", "verdict"), [(429, "rate_limited_429"), (503, "server_error_5xx")])
def test_host_that_asks_to_be_left_alone_is(status: int, verdict: str) -> None:
    seen: list[str] = []
    limit = always(status, retry_after="9")

    def script(message: Message) -> tuple[int, dict[str, str], bytes]:
        seen.append(message["method"])
        return limit(message)

    with scripted(script) as address:
        legs = surveyed(address, address.replace("/mcp", "/other"))
    assert len(seen) == 1
    verdicts = Counter(row.verdict for leg in legs for row in leg.rows)
    assert verdicts == {"left_alone": 2, verdict: 2}


def test_host_that_says_503_without_a_time_is_asked_again() -> None:
    with scripted(always(503)) as address:
        assert Counter(row.verdict for leg in surveyed(address) for row in leg.rows) == {"server_error_5xx": 2}


def test_limit_in_the_midst_of_the_lists_keeps_the_list_that_came() -> None:
    lists = 0
    inner = good()

    def script(message: Message) -> tuple[int, dict[str, str], bytes]:
        nonlocal lists
        lists += message["method"] == "tools/list"
        return (429, {}, b"") if lists > 1 else inner(message)

    with scripted(script) as address:
        row = row_at(address)
    assert (row.verdict, row.complete, len(row.lists)) == ("RESULT_LEVEL_HINT", False, 1)
    assert row.cut is not None
    assert row.cut.verdict == "rate_limited_429"


def test_name_that_stands_for_this_machine_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rebilled.mcp.survey.heeds_robots", lambda _: False)

    async def here(*_: object, **__: object) -> list[Any]:
        return [(2, 1, 6, "", ("127.0.0.1", 0))]

    monkeypatch.setattr("asyncio.base_events.BaseEventLoop.getaddrinfo", here)
    for private in (False, True):
        assert row_at("https://inside.example/mcp", private=private).verdict == "address_blocked"


def test_robots_txt_is_heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rebilled.mcp.survey.heeds_robots", lambda _: True)
    seen: list[str] = []
    inner = good()

    def script(message: Message) -> tuple[int, dict[str, str], bytes]:
        seen.append(message["method"])
        return inner(message)

    rules = b"User-agent: *\nDisallow: /mcp\n"
    with scripted(script, get=(200, {}, rules)) as address:
        legs = surveyed(address)
        assert seen == []
        assert {row.verdict for leg in legs for row in leg.rows} == {"robots_disallowed"}
        assert row_at(address.replace("/mcp", "/other")).verdict == "RESULT_LEVEL_HINT"
        assert row_at(address, robots=False).verdict == "RESULT_LEVEL_HINT"


def test_fault_of_ours_is_a_row_and_counts_against_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("rebilled.mcp.survey.row_of", fail)
    with scripted(good()) as address:
        legs = surveyed(address)
    assert [leg.tally for leg in legs] == [{"instrument_failed": 1}, {"instrument_failed": 1}]
    assert [refusal.reason for refusal in refusals(*legs)] == ["instrument_rejected"]


# ---- cut short, and gone on with -------------------------------------------------------------------------------------


def test_survey_that_is_cut_short_keeps_whole_pairs_and_is_gone_on_with() -> None:
    asked_twice: list[str] = []
    quick, slow = good(), good()
    held = True

    def hold(message: Message) -> tuple[int, dict[str, str], bytes]:
        import time

        if held and is_modern(message):
            time.sleep(0.8)
        return slow(message)

    def once(message: Message) -> tuple[int, dict[str, str], bytes]:
        asked_twice.append(message["method"])
        return quick(message)

    async def cut(asked: Any) -> None:
        task = asyncio.create_task(asked.run())
        await asyncio.sleep(0.5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    with scripted(once) as first, scripted(hold) as second:
        asked = survey_of([first, second])
        asyncio.run(cut(asked))
        legs = asked.legs()
        assert [(leg.complete, len(leg.rows), leg.endpoints, faults(leg)) for leg in legs] == [(False, 1, 2, [])] * 2
        assert [decode_leg(encode_leg(leg), "x") for leg in legs] == legs
        assert "Cut short after 1 of 2" in survey_page(legs).decode()
        calls, held = len(asked_twice), False
        again = survey_of([first, second])
        again.go_on_from(dict(zip(TWO, legs, strict=True)))
        asyncio.run(again.run())
    assert [leg.complete for leg in again.legs()] == [True, True]
    assert len(asked_twice) == calls
    assert [leg.started for leg in again.legs()] == [leg.started for leg in legs]


@pytest.mark.parametrize(
    ("change", "part"),
    [({"lists": 1}, "the options"), ({"timeout_s": 2}, "the options"), ({"more": True}, "the list of endpoints")],
)
def test_survey_is_not_gone_on_with_in_another_way(change: dict[str, Any], part: str) -> None:
    more = ["http://127.0.0.1:2/mcp"] if change.pop("more", False) else []
    before = survey_of(["http://127.0.0.1:1/mcp"]).legs()
    with pytest.raises(InputError, match=part):
        survey_of(["http://127.0.0.1:1/mcp", *more], **change).go_on_from(dict(zip(TWO, before, strict=True)))


def test_error_in_words_of_another_code_is_no_class_of_its_own() -> None:
    with scripted(lambda message: error(message, 200, -32601)) as address:
        assert (row_at(address, LEGACY).verdict, row_at(address).verdict) == ("init_error_-32601", "legacy_only")


def test_order_of_revisions_is_left_to_chance() -> None:
    order: list[str] = []
    asked = survey_of(["http://127.0.0.1:1/mcp"], shuffle=order.extend)
    asyncio.run(asked.run())
    assert order == list(TWO)


def test_command_line_prints_the_screen(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    path = tmp_path / "list.txt"
    with scripted(good()) as address:
        path.write_text(address)
        words = ("mcp", "survey", path, "-o", tmp_path, "--revision", MODERN, "--lists", "1", "--connections", "1")
        code, out, err = run_main(capsysbinary, *words)
    assert (code, err) == (0, "")
    assert "1 of 1 list carries both caching hints" in " ".join(out.split())
