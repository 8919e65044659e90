"""rebilled: which byte broke the prompt cache, at which step, what moved it, and what it cost.

import rebilled

analysis = rebilled.analyze("sample_traces/mcp-tools-reshuffled.jsonl")
print(analysis.findings)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "Analysis",
    "InputError",
    "RebilledError",
    "Trace",
    "WhatIf",
    "__version__",
    "analyze",
    "plot_timeline",
    "read",
    "what_if",
]

if TYPE_CHECKING:
    from rebilled.api import Analysis, WhatIf, analyze, plot_timeline, read, what_if
    from rebilled.errors import InputError, RebilledError
    from rebilled.trace import Trace

_HOMES = {
    "Analysis": "rebilled.api",
    "analyze": "rebilled.api",
    "plot_timeline": "rebilled.api",
    "read": "rebilled.api",
    "WhatIf": "rebilled.api",
    "what_if": "rebilled.api",
    "InputError": "rebilled.errors",
    "RebilledError": "rebilled.errors",
    "Trace": "rebilled.trace",
}


def __getattr__(name: str) -> Any:
    """The public names, each loaded when first used, so that importing the package costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'rebilled' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
