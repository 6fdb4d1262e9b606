"""Result files of real tools, with the rows expected of them.

``files/TOOL/SAMPLE/`` holds the files of one run and ``expected.json``. They were written by
promptfoo 0.123.1, DeepEval 4.3.1, Inspect 0.3.285, pydantic-evals 2.62.0, google-adk 2.13.0,
vitest-evals 0.16.1, evalite 0.19.0, AgentV 4.42.4, agentevals 0.11.0, lm-eval 0.4.13, pytest 8.4.2,
Vitest 4.1.12, pytest-json-ctrf 0.6.1 and Braintrust 0.47.0, without models; ``table`` by hand.
"""

import json
from pathlib import Path
from typing import Any

from agentci._util.archives import iterate_members
from agentci.result_files.python_tools import is_needed_member
from agentci.result_files.registry import is_archive, read_result_archive, read_result_file
from agentci.result_files.row import ResultFile, ResultRow

FILES = Path(__file__).parent / "files"
SAMPLES = sorted(
    str(expected.parent.relative_to(FILES)) for expected in FILES.glob("*/*/expected.json")
)
MEANS = {"benchmark.json"}
FIELDS = ("case", "metric", "status", "score", "threshold", "repeat")


def sample_file(sample: str) -> Path:
    """The file of a sample that holds its results."""
    [found] = (
        path
        for path in (FILES / sample).iterdir()
        if path.name not in MEANS
        and not path.name.startswith("results_2")
        and path.name not in {"expected.json", "against-base.json"}
    )
    return found


def load_expected(sample: str) -> Any:
    return json.loads((FILES / sample / "expected.json").read_text())


def read_path(path: Path) -> ResultFile:
    data = path.read_bytes()
    if is_archive(data):
        members = iterate_members(data, is_needed_member, member_bytes=2**20, total_bytes=2**24)
        return read_result_archive(members, file=path.name)
    return read_result_file(data, file=path.name)


def read_text(text: str | bytes, *, file: str = "results.json", tool: str = "auto") -> ResultFile:
    data = text if isinstance(text, bytes) else text.encode()
    return read_result_file(data, file=file, tool=tool)


def read_json(value: Any, **options: Any) -> ResultFile:
    return read_text(json.dumps(value), **options)


def read_lines(*values: Any, **options: Any) -> ResultFile:
    return read_text("\n".join(map(json.dumps, values)), **options)


def describe(row: ResultRow) -> tuple[Any, ...]:
    return tuple(getattr(row, name) for name in FIELDS)


def outcomes(found: ResultFile) -> dict[tuple[str, str], tuple[Any, Any]]:
    """Status and score by case and metric."""
    return {(row.case, row.metric): (row.status, row.score) for row in found.rows}


def statuses(found: ResultFile) -> dict[str, Any]:
    """Status by case, of files with one metric per case."""
    return {row.case: row.status for row in found.rows}
