"""`python -m rebilled`, the same program as `analyze`."""

from __future__ import annotations

from rebilled.cli import main

if __name__ == "__main__":
    main()
