"""``agentci accept``: eval cases from recorded runs, which then pass, and updates of them."""

import json
import os
import pty
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.helpers.recordings import otlp
from tests.helpers.support import ROOT, Ran, run_agentci

FRAMEWORKS = ROOT / "tests/recordings/frameworks"
CALLS = (("find", {"id": "4711"}), ("refund", {"amount": 19.99, "$note": "yes"}))
TRACES = (
    otlp("Refund 4711", "Refunded: 19.99 EUR\n\nBye", calls=CALLS),
    otlp("no", "# Hi", trace=2),
)

COMPARED = "compares their calls; for answers add an evaluator: agentci's docs/eval-cases.md"
NEXT = f"`agentci run --eval-set evals/cases.yaml` {COMPARED}"
CONFIG = "traces: t.jsonl\nchecks: [no_secrets: true]\n"


def accept(folder: Path, *arguments: str, traces: tuple[str, ...] = TRACES) -> Ran:
    (folder / "t.jsonl").write_text("\n".join(traces))
    return run_agentci(["accept", "--trace", "t.jsonl", *arguments], cwd=folder)


def passes(folder: Path, eval_set: str, *arguments: str) -> bool:
    named = ["--traces", "t.jsonl", "--eval-set", eval_set]
    return run_agentci(["run", *named, *arguments], cwd=folder).code == 0


@pytest.mark.parametrize("arguments", ["exact", "keys", "none"])
def test_accepted_cases_pass_and_are_unchanged(tmp_path: Path, arguments: str) -> None:
    ran = accept(tmp_path, "--all", "--arguments", arguments)
    assert ran.code == 0
    assert "Accepted 2 cases in evals/cases.yaml" in ran.out
    assert passes(tmp_path, "evals/cases.yaml")
    assert "unchanged: refund_4711" in accept(tmp_path).out
    other = otlp("Refund 4711", "Refunded: 19.99 EUR", calls=(("find", {"id": "1"}), CALLS[1]))
    (tmp_path / "t.jsonl").write_text(other)
    assert passes(tmp_path, "evals/cases.yaml") == (arguments != "exact")


def test_text_of_a_case_is_short_and_readable(tmp_path: Path) -> None:
    accept(tmp_path, "refund*")
    assert (tmp_path / "evals/cases.yaml").read_text() == (
        "eval_cases:\n"
        "  - id: refund_4711\n"
        "    input: Refund 4711\n"
        "    calls:\n"
        '      - find: {id: "4711"}\n'
        '      - refund: {$literal: {amount: 19.99, $note: "yes"}}\n'
        "    answer: |-\n"
        "      Refunded: 19.99 EUR\n"
        "\n"
        "      Bye\n"
    )


def test_nothing_is_written_without_a_name(tmp_path: Path) -> None:
    ran = accept(tmp_path)
    assert ran.code == 2
    assert "+  - id: refund_4711" in ran.out
    assert "name cases, or pass --all" in str(ran.problems[0])
    assert not (tmp_path / "evals").exists()


def test_case_that_is_declined_in_a_terminal_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text("\n".join(TRACES))
    terminal, end = pty.openpty()
    os.write(terminal, b"n\n\n")
    command = [sys.executable, "-m", "agentci", "accept", "--trace", "t.jsonl"]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=end, stdout=end, stderr=end, env=environ
    ) as process:
        os.close(end)
        printed = b""
        with suppress(OSError):  # the terminal is closed
            while part := os.read(terminal, 4096):
                printed += part
    os.close(terminal)
    assert printed.count(b"[y/N]") == len(TRACES)
    assert printed.endswith(b"No case accepted; evals/cases.yaml is unchanged\r\n")
    assert process.returncode == 0
    assert not (tmp_path / "evals").exists()


def test_only_the_named_case_is_shown(tmp_path: Path) -> None:
    accept(tmp_path, "--all")
    moved = (otlp("Refund 4711", "No", calls=CALLS), otlp("no", "# Ho", trace=2))
    before = (tmp_path / "evals/cases.yaml").read_text()
    ran = accept(tmp_path, "no", traces=moved)
    assert (ran.code, (tmp_path / "evals/cases.yaml").read_text()) == (2, before)
    [problem] = map(str, ran.problems)
    assert problem == (
        "no case accepted: the calls or answers of `no` changed "
        "(pass --update to accept the new ones)"
    )
    assert "accepted" not in ran.out.lower()
    assert "refund" not in ran.out
    ran = accept(tmp_path, "no", "--update", traces=moved)
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "changed: no (t.jsonl)",
        "       calls:",
        "         - get_weather: {city: Paris}",
        '  -    answer: "# Hi"',
        '  +    answer: "# Ho"',
        "Accepted 1 case in evals/cases.yaml",
        NEXT,
    ]
    third = otlp("Third", "x", calls=(), trace=3)
    ran = accept(tmp_path, "third", traces=(*TRACES, third))
    assert ran.out.splitlines()[1] == "  +  - id: third"
    assert accept(tmp_path, traces=(third,)).code == 0


def test_update_keeps_what_still_matches_and_the_rest_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        "# for the shop\neval_cases:\n"
        "  # first\n"
        "  - id: r  # id\n    input: refund 4711\n    calls:\n      - find: {id: {$regex: ^47}}\n"
        "      - refund\n    answer: Refunded\n    checks: [max_words: 9]\n"
        "  - id: old\n    input: Old question\n"
    )
    ran = accept(tmp_path, "--all", "--eval-set", "c.yaml")
    assert ran.code == 0
    assert "changed: r; pass --update" in ran.out
    assert "answer: Refunded\n" in (tmp_path / "c.yaml").read_text()
    accept(tmp_path, "r", "--update", "--eval-set", "c.yaml")
    text = (tmp_path / "c.yaml").read_text()
    assert "# for the shop\neval_cases:\n  # first\n  - id: r\n" in text
    assert "- find: {id: {$regex: " in text
    assert "- refund\n" in text
    assert "checks:\n      - max_words: 9\n" in text
    assert "      Refunded: 19.99 EUR\n" in text
    assert "  - id: old\n    input: Old question\n" in text
    moved = (otlp("Refund 4711", "No", calls=CALLS[1:]), TRACES[1])
    accept(tmp_path, "r", "--update", "--no-answers", "--eval-set", "c.yaml", traces=moved)
    text = (tmp_path / "c.yaml").read_text()
    assert "$regex" not in text
    assert "19.99 EUR" in text
    assert passes(tmp_path, "c.yaml", "--only", "case:calls")


def test_adk_eval_set_is_written_and_keeps_other_keys(tmp_path: Path) -> None:
    case = {
        "evalId": "r",
        "conversation": [
            {"userContent": {"parts": [{"text": "Refund 4711"}]}, "invocationId": "i"}
        ],
        "sessionInput": {"appName": "shop"},
    }
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"evalSetId": "s", "name": "n", "evalCases": [case]}, indent=4))
    accept(tmp_path, "--all", "--update", "--eval-set", "s.json")
    read = json.loads(path.read_text())
    first, second = read["evalCases"]
    assert (read["name"], first["sessionInput"]) == ("n", {"appName": "shop"})
    assert first["conversation"][0]["invocationId"] == "i"
    assert second["eval_id"] == "no"
    assert '\n    "evalSetId"' in path.read_text()
    assert passes(tmp_path, "s.json", "--metric", "tool_trajectory_avg_score")
    assert passes(tmp_path, "s.json", "--metric", "response_match_score")
    assert "unchanged: r " in accept(tmp_path, "--eval-set", "s.json").out


def test_secrets_are_kept_out(tmp_path: Path) -> None:
    key = "sk-" + "a1B2c3D4e5F6g7H8i9J0"
    token = "glpat-" + "a1B2c3D4e5F6g7H8i9J0"
    traces = (
        otlp("Log in", "ok", calls=(("login", {"key": key, "user": "me"}),)),
        otlp("Token?", f"It is {token}", trace=2),
    )
    ran = accept(tmp_path, "--all", traces=traces)
    text = (tmp_path / "evals/cases.yaml").read_text()
    assert "login: {key: {$any: true}, user: me}" in text
    assert "token" not in text
    assert "refused: token" in ran.out
    assert token not in ran.out
    assert ran.code == 1
    accept(tmp_path, "--all", "--redact", "glpat-[A-Za-z0-9]+", traces=traces)
    assert "It is ***" in (tmp_path / "evals/cases.yaml").read_text()


@pytest.mark.parametrize("answer", ["Done [key removed]", "Done sk-a1B2c3D4e5F6g7H8i9J0"])
def test_answer_with_a_removed_key_is_not_expected(tmp_path: Path, answer: str) -> None:
    assert accept(tmp_path, "--all", traces=(otlp("Log in", "Done"),)).code == 0
    path = tmp_path / "evals/cases.yaml"
    before = path.read_text()
    ran = accept(tmp_path, "--all", "--update", traces=(otlp("Log in", answer),))
    assert (ran.code, path.read_text()) == (1, before)
    reason = "a key was removed from the answer"
    assert f"refused: log_in (t.jsonl): {reason} of turn 1" in ran.out
    assert f"{reason}: let the agent answer without its key and record again, or" in ran.out
    ran = accept(tmp_path, "--all", "--update", "--no-answers", traces=(otlp("Log in", answer),))
    assert (ran.code, path.read_text()) == (0, before)


@pytest.mark.parametrize("arguments", [(), ("--all",)])
def test_refusal_of_all_runs_fails_and_says_what_to_do(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    ran = accept(tmp_path, *arguments, traces=(otlp("Refund", ""),))
    assert "refused: refund (t.jsonl): turn 1 has no answer" in ran.out
    assert "No case accepted; evals/cases.yaml is unchanged" in ran.out
    assert "refused runs must be recorded again; see `agentci show t.jsonl`" in ran.out
    assert ran.code == 1


def test_ids_are_unambiguous(tmp_path: Path) -> None:
    traces = (
        otlp("Refund!", "a"),
        otlp("Refund?", "b", trace=2),
        otlp("Refund?", "c", trace=3),
    )
    accept(tmp_path, "--all", traces=traces)
    text = (tmp_path / "evals/cases.yaml").read_text()
    assert [line for line in text.splitlines() if "id:" in line] == [
        "  - id: refund",
        "  - id: refund-2",
    ]


def test_recorded_cases_that_ask_the_same_are_all_accepted(tmp_path: Path) -> None:
    named = tuple(
        otlp("Hi", "Hello", trace=trace, attributes={"agentevals.eval.case.id": name})
        for trace, name in enumerate(("a", "b"), start=1)
    )
    ran = accept(tmp_path, "--all", traces=named)
    assert "Accepted 2 cases in evals/cases.yaml" in ran.out
    assert "unchanged: b" in accept(tmp_path, traces=named).out
    assert passes(tmp_path, "evals/cases.yaml")


def test_new_question_does_not_replace_the_only_case(tmp_path: Path) -> None:
    accept(tmp_path, "--all", traces=TRACES[:1])
    ran = accept(tmp_path, "--all", "--update", traces=TRACES[1:])
    assert "Accepted 1 case" in ran.out
    assert (tmp_path / "evals/cases.yaml").read_text().count("- id:") == 2


def test_case_with_only_a_question_is_completed(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("eval_cases:\n  - id: r\n    input: Refund 4711\n")
    ran = accept(tmp_path, "r", "--eval-set", "c.yaml", traces=TRACES[:1])
    assert "Accepted 1 case" in ran.out
    assert "- find: " in (tmp_path / "c.yaml").read_text()
    assert passes(tmp_path, "c.yaml")


CONVERSATION = tuple(
    otlp(text, "ok", trace=number, calls=CALLS, attributes={"gen_ai.conversation.id": "c"})
    for number, text in enumerate(("Refund", "Really"), start=1)
)


def test_conversation_becomes_one_case(tmp_path: Path) -> None:
    accept(tmp_path, "--all", traces=CONVERSATION)
    assert "    turns:\n      - input: Refund\n" in (tmp_path / "evals/cases.yaml").read_text()
    assert passes(tmp_path, "evals/cases.yaml")


def test_conversation_with_only_questions_is_completed(tmp_path: Path) -> None:
    turns = "    turns:\n      - input: Refund\n      - input: Really\n"
    (tmp_path / "c.yaml").write_text(f"eval_cases:\n  - id: r\n{turns}")
    ran = accept(tmp_path, "r", "--eval-set", "c.yaml", traces=CONVERSATION)
    assert "Accepted 1 case" in ran.out
    assert (tmp_path / "c.yaml").read_text().count("answer: ok") == 2
    assert passes(tmp_path, "c.yaml")


def test_config_names_traces_and_an_eval_set_that_does_not_exist_yet(tmp_path: Path) -> None:
    (tmp_path / "agentci.yaml").write_text("traces: t.jsonl\neval_set: my/cases.yaml\n")
    (tmp_path / "t.jsonl").write_text(TRACES[0])
    ran = run_agentci(["accept", "--all"], cwd=tmp_path)
    assert "Accepted 1 case in my/cases.yaml" in ran.out
    assert run_agentci(["run"], cwd=tmp_path).code == 0


@pytest.mark.parametrize(
    ("config", "option", "message", "fixed"),
    [
        ("a.yaml", "", "a.yaml:1: warning: no config reads evals/cases.yaml", "eval_set: evals/"),
        ("a.yaml", "b.yaml", "no config reads b.yaml, so that no run is compared", "eval_set: b."),
        ("c/a.yaml", "c/b.yaml", "c/a.yaml:1: warning: no config reads c/b.yaml", "eval_set: b."),
    ],
)
def test_accept_names_the_key_that_a_config_lacks(
    config: str, option: str, message: str, fixed: str, tmp_path: Path
) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / config).write_text(CONFIG.replace("t.jsonl", str(tmp_path / "t.jsonl")))
    (tmp_path / "t.jsonl").write_text(TRACES[0])
    named = ["--config", config, *(["--eval-set", option] if option else [])]
    ran = run_agentci(["accept", "--all", *named], cwd=tmp_path)
    assert ran.code == 0
    assert message in ran.out
    assert COMPARED not in ran.out
    added = ran.out.rpartition("; add `")[2].partition("`")[0]
    assert added.startswith(fixed)
    again = run_agentci(["accept", "--all", *named], cwd=tmp_path)
    assert message in again.out
    (tmp_path / config).write_text(f"{(tmp_path / config).read_text()}{added}\n")
    ran = run_agentci(["run", config], cwd=tmp_path)
    assert ran.code == 0
    assert "case:calls" in ran.out
    again = run_agentci(["accept", "--all", *named], cwd=tmp_path)
    assert "no config reads" not in again.out


def test_accept_says_that_an_evaluator_compares_the_answers(tmp_path: Path) -> None:
    metric = "evaluators: [{name: response_match_score, type: builtin, threshold: 0.95}]\n"
    (tmp_path / "agentci.yaml").write_text(f"{CONFIG}eval_set: one.yaml\n{metric}")
    (tmp_path / "t.jsonl").write_text(TRACES[0])
    ran = run_agentci(["accept", "--all"], cwd=tmp_path)
    assert ran.out.splitlines()[-1] == "`agentci run` compares their calls and answers"


def test_second_eval_set_is_to_be_added_to_the_first(tmp_path: Path) -> None:
    (tmp_path / "agentci.yaml").write_text(f"{CONFIG}eval_set: one.yaml\n")
    (tmp_path / "t.jsonl").write_text(TRACES[0])
    ran = run_agentci(["accept", "--all"], cwd=tmp_path)
    assert ran.out.splitlines()[-2:] == [
        "Accepted 1 case in one.yaml",
        f"`agentci run` {COMPARED}",
    ]
    ran = run_agentci(["accept", "--all", "--eval-set", "two.yaml"], cwd=tmp_path)
    assert "no config reads two.yaml" in ran.out
    assert ran.out.endswith("; add two.yaml to `eval_set`\n")


def test_eval_cases_at_the_default_place_that_no_config_reads_are_a_warning(
    tmp_path: Path,
) -> None:
    (tmp_path / "agentci.yaml").write_text(CONFIG)
    (tmp_path / "t.jsonl").write_text(TRACES[0])
    unread = "no config reads the eval cases in evals/cases.yaml"
    assert unread not in run_agentci(["run"], cwd=tmp_path).out
    assert run_agentci(["accept", "--all"], cwd=tmp_path).code == 0
    for command in ("run", "validate"):
        ran = run_agentci([command], cwd=tmp_path)
        assert ran.code == 0
        assert ran.out.count(unread) == 1
        assert f"agentci.yaml:1: warning: {unread}" in ran.out
        named = run_agentci([command, "--eval-set", "evals/cases.yaml"], cwd=tmp_path)
        assert unread not in named.out
    (tmp_path / "a.eval.yaml").write_text(f"{CONFIG}eval_set: evals/cases.yaml\n")
    assert unread not in run_agentci(["validate"], cwd=tmp_path).out
    assert unread in run_agentci(["validate", "agentci.yaml"], cwd=tmp_path).out
    # A config beside it may be for another step of the workflow.
    (tmp_path / "eval_config.yaml").write_text(f"{CONFIG}eval_set:\n  - ./evals/cases.yaml\n")
    assert unread not in run_agentci(["validate", "agentci.yaml"], cwd=tmp_path).out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["refnd_4711"], "did you mean 'refund_4711'?"),
        (["--all", "--eval-set", "s.json", "--arguments", "keys"], "pass --eval-set FILE.yaml"),
        (["--all", "--redact", "("], "is not a regular expression"),
        (["--all", "--eval-set", "flow.yaml"], "write each case as `- id: NAME`"),
        (["--all", "--eval-set", "old.test.json"], "is read, but not written"),
    ],
)
def test_what_cannot_be_accepted_is_one_line(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "flow.yaml").write_text("eval_cases: [{id: a, input: b}]\n")
    (tmp_path / "old.test.json").write_text('[{"query": "a"}]')
    ran = accept(tmp_path, *arguments)
    assert message in "".join(map(str, ran.problems))
    assert ran.code == 2


@pytest.mark.parametrize(
    "framework", ["adk2-event", "langchain-traceloop", "pydantic-ai-v5", "vercel-ai"]
)
def test_recordings_of_frameworks_pass_as_eval_cases(tmp_path: Path, framework: str) -> None:
    shutil.copy(FRAMEWORKS / framework / "basic.jsonl.gz", tmp_path / "t.jsonl.gz")
    ran = run_agentci(["accept", "--trace", "t.jsonl.gz", "--all"], cwd=tmp_path)
    assert ran.code == 0
    ran = run_agentci(
        ["run", "--traces", "t.jsonl.gz", "--eval-set", "evals/cases.yaml"], cwd=tmp_path
    )
    assert ran.code == 0
