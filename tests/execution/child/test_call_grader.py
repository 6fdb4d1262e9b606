"""The program that calls Python graders, run as a child process."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentci._util.child_programs import GRADE_PATH

SAMPLE = {"output_text": "It is sunny.", "tool_calls": [], "tool_definitions": []}
ITEM = {"query": "Weather?", "context": "Paris"}


def _run(
    source: str,
    *,
    function: str = "grade",
    file: Path | None = None,
    sample: dict[str, Any] = SAMPLE,
) -> subprocess.CompletedProcess[str]:
    asked: dict[str, Any] = {"function": function, "sample": sample, "item": ITEM}
    if file is None:
        asked["source"] = source
    else:
        file.write_text(source)
    return subprocess.run(
        [sys.executable, GRADE_PATH, *([] if file is None else [str(file)])],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
    )


def _grade(returned: str, file: Path) -> subprocess.CompletedProcess[str]:
    source = "import decimal, fractions\n\ndef grade(sample, item):\n    return "
    return _run(source + returned, file=file)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "graders.py"


@pytest.mark.parametrize(
    ("returned", "score"),
    [
        ("0.25", 0.25),
        ("1", 1.0),
        ("True", 1.0),
        ("False", 0.0),
        ("decimal.Decimal('0.5')", 0.5),
        ("fractions.Fraction(1, 4)", 0.25),
        ("float(len(sample['output_text']) == 12)", 1.0),
        ("float(item['context'] == 'Paris')", 1.0),
        ("7.5", 7.5),
    ],
)
def test_returned_number_becomes_score(file: Path, returned: str, score: float) -> None:
    ran = _grade(returned, file)
    assert (ran.returncode, json.loads(ran.stdout), ran.stderr) == (0, {"score": score}, "")


def test_returned_dict_is_printed_completely(file: Path) -> None:
    ran = _grade("{'score': True, 'reason': 'kind', 'at': decimal.Decimal(2)}", file)
    assert json.loads(ran.stdout) == {"score": 1.0, "reason": "kind", "at": "2"}


@pytest.mark.parametrize(
    ("returned", "complaint"),
    [
        ("None", "`grade` returned None; it must be a number"),
        ("'0.5'", "`grade` returned '0.5'; it must be a number"),
        ("[1.0]", "`grade` returned [1.0]; it must be a number"),
        ("float('nan')", "`grade` returned nan; it must be a finite number"),
        ("float('-inf')", "`grade` returned -inf; it must be a finite number"),
        ("{'result': 1}", "`grade` returned a dict without the key `score`: {'result': 1}"),
        ("{'score': None}", "`grade` returned None; it must be a number"),
        (
            "'x' * 1000",
            f"`grade` returned '{'x' * 199}\N{HORIZONTAL ELLIPSIS}; it must be a number",
        ),
    ],
)
def test_invalid_return_value_is_reported(file: Path, returned: str, complaint: str) -> None:
    ran = _grade(returned, file)
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", f"{complaint}\n")


@pytest.mark.parametrize("in_file", [True, False])
def test_traceback_begins_in_user_code(file: Path, *, in_file: bool) -> None:
    source = "def grade(sample, item):\n    return item['price'] / 2\n"
    ran = _run(source, file=file if in_file else None)
    where = file if in_file else "<source>"
    first, place, line, *_, last = ran.stderr.splitlines()
    assert (ran.returncode, ran.stdout) == (1, "")
    assert first == "Traceback (most recent call last):"
    assert place == f'  File "{where}", line 2, in grade'
    assert line == "    return item['price'] / 2"
    assert last == "KeyError: 'price'"


@pytest.mark.parametrize(
    ("source", "last"),
    [
        ("def grade(sample item): ...", "SyntaxError: invalid syntax"),
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("import sys\ndef grade(sample, item): sys.exit(0)", "SystemExit: 0"),
        ("def grade(sample): return 1", "grade() takes 1 positional argument but 2 were given"),
        ("def grade(sample, item):\n d = {'score': 1}\n d['d'] = d\n return d", "Circular"),
    ],
)
def test_invalid_grader_fails_with_error(file: Path, source: str, last: str) -> None:
    ran = _run(source, file=file)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert last in ran.stderr.splitlines()[-1]
    assert GRADE_PATH not in ran.stderr


@pytest.mark.parametrize("in_file", [True, False])
def test_missing_function_is_reported(file: Path, *, in_file: bool) -> None:
    ran = _run("other = 1", function="other", file=file if in_file else None)
    what = "graders.py" if in_file else "the source"
    assert (ran.returncode, ran.stderr) == (1, f"no function `other` in {what}\n")


def test_output_of_grader_is_not_part_of_result(file: Path) -> None:
    source = (
        "import os, subprocess, sys\n"
        "print('{\"score\": 0}')\n"
        "def grade(sample, item):\n"
        "    print('noise'); os.write(1, b'bytes\\n')\n"
        "    subprocess.run(['echo', 'child'])\n"
        "    sys.stdout.close()\n"
        "    return 1.0\n"
    )
    ran = _run(source, file=file)
    assert (ran.returncode, json.loads(ran.stdout)) == (0, {"score": 1.0})
    assert {"noise", "bytes", "child"} < set(ran.stderr.split())


def test_local_modules_take_precedence_over_standard_library(
    file: Path,
) -> None:
    (file.parent / "math.py").write_text("def half(): return 0.5")
    (file.parent / "words").mkdir()
    (file.parent / "words" / "kind.py").write_text("ANSWER = 1")
    source = "import math, words.kind\ndef grade(s, i): return math.half() * words.kind.ANSWER"
    assert json.loads(_run(source, file=file).stdout) == {"score": 0.5}


def test_dataclass_of_grader_file_can_be_pickled(file: Path) -> None:
    source = (
        "from __future__ import annotations\n"
        "import pickle\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Pair:\n    one: float\n"
        "def grade(s, i): return pickle.loads(pickle.dumps(Pair(one=0.5))).one"
    )
    assert json.loads(_run(source, file=file).stdout) == {"score": 0.5}


@pytest.mark.parametrize(
    ("calls", "reason"),
    [
        (None, "the recording does not say which tools were called"),
        ([{"name": "refund", "arguments": None}], "arguments of a call of `refund` are None"),
    ],
)
def test_error_says_what_was_not_recorded(file: Path, calls: Any, reason: str) -> None:
    source = (
        "def grade(sample, item):\n"
        "    return float(all('amount' not in call['arguments'] for call in sample['tool_calls']))"
    )
    ran = _run(source, file=file, sample={**SAMPLE, "tool_calls": calls})
    assert ran.returncode == 1
    assert reason in ran.stderr.splitlines()[-1]
