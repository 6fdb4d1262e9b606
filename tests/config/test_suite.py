"""Suites of evaluators and gates, built from a config and the command line."""

import subprocess
import sys
from collections.abc import Sequence

import pytest

from agentci.config.discovery import is_eval_file
from agentci.config.models import GateSpec, ThresholdSpec, list_replacing_limits
from agentci.config.overrides import Overrides
from agentci.config.suite import Suite, make_metric_suite, read_suite
from agentci.config.yaml_document import read_yaml
from agentci.errors import InputError
from agentci.evaluators.agentevals.builtin import BuiltinEvaluator
from agentci.evaluators.agentevals.code import CodeEvaluator
from agentci.model.gate import GateThresholds
from agentci.model.program import LocalProgram
from agentci.model.values import COMMAND_LINE, Place
from tests.helpers.programs import AnyPrograms
from tests.helpers.support import ROOT

TRAJECTORY = "tool_trajectory_avg_score"
RESPONSE = "response_match_score"

FAILS = "{on_turn_mismatch: fail}"

TWO_METRICS = f"""\
evaluators:
  - {{name: {TRAJECTORY}, type: builtin, threshold: 0.9}}
  - {{name: {RESPONSE}, type: builtin}}
  - {{name: ev, type: code, path: ev.py, threshold: 0.4}}
"""


def _suite(text: str, overrides: Overrides | None = None) -> Suite:
    document = read_yaml(text.encode(), file="c.yaml")
    return read_suite(document, overrides or Overrides(), AnyPrograms())


def _problems(text: str, overrides: Overrides | None = None) -> list[str]:
    with pytest.raises(InputError) as caught:
        _suite(text, overrides)
    return [str(problem) for problem in caught.value.problems]


def _thresholds(suite: Suite) -> dict[str, float | None]:
    return {each.identity.name: each.identity.threshold for each in suite.evaluators}


def _match_types(suite: Suite) -> list[object]:
    return [
        each.options.get("match_type")
        for each in suite.evaluators
        if isinstance(each, BuiltinEvaluator)
    ]


def _builtin(suite: Suite) -> BuiltinEvaluator:
    (evaluator,) = suite.evaluators
    assert isinstance(evaluator, BuiltinEvaluator)
    return evaluator


def _code(suite: Suite) -> CodeEvaluator:
    (evaluator,) = suite.evaluators
    assert isinstance(evaluator, CodeEvaluator)
    return evaluator


ADD = "add `image:`, such as `image: python:3.12-slim`"
CHOOSE = "add `executor: docker`, or remove `image`"


class TestPrograms:
    def test_defaults_match_agentevals(self) -> None:
        evaluator = _code(_suite("evaluators: [{name: ev, type: code, path: ./ev.py}]"))
        assert evaluator.run.program == LocalProgram(path="/w/ev.py")
        assert (evaluator.run.timeout_seconds, evaluator.config) == (30, {})
        assert evaluator.run.executor == "local"
        assert evaluator.identity.criterion == "score >= 0.5"
        assert evaluator.identity.required

    def test_entry_overrides_defaults(self) -> None:
        evaluator = _code(
            _suite(
                "evaluators:\n"
                "  - name: ev\n"
                "    type: code\n"
                "    path: ev.py\n"
                "    threshold: 0.70\n"
                "    timeout: 5\n"
                "    required: false\n"
                "    config: {min_length: 20}\n"
            )
        )
        assert (evaluator.run.timeout_seconds, evaluator.config) == (5, {"min_length": 20})
        assert (evaluator.identity.criterion, evaluator.identity.threshold) == (
            "score >= 0.7",
            0.7,
        )
        assert not evaluator.identity.required
        assert evaluator.identity.place == Place(file="c.yaml", line=2, column=5)

    def test_image_of_entry_is_used(self) -> None:
        entry = "{name: ev, type: code, path: ev.py, executor: docker, image: python:3.12-slim}"
        evaluator = _code(_suite(f"evaluators: [{entry}]"))
        assert (evaluator.run.executor, evaluator.run.image) == ("docker", "python:3.12-slim")

    def test_default_image_applies_only_to_docker_executor(self) -> None:
        suite = _suite(
            "defaults: {executor: docker, image: python:3}\n"
            "evaluators:\n"
            "  - {name: a, type: code, path: ev.py}\n"
            "  - {name: b, type: code, path: ev.py, executor: local}\n"
        )
        found = [each for each in suite.evaluators if isinstance(each, CodeEvaluator)]
        assert [each.run.image for each in found] == ["python:3", ""]

    def test_image_and_docker_executor_require_each_other(self) -> None:
        assert _problems(
            "evaluators:\n"
            "  - {name: a, type: code, path: ev.py, executor: docker}\n"
            "  - {name: b, type: remote, ref: b/b.py, image: python:3}\n"
        ) == [
            f"c.yaml:2:50: `executor: docker` needs an `image` to run the program in ({ADD})",
            f"c.yaml:3:49: `image` requires `executor: docker` ({CHOOSE})",
        ]

    def test_invalid_image_name_is_rejected(self) -> None:
        for image in ("--privileged", "a b"):
            (problem,) = _problems(
                "evaluators:\n"
                f"  - {{name: a, type: code, path: ev.py, executor: docker, image: {image}}}\n"
            )
            assert "c.yaml:2:65: `image` must be an image name, not the string" in problem

    def test_missing_program_is_reported_with_other_problems(self) -> None:
        assert _problems(
            "evaluators:\n"
            "  - {name: a, type: code, path: gone.py}\n"
            "  - {name: b, type: code, path: gone, timeout: 0}\n"
            "  - {name: c, type: code, path: gone.js}\n"
        ) == [
            "c.yaml:2:33: gone.py does not exist",
            "c.yaml:3:33: gone does not exist",
            (
                "c.yaml:3:48: `timeout` must be a whole number from 1 to 86,400, not 0 "
                "(for example `timeout: 10`)"
            ),
            "c.yaml:4:33: gone.js does not exist",
        ]


class TestBuiltins:
    def test_defaults_match_agentevals(self) -> None:
        evaluator = _builtin(_suite(f"evaluators: [{{name: {TRAJECTORY}, type: builtin}}]"))
        assert evaluator.metric == TRAJECTORY
        assert evaluator.options == {}
        assert evaluator.identity.threshold == 0.5
        assert evaluator.turn_mismatch_fails

    @pytest.mark.parametrize(
        ("entry", "top", "threshold"),
        [
            pytest.param(", threshold: 0.9", "threshold: 0.2", 0.9, id="entry first"),
            pytest.param(
                "",
                "threshold: 0.2\ndefaults: {threshold: 0.3}",
                0.3,
                id="defaults before top level",
            ),
            pytest.param("", "threshold: 0.2", 0.2, id="top level, as in agentevals 0.7.3"),
            pytest.param(", threshold: null", "threshold: 0.2", 0.2, id="null is ignored"),
            pytest.param("", "defaults: {threshold: null}", 0.5, id="default of agentevals last"),
        ],
    )
    def test_most_specific_threshold_is_used(self, entry: str, top: str, threshold: float) -> None:
        text = f"evaluators: [{{name: {TRAJECTORY}, type: builtin{entry}}}]\n{top}\n"
        assert _builtin(_suite(text)).identity.threshold == threshold

    def test_unused_threshold_is_noted(self) -> None:
        programs = "evaluators: [{name: ev, type: code, path: ev.py}]\nthreshold: 0.9\n"
        given = Overrides(threshold=0.9)
        assert [
            str(note).partition(": it applies")[0] for note in _suite(programs, given).notices
        ] == [
            "c.yaml:1: --threshold has no effect",
            "c.yaml:2:12: `threshold` has no effect",
        ]
        added = Overrides(threshold=0.9, metrics=(RESPONSE,))
        assert _suite(programs, added).notices == ()
        without = Overrides(threshold=0.9, only=("ev",))
        assert _suite(f"{TWO_METRICS}threshold: 0.9\n", without).notices == ()

    @pytest.mark.parametrize(
        ("entry", "top", "place"),
        [
            (", threshold: 0", "", "c.yaml:1:74"),
            (", threshold: 0.0", "threshold: 0.9", "c.yaml:1:74"),
            ("", "threshold: 0", "c.yaml:1:14"),
            ("", "defaults: {threshold: 0}", "c.yaml:1:14"),
        ],
    )
    def test_threshold_of_zero_is_warned_about(self, entry: str, top: str, place: str) -> None:
        text = f"evaluators: [{{name: {TRAJECTORY}, type: builtin{entry}}}]\n{top}\n"
        [warning] = map(str, _suite(text).notices)
        assert warning.startswith(f"{place}: evaluator {TRAJECTORY}: every score reaches")
        advisory = text.replace("builtin", "builtin, required: false")
        assert _suite(advisory).notices == ()

    def test_match_type_spelling_is_ignored(self) -> None:
        text = (
            f"evaluators: [{{name: {TRAJECTORY}, type: builtin, trajectoryMatchType: any_order}}]"
        )
        assert _match_types(_suite(text)) == ["ANY_ORDER"]

    @pytest.mark.parametrize(
        ("entry", "gate", "fails"),
        [
            pytest.param("", "{}", True, id="fail is the default"),
            pytest.param("", "{on_turn_mismatch: allow}", False, id="gate"),
            pytest.param(
                "",
                f"{{on_turn_mismatch: allow, evaluators: {{{TRAJECTORY}: {FAILS}}}}}",
                True,
                id="own threshold before gate",
            ),
            pytest.param(
                "",
                f"{{on_turn_mismatch: allow, evaluators: {{{TRAJECTORY}: {{min_score: 1}}}}}}",
                False,
                id="own threshold inherits from gate",
            ),
            pytest.param(", on_turn_mismatch: allow", "{}", False, id="entry first"),
        ],
    )
    def test_turn_mismatch_policy_is_inherited(self, entry: str, gate: str, fails: bool) -> None:
        text = f"evaluators: [{{name: {TRAJECTORY}, type: builtin{entry}}}]\ngate: {gate}\n"
        assert _builtin(_suite(text)).turn_mismatch_fails is fails


class TestDefaults:
    def test_defaults_apply_to_evaluators_with_the_field(self) -> None:
        suite = _suite(f"{TWO_METRICS}defaults: {{timeout: 5, required: false, config: {{a: 1}}}}")
        assert [each.identity.required for each in suite.evaluators] == [False, False, False]
        program = suite.evaluators[2]
        assert isinstance(program, CodeEvaluator)
        assert (program.run.timeout_seconds, program.config) == (5, {"a": 1})

    def test_top_level_threshold_applies_only_to_builtins(self) -> None:
        text = "threshold: 0.9\nevaluators: [{name: ev, type: code, path: ev.py}]"
        assert _code(_suite(text)).identity.threshold == 0.5


class TestOverrides:
    def test_overrides_apply_to_builtins_but_not_programs(self) -> None:
        suite = _suite(TWO_METRICS, Overrides(threshold=0, trajectory_match_type="IN_ORDER"))
        assert _thresholds(suite) == {TRAJECTORY: 0, RESPONSE: 0, "ev": 0.4}
        assert _match_types(suite) == ["IN_ORDER", "IN_ORDER"]

    def test_overrides_with_metrics_apply_only_to_those(self) -> None:
        suite = _suite(TWO_METRICS, Overrides(metrics=(RESPONSE,), threshold=0.1))
        assert _thresholds(suite) == {TRAJECTORY: 0.9, RESPONSE: 0.1, "ev": 0.4}

    def test_metric_replaces_entry_with_its_name(self) -> None:
        suite = _suite(TWO_METRICS, Overrides(metrics=(TRAJECTORY,)))
        assert list(_thresholds(suite)) == [TRAJECTORY, RESPONSE, "ev"]
        assert _thresholds(suite)[TRAJECTORY] == 0.5
        assert suite.evaluators[0].identity.place == COMMAND_LINE

    def test_metric_replaces_program_with_its_name(self) -> None:
        text = f"evaluators: [{{name: {RESPONSE}, type: code, path: ev.py}}]"
        suite = _suite(text, Overrides(metrics=(RESPONSE,)))
        assert [each.identity.type for each in suite.evaluators] == ["builtin"]

    def test_other_metrics_are_appended(self) -> None:
        text = "evaluators: [{name: ev, type: code, path: ev.py}]\nthreshold: 0.7"
        assert _thresholds(_suite(text, Overrides(metrics=(RESPONSE,)))) == {
            "ev": 0.5,
            RESPONSE: 0.7,
        }

    def test_evaluators_outside_selection_are_left_out(self) -> None:
        text = f"{TWO_METRICS}gate: {{evaluators: {{ev: {{}}, {RESPONSE}: {{}}}}}}"
        suite = _suite(text, Overrides(only=("ev",)))
        assert list(_thresholds(suite)) == ["ev"]
        assert "ev" in suite.names
        assert RESPONSE in suite.names
        assert list(suite.gate.evaluators) == ["ev"]

    def test_missing_program_outside_selection_is_ignored(self) -> None:
        text = TWO_METRICS.replace("ev.py", "gone.py")
        assert list(_thresholds(_suite(text, Overrides(only=(RESPONSE,))))) == [RESPONSE]

    @pytest.mark.parametrize(
        ("overrides", "problems"),
        [
            pytest.param(
                Overrides(metrics=("response_match",)),
                [
                    (
                        "unknown built-in metric 'response_match'"
                        " (did you mean 'response_match_score'?)"
                    )
                ],
                id="unknown metric",
            ),
            pytest.param(
                Overrides(metrics=(RESPONSE, RESPONSE)),
                ["--metric response_match_score is given twice (remove one of them)"],
                id="duplicate metric",
            ),
        ],
    )
    def test_invalid_metric_name_is_rejected(
        self, overrides: Overrides, problems: Sequence[str]
    ) -> None:
        assert _problems(TWO_METRICS, overrides) == problems


class TestGate:
    def test_default_gate_requires_all_checks(self) -> None:
        assert _suite(TWO_METRICS).gate.overall == GateThresholds()

    def test_evaluator_gate_inherits_policies_but_not_thresholds(self) -> None:
        gate = _suite(
            f"{TWO_METRICS}"
            "gate:\n"
            "  min_pass_rate: 0.9\n"
            "  min_score: 0.5\n"
            "  on_error: warn\n"
            "  evaluators:\n"
            "    ev: {min_score: null, on_error: fail}\n"
        ).gate
        assert gate.overall == GateThresholds(min_pass_rate=0.9, min_score=0.5, on_error="warn")
        assert gate.evaluators == {
            "ev": GateThresholds(min_pass_rate=None, min_score=None, on_error="fail")
        }


class TestSuite:
    def test_inputs_are_read_with_their_places(self) -> None:
        suite = _suite(
            f"{TWO_METRICS}"
            "traces: traces/*.json\n"
            "eval_set: golden.json\n"
            "group_by: trace\n"
            "trace_format: otlp-json\n"
        )
        assert (suite.traces, suite.eval_sets) == (("traces/*.json",), ("golden.json",))
        assert (suite.group_by, suite.trace_format) == ("trace", "otlp-json")
        assert suite.place_of("eval_set") == Place(file="c.yaml", line=6, column=11)

    def test_missing_inputs_have_defaults(self) -> None:
        suite = _suite(TWO_METRICS)
        assert (suite.traces, suite.eval_sets, suite.trace_format) == ((), (), None)
        assert suite.group_by == "auto"
        assert suite.place_of("traces") == Place(file="c.yaml")

    def test_notes_of_config_are_kept(self) -> None:
        suite = _suite(f"{TWO_METRICS}output: json\n")
        assert [problem.severity for problem in suite.notices] == ["note"]

    def test_number_of_listed_problems_is_limited(self) -> None:
        problems = _problems("evaluators:\n" + "- 1\n" * 3000)
        assert len(problems) == 1001
        assert problems[-1] == "c.yaml:1001:3: only the first 1,000 problems are listed"

    def test_many_notes_do_not_fail(self) -> None:
        numbers = "1e1," * 2000
        suite = _suite(
            f"evaluators: [{{name: ev, type: code, path: ev.py, config: {{a: [{numbers}]}}}}]"
        )
        assert {problem.severity for problem in suite.notices} == {"note"}


class TestWithoutConfig:
    def test_default_metric_of_agentevals_is_used(self) -> None:
        suite = make_metric_suite(Overrides())
        assert _thresholds(suite) == {TRAJECTORY: 0.5}
        assert suite.place_of("traces") == COMMAND_LINE

    def test_given_metrics_are_used(self) -> None:
        overrides = Overrides(
            metrics=(RESPONSE, TRAJECTORY), threshold=0.25, trajectory_match_type="ANY_ORDER"
        )
        suite = make_metric_suite(overrides)
        assert _thresholds(suite) == {RESPONSE: 0.25, TRAJECTORY: 0.25}
        assert _match_types(suite) == ["ANY_ORDER", "ANY_ORDER"]
        assert suite.evaluators[0].identity.criterion == "score >= 0.25"

    def test_only_selected_metrics_are_used(self) -> None:
        overrides = Overrides(metrics=(RESPONSE, TRAJECTORY), only=(RESPONSE,))
        assert list(_thresholds(make_metric_suite(overrides))) == [RESPONSE]

    def test_unsupported_metric_is_rejected(self) -> None:
        with pytest.raises(InputError) as caught:
            make_metric_suite(Overrides(metrics=("token_usage_v1",)))
        messages = [problem.message for problem in caught.value.problems]
        assert messages == ["metric 'token_usage_v1' is not supported by agentci"]


class TestIsEvalFile:
    @pytest.mark.parametrize("key", ["evalcases", "cases", "eval_cases", "tests"])
    def test_list_of_cases_is_an_eval_file(self, key: str) -> None:
        assert is_eval_file(read_yaml(f"{key}: []".encode(), file="c.yaml"))

    def test_list_of_evaluators_is_not_an_eval_file(self) -> None:
        assert not is_eval_file(read_yaml(b"evaluators: []", file="c.yaml"))


class TestImports:
    @pytest.mark.parametrize(
        ("code", "unwanted"),
        [
            pytest.param(
                "make_metric_suite(Overrides())",
                {"yaml", "pydantic", "jsonschema"},
                id="without a config",
            ),
            pytest.param(
                "from tests.helpers.programs import AnyPrograms\n"
                "read_suite(read_yaml(b'evaluators: [{name: response_match_score, "
                "type: builtin}]', file='c'), Overrides(), AnyPrograms())",
                {"jsonschema"},
                id="valid config",
            ),
        ],
    )
    def test_unneeded_modules_are_not_loaded(self, code: str, unwanted: set[str]) -> None:
        program = (
            "import sys\n"
            "from agentci.config.yaml_document import read_yaml\n"
            "from agentci.config.overrides import Overrides\n"
            "from agentci.config.suite import read_suite, make_metric_suite\n"
            f"{code}\n"
            f"print(*(sys.modules.keys() & {unwanted}))\n"
        )
        loaded = subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert loaded.stdout.split() == []


@pytest.mark.parametrize("key", ["eval_set", "dataset"])
def test_key_without_a_path_is_an_error(key: str) -> None:
    config = f"checks: [{{no_secrets: true}}]\n{key}:\n"
    assert _problems(config) == [
        f"c.yaml:2:1: `{key}` has no value (name a file, or remove the key)"
    ]
    given = Overrides(eval_sets=("a.yaml",))
    assert _suite("eval_set:\nchecks: [{no_secrets: true}]\n", given).eval_sets == ()


NO_PASS_RATE = f"evaluators: [{{name: {RESPONSE}, type: builtin}}]\ngate: {{min_pass_rate: 0%s}}\n"
NO_EVALUATOR_PASS_RATE = f"""\
evaluators: [{{name: {RESPONSE}, type: builtin}}]
gate: {{evaluators: {{{RESPONSE}: {{min_pass_rate: 0%s}}}}}}
"""


@pytest.mark.parametrize(
    ("text", "column"),
    [
        (NO_PASS_RATE % "", 23),
        (NO_PASS_RATE % ", min_score: 0", 23),
        (NO_PASS_RATE % ", on_skip: fail, regression_confidence: 0.9", 23),
        (NO_EVALUATOR_PASS_RATE % "", 59),
    ],
)
def test_pass_rate_of_zero_without_another_limit_is_warned_about(text: str, column: int) -> None:
    [warning] = _suite(text).notices
    assert str(warning) == (
        f"c.yaml:2:{column}: every pass rate reaches a `min_pass_rate` of 0, so all checks may fail"
        " (raise it, or set `min_score` or `max_regression`)"
    )
    assert warning.severity == "warning"


@pytest.mark.parametrize(
    "text",
    [
        *(NO_PASS_RATE % f", {key}: 1" for key in list_replacing_limits(GateSpec)),
        *(NO_EVALUATOR_PASS_RATE % f", {key}: 1" for key in list_replacing_limits(ThresholdSpec)),
        NO_PASS_RATE % ", max_regression: 0",
    ],
)
def test_every_other_limit_replaces_the_pass_rate(text: str) -> None:
    assert _suite(text).notices == ()
