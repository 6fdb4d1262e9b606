"""Make docs/pictures from the examples: the report, the comment and the terminal.

`make pictures` runs it; it needs Chromium. The run with failures is compared with one that passed.
"""

import html
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import cmarkgfm  # type: ignore[import-untyped]  # (it has no types)

from tests.helpers.browser import Browser, browser

ROOT: Final = Path(__file__).parent.parent
FOLDER: Final = ROOT / "docs" / "pictures"
MAX_BYTES: Final = 150_000
SCHEMES: Final = {"light": False, "dark": True}
# Of the report: name, link, and height of the picture.
VIEWS: Final = (("overview", "", 880), ("case", "#/case/broken_kettle?with=both", 820))
COMMENT_WIDTH: Final = 830
RUN: Final = ("run", "eval_config.yaml")
COMMAND: Final = "agentci run eval_config.yaml --baseline base-results"

COMMENT_STYLE: Final = """
body { font: 14px/1.5 "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; margin: 0;
  padding: 16px; color: var(--text); background: var(--page); color-scheme: light dark; }
:root { --text: #1f2328; --page: #fff; --line: #d1d9e0; --soft: #f6f8fa; --quiet: #59636e;
  --link: #0969da; --plus: #dafbe1; --minus: #ffebe9; --label: #8250df; }
@media (prefers-color-scheme: dark) { :root { --text: #f0f6fc; --page: #0d1117; --line: #3d444d;
  --soft: #151b23; --quiet: #9198a1; --link: #4493f8; --plus: #12261e; --minus: #25171c;
  --label: #d2a8ff; } }
article { border: 1px solid var(--line); border-radius: 6px; }
header { padding: 8px 16px; background: var(--soft); border-bottom: 1px solid var(--line);
  color: var(--quiet); border-radius: 6px 6px 0 0; }
header b { color: var(--text); }
main { padding: 16px; }
main > :first-child { margin-top: 0; }
h2 { font-size: 1.5em; padding-bottom: .3em; border-bottom: 1px solid var(--line); }
h3 { font-size: 1.25em; }
code { font: 85% ui-monospace, "DejaVu Sans Mono", monospace; padding: .2em .4em;
  background: color-mix(in srgb, var(--quiet) 15%, transparent); border-radius: 6px; }
pre { padding: 12px; background: var(--soft); border-radius: 6px; overflow: hidden; }
pre code { padding: 0; background: none; }
pre .plus { background: var(--plus); } pre .minus { background: var(--minus); }
pre .label { color: var(--label); font-weight: 600; }
pre span { display: block; }
.icon { color: #d1242f; }
table { border-collapse: collapse; } td, th { border: 1px solid var(--line); padding: 6px 13px; }
a { color: var(--link); } ul { padding-left: 2em; } p, ul, pre, table, details { margin: 0 0 16px; }
"""

ICON: Final = '<span class="icon">\N{HEAVY MULTIPLICATION X}</span>'

SHELL: Final = (13.0, 19.5)  # size and height of a line, in pixels
COLUMNS: Final = 92
# Of the output: the first and the last lines.
FIRST_LINES: Final = 26
LAST_LINES: Final = 2
COLOURS: Final = {"31": "#ff7b72", "32": "#56d364", "33": "#e3b341", "1": "bold", "2": "#8b949e"}
ANSI: Final = re.compile(r"\x1b\[([0-9;]*)m")
SECONDS_PER_KEY: Final = 0.05
SECONDS_PER_LINE: Final = 0.06


def main() -> int:
    """Make all pictures; return 1 if one is too large."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        output = run_example(folder / "evals")
        (FOLDER / "terminal.svg").write_text(render_terminal(COMMAND, output))
        report = folder / "evals" / "agentci-results"
        page = folder / "comment.html"
        page.write_text(render_comment((report / "comment.md").read_text()))
        with browser(folder / "profile") as opened:
            for scheme, dark in SCHEMES.items():
                for view, link, height in VIEWS:
                    opened.look(width=1280, height=height, dark=dark)
                    opened.open(report / "report.html", link)
                    _save(opened, f"{view}-{scheme}.webp")
                opened.look(width=COMMENT_WIDTH, height=100, dark=dark)
                opened.open(page)
                height = opened.run("document.documentElement.scrollHeight")
                opened.look(width=COMMENT_WIDTH, height=height, dark=dark)
                _save(opened, f"comment-{scheme}.webp")
    sizes = {each.name: each.stat().st_size for each in sorted(FOLDER.iterdir())}
    for file, size in sizes.items():
        print(f"{size:8,} {file}")
    return 0 if max(sizes.values()) <= MAX_BYTES else 1


def run_example(folder: Path) -> str:
    """Run the example that passes, then its failing recordings; return what the last run prints."""
    shutil.copytree(ROOT / "examples" / "agentevals", folder)
    (folder / ".git").mkdir()
    _run(folder, "--output-dir", "base-results")
    failing = ROOT / "examples" / "agentevals-failing" / "recordings"
    shutil.copytree(failing, folder / "recordings", dirs_exist_ok=True)
    return _run(folder, "--baseline", "base-results")


def _run(folder: Path, *options: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "agentci", *RUN, *options],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "FORCE_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stdout


def _save(opened: Browser, name: str) -> None:
    opened.wait("document.fonts.status === 'loaded'")
    opened.picture(FOLDER / name)


def render_comment(markdown: str) -> str:
    """Render a comment as a page that looks like GitHub's."""
    body = cmarkgfm.github_flavored_markdown_to_html(
        markdown, cmarkgfm.cmark.Options.CMARK_OPT_UNSAFE
    )
    body = body.replace("\N{CROSS MARK}", ICON)  # not every machine has a font with emoji
    body = re.sub(r'(<pre lang="diff"><code>)(.*?)(</code>)', _colour_diff, body, flags=re.DOTALL)
    return (
        f'<!doctype html><meta charset="utf-8"><style>{COMMENT_STYLE}</style>'
        "<article><header><b>github-actions</b> bot commented</header>"
        f"<main>{body}</main></article>"
    )


def _colour_diff(block: re.Match[str]) -> str:
    classes = {"+": "plus", "-": "minus", "@": "label"}
    lines = (
        f'<span class="{classes.get(line[:1], "")}">{line}</span>'
        for line in block[2].rstrip("\n").split("\n")
    )
    return f"{block[1]}{''.join(lines)}{block[3]}"


def render_terminal(command: str, output: str) -> str:
    """Render a command and its output as an animated SVG; still where motion is not wanted."""
    size, height = SHELL
    found = output.rstrip("\n").split("\n")
    if len(found) > FIRST_LINES + LAST_LINES:
        found[FIRST_LINES:-LAST_LINES] = ["", "  \N{HORIZONTAL ELLIPSIS}"]
    lines = [f"\x1b[1m$\x1b[0m {command}", "", *found]
    typed = len(command) * SECONDS_PER_KEY
    rows = []
    for number, line in enumerate(lines):
        delay = typed + number * SECONDS_PER_LINE if number else 0.0
        text = "".join(_render_spans(line))
        rows.append(
            f'<text class="line" style="animation-delay:{delay:.2f}s" x="20" '
            f'y="{44 + number * height:g}">{text}</text>'
        )
    width, whole = 40 + COLUMNS * size * 0.602, 60 + len(lines) * height
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {whole:.0f}" '
        f'width="{width:.0f}" height="{whole:.0f}" role="img">'
        f"<title>{html.escape(command)}</title><style>"
        f"text{{font:{size:g}px ui-monospace,'SF Mono','DejaVu Sans Mono',monospace;"
        "fill:#e6edf3;white-space:pre}"
        "@keyframes show{to{opacity:1}}"
        "@media(prefers-reduced-motion:no-preference){.line{opacity:0;"
        "animation:show .01s forwards}}"
        '</style><rect width="100%" height="100%" rx="8" fill="#0d1117"/>'
        '<circle cx="20" cy="16" r="5" fill="#ff5f56"/><circle cx="36" cy="16" r="5" '
        'fill="#ffbd2e"/><circle cx="52" cy="16" r="5" fill="#27c93f"/>'
        f"{''.join(rows)}</svg>\n"
    )


def _render_spans(line: str) -> Iterator[str]:
    style, room = "", COLUMNS
    for index, part in enumerate(ANSI.split(line)):
        if index % 2:
            codes = [COLOURS[code] for code in part.split(";") if code in COLOURS]
            style = ";".join(
                "font-weight:bold" if each == "bold" else f"fill:{each}" for each in codes
            )
        elif part:
            if len(part) > room:
                part = f"{part[: room - 1]}\N{HORIZONTAL ELLIPSIS}"  # noqa: PLW2901
            room -= len(part)
            shown = html.escape(part)
            yield f'<tspan style="{style}">{shown}</tspan>' if style else shown


if __name__ == "__main__":
    sys.exit(main())
