"""What a probe must never do: shake hands in the new era, keep a word of the server's, keep or show a credential."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import faulty_server
import msgspec
import pytest
from probing import command, found, leg, options, probe_command, probe_http, probe_stdio, probe_url, serving, url_of

from rebilled.mcp.artifact import load
from rebilled.mcp.asking import ask, connect_command, limits_of
from rebilled.mcp.target import server_run_by
from rebilled.reports.probe_lines import probe_lines
from rebilled.reports.style import Pen

KEY = "Bearer k3y-that-nobody-may-see"
LIES = ("shuffle", "name_bad", "timestamp", "set_by_connection", "list_error", "crash", "garbage", "scope_other")


def written(probe: Any) -> str:
    """All that a probe leaves: its JSON and its screen."""
    return msgspec.json.encode(probe).decode() + "\n".join(probe_lines(probe, 100, Pen()))


# ---- eras ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("era", ["both", "modern"])
def test_modern_leg_never_shakes_hands(era: str) -> None:
    with serving("good", era) as running:
        server = running.RequestHandlerClass
        probe = probe_url(url_of(running), revisions=("2026-07-28",))
        del server
    assert probe.complete
    assert [one.era for one in probe.legs] == ["modern"]
    assert set(probe.legs[0].messages) == {"server/discover", "tools/list"}


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_server_sees_no_handshake_where_only_the_new_era_is_asked(transport: str, tmp_path: Path) -> None:
    if transport == "http":
        running = faulty_server.serve_http(server := faulty_server.Server("shuffle"))
        probe_url(url_of(running), revisions=("2026-07-28",), concurrent=2, negative=True, vary_capabilities=True)
        running.shutdown()
        running.server_close()
        seen = set(server.methods)
    else:
        probe = probe_stdio("shuffle", tmp_path, revisions=("2026-07-28",), concurrent=2, vary_capabilities=True)
        seen = set(probe.legs[0].messages)
    assert seen == {"server/discover", "tools/list"}


@pytest.mark.parametrize(
    ("era", "spoken", "refused"),
    [
        ("both", ["2025-06-18", "2025-11-25", "2026-07-28"], {}),
        ("modern", ["2026-07-28"], {"2025-06-18": "init_error_-32022", "2025-11-25": "init_error_-32022"}),
        ("legacy", ["2025-06-18", "2025-11-25"], {"2026-07-28": "legacy_only"}),
        ("2025-06-18", ["2025-06-18"], {"2025-11-25": "other_revision", "2026-07-28": "legacy_only"}),
        ("2024-11-05", ["2024-11-05"], {"2025-11-25": "other_revision", "2026-07-28": "legacy_only"}),
    ],
)
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_eras_are_told_apart(
    era: str, spoken: list[str], refused: dict[str, str], transport: str, tmp_path: Path
) -> None:
    asked: dict[str, Any] = {"revisions": (), "connections": 2, "lists": 1}
    probe = probe_stdio("good", tmp_path, era, **asked) if transport == "stdio" else probe_http("good", era, **asked)
    assert probe.complete
    assert [one.revision for one in probe.legs] == spoken
    assert {entry.asked_revision: entry.verdict for entry in probe.not_spoken} == refused
    assert all(not found(one) for one in probe.legs)


def test_legacy_server_owes_no_hints_and_no_order() -> None:
    levels = {check.id: check.level for check in leg(probe_http("shuffle", "legacy"), "legacy").checks}
    assert {levels[name] for name in ("list.order", "list.set_per_connection", "list.set_side_effect")} == {"cost"}
    results = {check.id: check.result for check in leg(probe_http("good", "legacy"), "legacy").checks}
    assert {result for id_, result in results.items() if id_.startswith("hints.")} == {"na"}


# ---- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", LIES)
def test_no_word_of_the_server_is_kept(mode: str, tmp_path: Path) -> None:
    for probe in (
        probe_stdio(mode, tmp_path, timeout_ms=400, vary_capabilities=True, negative=True),
        probe_http(mode, timeout_ms=400, negative=True),
    ):
        text = written(probe)
        words = [*faulty_server.SECRET_WORDS.split(), *faulty_server.NAMES, "Café", "shared", "close note", "As of"]
        assert not [word for word in words if word in text]


def test_digests_of_names_change_from_run_to_run_and_those_of_definitions_do_not() -> None:
    one, other = (leg(probe_http("good", revisions=("2026-07-28",)), "modern") for _ in range(2))
    assert not {tool.tool for tool in one.tools} & {tool.tool for tool in other.tools}
    assert one.lists[0].order != other.lists[0].order
    assert one.lists[0].canonical == other.lists[0].canonical


def test_definitions_are_equal_over_the_eras_where_only_their_spelling_differs() -> None:
    probe = probe_http("good")
    assert len({one.lists[0].canonical for one in probe.legs}) == 1


def test_artifact_can_be_read_again() -> None:
    probe = probe_http("shuffle")
    assert load(msgspec.json.encode(probe)) == probe


# ---- credentials -----------------------------------------------------------------------------------------------------


def test_header_is_sent_but_never_kept() -> None:
    with serving("good", token=KEY) as running:
        probe = probe_url(url_of(running), header={"authorization": KEY})
        refused = probe_url(url_of(running), header={"authorization": "Bearer other"})
    assert probe.complete
    assert "k3y" not in written(probe)
    assert (refused.complete, refused.verdict) == (False, "auth_required")


def test_public_list_behind_a_login_is_to_be_looked_at() -> None:
    with serving("public", token=KEY) as running:
        assert found(leg(probe_url(url_of(running), header={"authorization": KEY}), "modern")) == {
            "scope.public_on_auth": "warn"
        }
    with serving("public") as running:
        assert not found(leg(probe_url(url_of(running), header={"authorization": KEY}), "modern"))


def test_server_gets_the_given_environment_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN_SECRET", "not-for-servers")
    dump = tmp_path / "environment"
    code = f"import os,json;open({str(dump)!r},'w').write(json.dumps(dict(os.environ)))"
    words = [*command("good")[:3], "-c", code]
    chosen = options(revisions=("2025-11-25",))
    ask(
        server_run_by(words, None),
        connect_command(words, {"TOKEN": "k3y"}, limits_of(chosen)),
        chosen,
        version="0",
        clock=lambda: 0.0,
    )
    given = msgspec.json.decode(dump.read_bytes())
    assert given["TOKEN"] == "k3y"
    assert "OWN_SECRET" not in given


def test_arguments_of_a_command_are_not_kept() -> None:
    probe = probe_command([*command("good"), "--api-key", "sk-very-secret"], lists=1, connections=1)
    assert probe.complete
    assert "sk-very-secret" not in written(probe)
