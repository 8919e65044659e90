"""Makes `builders` and `definition` importable from every test folder: pytest puts this file's folder on the path.

Every conversation that a test of the causes judges is judged again without its words, and must come out the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import settings

import builders
from rebilled.model import Record, Skip
from rebilled.trace import Trace
from redacted import facts, redacted, results

# The same examples at every run, so that a failure is one of the change and not of the day. HYPOTHESIS_PROFILE=search
# looks for new ones.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


@pytest.fixture(autouse=True)
def _same_without_words(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.path.parent.name != "causes":
        yield
        return
    judged: list[list[Record | Skip]] = []
    plain = builders.traced

    def noted(records: Iterable[Record | Skip]) -> Trace:
        judged.append(list(records))
        return plain(judged[-1])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builders, "traced", noted)
        yield
    for records in judged:
        assert facts(results(redacted(records))) == facts(results(records))
