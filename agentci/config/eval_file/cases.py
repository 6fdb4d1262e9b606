"""The cases of an eval file, each with what judges it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import ValidationError

from agentci.config.eval_file.files import Files
from agentci.config.eval_file.judges import RUBRICS, JudgeReader
from agentci.config.eval_file.messages import MessageReader, Path
from agentci.config.eval_file.models import (
    SEED_LISTS,
    TEMPLATE_KEY,
    UNREAD,
    UNREAD_AT_THE_TOP,
    V4_LISTS,
    WITHOUT_EFFECT,
    CaseSpec,
)
from agentci.config.suite import JudgedSample
from agentci.config.violations import breaches
from agentci.config.yaml_document import YamlDocument
from agentci.dialects.agentv.entries.llm_judge import VOCABULARY
from agentci.dialects.agentv.judge import Judge
from agentci.errors import InputError
from agentci.model.json import JsonObject
from agentci.model.problem import Problem
from agentci.model.sample import Sample
from agentci.text.names import did_you_mean, quoted

EXPECTED: Final = ("expected_messages", "expected_output")


@dataclass(slots=True, kw_only=True)
class CaseReader:
    """Reads the cases of one eval file.

    Attributes:
        judges: reads their evaluators.
        problems: what is wrong with them, their evaluators aside.
        template: how models are asked about cases that do not say, once they are read.
    """

    document: YamlDocument
    files: Files
    judges: JudgeReader
    problems: list[Problem] = field(default_factory=list)
    template: str = ""

    def listed(self, key: str) -> tuple[JudgedSample, ...]:
        """The cases below ``key``, those that are as they should be."""
        cases = self.document.value((key,))
        if not isinstance(cases, list) or not cases:
            self._complain(f"{key} must be a list of cases", (key,))
            return ()
        self.template = self._template(())
        read: dict[str, JudgedSample] = {}
        for index in range(len(cases)):
            case = self._case((key, index))
            if case is None:
                continue
            if case.sample.id in read:
                message = f"two cases have the id {quoted(case.sample.id)}"
                self._complain(message, (key, index, "id"), hint="give one of them another id")
            read.setdefault(case.sample.id, case)
        return tuple(read.values())

    def _case(self, at: Path) -> JudgedSample | None:
        value = self.document.value(at)
        if not isinstance(value, Mapping):
            self._complain("each case must be a mapping with `id` and `input`", at)
            return None
        try:
            spec = CaseSpec.model_validate(value)
        except ValidationError as error:
            schema = CaseSpec.model_json_schema()
            self.problems += breaches(self.document, schema, error, at=at, noun="case")
            return None
        self._look_at_keys(value, at)
        if spec.execution is not None and spec.execution.threshold is not None:
            self._complain(
                "the threshold of a single case is not read by this version of agentci",
                (*at, "execution", "threshold"),
                hint="give its evaluators a `min_score`, or the file a threshold",
            )
        evaluators = self._evaluators(spec, at)
        if not evaluators and not any(p.severity == "error" for p in self.judges.problems):
            self._complain(
                f"nothing judges the case {quoted(spec.id)}: AgentV would ask a language model",
                at,
                hint="list evaluators in the case or for the whole file; or say what a good answer "
                "does, as `criteria`, and which model judges, as `judge: ...` at the top",
            )
        return JudgedSample(sample=self._sample(spec, at), evaluators=evaluators)

    def _sample(self, spec: CaseSpec, at: Path) -> Sample:
        reader = MessageReader(document=self.document, files=self.files)
        key = _first(spec, "input_messages", "input")
        asked = () if key is None else reader.asked((*at, key))
        if not asked and not reader.problems:
            self._complain(f"the case {quoted(spec.id)} asks nothing", at, hint="add `input: ...`")
        key = _first(spec, *EXPECTED)
        expected = () if key is None else reader.expected((*at, key))
        self.problems += reader.problems
        return Sample(
            id=spec.id,
            criteria=_criteria_of(spec),
            input_messages=asked,
            expected_messages=expected,
            guideline_files=tuple(reader.guideline_files),
            input_files=tuple(reader.input_files),
            input_texts=reader.input_texts,
            metadata=spec.metadata or {},
            judge_template=self._template(at) or self.template,
            place=self.document.place_of(at),
        )

    def _template(self, at: Path) -> str:
        """How models are asked, as a case or the file says; empty where it does not."""
        path = (*at, TEMPLATE_KEY)
        given = self.document.value(path)
        if not isinstance(given, str):
            return ""
        try:
            return self.judges.templates.read(given, self.document.place_of(path), VOCABULARY)
        except InputError as error:
            self.problems += error.problems
            return ""

    def _evaluators(self, spec: CaseSpec, at: Path) -> tuple[Judge, ...]:
        """What judges a case: by its own criteria first, and a model where nothing else does."""
        own = self.judges.by_rubrics((*at, RUBRICS))
        listed = self._listed(spec, at)
        if own and own[0].identity.name in {judge.identity.name for judge in listed}:
            name = quoted(own[0].identity.name)
            message = f"the `rubrics` of the case {quoted(spec.id)} are an evaluator called {name}"
            self._complain(message, (*at, RUBRICS), hint="give the other one of that name another")
        has_measure = _criteria_of(spec) or _first(spec, *EXPECTED) is not None
        return (*own, *listed) or (self.judges.by_default() if has_measure else ())

    def _listed(self, spec: CaseSpec, at: Path) -> tuple[Judge, ...]:
        """AgentV 4 adds the file's evaluators to the case's; before, the case's took their place.

        The first versions forgot the file's, too, where a case has an ``execution`` without any
        evaluators; a judge that goes missing is not missed by anybody, so that is not done here.
        """
        if self.judges.era == "seed":
            return self._first_list(at) or self._first_list(())
        skips = spec.execution is not None and spec.execution.skip_defaults
        own = self._first_list(at)
        shared = () if skips else self._first_list(())
        names = {judge.identity.name for judge in own}
        for judge in shared:
            if judge.identity.name in names:
                name = quoted(judge.identity.name)
                message = f"two evaluators of the case {quoted(spec.id)} are called {name}"
                self._complain(message, at, hint="give one of them another name")
        return (*own, *shared)

    def _first_list(self, at: Path) -> tuple[Judge, ...]:
        lists = SEED_LISTS if self.judges.era == "seed" else V4_LISTS
        for keys in lists:
            path = (*at, *keys)
            if self.document.value(path) is not None:
                return self.judges.listed(path)
        return ()

    def _look_at_keys(self, value: JsonObject, at: Path) -> None:
        known = [*CaseSpec.model_fields, "assert", TEMPLATE_KEY, *WITHOUT_EFFECT]
        self.problems += key_problems(value, known, self.document, at)

    def _complain(self, message: str, at: Path, *, hint: str | None = None) -> None:
        place = self.document.place_of(at)
        self.problems.append(Problem(message=message, place=place, hint=hint))


def key_problems(
    value: JsonObject, known: list[str], document: YamlDocument, at: Path
) -> Iterator[Problem]:
    """Keys that nobody reads: a warning, since AgentV passes them over; others change too much."""
    unread = UNREAD if at else UNREAD | UNREAD_AT_THE_TOP
    for key in value:
        if key in unread:
            yield Problem(
                message=f"`{key}` is not read by this version of agentci",
                place=document.place_of((*at, key), key=True),
                hint=unread[key],
            )
        elif key not in known and not key.startswith("x-"):
            yield Problem(
                message=f"unknown key {quoted(key)}, which has no effect",
                place=document.place_of((*at, key), key=True),
                hint=did_you_mean(key, known),
                severity="warning",
            )


def _criteria_of(spec: CaseSpec) -> str:
    told = (spec.criteria, spec.expected_outcome, spec.outcome)
    return next((each for each in told if each), "")


def _first(spec: CaseSpec, *keys: str) -> str | None:
    """The first of ``keys`` that has a value."""
    return next((key for key in keys if getattr(spec, key) is not None), None)
