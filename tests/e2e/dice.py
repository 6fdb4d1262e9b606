"""Evaluators whose scores vary between runs: a local server supplies each score."""

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests._util.http.servers import Answer, Asked, serve
from tests.helpers.recordings import otlp
from tests.helpers.support import Ran, run_agentci

PROGRAM = """\
import json, sys, urllib.parse, urllib.request
case = json.load(sys.stdin)
said = urllib.parse.quote(case["invocations"][0]["final_response"])
with urllib.request.urlopen(case["config"]["url"] + "/" + said) as reply:
    text = reply.read().decode()
if not text:
    sys.exit("out of luck")
print(text)
"""


@dataclass(slots=True, kw_only=True)
class Dice:
    """The scores that evaluators return, per answer: in order, then from the start again.

    Attributes:
        thrown: the number of scores returned per answer.
    """

    url: str = ""
    throws: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    thrown: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def throw(self, asked: Asked) -> Answer:
        """Returns the next score as evaluator output; an empty body for None."""
        name = asked.path.rpartition("/")[2]
        with self.lock:
            score = self.throws[name][self.thrown[name] % len(self.throws[name])]
            self.thrown[name] += 1
        return Answer(body=b"" if score is None else json.dumps({"score": score}).encode())


@contextmanager
def dice(folder: Path, throws: Mapping[str, Sequence[float | None]]) -> Iterator[Dice]:
    """Writes a trace for each name in ``throws`` and the evaluator that scores it."""
    thrown = Dice(throws=throws)
    (folder / "own.py").write_text(PROGRAM)
    (folder / "alone").mkdir()
    (folder / "alone" / "own.py").write_text(PROGRAM)
    for number, name in enumerate(throws, start=1):
        (folder / f"{name}.json").write_text(otlp(f"Question {name}?", name, trace=number))
    with serve(thrown.throw) as server:
        thrown.url = server.url
        yield thrown


def entry(thrown: Dice, **fields: Any) -> dict[str, Any]:
    """The config entry of the evaluator."""
    own = {"name": "own", "type": "code", "path": "own.py", "config": {"url": thrown.url}}
    return {**own, "threshold": 0.5, **fields}


def cached_entry(thrown: Dice, **fields: Any) -> dict[str, Any]:
    """The config entry of a cached evaluator in a folder that does not contain the config."""
    return entry(thrown, **{"path": "alone/own.py", "cache": True, **fields})


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The results of a run, read before the next run in the same folder.

    Attributes:
        report: its results.json, or None if the default output folder has none.
    """

    ran: Ran
    report: Any

    @property
    def results(self) -> list[dict[str, Any]]:
        """The results in the order of the traces."""
        return sorted(self.report["results"], key=lambda each: str(each["trace"]))

    @property
    def result(self) -> dict[str, Any]:
        """The only result."""
        [result] = self.results
        return result


def judge(folder: Path, *options: str, evaluators: Sequence[Any], **config: Any) -> Judged:
    """Evaluate all traces."""
    written = {"traces": "*.json", "evaluators": evaluators, **config}
    (folder / "agentci.yaml").write_text(json.dumps(written))
    ran = run_agentci(["run", *options], cwd=folder)
    path = folder / "agentci-results" / "results.json"
    return Judged(ran=ran, report=json.loads(path.read_text()) if path.is_file() else None)
