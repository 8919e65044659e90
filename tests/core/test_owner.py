"""Whose a step is: what logs and bodies say, and which of it is taken."""

from __future__ import annotations

import json
from typing import Any

import pytest

from builders import ANTHROPIC, CHAT, RESPONSES, Talk, step, traced, user
from rebilled.model import Step
from rebilled.owner import caller_in, named_owners, owners_of, user_in

SESSION = "0f0e0d0c-1111-4222-8333-444455556666"


def steps(*logged: dict[str, Any], api: str = ANTHROPIC, **params: Any) -> list[Step]:
    talks = [Talk(api, meta=meta, turns=(user(f"task {at}"),), params=params) for at, meta in enumerate(logged)]
    return traced(step(talk, at=60.0 * at) for at, talk in enumerate(talks)).steps


def named(found: list[Step]) -> list[tuple[str, str]]:
    owners = named_owners(found)
    return [(owners[each.number].kind, owners[each.number].name) for each in found]


@pytest.mark.parametrize("name", ["tenant", "tenant_id", "organization_id", "org_id", "customer_id"])
def test_tenant_comes_before_user_and_session(name: str) -> None:
    found = steps({name: "acme", "user": "anna", "session": "s"}, {name: 17, "user": "ben", "session": "t"})
    assert named(found) == [("tenant", "acme"), ("tenant", "17")]


@pytest.mark.parametrize(
    ("api", "params", "expected"),
    [
        (ANTHROPIC, {"metadata": {"user_id": "anna"}}, ("user", "anna")),
        (CHAT, {"user": "anna"}, ("user", "anna")),
        (CHAT, {"user": "anna", "safety_identifier": "hash"}, ("user", "hash")),
        (RESPONSES, {"safety_identifier": "hash"}, ("user", "hash")),
        (RESPONSES, {"prompt_cache_key": "acme"}, ("cache key", "acme")),
    ],
)
def test_body_says_whose_it_is(api: str, params: dict[str, Any], expected: tuple[str, str]) -> None:
    assert named(steps({}, api=api, **params)) == [expected]


def test_log_has_the_say_over_the_body() -> None:
    assert named(steps({"user_id": "ben"}, metadata={"user_id": "anna"})) == [("user", "ben")]


def test_session_serves_where_nothing_else_is_logged_and_the_run_without_one() -> None:
    assert named(steps({"session": "s"})) == [("session", "s")]
    assert named(steps({}, {}))[0] == ("run", "run-1")


def test_kind_that_few_steps_have_is_not_taken() -> None:
    found = steps({"tenant": "acme", "user": "anna"}, {"user": "ben"}, {"user": "eve"})
    assert [kind for kind, _ in named(found)] == ["user", "user", "user"]


def test_step_without_the_kind_of_the_others_is_its_runs() -> None:
    kinds = [kind for kind, _ in named(steps({"tenant": "acme"}, {"tenant": "birch"}, {}))]
    assert kinds == ["tenant", "tenant", "run"]


def test_one_tenant_for_all_gives_way_to_users_who_differ() -> None:
    assert [name for _, name in named(steps(*({"tenant": "us", "user": user} for user in "ab")))] == ["a", "b"]
    assert named(steps(*({"tenant": "us", "user": "a"} for _ in "ab")))[0] == ("tenant", "us")
    assert named(steps(*({"tenant": tenant, "user": "a"} for tenant in "xy")))[0] == ("tenant", "x")


@pytest.mark.parametrize("value", ["", "  ", None, True, 1.5, ["acme"], {"id": "acme"}])
def test_value_that_names_nobody_is_none(value: Any) -> None:
    assert {owner.kind for owner in owners_of(steps({"tenant": value})[0])} == {"run"}


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (f"user_ab12_account_9f_session_{SESSION}", "user_ab12_account_9f"),
        (json.dumps({"device_id": "d", "account_uuid": "a", "session_id": SESSION}), "a"),
        (json.dumps({"device_id": "d", "account_uuid": "", "session_id": SESSION}), "d"),
        (json.dumps({"session_id": "s"}), json.dumps({"session_id": "s"})),
        ("{not json", "{not json"),
        ("[" * 5000, "[" * 5000),
        ("{" + '"a":{' * 5000, "{" + '"a":{' * 5000),
        ("my_session_plan", "my_session_plan"),
        (7, ""),
        (None, ""),
    ],
)
def test_user_is_told_without_the_session_that_clients_write_behind_it(value: Any, name: str) -> None:
    assert user_in(value) == name


@pytest.mark.parametrize(
    ("holders", "found"),
    [
        (({"tenant_id": "acme", "userId": 7},), {"tenant": "acme", "user": "7"}),
        (({"Tenant-Id": "acme"}, {"tenant": "birch", "user": "anna"}), {"tenant": "acme", "user": "anna"}),
        (({"user_api_key_team_id": "t-1", "user_api_key_end_user_id": "anna"},), {"tenant": "t-1", "user": "anna"}),
        (({"user_api_key_org_id": "o-1", "user_api_key_team_id": "t-1"},), {"tenant": "o-1"}),
        (({"tenant": "", "organization": "acme"},), {"tenant": "acme"}),
        (({"tenant": ["acme"], 3: "x", "username": "anna"}, None, "text", ["tenant"]), {}),
    ],
)
def test_caller_is_told_however_its_name_is_written(holders: tuple[Any, ...], found: dict[str, str]) -> None:
    assert caller_in(*holders) == found
