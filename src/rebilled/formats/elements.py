"""The elements of a list in a JSON document, also of one that breaks off or is damaged further on."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rebilled.errors import RecordError
from rebilled.formats.file import File
from rebilled.formats.parts import Members, Part, split_array, split_object
from rebilled.formats.values import scan_values
from rebilled.model import Skip

MAX_DOCUMENT_BYTES = 1 << 30
"""A longer document is listed, not read: it would be copied whole."""


def read_document(file: File) -> Part:
    """A whole file as one JSON text. Raises RecordError `too_large`."""
    if file.size > MAX_DOCUMENT_BYTES:
        raise RecordError("too_large", f"a document of more than {MAX_DOCUMENT_BYTES >> 20} MiB")
    return Part(file.read(file.start, file.size - file.start), file.start if file.in_place else None)


def open_document(part: Part, path: tuple[str, ...]) -> Members | None:
    """The members of the object at a path of keys; None where the document cannot be split."""
    try:
        members = split_object(part)
        for key in path:
            inner = members.get(key)
            if inner is None:
                return None
            members = split_object(inner)
    except RecordError:
        return None
    return members


def read_elements(part: Part, path: tuple[str, ...], file_path: str) -> Iterator[Part | Skip]:
    """The elements of the list at a path of keys; where the document is damaged, those before that and a Skip.

    Nothing where there is no such list.
    """
    holder = open_document(part, path[:-1])
    if holder is not None:
        listed = holder.get(path[-1])
        if listed is not None and listed.text[:1] == b"[":
            yield from split_array(listed)
        return
    opening = re.search(rb'"' + re.escape(path[-1].encode()) + rb'"\s*:\s*\[', part.text)
    if opening is None:
        yield Skip(file_path, None, "truncated", "the document breaks off before its first element")
        return
    try:
        for start, end in scan_values(part.text, opening.end()):
            yield Part(part.text[start:end], part.at + start if part.at is not None else None)
    except RecordError as error:
        yield Skip(file_path, None, "truncated" if error.reason == "truncated" else "not_json", error.detail)
        return
    yield Skip(file_path, None, "truncated", "the document breaks off behind this element")
