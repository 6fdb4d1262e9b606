"""What a command prints, as the answer of its case or compared with the model's answer."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentci.model.trace import ToolCall
from agentci.model.values import Json
from agentci.record.printed_answer import (
    MAX_PRINTED_BYTES,
    contains_answer,
    describe_changed_output,
    describe_other_answer,
    describe_other_answers,
    describe_other_arguments,
    hide_answers,
)
from agentci.recordings.printed_lines import describe_changed_lines
from examples.agents.mock_model import MockModel, mock_model
from tests.helpers.repositories import commit, git, repository
from tests.helpers.support import PATH, Ran, run_agentci
from tests.record.recorded import AGENT, KEY, OUT, read_traces, record

ANSWER = (
    "**It is sunny** in [Oslo](https://oslo.example/weather): 19.99 EUR, -5 °C, 20%.\n\n- Enjoy!"
)


@pytest.fixture
def model() -> Iterator[MockModel]:
    with mock_model() as found:
        yield found


@pytest.mark.parametrize(
    "printed",
    [
        pytest.param(ANSWER, id="as it is"),
        pytest.param(f"INFO start\nAnswer: {ANSWER}\ndone", id="among others"),
        pytest.param(json.dumps({"answer": ANSWER}), id="as JSON"),
        pytest.param("It is sunny in Oslo: 19.99\nEUR, -5 °C, 20%.\n\n • Enjoy!", id="rendered"),
        pytest.param(
            "╭── Agent ──╮\n│ It is     │\n│ sunny in  │\n│ Oslo:     │\n│ 19.99     │\n"
            "│ EUR, -5   │\n│ °C, 20%.  │\n│ • Enjoy!  │\n╰───────────╯",
            id="in a box",
        ),
        pytest.param(
            "│ It is sunny │ 19.99 EUR,   │\n│ in Oslo:    │ -5 °C, 20%.  │\n│ Enjoy!      │",
            id="in a table",
        ),
    ],
)
def test_answer_is_found_however_it_is_printed(printed: str) -> None:
    assert contains_answer(printed, ANSWER)
    assert describe_other_answer(printed, [ANSWER]) == ""


@pytest.mark.parametrize(
    "printed",
    [
        *("It is sunny", "It is rainy in Oslo: 19.99 EUR, -5 °C, 20%. Enjoy!"),
        "It is sunny in Oslo: 1999 EUR, -5 °C, 20%. Enjoy!",
        "It is sunny in Oslo: 19.99 EUR, 5 °C, 20%. Enjoy!",
        "│ It is sunny in Bergen: 19.99 EUR, -5 °C, 20%. Enjoy! │",
    ],
)
def test_other_answer_is_described(printed: str) -> None:
    assert describe_other_answer(printed, [ANSWER]).startswith("the command printed `")


@pytest.mark.parametrize(
    ("printed", "answers"),
    [
        pytest.param("", ["Sunny"], id="nothing"),
        pytest.param("2026-01-02 03:04:05 INFO asked\n[INFO] ended\n", ["Sunny"], id="a log"),
        pytest.param('{"level": "info", "msg": "asked"}\n', ["Sunny"], id="a log of JSON"),
        pytest.param("Sunny", ["Sunny", "summary"], id="one of several turns"),
        pytest.param("Weather: sunny", ['{"weather": "sunny", "degrees": 20}'], id="parsed JSON"),
        pytest.param("\N{THUMBS UP SIGN}", ["\N{THUMBS UP SIGN}"], id="no words"),
        pytest.param("Sunny", [], id="no answer"),
    ],
)
def test_printed_text_has_no_warning(printed: str, answers: list[str]) -> None:
    assert describe_other_answer(printed, answers) == ""


def test_description_shows_the_difference_of_long_texts() -> None:
    start = "word " * 60
    description = describe_other_answer(f"{start}rainy", [f"{start}sunny"])
    assert "word rainy`, but the model's answer `\N{HORIZONTAL ELLIPSIS}" in description
    assert len(description) < 200


@pytest.mark.parametrize(
    ("model", "framework", "is_other"),
    [
        ("It is sunny.", "It is  sunny.\n", False),
        ("Thought: easy. Final Answer: sunny", "sunny", False),
        ('{"a": 1, "b": null, "c": "x"}', '{"c":"x","a":1.0,"d":2}', False),
        ('```json\n{"a": 1}\n```', '{"a": 1}', False),
        ("It is sunny.", "It is rainy.", True),
        ('{"a": 1}', '{"a": 2}', True),
    ],
)
def test_other_answer_of_a_framework_is_described(
    model: str, framework: str, *, is_other: bool
) -> None:
    description = describe_other_answers(["Same", framework], [model, "Same"])
    assert description.startswith("the framework's telemetry has the answer `") == is_other
    assert bool(description) == is_other


@pytest.mark.parametrize(
    ("model", "framework", "is_other"),
    [
        ({"city": "Oslo", "days": 5}, {"days": "5.0", "city": " Oslo", "unit": "C"}, False),
        ({"day": "2026-01-02", "x": None}, {"day": "2026-01-02T00:00:00"}, False),
        ({"city": "Oslo"}, {"kwargs": {"city": "Oslo"}}, False),
        ({"city": "Oslo"}, None, False),
        ({"city": "Oslo"}, '{"city": "Oslo"}', False),
        ({"cities": ["Oslo", "Rome"]}, {"cities": ["Oslo"]}, True),
        ({"city": "Oslo", "days": 5}, {"city": "Oslo", "days": 6}, True),
        ({"city": "Oslo", "days": 5}, {"city": "Oslo"}, True),
    ],
)
def test_other_arguments_of_a_framework_are_described(
    model: Json, framework: Json, *, is_other: bool
) -> None:
    same, own, other = (ToolCall(name="t", args=each) for each in ({"a": 1}, model, framework))
    description = describe_other_arguments([other, same], [same, own])
    assert description.startswith("the framework's telemetry has the arguments `") == is_other
    assert bool(description) == is_other
    assert describe_other_arguments([other], [same, own]) == ""


def make_project(folder: Path, *, changed: str = "") -> Path:
    """Write a project with an eval case, and an agent that changes the answer of its model.

    Args:
        changed: Python expression of what it prints, with ``text`` for the answer of the model.
    """
    (folder / "evals.yaml").write_text(
        "eval_cases:\n- {id: oslo, input: weather in Oslo, answer: It is sunny in Oslo.}\n"
    )
    (folder / "agentci.yaml").write_text(
        f"traces: {OUT}\neval_set: evals.yaml\nevaluators:\n"
        "- {name: response_match_score, type: builtin, threshold: 0.95}\n"
    )
    return change_agent(folder, changed or "text")


def change_agent(folder: Path, changed: str) -> Path:
    program = folder / "agent.py"
    agent = AGENT.read_text(encoding="utf-8").replace(KEY, "")
    own = "answer(api, question, history, streamed=streamed), flush=True"
    assert own in agent
    program.write_text(
        agent.replace(own, f"(lambda text: {changed})({own.partition(', flush')[0]})"),
        encoding="utf-8",
    )
    return program


CASES = ("--cases", "evals.yaml")
RAINY = "text.replace('sunny', 'rainy')"
WARNING = (
    "the command printed `It is rainy in Oslo.`, but the model's answer `It is sunny in Oslo.` "
    "is evaluated"
)


def test_other_printed_answer_is_a_warning_of_record_and_of_the_gate(
    tmp_path: Path, model: MockModel
) -> None:
    program = make_project(tmp_path, changed=RAINY)
    for choice in (list[str](), ["--replay"]):
        options = [*CASES, *choice]
        ran = record(tmp_path, model, "chat", "{input}", options=options, program=program)
        assert ran.code == 0
        assert f"warning: case oslo: {WARNING}; --answer stdout records what the" in ran.err
    ran = run_agentci(["run"], cwd=tmp_path)
    assert ran.code == 0
    results = tmp_path / "agentci-results"
    texts = [ran.out, (results / "comment.md").read_text(), (results / "report.html").read_text()]
    # Markdown and JSON in a page escape some characters of the values.
    assert ["the command printed" in " ".join(text.split()) for text in texts] == [True] * 3
    assert WARNING in " ".join(ran.out.split())
    for choice in (["--answer", "model"], ["--replay"]):
        options = [*CASES, *choice]
        ran = record(tmp_path, model, "chat", "{input}", options=options, program=program)
        assert (ran.code, "warning" in ran.err) == (0, False)
    assert "the command printed" not in run_agentci(["run"], cwd=tmp_path).out


@pytest.mark.parametrize(
    ("changed", "warning"),
    [
        (
            "f'It is false that: {text}'",
            "`It is false that: It is sunny in Oslo.`, and `It is sunny in Oslo.` when it was",
        ),
        ("text.upper()", "`IT IS SUNNY IN OSLO.`, and `It is sunny in Oslo.` when it was recorded"),
        ("f'{text}\\nBook now!'", "`Book now!`, and nothing in its place when it was recorded"),
    ],
)
@pytest.mark.parametrize("recorded", ["text", "f'Answer:\\n{text}'"])
def test_output_that_changed_since_the_recording_is_a_warning_of_a_replay(
    recorded: str, changed: str, warning: str, tmp_path: Path, model: MockModel
) -> None:
    program = make_project(tmp_path, changed=recorded)
    ran = record(tmp_path, model, "chat", "{input}", options=CASES, program=program)
    assert (ran.code, "warning" in ran.err) == (0, False)
    is_answer = recorded == "text"
    of = "the answer of 1 case (oslo) is "
    assert (f"note: {of}what the command prints, also in replays; " in ran.err) == is_answer
    assert (f"note: {of}the model's; anything else that the command prints" in ran.err) != is_answer
    if not is_answer:
        changed = f"'Answer:\\n' + {changed}"
    change_agent(tmp_path, changed)
    options = (*CASES, "--replay")
    ran = record(tmp_path, model, "chat", "{input}", options=options, program=program)
    assert f"warning: case oslo: the command printed {warning}" in ran.err
    ran = run_agentci(["run"], cwd=tmp_path)
    assert f"the command printed {warning}" in " ".join(ran.out.split())
    # ROUGE-1 does not see upper case.
    is_failed = is_answer and "upper" not in changed
    assert ran.code == is_failed
    # A new recording keeps what the answer is, and the warning is gone.
    assert record(tmp_path, model, "chat", "{input}", options=CASES, program=program).code == 0
    ran = record(tmp_path, model, "chat", "{input}", options=options, program=program)
    assert "warning" not in ran.err
    ran = run_agentci(["run"], cwd=tmp_path)
    assert (ran.code, "the command printed" in ran.out) == (is_failed, False)


def test_output_without_an_answer_any_more_is_an_error(tmp_path: Path, model: MockModel) -> None:
    program = make_project(tmp_path)
    assert record(tmp_path, model, "chat", "{input}", options=CASES, program=program).code == 0
    change_agent(tmp_path, "''")
    for choice in ([], ["--replay"]):
        options = (*CASES, *choice)
        ran = record(tmp_path, model, "chat", "{input}", options=options, program=program)
        assert ran.code == 3
        assert "the command printed nothing to stdout; print the answer, or pass" in ran.err
    # Not the answer of several turns.
    options = (*CASES, "--answer", "model")
    assert record(tmp_path, model, "chat", "{input}", options=options, program=program).code == 0


@pytest.mark.parametrize("added", ["INFO done", ""])
def test_logs_and_space_around_an_answer_make_no_other_answer(
    added: str, tmp_path: Path, model: MockModel
) -> None:
    program = make_project(tmp_path)
    assert record(tmp_path, model, "chat", "{input}", options=CASES, program=program).code == 0
    recorded = (tmp_path / OUT).read_bytes()
    change_agent(tmp_path, f"text.replace(' ', '\\n') + '\\n{added}'")
    options = (*CASES, "--replay")
    ran = record(tmp_path, model, "chat", "{input}", options=options, program=program)
    assert (tmp_path / OUT).read_bytes() == recorded, ran.err
    assert (ran.code, "note" in ran.err) == (0, False)
    # Nor in a later recording, and in a first one.
    for _ in range(2):
        assert record(tmp_path, model, "chat", "{input}", options=CASES, program=program).code == 0
        [turn] = [turn for trace in read_traces(tmp_path / OUT) for turn in trace.turns]
        assert turn.final_text == "It is sunny in Oslo."
        assert b"agentci.case.answer_source" in (tmp_path / OUT).read_bytes()
        (tmp_path / OUT).unlink()


def test_printed_key_is_a_secret(tmp_path: Path, model: MockModel) -> None:
    changed = "text + ' ' + __import__('os').environ['AGENT_KEY']"
    program = make_project(tmp_path, changed=changed)
    with (tmp_path / "agentci.yaml").open("a") as config:
        config.write("checks: [no_secrets]\n")
    for choice in (list[str](), ["--replay"], ["--answer", "model"]):
        options = [*CASES, *choice]
        ran = record(tmp_path, model, "chat", "{input}", options=options, program=program)
        warning = (
            "the command printed a key, which is not in the recording: `It is sunny in Oslo. ["
        )
        assert f"warning: case oslo: {warning}key removed]`; print no keys" in ran.err
        ran = run_agentci(["run"], cwd=tmp_path)
        assert ran.code == 1
        assert "what the command printed has an API key" in ran.out


@pytest.mark.parametrize(
    ("printed", "is_same"),
    [
        ("Sunny\nINFO ended\nTook 2.5 s, id 0b2f7a9c1d", True),
        ("Took 1.5 s, id 1b2f7a9c1d\n\n Sunny ", True),
        ("Sunny\nTook 1.5 s, id 1b2f7a9c1d, 2 tools", False),
        ("Sunny\nSunny\nTook 1.5 s, id 1b2f7a9c1d", False),
    ],
)
def test_order_of_lines_logs_times_and_ids_may_change(printed: str, *, is_same: bool) -> None:
    recorded = "INFO started\nSunny\nTook 1.5 s, id 1b2f7a9c1d"
    assert (describe_changed_output(printed, recorded, ["Sunny"]) == "") == is_same


def test_uuids_and_temporary_files_may_change() -> None:
    line = "wrote run_{0}0000000-0000-4000-8000-000000000000 to /tmp/{0}.txt, 2 lines"
    assert describe_changed_output(line.format(1), line.format(2), ["Sunny"]) == ""


def test_times_of_answers_may_not_change() -> None:
    answer = '{"opens": "2026-01-02", "hours": 8}'
    found = describe_changed_output("from 2026-01-03", "from 2026-01-02", [answer])
    assert found == (
        "the command printed `from 2026-01-03`, and `from 2026-01-02` when it was recorded"
    )


@pytest.mark.parametrize(
    ("printed", "hidden"),
    [
        ("Sunny", "{answer}"),
        ("Step 4: 4", "Step 4: {answer}"),
        ("Asked 4 models", "Asked {answer} models"),
        ("INFO start\nIt is\n  sunny, and hot!\n\nBye", "Well, {answer}!\nBye"),
        ("Sunnyvale: 14", "Sunnyvale: 14"),
    ],
)
def test_texts_of_the_model_are_hidden_in_what_a_command_printed(printed: str, hidden: str) -> None:
    printed = printed.replace("It is", "Well, It is")
    assert hide_answers(printed, ["Sunny", "4", "It is sunny, and hot", "?"]) == hidden


@pytest.mark.parametrize(
    ("printed", "before", "same", "other"),
    [
        (
            "False: {answer}",
            "{answer}",
            False,
            "`False: (model's answer)`, and `(model's answer)` in the baseline",
        ),
        ("{answer}\nBook!", "{answer}", False, "`Book!`, and nothing in its place in the baseline"),
        ("{answer}", "{answer}\nBye", True, "`Bye` in the baseline, and does not any more"),
        ("{answer}\nTook 2.5 s", "Took 1.5 s\n{answer}", False, ""),
        # Formatted by the command, so that the model's answer may be the cause.
        ("20 degrees", "18 degrees", False, ""),
        ("20 degrees", "{answer}", False, ""),
        ("20 degrees", "18 degrees", True, "`20 degrees`, and `18 degrees` in the baseline"),
    ],
)
def test_lines_are_compared_with_those_of_the_baseline(
    printed: str, before: str, other: str, *, same: bool
) -> None:
    found = describe_changed_lines(printed, before, has_same_answers=same)
    assert found == (other and f"the command printed {other}")


@pytest.mark.parametrize("named", [True, False], ids=["a file", "the cache"])
def test_new_recording_does_not_hide_what_the_command_prints_now(
    tmp_path: Path, model: MockModel, *, named: bool
) -> None:
    root = repository(tmp_path / "agent")
    program = make_project(root, changed="f'Answer: {text}'")
    (root / ".gitignore").write_text("agentci-results/\n.agentci/\nbase/\n")

    def record_and_run(baseline: str = "base") -> Ran:
        ran = record(root, model, "chat", "{input}", options=CASES, program=program)
        assert (ran.code, "warning" in ran.err) == (0, False)
        commit(root)
        return run_agentci(["run", "--baseline", baseline], cwd=root, environ={"PATH": PATH})

    assert "the command printed" not in record_and_run().out
    git(root, "checkout", "--quiet", "-b", "topic")
    (root / "agentci-results").rename(root / "base")
    baseline = "base/results.json" if named else "base"
    change_agent(root, "f'It is false that: {text}'")
    ran = record_and_run(baseline)
    printed = "`It is false that: (model's answer)`, and `Answer: (model's answer)` in the baseline"
    warning = f"the command printed {printed}"
    comment = (root / "agentci-results/comment.md").read_text().replace("\\", "")
    assert (ran.code, warning in " ".join(ran.out.split()), warning in comment) == (0, True, True)
    merged = run_agentci(["merge", "agentci-results", "--baseline", "base/results.json"], cwd=root)
    assert " ".join(merged.out.split()).count(warning) == 1
    # A replay that warns of its recording does not warn again.
    change_agent(root, "f'It is true that: {text}'")
    options = (*CASES, "--replay")
    ran = record(root, model, "chat", "{input}", options=options, program=program)
    out = " ".join(run_agentci(["run", "--baseline", "base/results.json"], cwd=root).out.split())
    assert ("when it was recorded" in out, "in the baseline" in out) == (True, False)
    change_agent(root, "f'Answer: {text}'")
    assert "the command printed" not in record_and_run(baseline).out


@pytest.mark.parametrize("api", ["chat", "gemini"])
def test_printed_answer_is_recorded_evaluated_and_replayed(
    api: str, tmp_path: Path, model: MockModel
) -> None:
    program = make_project(tmp_path)
    options = (*CASES, "--answer", "stdout")
    assert record(tmp_path, model, api, "{input}", options=options, program=program).code == 0
    assert run_agentci(["run"], cwd=tmp_path).code == 0
    change_agent(tmp_path, RAINY)
    # The replay keeps the choice of the recording.
    ran = record(tmp_path, model, api, "{input}", options=(*CASES, "--replay"), program=program)
    printed = "`It is rainy in Oslo.`, and `It is sunny in Oslo.` when it was recorded"
    assert (ran.code, f"the command printed {printed}" in ran.err) == (0, True)
    [turn] = [turn for trace in read_traces(tmp_path / OUT) for turn in trace.turns]
    assert (turn.final_text, turn.intermediate_texts) == (
        "It is rainy in Oslo.",
        ("It is sunny in Oslo.",),
    )
    assert run_agentci(["run"], cwd=tmp_path).code == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ("''", "the command printed nothing to stdout"),
        (f"'x' * {MAX_PRINTED_BYTES + 1}", "the command printed more than 1 MiB to stdout"),
    ],
)
def test_missing_printed_answer_makes_the_case_incomplete(
    changed: str, message: str, tmp_path: Path, model: MockModel
) -> None:
    program = make_project(tmp_path, changed=changed)
    options = (*CASES, "--answer", "stdout")
    ran = record(tmp_path, model, "chat", "{input}", options=options, program=program)
    assert ran.code == 3
    assert f"no complete turn: {message}; print the answer, or" in ran.err
    assert message in run_agentci(["run"], cwd=tmp_path).out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--answer stdout needs cases, as a process may print several answers"),
        (["--cases", "cases.yaml"], "--answer stdout needs cases with an input, and 'b' has none"),
        (
            ["--cases", "talk.yaml"],
            "--answer stdout records one answer, and 'c' is a conversation of 2 turns",
        ),
    ],
)
def test_printed_answer_needs_cases_with_inputs(
    options: list[str], message: str, tmp_path: Path, model: MockModel
) -> None:
    (tmp_path / "cases.yaml").write_text("cases: [{id: a, input: Hi}, {id: b}]\n")
    talk = "eval_cases: [{id: c, turns: [{input: Hi}, {input: Thanks}]}]\n"
    (tmp_path / "talk.yaml").write_text(talk)
    ran = record(tmp_path, model, "chat", options=[*options, "--answer", "stdout"])
    assert ran.code == 2
    assert [problem.message for problem in ran.problems] == [message]
    assert model.requests == []
