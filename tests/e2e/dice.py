"""Programs that do not say the same each time: each asks a server of ours what to say."""

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
    """What programs are to say, by the answer that they judge: one after the other, then again.

    Attributes:
        thrown: how often each was asked for.
    """

    url: str = ""
    throws: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    thrown: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def throw(self, asked: Asked) -> Answer:
        """The next score, as a program prints it; nothing for None."""
        name = asked.path.rpartition("/")[2]
        with self.lock:
            score = self.throws[name][self.thrown[name] % len(self.throws[name])]
            self.thrown[name] += 1
        return Answer(body=b"" if score is None else json.dumps({"score": score}).encode())


@contextmanager
def dice(folder: Path, throws: Mapping[str, Sequence[float | None]]) -> Iterator[Dice]:
    """A recording for each name in ``throws``, and the program that judges it by them."""
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
    """The program as a config lists it."""
    own = {"name": "own", "type": "code", "path": "own.py", "config": {"url": thrown.url}}
    return {**own, "threshold": 0.5, **fields}


def cached_entry(thrown: Dice, **fields: Any) -> dict[str, Any]:
    """The program in a folder of its own, which the config is no part of, and cached."""
    return entry(thrown, **{"path": "alone/own.py", "cache": True, **fields})


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a run found, before another one in the same folder.

    Attributes:
        report: its results.json, where it wrote that into the default folder.
    """

    ran: Ran
    report: Any

    @property
    def results(self) -> list[dict[str, Any]]:
        """In the order of the recordings."""
        return sorted(self.report["results"], key=lambda each: str(each["trace"]))

    @property
    def result(self) -> dict[str, Any]:
        """The only one."""
        [result] = self.results
        return result


def judge(folder: Path, *options: str, evaluators: Sequence[Any], **config: Any) -> Judged:
    """Judge all recordings."""
    written = {"traces": "*.json", "evaluators": evaluators, **config}
    (folder / "agentci.yaml").write_text(json.dumps(written))
    ran = run_agentci(["run", *options], cwd=folder)
    path = folder / "agentci-results" / "results.json"
    return Judged(ran=ran, report=json.loads(path.read_text()) if path.is_file() else None)
