"""Makes `builders` and `definition` importable from every test folder: pytest puts this file's folder on the path."""

from __future__ import annotations

import os

from hypothesis import settings

# The same examples at every run, so that a failure is one of the change and not of the day. HYPOTHESIS_PROFILE=search
# looks for new ones.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
