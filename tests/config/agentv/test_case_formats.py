"""Cases of AgentV 5 in CSV files, and of Agent Skills in `evals.json`."""

from typing import Any

import pytest

from agentci.config.agentv.case_formats import parse_csv_cases
from agentci.config.agentv.eval_file import read_eval_file
from agentci.config.overrides import Overrides
from agentci.config.suite import Suite
from agentci.config.variables import ConfigVariables
from agentci.config.yaml_document import read_yaml
from agentci.config.yaml_nodes import plain_data
from agentci.errors import InputError
from tests.config.agentv.no_files import NoFiles


def parse(text: str) -> Any:
    nodes = parse_csv_cases(text.encode(), file="c.csv", path="/w/data/c.csv", folder="/w/evals")
    return plain_data(nodes)


def read_assertion(cell: str) -> Any:
    quoted = cell.replace('"', '""')
    [case] = parse(f'id,__expected\na,"{quoted}"\n')
    [assertion] = case["assert"]
    return assertion


def test_columns_are_parts_of_the_case() -> None:
    [first, second] = parse(
        "\ufeffid, input ,__prefix,__suffix,__description,__providerOutput,__threshold,"
        "__metadata:from,__metadata:tags[],vars.a.b,vars.a.c,lang,\r\n"
        'x,"one\r\ntwo",<,>,good,ref,0.5,csv,"p, q\\,r",1,2,en,\r\n'
        "\r\n"
        ",y\r\n"
    )
    assert first == {
        "id": "x",
        "input": "<one\r\ntwo>",
        "threshold": 0.5,
        "criteria": "good",
        "expected_output": "ref",
        "vars": {"a": {"b": "1", "c": "2"}, "lang": "en"},
        "metadata": {"from": "csv", "tags": ["p", "q,r"]},
    }
    assert (second["id"], second["input"]) == ("row-2", "y")


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("icontains: hello", {"type": "icontains", "negate": False, "value": "hello"}),
        ("not-contains:x", {"type": "contains", "negate": True, "value": "x"}),
        ("contains-any:a, b", {"type": "contains-any", "negate": False, "value": ["a", "b"]}),
        ("is-json", {"type": "is-json", "negate": False}),
        ("latency(200)", {"type": "latency", "negate": False, "threshold": 200.0}),
        ("cost(0.5)", {"type": "cost", "negate": False, "budget": 0.5}),
        (
            "starts-with(0.9):a",
            {"type": "starts-with", "negate": False, "value": "a", "min_score": 0.9},
        ),
        ("grade: is kind", {"type": "llm-rubric", "value": ["is kind"]}),
        ("fn:output === 'a'", {"type": "javascript", "value": "output === 'a'"}),
        ("python: len(output) > 2", {"type": "python", "value": "len(output) > 2"}),
        ("python: g.py", {"type": "script", "command": ["python3", "g.py"]}),
        ("file://g.py", {"type": "script", "command": ["python3", "../data/g.py"]}),
        ("Paris", {"type": "equals", "value": "Paris"}),
        ("paris", {"type": "equals", "value": "paris"}),
        ("The capital: Paris", {"type": "equals", "value": "The capital: Paris"}),
    ],
)
def test_expected_cell_is_an_assertion(cell: str, expected: dict[str, Any]) -> None:
    assert read_assertion(cell) == expected


def test_assertions_of_a_row_have_its_metric_and_their_scores() -> None:
    [one, two, three] = parse(
        "__expected,__expected2,__metric,__config:__expected2:threshold\n"
        "a,b,m,0.3\n"
        "a,,m,0.4\n"
        ",b,m,\n"
    )
    assert one["assert"] == [
        {"type": "equals", "value": "a", "name": "m-1"},
        {"type": "equals", "value": "b", "name": "m-2", "min_score": 0.3},
    ]
    assert two["assert"] == [{"type": "equals", "value": "a", "name": "m"}]
    assert three["assert"] == [{"type": "equals", "value": "b", "name": "m"}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,input\n", "c.csv:1: the file has no cases (the first line names the columns)"),
        ("", "c.csv:1: the file has no cases"),
        ('id\n"a\n', "c.csv:2: invalid CSV: unexpected end of data"),
        ("id,id\na,b\n", "c.csv:1: column 'id' is there twice"),
        ("__expected,__expected\na,b\n", "further assertions go into __expected2"),
        ("__expectd\na\n", "unknown column '__expectd'"),
        ("id,input\n\na,b,c\n", "c.csv:3: the row has 3 cells, but the header names 2 columns"),
        ("id,__threshold\na,high\n", "c.csv:2: __threshold must be a number, not 'high'"),
        ("id,__expected\na,file://g.js\n", "names 'g.js', which is not a .py file"),
        ("id,__expected\na,sounds-like:x\n", "has the unknown type 'sounds-like'"),
        ("id,__expected\na,cost\n", "has no limit for `cost` (for example cost(1))"),
        ("__expected,__config:__expected:weight\na,1\n", "unknown column '__config:__expected"),
    ],
)
def test_invalid_file_is_an_error_on_its_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text)
    assert message in str(caught.value.problems[0])


def test_other_encoding_is_an_error() -> None:
    with pytest.raises(InputError, match="the file is not UTF-8"):
        parse_csv_cases(b"id\n\xe9\n", file="c.csv", path="/w/c.csv", folder="/w")


SKILL_FILE = """\
{"skill_name": "csv", "evals": [
  {"id": 7, "prompt": "q", "expected_output": "r", "assertions": ["Is kind.", "Is short."],
   "files": ["a.csv"]},
  {"id": "b", "prompt": "q", "expected_output": "r", "assertions": []}
]}
"""


def read_skills(text: str) -> Suite:
    return read_eval_file(
        read_yaml(text.encode(), file="evals.json"),
        Overrides(judge_model="openai/m"),
        NoFiles(),
        variables=ConfigVariables({}, allowed=()),
    )


def test_cases_of_agent_skills_are_judged_by_their_assertions() -> None:
    suite = read_skills(SKILL_FILE)
    first, second = suite.eval_cases or ()
    assert [each.identity.name for each in first.evaluators] == ["assertion-1", "assertion-2"]
    assert str(first.evaluators[1].identity.place) == "evals.json:2:79"
    assert [each.identity.name for each in second.evaluators] == ["llm_judge"]
    case = first.eval_case
    assert (case.id, case.criteria, case.input_messages[0]["content"]) == ("7", "r", "q")
    assert case.metadata == {"skill_name": "csv", "agent_skills_files": ["a.csv"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"evals": []}', "`tests` must be a list with at least one case"),
        ('{"evals": [{"id": 1}]}', "case '1' has no input"),
        ('{"evals": [{"prompt": "q", "expected_output": "r"}]}', "a case has no `id`"),
        ('{"evals": [{"id": 1, "prompt": "q", "assertions": [3]}]}', "must be a mapping"),
        ('{"evals": 3}', "`tests` must be"),
    ],
)
def test_invalid_cases_of_agent_skills_are_errors(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_skills(text)
