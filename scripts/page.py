"""Writes the script of report.html, agentci/reports/html/built/report.js, from its sources.

`make page` runs it. The minifier is Bun's, which is one of the packages that the tests need.
"""

import subprocess
import tempfile
from pathlib import Path
from typing import Final

from agentci.reports.html.page import SCRIPT, SCRIPTS

ROOT: Final = Path(__file__).parent.parent
FOLDER: Final = ROOT / "agentci" / "reports" / "html"


def main() -> None:
    """Write the script."""
    program = find_bun()
    if program is None:
        raise SystemExit("Bun is missing: run `make .venv/.services`")
    built = FOLDER / SCRIPT
    built.parent.mkdir(exist_ok=True)
    built.write_text(build_script(program), "utf-8")


def find_bun() -> Path | None:
    """Return the program; None if npm found no package for this machine."""
    packages = ROOT / ".venv" / "services" / "node_modules" / "@oven"
    return next(packages.glob("*/bin/bun"), None)


def build_script(program: Path) -> str:
    """Join the sources into one module, and minify it: the same text on every machine."""
    with tempfile.TemporaryDirectory() as folder:
        source, built = Path(folder, "source.js"), Path(folder, "report.js")
        source.write_text("".join((FOLDER / name).read_text("utf-8") for name in SCRIPTS), "utf-8")
        subprocess.run(
            [program, "build", "--minify", source, "--outfile", built],
            check=True,
            capture_output=True,
        )
        return built.read_text("utf-8")


if __name__ == "__main__":
    main()
