"""Read an eval file into cases, evaluators and a gate."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from agentci._util.text.patterns import matches_any
from agentci._util.text.suggest import quote_name, suggest_name
from agentci.config.agentv import schema, version5
from agentci.config.agentv.case_formats import is_skill_file, rewrite_skill_file
from agentci.config.agentv.cases import CaseReader
from agentci.config.agentv.evaluators import EvaluatorReader
from agentci.config.agentv.external_files import CustomTypes, ExternalCases, IncludedEvaluators
from agentci.config.agentv.files import FileResolver
from agentci.config.agentv.models import EXECUTION_KEY, EvalFile
from agentci.config.agentv.schema import MEMBER_LIST_KEYS
from agentci.config.agentv.shared_values import TURNS_KEY, EnvironmentSubstitution, SharedValues
from agentci.config.agentv.target import TargetReader
from agentci.config.agentv.targets import COMMAND_KEYS, TargetJudges
from agentci.config.build import make_gate_policy
from agentci.config.discovery import CASE_KEYS
from agentci.config.models import EvalFileGateSpec
from agentci.config.overrides import Overrides
from agentci.config.suite import EvalFileCase, Suite
from agentci.config.validate import read_part, sort_problems
from agentci.config.variables import ConfigVariables
from agentci.config.yaml_document import YamlDocument, make_document
from agentci.config.yaml_nodes import (
    MappingNode,
    Node,
    SequenceNode,
    change_items,
    find_value,
    make_node,
    replace_values,
)
from agentci.errors import InputError
from agentci.evaluators.agentv.agentv_evaluator import AgentvVersion
from agentci.evaluators.agentv.findings import PASS_SCORE
from agentci.evaluators.judge_config import JudgeSettings
from agentci.model.gate import POOLED, CaseThresholds, GatePolicy
from agentci.model.values import JsonObject, Place, Problem, replace

# The cases in AgentV 4, which also substitutes environment variables.
TESTS_KEY: Final = "tests"
# Ignored here if it is only a name.
TARGET_KEY: Final = "target"
GATE_KEY: Final = "gate"
AGENTV_GATE: Final = "agentv"
UNREAD_KEYS: Final = (
    *schema.IGNORED_KEYS,
    *schema.IGNORED_EXECUTION_KEYS,
    *schema.UNSUPPORTED_KEYS,
    "name",
    "description",
    "dataset",
    "version",
)


def expand_eval_file(
    document: YamlDocument, files: FileResolver, *, variables: ConfigVariables
) -> YamlDocument:
    """Write out everything that ``document`` refers to; every part keeps its own position.

    Errors are added to the problems of the document.

    Args:
        variables: environment variables, for files of AgentV 4.
    """
    root = document.root
    if is_skill_file(root):
        root = rewrite_skill_file(root)
    external, includes = ExternalCases(files=files), IncludedEvaluators(files=files)
    own_types = CustomTypes(files=files)
    root = _change_case_lists(external.collect(root), external.expand)
    root = _change_evaluator_lists(root, includes.expand)
    is_new = version5.is_version5(document.root, find_value(root, TESTS_KEY))
    cases = version5.Version5Cases(root=root, files=files)
    root = cases.rewrite() if is_new else root
    root = _change_evaluator_lists(
        root, lambda entries: own_types.expand(version5.rewrite_evaluators(entries))
    )
    environment = EnvironmentSubstitution(
        variables=variables, is_version5=is_new, own=version5.read_environment(root)
    )
    if TESTS_KEY in root.fields:
        root = _change_effective_values(root, environment.substitute)
    shared = SharedValues(root=root, warns_about_evaluators=not is_new)
    root = _change_case_lists(root, lambda cases: _change_items(cases, shared.complete_case))
    steps = (external, includes, cases, environment, shared)
    found = (problem for step in steps for problem in step.problems)
    return make_document(root, file=document.file, problems=(*document.problems, *found))


def _change_case_lists(root: MappingNode, change: Callable[[Node], Node]) -> MappingNode:
    return replace_values(
        root, {key: change(root.fields[key].value) for key in CASE_KEYS if key in root.fields}
    )


def _change_items(nodes: Node, change: Callable[[Node], Node]) -> Node:
    """Change the items of a list; other nodes are returned unchanged."""
    return change_items(nodes, change) if isinstance(nodes, SequenceNode) else nodes


def _change_evaluator_lists(node: MappingNode, change: Callable[[Node], Node]) -> MappingNode:
    """Change every list of evaluators in ``node``, including nested ones."""

    def deeper(part: Node) -> Node:
        return _change_evaluator_lists(part, change) if isinstance(part, MappingNode) else part

    values: dict[str, Node] = {}
    for key, field in node.fields.items():
        if key in MEMBER_LIST_KEYS:
            values[key] = _change_items(change(field.value), deeper)
        elif key in (*CASE_KEYS, TURNS_KEY):
            values[key] = _change_items(field.value, deeper)
        elif key == EXECUTION_KEY:
            values[key] = deeper(field.value)
    return replace_values(node, values)


def _change_effective_values(node: MappingNode, change: Callable[[Node], Node]) -> MappingNode:
    """Change all parts of ``node`` that have an effect; ignored parts may name unset variables."""

    def deeper(part: Node) -> Node:
        return (
            _change_effective_values(part, change)
            if isinstance(part, MappingNode)
            else change(part)
        )

    values: dict[str, Node] = {}
    for key, field in node.fields.items():
        if key == TESTS_KEY:
            values[key] = _change_items(field.value, deeper)
        elif key == EXECUTION_KEY:
            values[key] = deeper(field.value)
        elif _has_effect(key, field.value):
            values[key] = change(field.value)
    return replace_values(node, values)


def _has_effect(key: str, value: Node) -> bool:
    if key == TARGET_KEY:
        return any(find_value(value, each) is not None for each in COMMAND_KEYS)
    return key not in UNREAD_KEYS and not key.startswith("x-")


def make_eval_file_policy(
    gate: EvalFileGateSpec,
    names: Sequence[str],
    *,
    required: Collection[str],
    default_threshold: float,
    own_thresholds: Mapping[str, float],
    errors_score: float | None,
) -> GatePolicy:
    """Make the gate policy for the evaluators ``names``.

    Args:
        own_thresholds: the thresholds of cases that have one.
        errors_score: score of an errored check in the mean; None to leave it out.
        required: names of the evaluators whose entries set `required`.
        default_threshold: the score threshold of cases if the gate sets none.
    """
    policy = make_gate_policy(gate, names)
    if gate.cases is None:
        return policy
    threshold = default_threshold if gate.cases.threshold is None else gate.cases.threshold
    pooled: dict[str, Any] = dict.fromkeys(POOLED)
    strict = replace(policy.overall, **{**pooled, "min_pass_rate": 1.0})
    if errors_score is not None:  # a mean may hide the error of a required evaluator
        strict = replace(strict, on_error="fail")
    own = {name: strict for name in names if name in required and name not in policy.evaluators}
    overall = policy.overall
    if "min_pass_rate" not in gate.model_fields_set:
        overall = replace(overall, min_pass_rate=0.0)
    return replace(
        policy,
        overall=overall,
        evaluators={**policy.evaluators, **own},
        cases=CaseThresholds(
            threshold=threshold,
            min_pass_rate=gate.cases.min_pass_rate,
            pass_rate_confidence=gate.cases.pass_rate_confidence,
            own=own_thresholds,
            errors_score=errors_score,
        ),
    )


def read_eval_file(
    document: YamlDocument,
    overrides: Overrides,
    files: FileResolver,
    *,
    variables: ConfigVariables,
) -> Suite:
    """Read an eval file into a suite.

    Args:
        files: finds the files that the eval file refers to.
        variables: environment variables, for files of AgentV 4.

    Raises:
        InputError: the file has errors; lists all its problems.
    """
    document = expand_eval_file(document, files, variables=variables)
    is_agentv_gate = document.value((GATE_KEY,)) == AGENTV_GATE
    if is_agentv_gate:
        document = _expand_agentv_gate(document)
    spec, found = read_part(document, EvalFile, at=(), noun="eval file")
    if spec is None:
        raise InputError(sort_problems([*document.problems, *found]))
    keys = [key for key in CASE_KEYS if key in document.data]
    targets = TargetJudges(document=document, files=files, variables=variables)
    evaluator_reader = EvaluatorReader(
        document=document,
        files=files,
        version=_find_version(keys[0]),
        default_threshold=_find_threshold(spec, overrides),
        wire=spec.wire or ("snake+v4" if keys[0] == TESTS_KEY else "union"),
        judge_settings=_make_judge_settings(spec, document, overrides, files, targets),
        targets=targets,
    )
    key_checker = schema.KeyChecker(document=document)
    case_reader = CaseReader(
        document=document,
        key_checker=key_checker,
        files=files,
        evaluator_reader=evaluator_reader,
        gate_has_cases=spec.gate.cases is not None,
        target=targets.find_tested(),
        fixed_threshold=overrides.threshold,
    )
    cases = case_reader.read_cases(keys[0])
    key_checker.check_file()
    target = TargetReader(document=document, files=files, targets=targets)
    agent, trials = target.read_agent(), target.read_trials()
    target.check_cases(keys[0])
    problems = [
        *document.problems,
        *case_reader.problems,
        *evaluator_reader.problems,
        *key_checker.problems,
    ]
    problems += target.problems
    problems += _find_duplicate_lists(keys, document)
    problems += _find_ignored_options(overrides, document)
    names = _list_names(cases)
    problems += _find_unknown_gate_names(spec, names, document)
    if any(problem.severity == "error" for problem in problems):
        raise InputError(sort_problems(problems))
    cases = _select_cases(_select_evaluators(cases, overrides), document.data, keys[0], overrides)
    policy = make_eval_file_policy(
        spec.gate,
        _list_names(cases),
        required=evaluator_reader.required_names,
        default_threshold=evaluator_reader.default_threshold,
        own_thresholds=case_reader.own_thresholds,
        errors_score=0.0 if is_agentv_gate else None,
    )
    suite = _make_suite(spec, document, cases, policy, names=names, notices=sort_problems(problems))
    return replace(suite, agent=agent, trials=trials)


def _expand_agentv_gate(document: YamlDocument) -> YamlDocument:
    """Write out `gate: agentv`: AgentV's verdict of each case, in which errors count as 0."""
    place = document.place_of((GATE_KEY,))
    gate = make_node({"cases": {}, "on_error": "warn"}, place)
    root = replace_values(document.root, {GATE_KEY: gate})
    return make_document(root, file=document.file, problems=document.problems)


def _make_judge_settings(
    spec: EvalFile,
    document: YamlDocument,
    overrides: Overrides,
    files: FileResolver,
    targets: TargetJudges,
) -> JudgeSettings:
    """The judge of the command line or of the file, else that of AgentV's targets."""
    shared, hint = spec.judge, ""
    if shared is None and not overrides.judge_model:
        shared, hint = targets.find_default()
    return JudgeSettings(
        budget_id=document.file,
        folder=files.folder(None, Place(file=document.file)),
        shared=shared,
        model=overrides.judge_model,
        missing_hint=hint,
    )


def _make_suite(
    spec: EvalFile,
    document: YamlDocument,
    cases: tuple[EvalFileCase, ...],
    policy: GatePolicy,
    *,
    names: tuple[str, ...],
    notices: tuple[Problem, ...],
) -> Suite:
    evaluators = {id(each): each for case in cases for each in case.evaluators}
    title = document.value(("name",))
    return Suite(
        file=document.file,
        title=title if isinstance(title, str) else "",
        evaluators=tuple(evaluators.values()),
        gate=policy,
        names=names,
        eval_cases=cases,
        traces=spec.globs,
        group_by=spec.group_by or "auto",
        trace_format=spec.trace_format,
        places={key: document.place_of((key,)) for key in document.data},
        notices=notices,
    )


def _find_version(key: str) -> AgentvVersion:
    return "v4" if key == "tests" else "seed"


def _find_threshold(spec: EvalFile, overrides: Overrides) -> float:
    given = spec.own_threshold if overrides.threshold is None else overrides.threshold
    return PASS_SCORE if given is None else given


def _list_names(cases: tuple[EvalFileCase, ...]) -> tuple[str, ...]:
    names = (each.identity.name for case in cases for each in case.evaluators)
    return tuple(dict.fromkeys(names))


def _select_evaluators(
    cases: tuple[EvalFileCase, ...], overrides: Overrides
) -> tuple[EvalFileCase, ...]:
    """Keep the evaluators selected by ``--only``; cases without any are left out."""
    if not overrides.only:
        return cases
    kept = (
        replace(
            case, evaluators=tuple(e for e in case.evaluators if e.identity.name in overrides.only)
        )
        for case in cases
    )
    return tuple(case for case in kept if case.evaluators)


def _select_cases(
    cases: tuple[EvalFileCase, ...], data: JsonObject, key: str, overrides: Overrides
) -> tuple[EvalFileCase, ...]:
    """Leave cases without evaluators that ``--case`` or ``--tag`` do not select.

    Recorded outputs still belong to them.
    """
    if not (overrides.cases or overrides.tags):
        return cases
    listed = data[key]
    own = {
        each.get("id"): _list_tags(each)
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, Mapping)
    }
    shared = _list_tags(data)

    def is_selected(case_id: str) -> bool:
        named = not overrides.cases or matches_any(overrides.cases, case_id)
        return named and {*overrides.tags} <= {*shared, *own.get(case_id, ())}

    return tuple(
        each if is_selected(each.eval_case.id) else replace(each, evaluators=()) for each in cases
    )


def _list_tags(part: JsonObject) -> tuple[str, ...]:
    tags = part.get("tags")
    listed = tags if isinstance(tags, list) else (tags,)
    return tuple(each for each in listed if isinstance(each, str))


def _find_duplicate_lists(keys: list[str], document: YamlDocument) -> list[Problem]:
    if len(keys) == 1:
        return []
    both = f"`{keys[0]}` and `{keys[1]}`"
    return [
        Problem(
            message=f"the file has two lists of cases: {both}",
            place=document.place_of((keys[1],), key=True),
            hint="merge them into one list",
        )
    ]


def _find_ignored_options(overrides: Overrides, document: YamlDocument) -> Iterator[Problem]:
    """Report options that do not apply to the evaluators of eval files."""
    if overrides.metrics:
        yield Problem(
            message="--metric has no effect on eval files",
            place=Place(file=document.file),
            hint="add evaluators to the file",
            severity="warning",
        )
    if overrides.trajectory_match_type is not None:
        yield Problem(
            message="--trajectory-match-type has no effect on eval files",
            place=Place(file=document.file),
            hint="set `mode` in its `tool_trajectory` evaluators",
            severity="warning",
        )


def _find_unknown_gate_names(
    spec: EvalFile, names: tuple[str, ...], document: YamlDocument
) -> list[Problem]:
    return [
        Problem(
            message=f"`gate.evaluators` names unknown evaluator {quote_name(name)}",
            place=document.place_of(("gate", "evaluators", name), key=True),
            hint=suggest_name(name, names)
            or (f"known evaluators: {', '.join(names)}" if names else None),
        )
        for name in spec.gate.evaluators
        if name not in names
    ]
