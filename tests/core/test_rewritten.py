"""An old turn of the assistant edited in a long run: compared with the step before the edit, not with an early one."""

from __future__ import annotations

from builders import ANTHROPIC, Talk, call_and_result, judged, step, text, user


def grown(talk: Talk, number: int) -> Talk:
    return talk.grown(*call_and_result(number, size=2000))


def conversation(steps: int) -> list[Talk]:
    talks = [Talk(ANTHROPIC, turns=(user(text("Find the slow query. " * 40)),))]
    for number in range(1, steps):
        talks.append(grown(talks[-1], number))
    return talks


def test_dropped_old_turns_are_compared_with_the_step_before() -> None:
    talks = conversation(5)
    cut = talks[-1].with_(turns=(talks[-1].turns[0], *talks[-1].turns[3:]))
    last = grown(cut, 9)
    records = [step(talk, at=20.0 * n, read=talks[n - 1].tokens if n else 0) for n, talk in enumerate(talks)]
    records.append(step(last, at=120.0, read=talks[0].tokens))
    found = judged(records)[-1]
    assert found.step.compare_to == 5
    assert found.verdict.cause == "history_trimmed"
    assert (found.verdict.rebilled_tokens or 0) > 500


def test_turning_back_to_an_earlier_point_is_no_miss() -> None:
    talks = conversation(4)
    branch = grown(talks[1], 77)
    records = [step(talk, at=20.0 * n, read=talks[n - 1].tokens if n else 0) for n, talk in enumerate(talks)]
    records.append(step(branch, at=90.0, read=talks[1].tokens))
    found = judged(records)[-1]
    assert found.step.compare_to == 2
    assert found.verdict.cause == "none"
