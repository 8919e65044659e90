"""The helpers for an agent: sorted tools, frozen values, and a prefix that a unit test can assert."""

from __future__ import annotations

import http.server
import json
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import EVERY, Talk, analysed, call_and_result, shuffled, step, tools
from rebilled import stable
from rebilled.errors import InputError

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
NAMES = ("read_file", "write_file", "list_dir", "run_shell")


# ---- sort_tools ----------------------------------------------------------------------------------------------------


def tool_list(shape: str) -> list[dict[str, Any]]:
    names = ["zip", "add", "mix"]
    made: dict[str, list[dict[str, Any]]] = {
        "anthropic": [{"name": name, "input_schema": {}} for name in names],
        "chat": [{"type": "function", "function": {"name": name}} for name in names],
        "responses": [{"type": "function", "name": name} for name in names],
        "bedrock": [{"toolSpec": {"name": name}} for name in names],
        "gemini": [{"functionDeclarations": [{"name": name}]} for name in names],
    }
    return made[shape]


@pytest.mark.parametrize("shape", ["anthropic", "chat", "responses", "bedrock", "gemini"])
def test_tools_of_every_shape_are_sorted_by_name(shape: str) -> None:
    listed = tool_list(shape)
    assert stable.sort_tools(listed) == [listed[1], listed[2], listed[0]]


@given(st.permutations(tools(*NAMES) + tools("read_file", size=90)))
def test_order_of_the_tools_that_come_in_does_not_matter(listed: list[Any]) -> None:
    shown = [{"name": tool.name, "description": tool.description} for tool in listed]
    assert stable.sort_tools(shown) == stable.sort_tools(sorted(shown, key=str))


def test_objects_with_a_name_are_sorted_and_what_came_in_stays_as_it_was() -> None:
    class Tool:
        def __init__(self, name: str) -> None:
            self.name = name

    listed = [Tool("b"), Tool("a")]
    assert [tool.name for tool in stable.sort_tools(listed)] == ["a", "b"]
    assert [tool.name for tool in listed] == ["b", "a"]


def test_tools_without_a_name_come_first_by_type() -> None:
    listed: list[dict[str, Any]] = [{"name": "a"}, {"type": "web_search"}, {"type": "file_search"}]
    assert stable.sort_tools(listed) == [listed[2], listed[1], listed[0]]


# ---- freeze --------------------------------------------------------------------------------------------------------


def reordered(value: Any, seed: int) -> Any:
    """The same value with the keys of every object in another order."""
    chance = random.Random(seed)
    if isinstance(value, dict):
        keys = list(value)
        chance.shuffle(keys)
        return {key: reordered(value[key], seed + 1) for key in keys}
    return [reordered(item, seed + 1) for item in value] if isinstance(value, list) else value


@given(JSON, st.integers(0, 99))
def test_values_that_mean_the_same_are_serialised_alike(value: Any, seed: int) -> None:
    assert json.dumps(stable.freeze(value)) == json.dumps(stable.freeze(reordered(value, seed)))


@given(JSON, st.integers(0, 99))
def test_what_was_sent_is_kept_to_the_object_while_it_means_the_same(value: Any, seed: int) -> None:
    kept = stable.freeze(value)
    again = stable.freeze(reordered(value, seed), kept)
    assert again is kept or kept is None


@given(JSON, JSON)
def test_another_meaning_is_never_replaced_by_what_was_sent(one: Any, other: Any) -> None:
    found = stable.freeze(other, stable.freeze(one))
    assert stable.freeze(found) == stable.freeze(other)


@given(JSON)
def test_freezing_changes_no_meaning_and_no_argument(value: Any) -> None:
    before = json.dumps(value)
    assert json.loads(json.dumps(stable.freeze(value))) == json.loads(before)
    assert json.dumps(value) == before


def test_first_order_of_keys_is_kept_when_it_was_not_canonical() -> None:
    kept = {"b": 1, "a": 2}
    assert list(stable.freeze({"a": 2, "b": 1}, kept)) == ["b", "a"]
    assert list(stable.freeze({"a": 3, "b": 1}, kept)) == ["a", "b"]


@pytest.mark.parametrize(("one", "other"), [(True, 1), (False, 0), (None, False), ("1", 1), ([1, 2], [2, 1])])
def test_values_that_only_look_alike_are_not_equal(one: Any, other: Any) -> None:
    assert stable.freeze([other], [one]) is not one
    assert json.dumps(stable.freeze([other], [one])) == json.dumps([other])


@pytest.mark.parametrize(
    ("value", "place"),
    [({"a": {1, 2}}, r"\$\.a is a set"), ([float("nan")], r"\$\[0\] is nan"), ({"a": {2: 1}}, r"\$\.a has the key 2")],
)
def test_what_json_cannot_hold_is_refused_with_its_place(value: Any, place: str) -> None:
    with pytest.raises(InputError, match=place):
        stable.freeze(value)


def test_value_without_a_bottom_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InputError, match="deep"):
        stable.freeze(endless)


# ---- assert_prefix -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", EVERY)
def test_request_that_only_appends_passes(api: str) -> None:
    talk = Talk(api=api)
    stable.assert_prefix(talk.body, talk.grown(*call_and_result(1)).body)
    stable.assert_prefix(json.dumps(talk.body), json.dumps(talk.body).encode())


@pytest.mark.parametrize("api", EVERY)
def test_shuffled_tools_are_shown_with_byte_path_and_both_texts(api: str) -> None:
    talk = Talk(api=api, tools=tools(*NAMES))
    moved = talk.grown(*call_and_result(1)).with_(tools=shuffled(talk.tools, 0, 2, 1, 3))
    with pytest.raises(AssertionError) as raised:
        stable.assert_prefix(talk.body, moved.body)
    text = str(raised.value)
    assert text.startswith("the tools moved at byte ")
    assert "  before  …" in text
    assert "write_file" in text
    assert "list_dir" in text
    marked = text.splitlines()[3].index("^")
    before, after = (line[marked] for line in text.splitlines()[1:3])
    assert before != after


def test_byte_and_path_are_those_of_the_report() -> None:
    talk = Talk(tools=tools(*NAMES))
    moved = talk.grown(*call_and_result(1)).with_(tools=shuffled(talk.tools, 0, 2, 1, 3))
    place = analysed([step(talk), step(moved, at=10)]).results[1].verdict.divergence
    assert place is not None
    with pytest.raises(AssertionError) as raised:
        stable.assert_prefix(talk.body, moved.body)
    assert f"byte {place.byte_offset:,}, {place.json_path} " in str(raised.value)


@pytest.mark.parametrize("section", ["system", "messages"])
def test_edited_text_is_found_in_its_section(section: str) -> None:
    talk = Talk().grown(*call_and_result(1))
    later = talk.grown(*call_and_result(2)).body
    target = later["system"][0] if section == "system" else later["messages"][2]["content"][0]["content"][0]
    target["text"] = target["text"][:50] + "#" + target["text"][51:]
    with pytest.raises(AssertionError, match=f"the {section} moved at byte") as raised:
        stable.assert_prefix(talk.body, later)
    wanted = "$.system[0].text" if section == "system" else "$.messages[2].content[0].content[0].text"
    assert wanted in str(raised.value)


def test_key_order_in_a_schema_is_a_move() -> None:
    talk = Talk()
    later = talk.body
    later["tools"][0]["input_schema"] = dict(reversed(list(later["tools"][0]["input_schema"].items())))
    with pytest.raises(AssertionError, match=r"\$\.tools\[0\]\.input_schema\.properties \(tool read_file\)"):
        stable.assert_prefix(talk.body, later)


def test_moving_cache_mark_is_no_move_and_blocks_may_be_appended_to_the_last_message() -> None:
    talk = Talk(marks=("system", "last"))
    later = talk.grown(*call_and_result(1)).with_(marks=("last",)).body
    stable.assert_prefix(talk.body, later)
    longer = talk.body
    longer["messages"][-1]["content"].append({"type": "text", "text": "More."})
    stable.assert_prefix(talk.body, longer)


@pytest.mark.parametrize("change", ["tool more", "system more", "message gone", "older message longer"])
def test_what_grows_in_front_of_something_or_goes_away_is_a_move(change: str) -> None:
    talk = Talk().grown(*call_and_result(1))
    later = talk.body
    if change == "tool more":
        later["tools"].append({"name": "zip", "input_schema": {}})
    elif change == "system more":
        later["system"].append({"type": "text", "text": "Also this."})
    elif change == "message gone":
        del later["messages"][-1]
    else:
        later["messages"][0]["content"].append({"type": "text", "text": "More."})
    with pytest.raises(AssertionError, match="moved at byte"):
        stable.assert_prefix(talk.body, later)


def test_another_model_is_said() -> None:
    with pytest.raises(AssertionError, match=r"\$\.model changed from 'claude-sonnet-5' to 'claude-opus-5'"):
        stable.assert_prefix(Talk().body, Talk(model="claude-opus-5").body)


@pytest.mark.parametrize("value", ["{", "[1]", 7, {"model": "x"}])
def test_what_is_no_request_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="give"):
        stable.assert_prefix(value, Talk().body)


def test_module_loads_nothing_but_the_errors() -> None:
    code = "import sys; from rebilled import stable; print(sorted(n for n in sys.modules if n.startswith('rebilled.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['rebilled.errors', 'rebilled.stable']"


# ---- real clients --------------------------------------------------------------------------------------------------


@pytest.fixture
def bodies() -> Iterator[tuple[str, list[bytes]]]:
    """A server that stands in for both providers, and the bodies that it was sent."""
    sent: list[bytes] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent.append(self.rfile.read(int(self.headers["content-length"])))
            answer = json.dumps(ANSWERS["messages" if "messages" in self.path else "chat"]).encode()
            if "chat" in self.path:
                answer = json.dumps(ANSWERS["chat"]).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", sent
    server.shutdown()
    thread.join()
    server.server_close()


ANSWERS: dict[str, dict[str, Any]] = {
    "messages": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "content": [{"type": "text", "text": "Done."}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 1},
    },
    "chat": {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-5.4",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Done."}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10},
    },
}


def listed(seed: int) -> list[dict[str, Any]]:
    """The tools as an unsteady server gives them: in any order, with keys in any order."""
    made = [
        {"name": name, "description": f"Does {name}.", "input_schema": {"type": "object", "properties": {}}}
        for name in NAMES
    ]
    random.Random(seed).shuffle(made)
    return [reordered(tool, seed) for tool in made]


def ask_anthropic(url: str, steady: bool) -> None:
    turns: list[dict[str, Any]] = [{"role": "user", "content": "Sort the depot."}]
    kept = None
    with anthropic.Anthropic(base_url=url, api_key="none") as client:
        for seed in range(3):
            given: Any = listed(seed)
            kept = stable.freeze(stable.sort_tools(given), kept) if steady else given
            answer = client.messages.create(
                model="claude-sonnet-5",
                max_tokens=99,
                system="Be brief.",
                tools=kept,
                messages=turns,  # type: ignore[arg-type]
            )
            turns += [
                {"role": "assistant", "content": [block.to_dict() for block in answer.content]},
                {"role": "user", "content": f"Go on {seed}."},
            ]


def ask_openai(url: str, steady: bool) -> None:
    turns: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Sort the depot."}]
    kept = None
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none") as client:
        for seed in range(3):
            given: Any = [{"type": "function", "function": tool} for tool in listed(seed)]
            kept = stable.freeze(stable.sort_tools(given), kept) if steady else given
            answer = client.chat.completions.create(model="gpt-5.4", tools=kept, messages=turns)
            turns += [answer.choices[0].message.to_dict(), {"role": "user", "content": f"Go on {seed}."}]


@pytest.mark.parametrize("ask", [ask_anthropic, ask_openai])
def test_real_client_sends_one_prefix_with_frozen_tools_and_none_without(
    bodies: tuple[str, list[bytes]], ask: Any
) -> None:
    url, sent = bodies
    ask(url, True)
    assert len(sent) == 3
    stable.assert_prefix(sent[0], sent[1])
    stable.assert_prefix(sent[1], sent[2])
    sent.clear()
    ask(url, False)
    with pytest.raises(AssertionError, match="the tools moved at byte"):
        stable.assert_prefix(sent[0], sent[1])
