from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rebilled.mcp.variation import Kind, Seen, kind_of

ROUNDS = 3


def interleaved(*connections: str) -> list[Seen]:
    """What each connection showed, a letter a list, taken in turn."""
    found: list[Seen] = []
    for n in range(max(map(len, connections))):
        for number, letters in enumerate(connections):
            if n < len(letters):
                found.append(Seen(number, n, len(found), letters[n]))
    return found


def then(before: list[Seen], *after: tuple[int, str]) -> list[Seen]:
    """The same, and more lists one after the other, each on a connection."""
    found = list(before)
    for number, letter in after:
        n = sum(one.connection == number for one in found)
        found.append(Seen(number, n, len(found), letter))
    return found


def check(sequence: list[Seen], kind: Kind) -> None:
    assert kind_of(sequence) == kind


def test_one_value_is_steady() -> None:
    check(interleaved("aaa", "aaa", "aaa"), "steady")


def test_each_connection_with_its_own_value_varies_by_connection() -> None:
    check(interleaved("aaa", "bbb", "aaa"), "per_connection")
    check(then(interleaved("aaa", "aaa"), (2, "b"), (2, "b"), (0, "a")), "per_connection")


def test_same_change_after_the_first_list_of_each_connection_is_a_side_effect() -> None:
    check(then(interleaved("abb", "abb", "abb"), (0, "b"), (3, "a"), (3, "b"), (0, "b")), "side_effect")


def test_change_after_something_asked_on_one_connection_is_a_side_effect() -> None:
    check(then(interleaved("aaa", "aaa"), (0, "b"), (1, "a"), (0, "b"), (2, "a")), "side_effect")


def test_change_for_all_at_one_moment_is_no_fault() -> None:
    check(then(interleaved("aab", "aab", "aab"), (0, "b"), (3, "b"), (3, "b")), "changed_once")


def test_new_connection_that_shows_the_old_value_again_is_not_a_change_for_all() -> None:
    check(then(interleaved("aab", "aab", "aab"), (0, "b"), (3, "a"), (3, "a"), (3, "b")), "side_effect")


def test_values_that_come_back_flap() -> None:
    check(interleaved("aba", "baa", "aab"), "flapping")


@given(st.lists(st.text("ab", min_size=ROUNDS, max_size=ROUNDS), min_size=1, max_size=4))
def test_every_sequence_has_a_kind_and_only_equal_values_are_steady(shown: list[str]) -> None:
    kind = kind_of(interleaved(*shown))
    assert (kind == "steady") == (len(set("".join(shown))) == 1)


@given(st.lists(st.sampled_from("abc"), min_size=2, max_size=4), st.integers(2, 4))
def test_connections_that_hold_still_never_flap(letters: list[str], rounds: int) -> None:
    assert kind_of(interleaved(*(letter * rounds for letter in letters))) in ("steady", "per_connection")


@given(st.integers(1, 8), st.integers(2, 3))
def test_one_change_over_time_is_told_wherever_it_falls(at: int, connections: int) -> None:
    total = connections * ROUNDS
    sequence = [
        Seen(place % connections, place // connections, place, "a" if place < at else "b") for place in range(total)
    ]
    expected = (
        {"steady"} if at >= total else {"changed_once", "per_connection"} if at < connections else {"changed_once"}
    )
    assert kind_of(sequence) in expected
