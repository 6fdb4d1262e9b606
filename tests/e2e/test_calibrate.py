"""``agentci calibrate``: agreement of evaluators with human labels."""

import json
import re
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from tests._util.http.servers import Answer, Asked, Server, script, serve
from tests.e2e.judged import JUDGE, KEY, at, scored, write
from tests.helpers.recordings import eval_set, otlp
from tests.helpers.support import Ran, run_agentci
from tests.judges.bench import said

GOOD, BAD = scored(0.9), scored(0.1)


def calibrate(folder: Path, labels: Sequence[Any], *options: str) -> Ran:
    lines = [each if isinstance(each, str) else json.dumps(each) for each in labels]
    (folder / "labels.jsonl").write_text("\n".join(lines))
    arguments = ["calibrate", "e.yaml", "--labels", "labels.jsonl", *options]
    return run_agentci(arguments, cwd=folder, environ={"KEY": KEY})


def label(case: int, human: str, **others: str) -> dict[str, str]:
    return {"case": f"c{case}", "human": human, **others}


def prepare(folder: Path, server: Server, cases: int = 4, **others: Any) -> None:
    write(folder, at(server.url), cases, **others)


def by_number(asked: Asked) -> Answer:
    """Passes the first two answers."""
    found = re.search(r"Paris (\d+)\.", asked.body.decode())
    assert found
    return GOOD if int(found[1]) < 2 else BAD  # type: ignore[no-any-return]


def test_agreement_is_printed_as_text(tmp_path: Path) -> None:
    labels = [label(0, "pass"), label(1, "fail"), label(2, "fail", note="too short")]
    with serve(by_number) as server:
        prepare(tmp_path, server)
        ran = calibrate(tmp_path, labels)
    assert ran.code == 0
    assert ran.out == (
        "j: 3 cases with a label\n"
        "                  evaluator: pass  evaluator: fail\n"
        "  human: pass                   1                0\n"
        "  human: fail                   1                1\n"
        "  agreement     66.7% (0% to 100%)\n"
        "  kappa         0.4\n"
        "  passes found  100%\n"
        "  fails found   50% (0% to 100%)\n"
        "  note: too few labels for a reliable estimate: 3 cases, 2 of them labelled fail; "
        "use at least 50 cases and 15 fails\n"
        "  note: kappa is below 0.6; do not let this evaluator fail the gate\n"
    )
    # The case without a label is not evaluated.
    assert len(server.asked) == 3


def test_agreement_is_printed_as_json(tmp_path: Path) -> None:
    with serve(by_number) as server:
        prepare(tmp_path, server)
        ran = calibrate(tmp_path, [label(0, "pass"), label(2, "fail")], "--json")
    [entry] = json.loads(ran.out)
    assert (entry["evaluator"], entry["cases"], entry["kappa"]) == ("j", 2, 1.0)
    assert entry["confusion"] == {
        "true_passes": 1,
        "false_fails": 0,
        "false_passes": 0,
        "true_fails": 1,
    }
    assert entry["agreement"]["value"] == 1.0
    assert entry["flip_rate"] == {"part": 0, "whole": 0, "value": None, "interval": None}


def test_repeats_measure_flip_rate(tmp_path: Path) -> None:
    answers = cycle([GOOD, GOOD, BAD])
    with serve(lambda _: next(answers)) as server:
        prepare(tmp_path, server, cases=1)
        ran = calibrate(tmp_path, [label(0, "pass")], "--repeats", "3")
        again = calibrate(tmp_path, [label(0, "pass")])
    assert "  flips         66.7% of 3 pairs of repeats\n" in ran.out
    # The response to the first repeat is cached.
    assert len(server.asked) == 3
    assert "human: pass                   1                0\n" in again.out
    assert "kappa is below" not in again.out
    assert "  note: kappa is undefined: it needs labels or results of both kinds\n" in again.out


def test_label_can_apply_to_one_evaluator(tmp_path: Path) -> None:
    evaluators = [JUDGE, {"name": "has", "type": "contains", "value": "Rome"}]
    labels = [label(0, "pass"), label(0, "fail", evaluator="has")]
    with serve(by_number) as server:
        prepare(tmp_path, server, evaluators=evaluators)
        ran = calibrate(tmp_path, labels, "--json")
    agreement = {each["evaluator"]: each["agreement"]["value"] for each in json.loads(ran.out)}
    assert agreement == {"j": 1.0, "has": 1.0}


def test_checks_without_result_are_counted_separately(tmp_path: Path) -> None:
    with serve(script(said("Hm."))) as server:
        prepare(tmp_path, server)
        ran = calibrate(tmp_path, [label(0, "pass")])
    assert ran.code == 3
    assert ran.out.startswith("j: 0 cases with a label, 1 more without a result\n")
    assert "  kappa         -\n" in ran.out
    assert "  agreement     -\n" in ran.out


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["{"], "labels.jsonl:1: "),
        ([label(0, "pass"), label(0, "fail")], "already has a label in line 1 (remove one of"),
        ([label(0, "good")], "labels.jsonl:1: invalid label: human: Input should be"),
        ([{"case": "c0"}], "invalid label: human: Field required"),
        ([{**label(0, "pass"), "juge": "j"}], "invalid label: juge: Extra inputs"),
        ([7], "labels.jsonl:1: invalid label: "),
        ([label(9, "pass")], "labels.jsonl:1: no check has the case 'c9' (`agentci plan` lists"),
        ([label(0, "pass", evaluator="k")], "no check of evaluator 'k' has the case 'c0'"),
        ([], "the file has no labels"),
    ],
)
def test_invalid_label_is_reported_with_its_line(
    tmp_path: Path, labels: list[Any], message: str
) -> None:
    with serve(by_number) as server:
        prepare(tmp_path, server)
        ran = calibrate(tmp_path, labels)
    assert ran.code == 2
    assert message in " ".join(map(str, ran.problems))
    assert server.asked == []


def test_missing_label_file_is_reported_without_line(tmp_path: Path) -> None:
    ran = run_agentci(["calibrate", "--labels", "gone.jsonl"], cwd=tmp_path)
    assert ran.code == 2
    assert [*map(str, ran.problems)] == ["command line: gone.jsonl does not exist"]


@pytest.mark.parametrize("number", ["0", "100", "x", "1.5", "9" * 5000])
def test_invalid_repeats_error_gives_valid_range(
    capsys: pytest.CaptureFixture[str], number: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        run_agentci(["calibrate", "--labels", "labels.jsonl", "--repeats", number], cwd=Path.cwd())
    assert caught.value.code == 2
    message = f"--repeats must be a whole number from 1 to 99, not {number!r}; try"
    assert message in capsys.readouterr().err


def test_broken_trace_is_invalid_input(tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text(
        "evaluators: [{name: tool_trajectory_avg_score, type: builtin}]\ntraces: '*.otlp.json'\n"
        "eval_set: set.json\n"
    )
    (tmp_path / "set.json").write_text(eval_set())
    (tmp_path / "a.otlp.json").write_text(otlp())
    (tmp_path / "b.otlp.json").write_text("{")
    ran = calibrate(tmp_path, [label(0, "pass")])
    assert ran.code == 2
    assert "b.otlp.json:1" in str(ran.problems[0])
