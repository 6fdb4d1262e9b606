import json

import pytest

from agentci.errors import InputError
from agentci.record.case_file import (
    MAX_CASES,
    MAX_INPUT_BYTES,
    RecordCase,
    choose_cases,
    read_cases,
)
from tests.helpers.recordings import eval_case, eval_set, eval_set_of

FIRST = RecordCase(id="a", input="One")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("c.jsonl", b'{"id": "a", "input": "One", "expected": 1}\n{"input": "Two"}\n{"id": 3}'),
        ("c.json", b'[{"id": "a", "input": "One"}, {"input": "Two"}, {"id": 3}]'),
        ("c.yaml", b"- {id: a, input: One}\n- input: Two\n- id: 3\n"),
        ("c.yml", b"cases:\n- {id: a, input: One}\n- input: Two\n- id: 3\n"),
        ("c.yml", b"eval_cases:\n- {id: a, input: One, calls: [f]}\n- input: Two\n- id: 3\n"),
    ],
)
def test_cases_are_read_in_each_format(file: str, content: bytes) -> None:
    assert read_cases(content, file=file) == (
        FIRST,
        RecordCase(id="case-2", input="Two", is_named=False),
        RecordCase(id="3", input=None),
    )


def test_eval_sets_of_adk_are_cases() -> None:
    old = b'[{"name": "a", "query": "One", "expected_tool_use": []}]'
    assert read_cases(old, file="a.test.json") == (FIRST,)
    assert read_cases(eval_set("One", case="a").encode(), file="set.json") == (FIRST,)
    case = eval_case("One", "Yes.", calls=[], case="a")
    turns = [*case["conversation"], *case["conversation"]]
    [found] = read_cases(eval_set_of([{**case, "conversation": turns}]).encode(), file="set.json")
    assert (found.input, found.turns, found.text) == (None, ("One", "One"), "One\nOne\n")


@pytest.mark.parametrize(
    ("content", "place", "message"),
    [
        (b'"x"', "c.jsonl:1", "case 1 is a string, not an object"),
        (b'{"id": "a"}\n{"id": true}', "c.jsonl:2", "`id` of case 2 is not text"),
        (b'{"id": "a"}\n{"id": "a"}', "c.jsonl:2", "duplicate id 'a'"),
        (b'{"id": "A"}\n{"id": "a"}', "c.jsonl:2", "id 'a' differs from 'A' only in upper and"),
        (b'{"input": ["x"]}', "c.jsonl:1", "`input` of case 1 is an array, not text; write a"),
        (b'{"input": {}}', "c.jsonl:1", "`input` of case 1 is an object, not text"),
        (b"{}", "c.jsonl:1", "case 1 has neither `id` nor `input`"),
        (b'{"id": "a\\nb"}', "c.jsonl:1", "not printable"),
        (b"[]", "c.jsonl:1", "no cases"),
        (b"{", "c.jsonl:1", "invalid JSON"),
        (b"", "c.jsonl:1", "empty"),
    ],
)
def test_invalid_cases_are_problems_with_places(content: bytes, place: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_cases(content, file="c.jsonl")
    problem = caught.value.problems[0]
    assert str(problem.place).startswith(place)
    assert message in problem.message
    hint = 'a case is an object such as {"id": "refund", "input": "Can I return it?"}'
    own = "give each case an id of its own"
    assert problem.hint == (own if "id '" in message else hint)


def test_empty_yaml_is_explained_by_a_case() -> None:
    with pytest.raises(InputError) as caught:
        read_cases(b"# none\n", file="c.yaml")
    assert str(caught.value.problems[0]).startswith("c.yaml:1: the file is empty (a case is an ")


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"a: 1", "found no list of cases"), (b"- a: 1\n  a: 2", "a"), (b"- [", "c.yaml")],
)
def test_invalid_yaml_is_a_problem(content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_cases(content, file="c.yaml")


@pytest.mark.parametrize("key", ["", "cases:\n", "eval_cases:\n"])
def test_case_in_yaml_is_named_by_its_own_line(key: str) -> None:
    content = f"# Cases\n{key}- id: a\n  input: Hi\n- id: b\n  input: {{}}\n- 3\n"
    with pytest.raises(InputError) as caught:
        read_cases(content.encode(), file="c.yaml")
    first = 4 if not key else 5
    assert [each.place and each.place.line for each in caught.value.problems] == [first, first + 2]


def test_number_and_size_of_cases_are_bounded() -> None:
    line = b'{"input": "Hi"}\n'
    assert len(read_cases(line * MAX_CASES, file="c.jsonl")) == MAX_CASES
    with pytest.raises(InputError) as caught:
        read_cases(line * MAX_CASES + b"{}\n", file="c.jsonl")
    [problem] = caught.value.problems
    assert str(problem) == "c.jsonl:10001: more than 10,000 cases (split the file)"
    large = json.dumps({"input": "x" * MAX_INPUT_BYTES}).encode()
    [case] = read_cases(large, file="c.jsonl")
    assert len(case.input or "") == MAX_INPUT_BYTES
    with pytest.raises(InputError) as caught:
        read_cases(large.replace(b"x", "é".encode(), 1), file="c.jsonl")
    [problem] = caught.value.problems
    assert problem.message.startswith("`input` of case 1 is larger than 100 KiB; give the name of")


def test_unknown_case_is_a_problem() -> None:
    assert choose_cases([FIRST], ["a", "a"], file="c") == (FIRST,)
    with pytest.raises(InputError, match=r"c has no case .*its cases are a"):
        choose_cases([FIRST], ["b"], file="c")
