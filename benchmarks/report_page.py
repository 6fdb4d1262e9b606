"""Reports of many checks with a baseline: size of the page, time to its first row, to build it."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.helpers.browser import PROGRAM, browser
from tests.helpers.recordings import eval_case, eval_set_of, otlp

CASES: Final = 2_000
EVALUATORS: Final = 5
CHANGED: Final = 40
MAX_BYTES: Final = 20_000_000
MAX_SECONDS: Final = 2.0
MAX_SHARE: Final = 0.25
CONFIG: Final = """\
traces: traces.jsonl
eval_set: eval_set.json
evaluators:
- {name: tool_trajectory_avg_score, type: builtin, threshold: 1.0}
- {name: response_match_score, type: builtin, threshold: 0.6}
- {name: polite, type: code, path: polite.py, threshold: 0.5, cache: true}
checks:
- max_words: 30
- no_tool_errors: true
"""
POLITE: Final = """\
import json, sys
answer = json.load(sys.stdin)["invocations"][0]["final_response"]
print(json.dumps({"score": 0.2 if "Impossible" in answer else 0.9}))
"""
# A run that also prints the processor time of its reports and of the whole process.
TIMED: Final = """\
import sys, time
from agentci.cli import publish
from agentci.cli.commands import run
from agentci.cli.main import main
plain, spent = run.publish_report, []
def timed(*given, **options):
    start = time.process_time()
    try:
        return plain(*given, **options)
    finally:
        spent.append(time.process_time() - start)
run.publish_report = timed
try:
    main()
finally:
    print(spent[0], time.process_time())
"""


def measure() -> bool:
    """Print what the page takes; tell whether that is within the limits."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        write_run(folder, CASES, changed=False)
        _run(folder, "before")
        write_run(folder, CASES, changed=True)
        _run(folder, "head", "--baseline", "before")
        built, whole = _run(folder, "head", "--baseline", "before")
        page = folder / "head" / "report.html"
        size, shown = page.stat().st_size, measure_page(page, folder / "profile")
    print(f"report page, {CASES * EVALUATORS:,} checks with a baseline")
    print(f"  size {size / 1e6:.1f} MB  (at most {MAX_BYTES / 1e6:g} MB)")
    print(f"  first row {'-' if shown is None else f'{shown:.2f} s'}  (at most {MAX_SECONDS:g} s)")
    share = built / whole
    print(f"  reports {built:.2f} s of {whole:.2f} s, {share:.0%} of a cached run", end="  ")
    print(f"(at most {MAX_SHARE:.0%})")
    return size <= MAX_BYTES and (shown or 0) <= MAX_SECONDS and share <= MAX_SHARE


def write_run(folder: Path, cases: int, *, changed: bool) -> None:
    """Write a config, an eval set and traces.

    Args:
        changed: whether the agent answers one of ``CHANGED`` questions in another way.
    """
    questions = [_make_case(number) for number in range(cases)]
    expected = [
        eval_case(question, answer, calls=(call,), case=f"order-{number:04}")
        for number, (question, answer, call) in enumerate(questions)
    ]
    (folder / "eval_set.json").write_text(eval_set_of(expected))
    (folder / "traces.jsonl").write_text("\n".join(_make_traces(questions, changed=changed)))
    (folder / "agentci.yaml").write_text(CONFIG)
    (folder / "polite.py").write_text(POLITE)
    (folder / ".git").mkdir(exist_ok=True)


def measure_page(page: Path, profile: Path) -> float | None:
    """Return the seconds until the page shows its first case; None without a browser."""
    if PROGRAM is None:
        return None
    with browser(profile) as opened:
        start = time.perf_counter()
        opened.open(page)
        opened.wait("document.querySelectorAll('table a[href^=\"#/case/\"]').length > 0")
        return time.perf_counter() - start


def _run(folder: Path, output: str, *options: str) -> tuple[float, float]:
    """Run the checks; return the processor seconds of the reports and of the whole run."""
    ran = subprocess.run(
        [sys.executable, "-c", TIMED, "run", "--output-dir", output, "--quiet", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (folder / output / "report.html").exists(), ran.stdout + ran.stderr
    built, whole = map(float, ran.stdout.split()[-2:])
    return built, whole


_Case = tuple[str, str, tuple[str, dict[str, str]]]


def _make_case(number: int) -> _Case:
    order = str(4711 + number)
    question = f"Where is my order {order}? It should have been here {number % 9 + 1} days ago."
    answer = f"Your order {order} is in delivery and arrives in {number % 5 + 1} days. I am sorry."
    return question, answer, ("find_order", {"order_id": order, "customer": f"C-{number % 97}"})


def _make_traces(questions: list[_Case], *, changed: bool) -> Iterator[str]:
    for number, (question, answer, (tool, arguments)) in enumerate(questions):
        is_other = changed and number % CHANGED == 0
        yield otlp(
            question,
            f"Impossible. {answer.split(' is ')[0]} was not found." if is_other else answer,
            calls=((tool, {**arguments, "order_id": "0"} if is_other else arguments),),
            trace=number + 1,
            attributes={
                "gen_ai.conversation.id": f"order-{number:04}",
                "gen_ai.usage.input_tokens": str(200 + number % 50),
            },
        )
