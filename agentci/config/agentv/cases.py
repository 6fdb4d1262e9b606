"""The cases of an eval file, each with what judges it."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from pydantic import ValidationError

from agentci._util.text.suggest import did_you_mean, quoted
from agentci.config.agentv.conversations import ConversationReader, vital_parts
from agentci.config.agentv.evaluators import RUBRICS, JudgeReader
from agentci.config.agentv.file_references import Files
from agentci.config.agentv.ignored_keys import KeyReader
from agentci.config.agentv.messages import MessageReader
from agentci.config.agentv.models import (
    OF_EXECUTION,
    SEED_LISTS,
    TEMPLATE_KEY,
    V4_LISTS,
    CaseSpec,
)
from agentci.config.schema_errors import breaches
from agentci.config.suite import JudgedSample
from agentci.config.yaml_document import YamlDocument
from agentci.config.yaml_nodes import KeyPath
from agentci.errors import InputError
from agentci.evaluators.agentv.agentv_evaluator import Judge
from agentci.evaluators.agentv.entries.llm_judge_entry import VOCABULARY
from agentci.evaluators.agentv.llm_judge import LlmJudge
from agentci.model.json import Json, JsonObject
from agentci.model.problem import Problem
from agentci.model.sample import Sample

EXPECTED: Final = ("expected_messages", "expected_output")


class CaseReader(Struct, kw_only=True):
    """Reads the cases of one eval file.

    Attributes:
        keys: looks at their keys.
        judges: reads their evaluators.
        looks_at_cases: whether the gate holds whole cases against one score.
        line: the score that passes, whatever cases say; None where they may say it.
        problems: what is wrong with them, their evaluators aside.
        template: how models are asked about cases that do not say, once they are read.
    """

    document: YamlDocument
    files: Files
    keys: KeyReader
    judges: JudgeReader
    looks_at_cases: bool
    line: float | None
    problems: list[Problem] = field(default_factory=list)
    template: str = ""

    def listed(self, key: str) -> tuple[JudgedSample, ...]:
        """The cases below ``key``, those that are as they should be."""
        cases = self.document.value((key,))
        if not isinstance(cases, list) or not cases:
            # Cases that stand in other files may be missing because those are broken.
            if not any(each.severity == "error" for each in self.document.problems):
                self._complain(f"{key} must be a list with at least one case", (key,))
            return ()
        self.template = self._template(())
        read: dict[str, JudgedSample] = {}
        ids = [_id_of(each) for each in cases]
        for index in range(len(cases)):
            case = self._case((key, index), ids)
            if case is None:
                continue
            if case.sample.id in read:
                message = f"two cases have the id {quoted(case.sample.id)}"
                hint = f"the first is {read[case.sample.id].sample.place}; give one another id"
                self._complain(message, (key, index, "id"), hint=hint)
            read.setdefault(case.sample.id, case)
        return tuple(read.values())

    def _case(self, at: KeyPath, ids: Sequence[str]) -> JudgedSample | None:
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
        self.keys.of_case(value, at)
        self._look_at_dependencies(spec, at, ids)
        messages = MessageReader(document=self.document, files=self.files)
        asked = self._asked(spec, at, messages)
        line = self._line(spec, at)
        evaluators: tuple[Judge, ...] = self._evaluators(spec, at, line=line)
        if spec.turns is not None:
            reader = ConversationReader(
                document=self.document,
                keys=self.keys,
                messages=messages,
                judges_of=lambda part: self._first_list(part, line),
                by_default=lambda: self.judges.by_default(line=line),
                looks_at_cases=self.looks_at_cases,
            )
            talk = reader.talk(spec, at, asked)
            asked, evaluators = talk.begun, reader.judges(talk, at, evaluators)
            self.judges.vital |= vital_parts(evaluators, self.judges.vital)
            self.problems += reader.problems
        if not evaluators and not any(p.severity == "error" for p in self.judges.problems):
            self._complain(
                f"nothing judges the case {quoted(spec.id)}: AgentV would ask a language model",
                at,
                hint="list evaluators in the case or for the whole file; or say what a good answer "
                "does, as `criteria`, and which model judges, as `judge: ...` at the top",
            )
        sample = self._sample(spec, at, asked, messages)
        self.problems += messages.problems
        self._see_measures(sample, evaluators, at)
        return JudgedSample(sample=sample, evaluators=evaluators)

    def _see_measures(self, sample: Sample, evaluators: tuple[Judge, ...], at: KeyPath) -> None:
        """A model that nobody tells what is good says whatever it likes."""
        if sample.criteria or sample.expected_messages or sample.judge_template:
            return
        for judge in evaluators:
            if isinstance(judge, LlmJudge) and judge.is_told_by_cases:
                name, hint = quoted(judge.identity.name), "as `criteria` or `expected_output`"
                message = f"{name} has nothing to judge the case {quoted(sample.id)} by"
                self._complain(message, at, hint=f"say what a good answer does, {hint}")

    def _asked(self, spec: CaseSpec, at: KeyPath, reader: MessageReader) -> tuple[JsonObject, ...]:
        key = _first(spec, "input_messages", "input")
        asked = () if key is None else reader.asked((*at, key))
        if not asked and not reader.problems and spec.turns is None:
            self._complain(f"the case {quoted(spec.id)} asks nothing", at, hint="add `input: ...`")
        return asked

    def _sample(
        self, spec: CaseSpec, at: KeyPath, asked: tuple[JsonObject, ...], reader: MessageReader
    ) -> Sample:
        key = _first(spec, *EXPECTED)
        expected = () if key is None else reader.expected((*at, key))
        return Sample(
            id=spec.id,
            criteria=spec.any_criteria,
            input_messages=asked,
            expected_messages=expected,
            guideline_files=tuple(reader.guideline_files),
            input_files=tuple(reader.input_files),
            input_texts=reader.input_texts,
            metadata=spec.metadata or {},
            judge_template=self._template(at) or self.template,
            place=self.document.place_of(at),
        )

    def _template(self, at: KeyPath) -> str:
        """How models are asked, as a case or the file says; empty where it does not."""
        places = ((TEMPLATE_KEY,), (OF_EXECUTION, TEMPLATE_KEY))
        found = [keys for keys in places if isinstance(self.document.value((*at, *keys)), str)]
        for keys in found[1:]:
            self.keys.pass_over((*at, *keys), ".".join(keys), first=TEMPLATE_KEY)
        if not found:
            return ""
        path = (*at, *found[0])
        given = str(self.document.value(path))
        try:
            return self.judges.templates.read(given, self.document.place_of(path), VOCABULARY)
        except InputError as error:
            self.problems += error.problems
            return ""

    def _line(self, spec: CaseSpec, at: KeyPath) -> float:
        """The score that passes in one case."""
        if spec.own_line is not None and self.looks_at_cases:
            inside = spec.execution is not None and spec.execution.threshold is not None
            where = ("execution", "threshold") if inside else ("threshold",)
            self._complain(
                "the gate holds all cases against one score, not against the threshold of a case",
                (*at, *where),
                hint="leave `cases` of the gate out, or give the evaluators a `min_score`",
            )
        given = spec.own_line if self.line is None else self.line
        return self.judges.line if given is None else given

    def _evaluators(self, spec: CaseSpec, at: KeyPath, *, line: float) -> tuple[Judge, ...]:
        """What judges a case: by its own criteria first, and a model where nothing else does."""
        own = self.judges.by_rubrics((*at, RUBRICS), line=line)
        listed = self._listed(spec, at, line=line)
        if own and own[0].identity.name in {judge.identity.name for judge in listed}:
            name = quoted(own[0].identity.name)
            message = f"the `rubrics` of the case {quoted(spec.id)} are an evaluator called {name}"
            self._complain(message, (*at, RUBRICS), hint="give the other one of that name another")
        has_measure = spec.any_criteria or _first(spec, *EXPECTED) is not None
        if own or listed or spec.turns is not None or not has_measure:
            return (*own, *listed)
        return self.judges.by_default(line=line)

    def _listed(self, spec: CaseSpec, at: KeyPath, *, line: float) -> tuple[Judge, ...]:
        """AgentV 4 adds the file's evaluators to the case's; before, the case's took their place.

        The first versions forgot the file's, too, where a case has an ``execution`` without any
        evaluators; a judge that goes missing is not missed by anybody, so that is not done here.
        """
        if self.judges.era == "seed":
            return self._first_list(at, line) or self._first_list((), line)
        skips = spec.execution is not None and spec.execution.skip_defaults
        own = self._first_list(at, line)
        shared = () if skips else self._first_list((), line)
        names = {judge.identity.name for judge in own}
        for judge in shared:
            if judge.identity.name in names:
                name = quoted(judge.identity.name)
                message = f"two evaluators of the case {quoted(spec.id)} are called {name}"
                self._complain(message, at, hint="give one of them another name")
        return (*own, *shared)

    def _first_list(self, at: KeyPath, line: float) -> tuple[Judge, ...]:
        lists = SEED_LISTS if self.judges.era == "seed" else V4_LISTS
        given = [keys for keys in lists if self.document.value((*at, *keys)) is not None]
        for keys in given[1:]:
            self.keys.pass_over((*at, *keys), ".".join(keys), first=".".join(given[0]))
        return self.judges.listed((*at, *given[0]), line=line) if given else ()

    def _look_at_dependencies(self, spec: CaseSpec, at: KeyPath, ids: Sequence[str]) -> None:
        """AgentV runs nothing where a case waits for one that is not there."""
        for index, named in enumerate(spec.depends_on):
            if named == spec.id or named not in ids:
                what = "itself" if named == spec.id else f"{quoted(named)}, which is no case"
                others = [each for each in ids if each and each != spec.id]
                self._complain(
                    f"the case {quoted(spec.id)} depends on {what}",
                    (*at, "depends_on", index),
                    hint=did_you_mean(named, others),
                )

    def _complain(self, message: str, at: KeyPath, *, hint: str | None = None) -> None:
        place = self.document.place_of(at)
        self.problems.append(Problem(message=message, place=place, hint=hint))


def _id_of(case: Json) -> str:
    """The id of a case; nothing where it has none that could be one."""
    given = case.get("id") if isinstance(case, Mapping) else None
    return given if isinstance(given, str) else ""


def _first(spec: CaseSpec, *keys: str) -> str | None:
    """The first of ``keys`` that has a value."""
    return next((key for key in keys if getattr(spec, key) is not None), None)
