"""Targets and trials of eval files, and errors in invalid ones."""

from typing import Any

import pytest

from agentci.config.agentv.eval_file import read_eval_file
from agentci.config.overrides import Overrides
from agentci.config.suite import Suite
from agentci.config.variables import ConfigVariables
from agentci.config.yaml_document import read_yaml
from agentci.errors import InputError
from agentci.model.program import Agent
from agentci.model.values import Place
from tests.config.agentv.no_files import NoFiles


def _read(text: str, **overrides: Any) -> Suite:
    file = f"tests: [{{id: a, input: q}}]\nassertions: [{{type: contains, value: it}}]\n{text}"
    document = read_yaml(file.encode(), file="f.yaml")
    return read_eval_file(
        document, Overrides(**overrides), NoFiles(), variables=ConfigVariables({})
    )


def _problems(text: str) -> list[str]:
    try:
        return [str(problem) for problem in _read(text).notices]
    except InputError as error:
        return [str(problem) for problem in error.problems]


class TestTarget:
    def test_command_makes_an_agent(self) -> None:
        assert _read("target: {command: agent --ask}").agent == Agent(
            command="agent --ask",
            folder="/w",
            timeout_seconds=120,
            place=Place(file="f.yaml", line=3, column=9),
        )

    @pytest.mark.parametrize(
        "fields",
        [
            "command: [agent, '{FILES}'], timeout_seconds: 7, files_format: '-f {path}'",
            "command_template: [agent, '{FILES}'], timeout: 7, files_format: '-f {path}'",
            "commandTemplate: [agent, '{FILES}'], timeoutSeconds: 7, filesFormat: '-f {path}'",
        ],
    )
    def test_all_agentv_spellings_are_read(self, fields: str) -> None:
        more = "name: n, provider: cli, judge_target: j, keepTempFiles: true, cwd: src, x-own: 1"
        suite = _read(f"target: {{{fields}, {more}, env: [KEY], sandbox: true, network: false}}")
        assert suite.notices == ()
        assert suite.agent == Agent(
            command=("agent", "{FILES}"),
            folder="/w/src",
            timeout_seconds=7,
            files_format="-f {path}",
            variables=("KEY",),
            sandboxed=True,
            network=False,
            place=Place(file="f.yaml", line=3, column=9),
        )

    def test_target_name_is_ignored(self) -> None:
        suite = _read("target: mine\n")
        assert (suite.agent, suite.notices) == (None, ())

    def test_execution_target_takes_precedence(self) -> None:
        suite = _read("target: {command: one}\nexecution: {target: {command: two}}\n")
        assert suite.agent is not None
        assert suite.agent.command == "two"

    @pytest.mark.parametrize(
        ("target", "message"),
        [
            ("3", "3:9: `target` must be a name or a mapping with `command`"),
            ("{cwd: x}", "3:9: `target` needs `command`, such as `python3 agent.py {PROMPT}`"),
            ("{command: []}", "3:19: `target.command` must be"),
            ("{command: a, commandTemplate: b}", "3:9: `command` is set twice"),
            ("{command: a, provider: openai}", "3:32: `target.provider` must be cli"),
            ("{command: a, cwd: gone}", "3:27: there is no folder gone"),
            (
                "{command: a, timeoutSeconds: soon}",
                "3:38: `target.timeoutSeconds` must be a whole number",
            ),
            ("{command: a, env: ['A*']}", "3:28: item 1 of `target.env` must"),
            ("{command: a, provider_batching: true}", "3:22: `provider_batching` is not supported"),
            (
                "{command: 'a {OUTPUT_FILE}', sandbox: true}",
                "3:38: an agent in the sandbox cannot write",
            ),
        ],
    )
    def test_invalid_target_is_rejected(self, target: str, message: str) -> None:
        [problem] = _problems(f"target: {target}\n")
        assert problem.startswith(f"f.yaml:{message}")

    def test_suspicious_target_is_warned_about(self) -> None:
        assert [
            each.partition("3:")[2]
            for each in _problems("target: {command: 'agent {PROMT}', timeot: 3}\n")
        ] == [
            "9: unknown placeholder {PROMT} is not replaced (did you mean 'PROMPT'?)",
            "36: unknown key 'timeot' is ignored (did you mean 'timeout'?)",
        ]


class TestTrials:
    def test_default_strategy_is_pass_at_k(self) -> None:
        trials = _read("execution: {trials: {count: 3}}").trials
        assert trials is not None
        assert (trials.count, trials.strategy, trials.cost_limit_usd) == (3, "pass_at_k", None)
        trials = _read(
            "execution: {trials: {count: 2, strategy: mean, cost_limit_usd: 0.5}}"
        ).trials
        assert trials is not None
        assert (trials.strategy, trials.cost_limit_usd) == ("mean", 0.5)

    def test_single_trial_counts_as_none(self) -> None:
        assert _read("execution: {trials: {count: 1}}").trials is None

    @pytest.mark.parametrize(
        ("trials", "message"),
        [
            ("3", "3:21: `execution.trials` must be"),
            ("{strategy: mean}", "3:21: `execution.trials` has no `count`"),
            (
                "{count: 0}",
                "3:29: `execution.trials.count` must be a whole number from 1 to 1,000, not 0",
            ),
            (
                "{count: 2, strategy: best}",
                "3:42: `execution.trials.strategy` must be pass_at_k, mean or",
            ),
            ("{count: 2, cost_limit_usd: -1}", "3:48: `execution.trials.cost_limit_usd` must be"),
            ("{count: 2, stratgy: mean}", "3:32: unknown key 'stratgy'"),
        ],
    )
    def test_invalid_trials_are_rejected(self, trials: str, message: str) -> None:
        [problem] = _problems(f"execution: {{trials: {trials}}}\n")
        assert problem.startswith(f"f.yaml:{message}")

    def test_target_and_trials_of_case_are_warned_about(self) -> None:
        text = (
            "cases: [{id: a, input: q, target: {command: x}, execution: {trials: {count: 2}},"
            " evaluators: [{name: c, type: contains, value: it}]}]\n"
        )
        document = read_yaml(text.encode(), file="f.yaml")
        suite = read_eval_file(document, Overrides(), NoFiles(), variables=ConfigVariables({}))
        assert (suite.agent, suite.trials) == (None, None)
        assert [str(each) for each in suite.notices] == [
            "f.yaml:1:27: `target` of a single case has no effect (set it for the whole file)",
            "f.yaml:1:61: `trials` of a single case have no effect (set it for the whole file)",
        ]


def test_option_without_effect_is_noted() -> None:
    [note] = _read("", trajectory_match_type="EXACT").notices
    assert note.message == ("--trajectory-match-type has no effect on eval files")
