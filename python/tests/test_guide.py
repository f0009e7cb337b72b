"""The snippets of the guide run: those of a page in their order, in one folder, each in a process of its own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).resolve().parent.parent.parent / "docs" / "python"
PAGES = sorted(GUIDE.glob("*.md"))
# What takes so long hangs.
MAX_SECONDS = 600


@pytest.mark.skipif(not PAGES, reason="the guide is not here: this is not a clone")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_snippets_of_a_page_run(page, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    assert blocks or page.stem == "README"
    for number, block in enumerate(blocks):
        # multiprocessing looks for the functions of the main module in its file.
        script = tmp_path / f"snippet_{number}.py"
        script.write_text(block)
        done = subprocess.run([sys.executable, script.name], cwd=tmp_path, capture_output=True, text=True, timeout=MAX_SECONDS)
        assert done.returncode == 0, f"{page.name}, block {number + 1}:\n{block}\n{done.stderr}"
