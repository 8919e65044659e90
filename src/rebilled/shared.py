"""How much of their prompts two steps share, to the byte; for finding what the first step of a run resembles."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Literal

import msgspec

from rebilled.errors import RecordError
from rebilled.figures import half_shared
from rebilled.model import SectionName, Step
from rebilled.prompt import Prompt
from rebilled.spans import common_prefix
from rebilled.trace import Trace

_KEPT_BYTES = 32 << 20
_FEWEST_KEPT = 4


class Texts(msgspec.Struct):
    """Rendered sections of steps, read again when needed; those used last are kept, up to a limit in bytes."""

    trace: Trace
    kept: OrderedDict[tuple[int, str], bytes] = msgspec.field(default_factory=OrderedDict)
    size: int = 0

    def rendered(self, step: Step, name: SectionName) -> bytes:
        """A section as its elements' compact JSON joined by commas; empty where the body cannot be read again."""
        return self._kept(
            (step.number, name), lambda: b",".join(item.text for item in self._prompt(step).section(name))
        )

    def _prompt(self, step: Step) -> Prompt:
        return Prompt(step, self.trace.layout)

    def _kept(self, key: tuple[int, str], read: Callable[[], bytes]) -> bytes:
        """What was read before, else what is read now: nothing where a body cannot be read again."""
        found = self.kept.get(key)
        if found is not None:
            self.kept.move_to_end(key)
            return found
        try:
            found = read()
        except RecordError:
            found = b""
        self.kept[key] = found
        self.size += len(found)
        while self.size > _KEPT_BYTES and len(self.kept) > _FEWEST_KEPT:
            self.size -= len(self.kept.popitem(last=False)[1])
        return found

    def text(self, step: Step, name: Literal["system", "first message"]) -> bytes:
        """A step's system prompt or first message, as compact JSON."""
        return self._first_message(step) if name == "first message" else self.rendered(step, "system")

    def shared_prefix(self, earlier: Step, later: Step) -> int:
        """How many leading bytes of tools, system and messages are the same."""
        shared = 0
        for name, same, size in (
            ("tools", earlier.tools.digest == later.tools.digest, later.tools.size),
            ("system", earlier.sent_system.digest == later.sent_system.digest, later.sent_system.size),
        ):
            if not same:
                place: SectionName = "tools" if name == "tools" else "system"
                return shared + common_prefix(self.rendered(earlier, place), self.rendered(later, place))
            shared += size
        if not earlier.history.depth or not later.history.depth:
            return shared
        return shared + common_prefix(self._first_message(earlier), self._first_message(later))

    def similar_system(self, earlier: Step, later: Step) -> bool:
        """Whether the system prompts share at least half of the longer one's bytes."""
        small, large = sorted((earlier.sent_system.size, later.sent_system.size))
        if small * 2 < large or not small:
            return False
        return half_shared(self.rendered(earlier, "system"), self.rendered(later, "system"))

    def _first_message(self, step: Step) -> bytes:
        def read() -> bytes:
            messages = self._prompt(step).messages
            return messages[0].text if messages else b""

        return self._kept((step.number, "first message"), read)
