"""The commands that explain: causes, prices, providers, formats."""

from __future__ import annotations

from pathlib import Path

import pytest
from shell import run

from rebilled.causes import CAUSES
from rebilled.causes.cause import HEADINGS
from rebilled.formats import FORMATS
from rebilled.providers import APIS

Capture = pytest.CaptureFixture[bytes]


# ---- causes --------------------------------------------------------------------------------------------------------


def test_causes_lists_all_with_the_fields_of_the_contract(capsysbinary: Capture) -> None:
    listed = run(capsysbinary, "causes", "--json").json
    assert {entry["code"] for entry in listed} == {cause.code for cause in CAUSES}
    assert {"code", "name", "title", "section", "explanation", "remedy"} <= set(listed[0])
    screen = run(capsysbinary, "causes").out
    assert all(cause.name in screen for cause in CAUSES)


@pytest.mark.parametrize("word", ["RB201", "rb201", "tools_reordered", "Tools_Reordered"])
def test_one_cause_by_code_or_name_comes_with_its_texts(capsysbinary: Capture, word: str) -> None:
    found = run(capsysbinary, "causes", word, "--json").json
    assert found["code"] == "RB201"
    assert list(found["texts"]) == list(HEADINGS)
    assert "$.tools[0].name" in found["texts"]["Example"]
    screen = run(capsysbinary, "causes", word).out
    assert all(heading in screen for heading in HEADINGS)


def test_unknown_cause_names_the_nearest(capsysbinary: Capture) -> None:
    done = run(capsysbinary, "causes", "tools_reorderd")
    assert done.code == 2
    assert "tools_reordered" in done.err


def test_prose_of_a_cause_is_set_anew_for_a_narrow_screen(capsysbinary: Capture) -> None:
    text = run(capsysbinary, "causes", "RB201", "--width", "70").out
    part = text.split("Why it costs\n")[1].split("\n\n")[0]
    assert max(map(len, part.splitlines())) <= 70


# ---- prices --------------------------------------------------------------------------------------------------------


def test_prices_of_a_model_are_dated_and_have_a_source(capsysbinary: Capture) -> None:
    rows = run(capsysbinary, "prices", "claude-opus-5", "--json").json
    standard = next(row for row in rows if row["mode"] == "standard")
    assert (standard["input_usd_per_mtok"], standard["cache_read_usd_per_mtok"]) == (5, 0.5)
    assert standard["source"]
    assert standard["read"] in run(capsysbinary, "prices", "claude-opus-5").out


def test_date_keeps_the_rates_in_force(tmp_path: Path, capsysbinary: Capture) -> None:
    rates = tmp_path / "rates.toml"
    rates.write_text('["house-model"]\ninput = 1\noutput = 4\nfrom = 2026-09-01\nuntil = 2026-09-30\n')
    words = ("prices", "house-model", "--prices", rates, "--json", "--date")
    assert [len(run(capsysbinary, *words, day).json) for day in ("2026-08-31", "2026-09-01", "2026-10-01")] == [0, 1, 0]


@pytest.mark.parametrize(
    ("words", "part"),
    [(("claude-opus-55x",), "claude-opus-5"), (("claude-opus-5", "--date", "today"), "YYYY-MM-DD")],
)
def test_model_or_day_that_is_none_is_one_line(capsysbinary: Capture, words: tuple[str, ...], part: str) -> None:
    done = run(capsysbinary, "prices", *words)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert part in done.err


def test_all_prices_fit_the_width(capsysbinary: Capture) -> None:
    assert max(map(len, run(capsysbinary, "prices", "--width", "110").out.splitlines())) <= 110


# ---- providers and formats -----------------------------------------------------------------------------------------


def test_providers_show_rules_with_source_and_day_and_every_api(capsysbinary: Capture) -> None:
    listed = run(capsysbinary, "providers", "--json").json
    assert {api["name"] for entry in listed for api in entry["apis"]} == {api.name for api in APIS}
    assert all({"source", "as_of"} <= set(entry["rules"]) for entry in listed if entry["rules"])
    screen = run(capsysbinary, "providers", "anthropic").out
    assert "anthropic.messages" in screen
    assert "openai" not in screen


def test_api_names_its_provider_too(capsysbinary: Capture) -> None:
    assert run(capsysbinary, "providers", "openai.responses", "--json").json[0]["provider"] == "openai"


def test_unknown_provider_names_those_that_are_known(capsysbinary: Capture) -> None:
    done = run(capsysbinary, "providers", "nobody")
    assert done.code == 2
    assert "anthropic" in done.err


def test_formats_are_those_of_the_registry(capsysbinary: Capture) -> None:
    listed = run(capsysbinary, "formats", "--json").json
    assert [entry["name"] for entry in listed] == [form.name for form in FORMATS]
    assert all(entry["title"] in run(capsysbinary, "formats").out for entry in listed)
