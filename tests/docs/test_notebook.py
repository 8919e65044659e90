from __future__ import annotations

import json
import subprocess
import sys

import pytest

from .repository import ROOT, text_of

NOTEBOOK = "notebooks/explore_run.ipynb"


def test_fresh_run_gives_the_committed_output() -> None:
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "run_notebook.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_notebook_is_small_and_holds_the_plot_and_no_errors() -> None:
    notebook = json.loads(text_of(NOTEBOOK))
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    assert len(text_of(NOTEBOOK)) < 100_000
    assert not [output for output in outputs if output["output_type"] == "error"]
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert {"application/vnd.plotly.v1+json", "image/svg+xml", "text/plain"} <= kinds


def test_notebook_uses_public_names_only() -> None:
    code = "\n".join(
        "".join(cell["source"]) for cell in json.loads(text_of(NOTEBOOK))["cells"] if cell["cell_type"] == "code"
    )
    assert "rebilled." in code
    assert "from rebilled" not in code
    assert ".inner" not in code
    assert "rebilled._" not in code
