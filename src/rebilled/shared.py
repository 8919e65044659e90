"""How much of their prompts two steps share, to the byte; for finding what the first step of a run resembles."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from rebilled.errors import RecordError
from rebilled.figures import half_shared
from rebilled.model import SectionName, Step
from rebilled.prompt import Prompt
from rebilled.spans import common_prefix
from rebilled.trace import Trace

_KEPT = 64


class Texts(msgspec.Struct):
    """Rendered sections of steps, read again when needed; the last few are kept."""

    trace: Trace
    kept: OrderedDict[tuple[int, str], bytes] = msgspec.field(default_factory=OrderedDict)

    def rendered(self, step: Step, name: SectionName) -> bytes:
        """A section as its elements' compact JSON joined by commas; empty where the body cannot be read again."""
        key = (step.number, name)
        if key not in self.kept:
            try:
                prompt = Prompt(step, self.trace.layout)
                self.kept[key] = b",".join(item.text for item in prompt.section(name))
            except RecordError:
                self.kept[key] = b""
            while len(self.kept) > _KEPT:
                self.kept.popitem(last=False)
        self.kept.move_to_end(key)
        return self.kept[key]

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
        key = (step.number, "first message")
        if key not in self.kept:
            try:
                prompt = Prompt(step, self.trace.layout)
                self.kept[key] = prompt.messages[0].text if prompt.messages else b""
            except RecordError:
                self.kept[key] = b""
        return self.kept[key]
