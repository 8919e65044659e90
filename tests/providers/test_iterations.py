from __future__ import annotations

from rebilled.ledger import own_usage, with_others
from rebilled.model import Json, Ledger, Rates
from rebilled.providers.anthropic_messages import read_reply

RATES = Rates(uncached_input=3e-6, cache_read=3e-7, cache_write_5m=3.75e-6, cache_write_1h=6e-6, output=15e-6)


def iteration(kind: str, read: int, write: int, uncached: int, output: int, model: str | None = None) -> Json:
    counters: dict[str, Json] = {
        "type": kind,
        "input_tokens": uncached,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": write,
        "output_tokens": output,
    }
    return counters | ({"model": model} if model else {})


def response(*iterations: Json, read: int, write: int, uncached: int, output: int) -> Json:
    top: dict[str, Json] = {
        "input_tokens": uncached,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": write,
        "output_tokens": output,
        "iterations": list(iterations),
    }
    return {"id": "msg_01", "model": "claude-opus-5", "usage": top}


def test_runs_of_one_prompt_are_billed_together_and_compared_apart() -> None:
    said = response(
        iteration("message", 1000, 50, 0, 10),
        iteration("message", 1050, 400, 5, 20),
        read=2050,
        write=450,
        uncached=5,
        output=30,
    )
    reply = read_reply(said, ())
    assert reply.usage is not None
    assert reply.usage.input_tokens == 2505
    assert reply.first is not None
    assert reply.first.cache_read_tokens == 1000
    assert reply.last is not None
    assert reply.last.input_tokens == 1455
    assert reply.others == ()


def test_a_single_run_is_the_usage_itself() -> None:
    reply = read_reply(response(iteration("message", 10, 5, 1, 1), read=10, write=5, uncached=1, output=1), ())
    assert reply.first is None
    assert reply.last is None


def test_compaction_and_advisor_stand_outside_the_top_level_and_are_billed() -> None:
    said = response(
        iteration("compaction", 9000, 0, 20, 700),
        iteration("message", 100, 40, 2, 10),
        iteration("advisor_message", 0, 0, 300, 50, model="claude-fable-5"),
        read=100,
        write=40,
        uncached=2,
        output=10,
    )
    reply = read_reply(said, ())
    assert reply.usage is not None
    assert reply.usage.input_tokens == 142 + 9020 + 300
    assert reply.usage.output_tokens == 760
    assert [model for model, _ in reply.others] == ["", "claude-fable-5"]
    own = own_usage(reply.usage, reply.others)
    assert (own.cache_read_tokens, own.cache_write_tokens, own.uncached_input_tokens) == (100, 40, 2)
    assert own.output_tokens == 10


def test_calls_billed_along_are_booked_as_read_and_new() -> None:
    reply = read_reply(response(iteration("compaction", 9000, 0, 20, 700), read=0, write=0, uncached=5, output=1), ())
    (_, compaction) = reply.others[0]
    booked = with_others(Ledger(0, 5, 0, 0), [(compaction, None)])
    assert (booked.cache_read, booked.new) == (9000, 25)
    paid = with_others(Ledger(0.0, 0.0, 0.0, 0.0), [(compaction, RATES)])
    assert paid.cache_read == 9000 * 3e-7
    assert paid.new == 20 * 3e-6


def streamed(start: dict[str, Json], end: dict[str, Json]) -> list[Json]:
    return [
        {"type": "message_start", "message": {"id": "msg_01", "model": "claude-haiku-4-5", "usage": start}},
        {"type": "message_delta", "usage": end},
    ]


def test_a_stream_that_searched_the_web_is_compared_by_its_first_run() -> None:
    start: dict[str, Json] = {"input_tokens": 3, "cache_creation_input_tokens": 2399, "cache_read_input_tokens": 0}
    end: dict[str, Json] = {"input_tokens": 9, "cache_creation_input_tokens": 7621, "cache_read_input_tokens": 28247}
    reply = read_reply(None, streamed(start, end))
    assert reply.usage is not None
    assert reply.usage.input_tokens == 9 + 7621 + 28247
    assert reply.first is not None
    assert (reply.first.input_tokens, reply.first.cache_read_tokens) == (2402, 0)
    assert reply.last is not None
    assert (reply.last.cache_read_tokens, reply.last.cache_write_tokens) == (0, 7621)
    assert reply.last.input_tokens == 7624


def test_a_stream_whose_prompt_ran_once_is_its_own_first_run() -> None:
    start: dict[str, Json] = {"input_tokens": 3, "cache_creation_input_tokens": 50, "cache_read_input_tokens": 900}
    reply = read_reply(None, streamed(start, {**start, "output_tokens": 80}))
    assert reply.first is None
    assert reply.last is None


# ---- a model that declined, and another that answered --------------------------------------------------------------


def test_what_a_declined_model_ran_is_billed_at_its_own_rates_and_is_no_part_of_the_prompt() -> None:
    said = response(
        iteration("message", 0, 500, 5, 2, model="claude-fable-5-1"),
        iteration("fallback_message", 300, 200, 5, 40, model="claude-opus-5"),
        read=300,
        write=700,
        uncached=10,
        output=42,
    )
    reply = read_reply(said, ())
    assert reply.usage is not None
    assert reply.usage.input_tokens == 1010
    assert [model for model, _ in reply.others] == ["claude-fable-5-1"]
    own = own_usage(reply.usage, reply.others)
    assert (own.cache_read_tokens, own.cache_write_tokens, own.output_tokens) == (300, 200, 40)
    assert reply.first == reply.last
    assert reply.first is not None
    assert reply.first.cache_read_tokens == 300


def test_earlier_runs_of_the_model_that_answered_stay_its_own() -> None:
    said = response(
        iteration("message", 300, 200, 5, 10, model="claude-opus-5"),
        iteration("fallback_message", 500, 20, 5, 40, model="claude-opus-5"),
        read=800,
        write=220,
        uncached=10,
        output=50,
    )
    reply = read_reply(said, ())
    assert reply.others == ()
    assert reply.first is not None
    assert (reply.first.cache_read_tokens, reply.last and reply.last.cache_read_tokens) == (300, 500)


# ---- what was done to the input --------------------------------------------------------------------------------------


DROPPED: Json = {"type": "thinking_dropped", "path": "messages.3.content.0", "reason": "model_binding_mismatch"}


def test_what_the_api_did_to_the_input_is_read_from_the_message_and_from_the_end_of_a_stream() -> None:
    usage: Json = {"input_tokens": 1, "output_tokens": 1}
    whole = read_reply({"usage": usage, "input_transformations": [DROPPED]}, ())
    start: Json = {"type": "message_start", "message": {"usage": usage, "input_transformations": []}}
    streamed_reply = read_reply(
        None, [start, {"type": "message_delta", "usage": {}, "input_transformations": [DROPPED]}]
    )
    for reply in (whole, streamed_reply):
        (one,) = reply.changed
        assert (one.type, one.path, one.reason) == (
            "thinking_dropped",
            "messages.3.content.0",
            "model_binding_mismatch",
        )


def test_a_list_that_is_none_and_entries_that_are_none_change_nothing() -> None:
    odds: list[Json] = [None, "x", [3, {"path": "messages.1.content.0"}], []]
    for odd in odds:
        said: Json = {"usage": {"input_tokens": 1, "output_tokens": 1}, "input_transformations": odd}
        assert read_reply(said, ()).changed == ()
