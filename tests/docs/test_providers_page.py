"""docs/providers.md is what the data says, all of it."""

from __future__ import annotations

from typing import Any

import pytest

from rebilled.providers import APIS
from rebilled.providers.policy import names, rules

from .repository import script, text_of

PAGE = "docs/providers.md"


def test_providers_page_is_current() -> None:
    page = script("make_providers_page").page()
    assert page == script("make_providers_page").page()
    assert text_of(PAGE) == page, "run python scripts/make_providers_page.py"


def test_every_api_shape_is_on_the_page() -> None:
    assert all(f"| `{api.name}` | {api.title} |" in text_of(PAGE) for api in APIS)


@pytest.mark.parametrize("name", names())
def test_every_fact_of_a_provider_is_on_the_page_with_its_day(name: str) -> None:
    data = rules(name)
    part = text_of(PAGE).split(f"\n## {data['title']}\n")[1].split("\n## ")[0].replace("\\", "")
    assert data["as_of"] in part
    rows: list[dict[str, Any]] = [
        row for value in data.values() if isinstance(value, list) for row in value if isinstance(row, dict)
    ]
    for row in rows:
        assert row["as_of"] in part
        for key in ("source", "disputed", "change", "meaning", "rule", "read", "write"):
            if key in row and not (key == "rule" and "meaning" in row):
                assert row[key].replace("<", "&lt;") in part, (key, row[key])


def test_a_page_that_is_out_of_date_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    maker = script("make_providers_page")
    monkeypatch.setattr(maker, "PAGE", tmp_path / "providers.md")
    assert maker.main(["--check"]) == 1
    assert maker.main([]) == 0
    assert maker.main(["--check"]) == 0
