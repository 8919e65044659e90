"""What a log format is: a name, a test by content, and a reader that gives records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from rebilled.formats.file import File
from rebilled.model import Record, Skip


class Format(Protocol):
    """One way to log calls in a file; each module of this folder offers one as `FORMAT`.

    name: the word for it in reports and documentation. title: the same for people.
    tells: what such a log holds of a call and what it does not, in one line for `analyze formats`.
    """

    @property
    def name(self) -> str:
        """One word, lower case."""

    @property
    def title(self) -> str:
        """A few words for people."""

    @property
    def tells(self) -> str:
        """What it tells about a call, and what it cannot, in a line without a full stop."""

    def detect(self, file: File) -> int:
        """How sure the content looks like this format: 0 no, 10 to 20 generic JSON, 50 and more a known tool's log."""

    def read(self, file: File) -> Iterator[Record | Skip]:
        """Everything in the file, in its order: each call as a Record, the rest as Skips; raises RecordError only."""
