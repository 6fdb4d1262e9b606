"""Any program that reads a prompt and prints a response can be a judge."""

import sys
import time
from pathlib import Path

import pytest

from agentci.config.variables import ConfigVariables
from agentci.errors import EvaluatorError
from agentci.execution.executor_api import NO_SANDBOX
from agentci.execution.local import LocalExecutor
from agentci.judges.budget import Budget
from agentci.judges.command import (
    MAX_STDERR_SHOWN,
    CommandClient,
    CommandSandbox,
    read_agentv_response,
)
from agentci.judges.judge import Judge
from agentci.judges.keys import ApiKeys
from agentci.model.judges import AskModel, BudgetLimits, JudgeConfig, ModelSettings
from agentci.model.result import ModelCost
from agentci.model.values import replace
from tests.judges.bench import KEY, QUESTION, Bench

ECHO = "import sys; print(sys.stdin.read() + repr(sys.argv[1:]))"
RATE = 'print(\'{"reasoning": "fine", "score": 0.5}\')'


@pytest.fixture
def budget() -> Budget:
    return Budget(BudgetLimits(max_calls=3), stopped=lambda: False)


@pytest.fixture
def asker(tmp_path: Path, budget: Budget) -> CommandClient:
    seat = CommandSandbox(
        executor=LocalExecutor(),
        cwd=tmp_path,
        environment={"SEEN": "1"},
        sandbox_policy=NO_SANDBOX,
    )
    variables = {"TOKEN": KEY, "OTHER": "hidden"}
    return CommandClient(
        seat,
        budget,
        keys=ApiKeys(ConfigVariables(variables), Bench().transport),
        clock=time.monotonic,
    )


def settings(code: str, *arguments: str, key_variable: str = "") -> ModelSettings:
    command = (sys.executable, "-c", code, *arguments)
    return ModelSettings(provider="command", command=command, key_variable=key_variable)


def ask(asker: CommandClient, given: ModelSettings, seconds: float = 30) -> str:
    return asker.ask(QUESTION, given, until=time.monotonic() + seconds).text


def test_prompt_is_passed_on_stdin(asker: CommandClient) -> None:
    assert ask(asker, settings(ECHO)) == "Judge.\n\nIs it good?[]\n"


def test_prompt_can_be_passed_as_argument(asker: CommandClient) -> None:
    output = ask(asker, settings(ECHO, "-p", "{prompt}"))
    assert output == "['-p', 'Judge.\\n\\nIs it good?']\n"


def test_only_named_key_is_in_environment(asker: CommandClient) -> None:
    code = "import os; print(sorted(set(os.environ) & {'SEEN', 'TOKEN', 'OTHER'}))"
    assert ask(asker, settings(code)) == "['SEEN']\n"
    assert ask(asker, settings(code, key_variable="TOKEN")) == "['SEEN', 'TOKEN']\n"


def test_command_output_is_parsed_as_verdict(asker: CommandClient) -> None:
    judge = Judge({"command": asker}, clock=time.monotonic)
    ruling = judge.evaluate(AskModel(prompt=QUESTION, judge=JudgeConfig(settings=settings(RATE))))
    assert (ruling.value, ruling.verdicts[0].reason) == (0.5, "fine")


def test_failing_command_is_an_error(asker: CommandClient, budget: Budget) -> None:
    code = f"import sys; print('{{\"score\": 1}}'); sys.exit('no {KEY}\\n::error::x')"
    with pytest.raises(EvaluatorError, match=r"exited with code 1: no \*\*\* ::error::x$"):
        ask(asker, settings(code, key_variable="TOKEN"))
    assert budget.spent.calls == 1


def test_key_in_output_is_redacted(asker: CommandClient) -> None:
    assert ask(asker, settings(f"print('{KEY}')", key_variable="TOKEN")) == "***\n"
    cut = f"import sys; sys.exit('x' * {MAX_STDERR_SHOWN - 5} + '{KEY}')"
    with pytest.raises(EvaluatorError) as caught:
        ask(asker, settings(cut, key_variable="TOKEN"))
    assert KEY[:2] not in str(caught.value)
    hangs = f"import sys, time; print('{KEY}', file=sys.stderr, flush=True); time.sleep(60)"
    with pytest.raises(EvaluatorError, match="timed out") as caught:
        ask(asker, settings(hangs, key_variable="TOKEN"), seconds=0.5)
    assert KEY not in str(caught.value)


def test_missing_command_is_named(asker: CommandClient) -> None:
    missing = replace(settings(""), command=("no-such-judge", "-p"))
    with pytest.raises(EvaluatorError, match="command 'no-such-judge' is not in PATH"):
        ask(asker, missing)


def test_hanging_command_is_killed(asker: CommandClient) -> None:
    with pytest.raises(EvaluatorError, match=r"the judge's command timed out after [\d.]+ s"):
        ask(asker, settings("import time; time.sleep(600)"), seconds=0.3)


def test_command_run_counts_as_call(asker: CommandClient, budget: Budget) -> None:
    for _ in range(3):
        ask(asker, settings("print('ok!!')"))
    assert budget.spent == ModelCost(calls=3, tokens=3 * (5 + 2))
    with pytest.raises(EvaluatorError, match=r"exceed `max_calls` \(3\)"):
        ask(asker, settings("print('ok')"))


@pytest.mark.parametrize("text", ["x" * 200_000, "a\0b"], ids=["too long", "null byte"])
def test_prompt_invalid_as_argument_is_an_error(asker: CommandClient, text: str) -> None:
    question = replace(QUESTION, user=text)
    with pytest.raises(EvaluatorError, match="the judge's command"):
        asker.ask(question, settings(ECHO, "{prompt}"), until=time.monotonic() + 30)


@pytest.mark.parametrize("arguments", [(), ("{prompt}",)], ids=["stdin", "argument"])
def test_lone_surrogate_in_prompt_is_replaced(
    asker: CommandClient, arguments: tuple[str, ...]
) -> None:
    question = replace(QUESTION, system="", user="a\ud800\udcff")
    given = settings("import sys; print(ascii((sys.argv + [sys.stdin.read()])[1]))", *arguments)
    output = asker.ask(question, given, until=time.monotonic() + 30).text
    assert output == "'a\\ufffd\\ufffd'\n"


def test_long_prompt_is_passed_on_stdin(asker: CommandClient) -> None:
    question = replace(QUESTION, user="x" * 2_000_000)
    given = settings("import sys; print(len(sys.stdin.read()))")
    assert asker.ask(question, given, until=time.monotonic() + 30).text == "2000008\n"


def test_command_is_not_run_after_deadline(asker: CommandClient, tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError, match="no time left"):
        ask(asker, settings(f"open({str(tmp_path / 'ran')!r}, 'w')"), seconds=0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("printed", "response"),
    [
        ("no JSON", "no JSON"),
        ("[1]", "[1]"),
        ('{"score": 1}', '{"score": 1}'),
        ('{"text": {"score": 1}}', '{"score": 1}'),
        ('{"output": 3, "text": "t"}', '{"output": 3, "text": "t"}'),
        ('{"output": [{"role": "user", "content": "q"}], "text": "t"}', ""),
        ('{"output": [{"role": "assistant", "content": ["x"]}]}', '["x"]'),
    ],
)
def test_response_is_found_in_what_a_command_of_agentv_prints(printed: str, response: str) -> None:
    assert read_agentv_response(printed) == response
