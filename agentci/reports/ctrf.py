"""``ctrf.json``: the Common Test Report Format, with one test per check."""

import math
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from agentci._util.text import json_text
from agentci.model.result import Report, Status
from agentci.model.values import JsonObject
from agentci.reports.exported_checks import CheckOutcome, iterate_outcomes
from agentci.result_files.ctrf import EXTRA_KEY, FORMAT
from agentci.version import __version__

SPEC_VERSION: Final = "1.0.0"
# The format has no status for errors.
_STATUSES: Final[dict[Status, str]] = {
    "passed": "passed",
    "failed": "failed",
    "skipped": "skipped",
    "errored": "other",
}


class CtrfReport(Struct, frozen=True, kw_only=True):
    """A report for tools that read CTRF; ``extra`` holds what the format has no fields for."""

    tool_version: str = __version__
    name: str = "ctrf"
    file_name: str = "ctrf.json"

    def render(self, report: Report) -> Iterator[str]:
        """Yield ASCII JSON. Start and stop are 0: two reports of one run are equal."""
        totals = report.totals
        summary = {
            "tests": totals.checks,
            "passed": totals.passed,
            "failed": totals.failed,
            "pending": 0,
            "skipped": totals.skipped,
            "other": totals.errored,
            "start": 0,
            "stop": 0,
        }
        tool = {"name": "agentci", "version": self.tool_version}
        head = {"reportFormat": FORMAT, "specVersion": SPEC_VERSION, "generatedBy": "agentci"}
        yield json_text.dumps(head).rstrip("}")
        yield f',"results":{{"tool":{json_text.dumps(tool)},'
        yield f'"summary":{json_text.dumps(summary)},"tests":'
        yield from json_text.format_array(map(_render_test, iterate_outcomes(report)))
        yield "}}\n"


def _render_test(outcome: CheckOutcome) -> str:
    result = outcome.result
    test: JsonObject = {
        "name": f"{result.case.id} > {outcome.metric}",
        "status": _STATUSES[result.status],
        "duration": round(result.seconds * 1000) if math.isfinite(result.seconds) else 0,
        "suite": [result.config],
        **({"message": outcome.reason} if outcome.reason else {}),
        "extra": {
            EXTRA_KEY: {
                "case": result.case.id,
                "metric": outcome.metric,
                "status": None if outcome.status is None else _STATUSES[outcome.status],
                "score": result.score,
                "threshold": result.evaluator.threshold,
            }
        },
    }
    return json_text.dumps(test)
