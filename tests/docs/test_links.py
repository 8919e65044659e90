from __future__ import annotations

import re
import xml.dom.minidom
from pathlib import Path

import pytest

from .repository import PAGES, ROOT, name_of, prose

LINK = re.compile(r"\]\(([^)\s]+)\)")
FOREIGN = re.compile(r"[a-z]+:")


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", prose(name_of(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_relative_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(prose(name_of(page))):
        if FOREIGN.match(link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        assert not anchor or anchor in anchors(target), link


def test_every_page_is_linked_from_the_readme_or_from_a_page_that_is() -> None:
    reached, waiting = set[Path](), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        links = (link.partition("#")[0] for link in LINK.findall(prose(name_of(page))) if not FOREIGN.match(link))
        waiting += [target for link in links if (target := (page.parent / link).resolve()).suffix == ".md"]
    assert reached == set(PAGES)


@pytest.mark.parametrize("picture", sorted((ROOT / "docs").glob("*.svg")), ids=lambda path: path.name)
def test_pictures_are_well_formed_and_say_what_they_show(picture: Path) -> None:
    root = xml.dom.minidom.parse(str(picture)).documentElement
    assert root is not None
    assert root.tagName == "svg"
    assert root.getElementsByTagName("title")
    assert root.getElementsByTagName("desc")
