"""rebilled: which byte broke the prompt cache, at which step, what moved it, and what it cost."""

from __future__ import annotations

__version__ = "0.1.0"
