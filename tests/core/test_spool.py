import gc
import os
from pathlib import Path

import pytest

from rebilled.spool import Spool


def test_what_was_put_aside_is_read_again_by_its_offset() -> None:
    spool = Spool()
    places = [spool.append(part) for part in (b"one", b"", b"three" * 100_000)]

    assert places == [0, 3, 3]
    assert spool.read(0, 3) == b"one"
    assert spool.read(3, 500_000) == b"three" * 100_000
    assert spool.size == 500_003


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="this system does not list open files")
def test_a_spool_lost_in_a_reference_cycle_leaves_neither_a_warning_nor_an_open_file() -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - there is no such folder on every system
    for _ in range(20):
        spool = Spool()
        spool.append(b"x")
        cycle: list[object] = [spool]
        cycle.append(cycle)
        del spool, cycle
    gc.collect()

    assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208


def test_closing_twice_is_closing_once() -> None:
    spool = Spool()
    spool.close()
    spool.close()
