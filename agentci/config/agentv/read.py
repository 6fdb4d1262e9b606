"""An eval file as cases, evaluators and a gate, ready to be run."""

from collections.abc import Iterator, Mapping

from pydantic import ValidationError

from agentci._util.text.suggest import did_you_mean, one_of, quoted
from agentci.config.agentv.assemble import assembled
from agentci.config.agentv.cases import CaseReader
from agentci.config.agentv.evaluators import JudgeReader
from agentci.config.agentv.file_references import Files
from agentci.config.agentv.gate import policy_of
from agentci.config.agentv.ignored_keys import KeyReader
from agentci.config.agentv.models import EvalFile
from agentci.config.agentv.target import TargetReader
from agentci.config.detect import CASE_KEYS
from agentci.config.overrides import Overrides
from agentci.config.schema_errors import breaches
from agentci.config.suite import JudgedSample, Suite
from agentci.config.validate import in_order
from agentci.config.yaml_document import YamlDocument
from agentci.errors import InputError
from agentci.evaluators.agentv.agentv_evaluator import Era
from agentci.evaluators.agentv.verdict import PASS
from agentci.evaluators.judge_config import Judges
from agentci.model.place import Place
from agentci.model.policy import GatePolicy
from agentci.model.problem import Problem
from agentci.model.values import replace


def read_eval_file(
    document: YamlDocument, overrides: Overrides, files: Files, *, variables: Mapping[str, str]
) -> Suite:
    """Make an eval file ready to be run.

    Args:
        files: finds those that the file refers to.
        variables: of the environment, which files of AgentV 4 may name.

    Raises:
        InputError: with all problems of the file.
    """
    document = assembled(document, files, variables=variables)
    try:
        spec = EvalFile.model_validate(document.data)
    except ValidationError as error:
        schema = EvalFile.model_json_schema()
        found = breaches(document, schema, error, at=(), noun="eval file")
        raise InputError(in_order([*document.problems, *found])) from None
    keys = [key for key in CASE_KEYS if key in document.data]
    judges = JudgeReader(
        document=document,
        files=files,
        era=_era(keys[0]),
        line=_line(spec, overrides),
        wire=spec.wire,
        judges=Judges(
            payer=document.file,
            folder=files.folder(None, Place(file=document.file)),
            shared=spec.judge,
            model=overrides.judge_model,
        ),
    )
    look = KeyReader(document=document)
    reader = CaseReader(
        document=document,
        keys=look,
        files=files,
        judges=judges,
        looks_at_cases=spec.gate.cases is not None,
        line=overrides.threshold,
    )
    samples = reader.listed(keys[0])
    look.of_file()
    target = TargetReader(document=document, files=files)
    agent, trials = target.agent(), target.trials()
    target.of_cases(keys[0])
    problems = [*document.problems, *reader.problems, *judges.problems, *look.problems]
    problems += target.problems
    problems += _listed_twice(keys, document)
    problems += _without_effect(overrides, document)
    names = _names(samples)
    problems += _unknown_bars(spec, names, document)
    if any(problem.severity == "error" for problem in problems):
        raise InputError(in_order(problems))
    samples = _selected(samples, overrides)
    policy = policy_of(spec.gate, _names(samples), vital=judges.vital, line=judges.line)
    suite = _suite(spec, document, samples, policy, names=names, notices=in_order(problems))
    return replace(suite, agent=agent, trials=trials)


def _suite(
    spec: EvalFile,
    document: YamlDocument,
    samples: tuple[JudgedSample, ...],
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
        samples=samples,
        traces=spec.globs,
        group_by=spec.group_by or "auto",
        trace_format=spec.trace_format,
        places={key: document.place_of((key,)) for key in document.data},
        notices=notices,
    )


def _era(key: str) -> Era:
    return "v4" if key == "tests" else "seed"


def _line(spec: EvalFile, overrides: Overrides) -> float:
    """The score that passes: of the command line, else of the file, else AgentV's."""
    given = spec.own_line if overrides.threshold is None else overrides.threshold
    return PASS if given is None else given


def _names(samples: tuple[JudgedSample, ...]) -> tuple[str, ...]:
    names = (each.identity.name for sample in samples for each in sample.evaluators)
    return tuple(dict.fromkeys(names))


def _selected(samples: tuple[JudgedSample, ...], overrides: Overrides) -> tuple[JudgedSample, ...]:
    """The cases with the evaluators that are wanted; those without any are left out."""
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


def _listed_twice(keys: list[str], document: YamlDocument) -> list[Problem]:
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


def _without_effect(overrides: Overrides, document: YamlDocument) -> Iterator[Problem]:
    """Options that are for other evaluators than those of eval files."""
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


def _unknown_bars(spec: EvalFile, names: tuple[str, ...], document: YamlDocument) -> list[Problem]:
    bars: Mapping[str, object] = spec.gate.evaluators
    return [
        Problem(
            message=f"there is no evaluator {quoted(name)} for the gate to check",
            place=document.place_of(("gate", "evaluators", name), key=True),
            hint=did_you_mean(name, names) or (f"there is {one_of(names)}" if names else None),
        )
        for name in bars
        if name not in names
    ]
