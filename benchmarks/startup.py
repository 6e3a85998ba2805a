"""`fairtrial --help` against a bare click group with as many commands.

Both are started as fresh processes in turns; CPU time of the child, median of the pairs' ratios.

    python benchmarks/startup.py
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from fairtrial.cli.main import COMMANDS

HEAVY = ("msgspec", "yaml", "rich", "anyio", "httpx", "numpy", "scipy")

BARE = """
import click

@click.group(context_settings={{"help_option_names": ["-h", "--help"]}})
@click.version_option("1", prog_name="bare")
def cli():
    '''A bare group.'''

for name, summary in {commands!r}.items():
    cli.add_command(click.Command(name, help=summary))

cli()
"""


def cpu_s(command: list[str]) -> float:
    """User and system time of one run of a command."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return usage.ru_utime + usage.ru_stime


def loaded_modules() -> list[str]:
    """The heavy modules that `fairtrial --help` leaves in sys.modules."""
    code = (
        "import sys; from fairtrial.cli.main import main\n"
        "try: main(['--help'])\n"
        f"except SystemExit: print('LOADED', [m for m in {HEAVY} if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return shown.stdout.rpartition("LOADED ")[2].split()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=40)
    pairs = parser.parse_args().pairs
    script = Path(sys.executable).with_name("fairtrial")
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder) / "bare.py"
        bare.write_text(BARE.format(commands={n: summary for n, (_, summary) in COMMANDS.items()}))
        ours, floor = [], []
        for _ in range(pairs):
            floor.append(cpu_s([sys.executable, str(bare), "--help"]))
            ours.append(cpu_s([sys.executable, str(script), "--help"]))
    ratios = [one / two for one, two in zip(ours, floor, strict=True)]
    print(f"bare click group --help   {statistics.median(floor) * 1000:.0f} ms CPU")
    print(f"fairtrial --help          {statistics.median(ours) * 1000:.0f} ms CPU")
    print(f"ratio                     {statistics.median(ratios):.2f}  (goal: at most 1.3)")
    print(f"heavy modules loaded      {' '.join(loaded_modules())}")


if __name__ == "__main__":
    main()
