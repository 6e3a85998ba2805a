"""`fairtrial optimize` in the tests' own process, with a simulated clock."""

import io
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout

import pytest
from optimize_kit import ASKING, SimBench, run_git

from fairtrial.arena import Arena
from fairtrial.cli.main import main
from fairtrial.sandbox import host_lock


class Desk:
    """Gives commands in a site, in this very process."""

    def __init__(self, site, patch):
        self.site, self.module = site, site.top / "src/mod.py"
        for name, value in {**site.variables(), "KIT_FOLDER": str(site.folder)}.items():
            patch.setenv(name, value)
        patch.setattr(host_lock, "HOST_FOLDER", site.locks)
        patch.setattr(Arena, "bench", asynccontextmanager(self._bench))
        patch.chdir(site.folder)

    async def _bench(self, *_):
        yield SimBench()

    def optimize(self, *options, asking=ASKING, problem="problem.yaml", output="out"):
        """Exit code, stdout, stderr."""
        out, err = io.StringIO(), io.StringIO()
        words = ["optimize", str(self.site.top / problem), *asking, "--no-audit", *options]
        words += ["--output", output] if output else []
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as stop:
            main(words)
        assert "Traceback" not in err.getvalue()
        return stop.value.code, out.getvalue(), err.getvalue()

    def git(self, *words):
        return run_git(self.site.top, *words).decode().strip()
