"""Results of tools for JavaScript.

- promptfoo: JSON, and JSON Lines
- evalite: ``--outputPath``
- vitest-evals: the file of the JSON reporter of Vitest
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from agentci._util.text import truncate
from agentci.model.result import CASE_METRIC, Status
from agentci.result_files.content import ResultContent
from agentci.result_files.row import (
    CaseRun,
    ResultFile,
    ResultRow,
    as_number,
    as_score,
    as_text,
    check_format_version,
    check_unique,
    digest_facts,
    first_line,
    make_result_error,
    number_metrics,
    number_runs,
    pass_or_fail,
)

PROMPTFOO: Final = "promptfoo"
PROMPTFOO_VERSION: Final = 3
_PROMPTFOO_LINE_KEYS: Final = ("testIdx", "promptIdx", "testCase", "gradingResult", "failureReason")
_PROMPTFOO_ERROR: Final = 2
# Their threshold is a distance, a time or a cost, not one of the score.
_OTHER_SCALES: Final = frozenset({"levenshtein", "latency", "cost", "perplexity"})
_PROMPTFOO_TEMPLATE: Final = re.compile(r"\{\{.*?\}\}|\{%.*?%\}")
_PROMPTFOO_SEPARATOR: Final = " / "


class _PromptfooComponent(Struct, rename="camel"):
    """The result of one assertion; a set of assertions has none, but ``metadata``."""

    passed: bool | None = field(name="pass", default=None)
    score: Any = None
    reason: Any = None
    assertion: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None


class _PromptfooGrading(Struct, rename="camel"):
    reason: Any = None
    component_results: list[_PromptfooComponent | None] | None = None
    named_scores: dict[str, Any] | None = None


class _PromptfooTest(Struct, rename="camel"):
    description: Any = None
    vars: dict[str, Any] | None = None
    threshold: Any = None
    assertions: Any = field(name="assert", default=None)


class _PromptfooResult(Struct, rename="camel"):
    success: bool
    test_case: _PromptfooTest
    test_idx: int = 0
    prompt_idx: int = 0
    score: Any = None
    error: Any = None
    failure_reason: int | None = None
    grading_result: _PromptfooGrading | None = None
    named_scores: dict[str, Any] | None = None
    provider: dict[str, Any] | str | None = None
    prompt: dict[str, Any] | None = None
    vars: dict[str, Any] | None = None
    latency_ms: Any = None
    cost: Any = None

    @property
    def provider_label(self) -> str:
        """The name of the provider in the configuration."""
        if isinstance(self.provider, dict):
            return as_text(self.provider.get("label") or self.provider.get("id") or "")
        return self.provider or ""

    @property
    def prompt_label(self) -> str:
        """The name of the prompt in the configuration."""
        prompt = self.prompt or {}
        return as_text(prompt.get("label") or prompt.get("raw") or "")

    @property
    def test_vars(self) -> dict[str, Any]:
        """The variables of the test."""
        return self.test_case.vars or self.vars or {}


class _PromptfooTable(Struct):
    results: list[_PromptfooResult]
    version: Any = None


class _PromptfooRuntime(Struct):
    repeat: Any = None


class _PromptfooFile(Struct, rename="camel"):
    results: _PromptfooTable
    runtime_options: _PromptfooRuntime | None = None


def recognises_promptfoo(content: ResultContent) -> bool:
    """Whether the file is the output of ``promptfoo eval``."""
    return content.has("evalId", "results") or content.has(*_PROMPTFOO_LINE_KEYS)


def read_promptfoo(content: ResultContent) -> ResultFile:
    """Read the file.

    Raises:
        InputError: it has another shape, or a newer format.
    """
    if content.has(*_PROMPTFOO_LINE_KEYS):
        results = [each for _, each in content.decode_lines(_PromptfooResult)]
        return _make_promptfoo_file(content, results, repeats=None)
    found = content.decode(_PromptfooFile)
    warnings = check_format_version(
        found.results.version, [PROMPTFOO_VERSION], named="promptfoo results", file=content.file
    )
    runtime = found.runtime_options or _PromptfooRuntime()
    repeats = runtime.repeat if isinstance(runtime.repeat, int) and runtime.repeat > 0 else 1
    return _make_promptfoo_file(content, found.results.results, repeats=repeats, warnings=warnings)


def _make_promptfoo_file(
    content: ResultContent,
    results: Sequence[_PromptfooResult],
    *,
    repeats: int | None,
    warnings: Iterable[Any] = (),
) -> ResultFile:
    names = _name_promptfoo_cases(results)
    runs = [
        CaseRun(
            case=name,
            rows=tuple(_make_promptfoo_rows(result)),
            facts=digest_facts(result.prompt_idx, result.test_case.assertions),
        )
        for name, result in sorted(
            zip(names, results, strict=True),
            key=lambda each: (each[1].prompt_idx, each[1].test_idx),
        )
    ]
    rows = check_unique(number_runs(runs, repeats=repeats), file=content.file)
    return ResultFile(file=content.file, tool=PROMPTFOO, rows=rows, warnings=tuple(warnings))


def _name_promptfoo_cases(results: Sequence[_PromptfooResult]) -> list[str]:
    """Name each case by its description, its variables, or both; then provider and prompt."""
    variables: dict[str, set[str]] = {}
    for each in results:
        if description := each.test_case.description:
            variables.setdefault(as_text(description), set()).add(as_text(each.test_vars))
    several_providers = len({each.provider_label for each in results}) > 1
    several_prompts = len({each.prompt_label for each in results}) > 1
    names = []
    for each in results:
        description = as_text(each.test_case.description or "")
        parts = [description] if description else []
        if not description or len(variables[description]) > 1:
            parts.append(as_text(each.test_vars))
        if several_providers:
            parts.append(each.provider_label)
        if several_prompts:
            parts.append(each.prompt_label)
        names.append(_PROMPTFOO_SEPARATOR.join(parts))
    return names


def _make_promptfoo_rows(result: _PromptfooResult) -> Iterator[ResultRow]:
    grading, test = result.grading_result, result.test_case
    latency, cost = as_number(result.latency_ms), as_number(result.cost)
    whole = ResultRow(
        case="",
        metric=CASE_METRIC,
        status=pass_or_fail(passed=result.success),
        score=as_score(result.score),
        threshold=as_number(test.threshold),
        reason=first_line((grading and grading.reason) or result.error),
        definition=digest_facts(result.test_vars, test.assertions, test.threshold),
        seconds=None if latency is None else latency / 1000,
        cost_usd=cost or None,
    )
    if result.failure_reason == _PROMPTFOO_ERROR or (grading is None and not result.success):
        yield ResultRow(
            case="",
            metric=CASE_METRIC,
            status="errored",
            reason=first_line(result.error),
            definition=whole.definition,
            seconds=whole.seconds,
        )
        return
    yield whole
    if grading is not None:
        yield from number_metrics(_make_components(grading, result))


def _make_components(grading: _PromptfooGrading, result: _PromptfooResult) -> Iterator[ResultRow]:
    named = {**(result.named_scores or {}), **(grading.named_scores or {})}
    for each in grading.component_results or ():
        if each is None:
            continue
        facts = _describe_assertion(each)
        yield ResultRow(
            case="",
            metric=_name_metric(facts, named, result.test_vars),
            status="errored" if each.passed is None else pass_or_fail(passed=each.passed),
            score=as_score(each.score),
            threshold=_find_threshold(facts),
            reason=first_line(each.reason),
            definition=digest_facts(result.test_vars, facts),
        )


def _describe_assertion(component: _PromptfooComponent) -> Mapping[str, Any]:
    if component.assertion:
        return component.assertion
    found = (component.metadata or {}).get("assertionSet")
    return found if isinstance(found, dict) else {}


def _name_metric(facts: Mapping[str, Any], named: Mapping[str, Any], values: Any) -> str:
    """The metric's name; a template is only rendered in the keys of the named scores."""
    metric = facts.get("metric")
    if not isinstance(metric, str) or not metric:
        return as_text(facts.get("type") or "assertion")
    if metric in named or not _PROMPTFOO_TEMPLATE.search(metric):
        return metric
    rendered = _PROMPTFOO_TEMPLATE.sub(lambda found: _render_template(found[0], values), metric)
    if rendered in named:
        return rendered
    pattern = ".*".join(map(re.escape, _PROMPTFOO_TEMPLATE.split(metric)))
    fitting = [key for key in named if re.fullmatch(pattern, key, re.DOTALL)]
    return fitting[0] if len(fitting) == 1 else metric


def _render_template(template: str, values: Any) -> str:
    value = values.get(template.strip("{} "))
    return template if value is None else as_text(value)


def _find_threshold(facts: Mapping[str, Any]) -> float | None:
    kind = as_text(facts.get("type") or "").removeprefix("not-")
    return None if kind in _OTHER_SCALES else as_number(facts.get("threshold"))


EVALITE: Final = "evalite"
_EVALITE_SUCCESS: Final = "success"


class _EvaliteScore(Struct):
    name: str
    score: Any = None


class _EvaliteResult(Struct, rename="camel"):
    status: str
    input: Any = None
    output: Any = None
    expected: Any = None
    scores: list[_EvaliteScore] = []
    duration: Any = None
    col_order: int = 0


class _EvaliteEval(Struct, rename="camel"):
    name: str
    results: list[_EvaliteResult]
    variant_name: str | None = None


class _EvaliteRun(Struct, rename="camel"):
    id: Any = None
    created_at: Any = None


class _EvaliteFile(Struct):
    run: _EvaliteRun
    evals: list[_EvaliteEval]


def recognises_evalite(content: ResultContent) -> bool:
    """Whether the file is an export of evalite."""
    return content.has("run", "evals") and isinstance(content.member("run", "runType"), str)


def read_evalite(content: ResultContent) -> ResultFile:
    """Read the file, which states no version.

    Raises:
        InputError: it has another shape.
    """
    found = content.decode(_EvaliteFile)
    runs = [
        CaseRun(
            case=f"{_name_eval(each)}/{as_text(result.input)}",
            rows=number_metrics(_make_evalite_rows(result)),
            facts=str(number),
        )
        for each in found.evals
        for number, result in enumerate(sorted(each.results, key=lambda one: one.col_order))
    ]
    rows = check_unique(number_runs(runs), file=content.file)
    return ResultFile(file=content.file, tool=EVALITE, rows=rows, run=_name_evalite_run(found.run))


def _name_evalite_run(run: _EvaliteRun) -> str:
    """Name a run by its number in its database, of which each machine may have one, and its time.

    evalite finds the run to export by its time, so that of two runs that began in the same second
    the second exports the first.
    """
    if run.id is None:
        return ""
    number, time = (truncate.short(as_text(each), 40) for each in (run.id, run.created_at))
    return f"run {number} of {time}"


def _name_eval(each: _EvaliteEval) -> str:
    if each.variant_name and each.variant_name not in each.name:
        return f"{each.name} [{each.variant_name}]"
    return each.name


def _make_evalite_rows(result: _EvaliteResult) -> Iterator[ResultRow]:
    milliseconds = as_number(result.duration)
    seconds = None if milliseconds is None else milliseconds / 1000
    if result.status != _EVALITE_SUCCESS or not result.scores:
        output = result.output if isinstance(result.output, dict) else {}
        yield ResultRow(
            case="",
            metric=CASE_METRIC,
            status="errored",
            reason=first_line(output.get("message")) if result.status != _EVALITE_SUCCESS else None,
            seconds=seconds,
        )
    for each in result.scores:
        score = as_score(each.score)
        yield ResultRow(
            case="",
            metric=each.name,
            status="errored" if score is None else None,
            score=score,
            definition=digest_facts(as_text(result.expected)),
            seconds=seconds,
        )


VITEST_EVALS: Final = "vitest-evals"
_VITEST_EVALS_SEPARATOR: Final = " > "
_SKIPPED: Final = frozenset({"skipped", "pending", "todo", "disabled"})
_FAILED_ASSERTION: Final = "AssertionError"


class _VitestScore(Struct, rename="camel"):
    name: str = "score"
    score: Any = None
    metadata: Any = None


class _VitestEval(Struct, rename="camel"):
    scores: list[_VitestScore] = []
    avg_score: Any = None


class _VitestMeta(Struct):
    eval: _VitestEval | None = None
    harness: Any = None


class _VitestTest(Struct, rename="camel"):
    title: str
    status: str
    ancestor_titles: list[str] = []
    failure_messages: list[Any] | None = None
    duration: Any = None
    meta: _VitestMeta | None = None


class _VitestFile(Struct, rename="camel"):
    assertion_results: list[_VitestTest]
    name: str = ""


class _VitestRun(Struct, rename="camel"):
    test_results: list[_VitestFile]


def recognises_vitest(content: ResultContent) -> bool:
    """Whether the file is of a JSON reporter that Vitest and Jest share."""
    return content.has("numTotalTests", "testResults")


def read_vitest(content: ResultContent) -> ResultFile:
    """Read the file, which states no version.

    Raises:
        InputError: it has another shape, or no test is an evaluation.
    """
    found = content.decode(_VitestRun)
    files = sorted(found.test_results, key=lambda each: each.name)
    tests = [test for each in files for test in each.assertion_results]
    if not any(each.meta and (each.meta.eval or each.meta.harness) for each in tests):
        raise make_result_error(
            content.file,
            "a plain test run: no test has results of vitest-evals",
            hint="use the JUnit reporter for plain tests",
        )
    runs = [
        CaseRun(
            case=_VITEST_EVALS_SEPARATOR.join(
                name for name in (*each.ancestor_titles, each.title) if name
            ),
            rows=tuple(_make_vitest_rows(each)),
            facts=str(number),
        )
        for number, each in enumerate(tests)
    ]
    rows = check_unique(number_runs(runs), file=content.file)
    return ResultFile(file=content.file, tool=VITEST_EVALS, rows=rows)


def _make_vitest_rows(test: _VitestTest) -> Iterator[ResultRow]:
    judged = (test.meta and test.meta.eval) or _VitestEval()
    milliseconds = as_number(test.duration)
    reason = first_line(next(iter(test.failure_messages or ()), None))
    yield ResultRow(
        case="",
        metric=CASE_METRIC,
        status=_find_vitest_status(test, reason),
        score=as_score(judged.avg_score),
        reason=reason,
        seconds=None if milliseconds is None else milliseconds / 1000,
    )
    yield from number_metrics(map(_make_vitest_score, judged.scores))


def _find_vitest_status(test: _VitestTest, reason: str | None) -> Status:
    if test.status == "passed":
        return "passed"
    if test.status in _SKIPPED:
        return "skipped"
    # An agent or a judge that raised is told apart only by its exception.
    failed = test.status == "failed" and (reason or "").startswith(_FAILED_ASSERTION)
    return "failed" if failed else "errored"


def _make_vitest_score(each: _VitestScore) -> ResultRow:
    score = as_score(each.score)
    metadata = each.metadata if isinstance(each.metadata, dict) else {}
    return ResultRow(
        case="",
        metric=each.name,
        status="errored" if score is None else None,
        score=score,
        reason=first_line(metadata.get("rationale")),
    )
