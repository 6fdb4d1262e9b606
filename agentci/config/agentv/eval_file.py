"""Read an eval file into cases, evaluators and a gate."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from pydantic import ValidationError

from agentci._util.text.suggest import join_with_or, quote_name, suggest_name
from agentci.config.agentv.assemble import expand_eval_file
from agentci.config.agentv.cases import CaseReader
from agentci.config.agentv.evaluators import EvaluatorReader
from agentci.config.agentv.files import FileResolver
from agentci.config.agentv.ignored_keys import KeyChecker
from agentci.config.agentv.models import EvalFile
from agentci.config.agentv.target import TargetReader
from agentci.config.build import make_gate_policy
from agentci.config.discovery import CASE_KEYS
from agentci.config.models import EvalFileGateSpec
from agentci.config.overrides import Overrides
from agentci.config.schema_errors import find_part_errors
from agentci.config.suite import EvalFileCase, Suite
from agentci.config.validate import sort_problems
from agentci.config.yaml_document import YamlDocument
from agentci.errors import InputError
from agentci.evaluators.agentv.agentv_evaluator import AgentvVersion
from agentci.evaluators.agentv.findings import PASS_SCORE
from agentci.evaluators.judge_config import JudgeSettings
from agentci.model.gate import CaseThresholds, GatePolicy
from agentci.model.problem import Place, Problem
from agentci.model.values import replace


def make_eval_file_policy(
    gate: EvalFileGateSpec, names: Sequence[str], *, vital: Collection[str], line: float
) -> GatePolicy:
    """Make the gate policy for the evaluators ``names``.

    Args:
        vital: names of the evaluators whose entries set `required`.
        line: the score threshold of cases if the gate sets none.
    """
    policy = make_gate_policy(gate, names)
    if gate.cases is None:
        return policy
    threshold = line if gate.cases.threshold is None else gate.cases.threshold
    loose = replace(policy.overall, min_pass_rate=0.0, min_score=None)
    strict = {
        name: replace(loose, min_pass_rate=1.0)
        for name in names
        if name in vital and name not in policy.evaluators
    }
    overall = policy.overall
    if "min_pass_rate" not in gate.model_fields_set:
        overall = replace(overall, min_pass_rate=0.0)
    return GatePolicy(
        overall=overall,
        evaluators={**policy.evaluators, **strict},
        cases=CaseThresholds(
            threshold=threshold,
            min_pass_rate=gate.cases.min_pass_rate,
            pass_rate_confidence=gate.cases.pass_rate_confidence,
        ),
    )


def read_eval_file(
    document: YamlDocument,
    overrides: Overrides,
    files: FileResolver,
    *,
    variables: Mapping[str, str],
) -> Suite:
    """Read an eval file into a suite.

    Args:
        files: finds the files that the eval file refers to.
        variables: environment variables, for files of AgentV 4.

    Raises:
        InputError: the file has errors; lists all its problems.
    """
    document = expand_eval_file(document, files, variables=variables)
    try:
        spec = EvalFile.model_validate(document.data)
    except ValidationError as error:
        schema = EvalFile.model_json_schema()
        found = find_part_errors(document, schema, error, at=(), noun="eval file")
        raise InputError(sort_problems([*document.problems, *found])) from None
    keys = [key for key in CASE_KEYS if key in document.data]
    judges = EvaluatorReader(
        document=document,
        files=files,
        era=_find_era(keys[0]),
        default_threshold=_find_threshold(spec, overrides),
        wire=spec.wire,
        judge_settings=JudgeSettings(
            budget_id=document.file,
            folder=files.folder(None, Place(file=document.file)),
            shared=spec.judge,
            model=overrides.judge_model,
        ),
    )
    look = KeyChecker(document=document)
    reader = CaseReader(
        document=document,
        key_checker=look,
        files=files,
        evaluator_reader=judges,
        gate_has_cases=spec.gate.cases is not None,
        fixed_threshold=overrides.threshold,
    )
    samples = reader.read_cases(keys[0])
    look.check_file()
    target = TargetReader(document=document, files=files)
    agent, trials = target.read_agent(), target.read_trials()
    target.check_cases(keys[0])
    problems = [*document.problems, *reader.problems, *judges.problems, *look.problems]
    problems += target.problems
    problems += _find_duplicate_lists(keys, document)
    problems += _find_ignored_options(overrides, document)
    names = _list_names(samples)
    problems += _find_unknown_gate_names(spec, names, document)
    if any(problem.severity == "error" for problem in problems):
        raise InputError(sort_problems(problems))
    samples = _select_evaluators(samples, overrides)
    policy = make_eval_file_policy(
        spec.gate, _list_names(samples), vital=judges.required_names, line=judges.default_threshold
    )
    suite = _make_suite(
        spec, document, samples, policy, names=names, notices=sort_problems(problems)
    )
    return replace(suite, agent=agent, trials=trials)


def _make_suite(
    spec: EvalFile,
    document: YamlDocument,
    samples: tuple[EvalFileCase, ...],
    policy: GatePolicy,
    *,
    names: tuple[str, ...],
    notices: tuple[Problem, ...],
) -> Suite:
    evaluators = {id(each): each for sample in samples for each in sample.evaluators}
    return Suite(
        file=document.file,
        evaluators=tuple(evaluators.values()),
        gate=policy,
        names=names,
        eval_cases=samples,
        traces=spec.globs,
        group_by=spec.group_by or "auto",
        trace_format=spec.trace_format,
        places={key: document.place_of((key,)) for key in document.data},
        notices=notices,
    )


def _find_era(key: str) -> AgentvVersion:
    return "v4" if key == "tests" else "seed"


def _find_threshold(spec: EvalFile, overrides: Overrides) -> float:
    """The score threshold: from the command line, else from the file, else AgentV's default."""
    given = spec.own_threshold if overrides.threshold is None else overrides.threshold
    return PASS_SCORE if given is None else given


def _list_names(samples: tuple[EvalFileCase, ...]) -> tuple[str, ...]:
    names = (each.identity.name for sample in samples for each in sample.evaluators)
    return tuple(dict.fromkeys(names))


def _select_evaluators(
    samples: tuple[EvalFileCase, ...], overrides: Overrides
) -> tuple[EvalFileCase, ...]:
    """Keep the evaluators selected by ``--only``; cases without any are left out."""
    if not overrides.only:
        return samples
    kept = (
        replace(
            sample,
            evaluators=tuple(e for e in sample.evaluators if e.identity.name in overrides.only),
        )
        for sample in samples
    )
    return tuple(sample for sample in kept if sample.evaluators)


def _find_duplicate_lists(keys: list[str], document: YamlDocument) -> list[Problem]:
    if len(keys) == 1:
        return []
    both = f"`{keys[0]}` and `{keys[1]}`"
    return [
        Problem(
            message=f"the file lists its cases twice, as {both}",
            place=document.place_of((keys[1],), key=True),
            hint="make it one list",
        )
    ]


def _find_ignored_options(overrides: Overrides, document: YamlDocument) -> Iterator[Problem]:
    """Report options that do not apply to the evaluators of eval files."""
    if overrides.metrics:
        yield Problem(
            message="--metric does not judge the cases of an eval file",
            place=Place(file=document.file),
            hint="list evaluators in the file",
            severity="warning",
        )
    if overrides.trajectory_match_type is not None:
        yield Problem(
            message="--trajectory-match-type does not change the evaluators of an eval file",
            place=Place(file=document.file),
            hint="give its `tool_trajectory` evaluators a `mode`",
            severity="warning",
        )


def _find_unknown_gate_names(
    spec: EvalFile, names: tuple[str, ...], document: YamlDocument
) -> list[Problem]:
    bars: Mapping[str, object] = spec.gate.evaluators
    return [
        Problem(
            message=f"there is no evaluator {quote_name(name)} for the gate to check",
            place=document.place_of(("gate", "evaluators", name), key=True),
            hint=suggest_name(name, names)
            or (f"there is {join_with_or(names)}" if names else None),
        )
        for name in bars
        if name not in names
    ]
