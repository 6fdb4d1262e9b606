"""Runs of an eval file whose cases are scored by a judge model."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests._util.http.servers import Asked, Respond
from tests.helpers.support import Ran, run_agentci
from tests.judges.bench import said

KEY = "sk-secret-0123456789"
JUDGE = {"name": "j", "type": "llm_judge"}


def scored(score: float, **usage: int) -> Any:
    """The response of a model service whose judge returns ``score``."""
    verdict = {"reasoning": "so", "hits": ["h"], "misses": [], "score": score}
    return said(json.dumps(verdict), usage=usage or None)


def by_case(scores: Mapping[str, Any]) -> Respond:
    """Responds with the first entry whose key occurs in the request."""

    def respond(asked: Asked) -> Any:
        text = asked.body.decode()
        return next(answer for word, answer in scores.items() if word in text)

    return respond


def at(url: str, **others: Any) -> dict[str, Any]:
    """The config of a judge at a local server."""
    return {"provider": "openai", "model": "m", "base_url": url, "api_key_env": "KEY", **others}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The results of a run, read before the next run in the same folder."""

    ran: Ran
    report: Any

    @property
    def cached(self) -> list[bool]:
        return [each["cached"] for each in self.report["results"]]

    @property
    def statuses(self) -> list[str]:
        return [each["status"] for each in self.report["results"]]

    @property
    def reasons(self) -> list[str]:
        return [each["reason"] for each in self.report["results"]]


def judge(
    folder: Path,
    judge: Mapping[str, Any],
    *options: str,
    cases: int = 1,
    evaluators: Sequence[Mapping[str, Any]] = (JUDGE,),
    environ: Mapping[str, str] | None = None,
    **others: Any,
) -> Judged:
    """Evaluate ``cases`` answers: ``Paris 0.``, ``Paris 1.`` and so on; the judge may use KEY."""
    write(folder, judge, cases, evaluators, **others)
    given = {"KEY": KEY} if environ is None else environ
    allowed = ["--env-allow", "KEY"] if "GITHUB_ACTIONS" in given else []
    ran = run_agentci(["run", "e.yaml", *allowed, *options], cwd=folder, environ=given)
    return Judged(ran=ran, report=ran.results)


def write(
    folder: Path,
    judge: Mapping[str, Any],
    cases: int,
    evaluators: Sequence[Mapping[str, Any]] = (JUDGE,),
    **others: Any,
) -> None:
    """Write an eval file and the outputs that it evaluates."""
    listed = [
        {"id": f"c{i}", "criteria": "says Paris", "input": "Capital?", "evaluators": evaluators}
        for i in range(cases)
    ]
    file = {"outputs": "out.jsonl", "judge": judge, "cases": listed, **others}
    (folder / "e.yaml").write_text(json.dumps(file))
    outputs = [
        {"id": f"c{i}", "output_messages": [{"role": "assistant", "content": f"Paris {i}."}]}
        for i in range(cases)
    ]
    (folder / "out.jsonl").write_text("\n".join(map(json.dumps, outputs)))
