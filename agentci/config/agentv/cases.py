"""Read the cases of an eval file, with their conversations and evaluators."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from pydantic import ValidationError

from agentci._util.text.suggest import quote_name, suggest_name
from agentci.config.agentv.evaluators import RUBRICS_TYPE, EvaluatorReader
from agentci.config.agentv.files import FileResolver
from agentci.config.agentv.ignored_keys import KeyChecker
from agentci.config.agentv.messages import MessageReader
from agentci.config.agentv.models import (
    EXECUTION_KEY,
    SEED_LIST_PATHS,
    TEMPLATE_KEY,
    V4_LIST_PATHS,
    CaseSpec,
    TurnSpec,
)
from agentci.config.agentv.schema import MEMBER_LIST_KEYS
from agentci.config.schema_errors import find_part_errors
from agentci.config.suite import EvalFileCase
from agentci.config.yaml_document import YamlDocument
from agentci.config.yaml_nodes import KeyPath
from agentci.errors import InputError
from agentci.evaluators.agentv.agentv_evaluator import AgentvEvaluator
from agentci.evaluators.agentv.conversation import (
    Conversation,
    ConversationEvaluator,
    ConversationTurn,
)
from agentci.evaluators.agentv.llm_judge import LlmJudge
from agentci.evaluators.agentv.llm_judge_entries import LLM_JUDGE_VOCABULARY
from agentci.model.case import AgentvCase
from agentci.model.json import Json, JsonObject
from agentci.model.problem import Problem, Severity
from agentci.model.values import replace


class ConversationReader(Struct, kw_only=True):
    """Reads the turns of one case.

    Attributes:
        read_turn_evaluators: reads the evaluators listed in the part at a path.
        read_default_evaluators: reads the evaluators of a turn that has an expected output and no
            list.
        gate_has_cases: whether the gate has a threshold for the mean score of whole cases.
        problems: errors in the turns, and warnings about settings without effect.
    """

    document: YamlDocument
    key_checker: KeyChecker
    messages: MessageReader
    read_turn_evaluators: Callable[[KeyPath], tuple[AgentvEvaluator, ...]]
    read_default_evaluators: Callable[[], tuple[AgentvEvaluator, ...]]
    gate_has_cases: bool
    problems: list[Problem] = field(default_factory=list)

    def read_conversation(
        self, spec: CaseSpec, at: KeyPath, opening: tuple[JsonObject, ...]
    ) -> Conversation:
        """Read the conversation of the case at ``at``; invalid turns are left out."""
        if spec.mode is None:
            hint = "add `mode: conversation`; without it AgentV passes them over"
            self._add_problem("turns belong to a conversation", (*at, "turns"), hint=hint)
        self._check_aggregation(spec, at)
        turns = (self._read_turn((*at, "turns", index)) for index in range(len(spec.turns or ())))
        return Conversation(
            preamble=opening,
            turns=tuple(turn for turn in turns if turn is not None),
            window=spec.window_size,
        )

    def read_evaluators(
        self, talk: Conversation, at: KeyPath, of_all: Sequence[AgentvEvaluator]
    ) -> tuple[AgentvEvaluator, ...]:
        """Read the evaluators of the turns, followed by ``of_all`` for the whole conversation.

        Each turn has the same total weight as the whole conversation. The mean over the case is
        then the same as in AgentV.
        """
        found: list[AgentvEvaluator] = []
        for turn in range(len(talk.turns)):
            path = (*at, "turns", turn)
            judges = self.read_turn_evaluators(path)
            lists = [
                key for key in MEMBER_LIST_KEYS if self.document.value((*path, key)) is not None
            ]
            if talk.turns[turn].expected_messages and not lists:
                judges = self.read_default_evaluators()
                if not judges:
                    self._add_problem(
                        f"nothing judges turn {turn + 1}: AgentV would ask a language model",
                        path,
                        hint="list `assertions` in the turn, leave out what is expected, or say "
                        "which model judges, as `judge: ...` at the top",
                    )
            found += _weight_evaluators(judges, talk, turn)
        return (*found, *_weight_evaluators(of_all, talk, None))

    def _read_turn(self, at: KeyPath) -> ConversationTurn | None:
        value = self.document.value(at)
        try:
            spec = TurnSpec.model_validate(value)
        except ValidationError as error:
            schema = TurnSpec.model_json_schema()
            self.problems += find_part_errors(self.document, schema, error, at=at, noun="turn")
            return None
        self.key_checker.check_turn(spec.model_dump(exclude_unset=True), at)
        return ConversationTurn(
            input_messages=self.messages.read_input((*at, "input")),
            expected_messages=self.messages.read_expected((*at, "expected_output")),
        )

    def _check_aggregation(self, spec: CaseSpec, at: KeyPath) -> None:
        place = (*at, "aggregation")
        if spec.aggregation != "mean" and self.gate_has_cases:
            self._add_problem(
                f"a gate over whole cases takes means, not `aggregation: {spec.aggregation}`",
                place,
                hint="leave `cases` of the gate out: then every turn has to pass",
            )
        elif spec.aggregation == "max":
            hint = "AgentV takes the best of them"
            self._add_problem("every turn has to pass", place, hint=hint, severity="warning")

    def _add_problem(
        self, message: str, at: KeyPath, *, hint: str, severity: Severity = "error"
    ) -> None:
        place = self.document.place_of(at)
        self.problems.append(Problem(message=message, place=place, hint=hint, severity=severity))


def _weight_evaluators(
    judges: Sequence[AgentvEvaluator], talk: Conversation, turn: int | None
) -> list[ConversationEvaluator]:
    """Make evaluators for one part of a conversation, with weights that sum to 1."""
    total = sum(judge.identity.weight for judge in judges)
    prefix = "" if turn is None else f"turn-{turn + 1}/"
    return [
        ConversationEvaluator(
            identity=replace(
                judge.identity,
                name=f"{prefix}{judge.identity.name}",
                weight=judge.identity.weight / total if total else 0.0,
            ),
            evaluator=judge,
            conversation=talk,
            turn=turn,
        )
        for judge in judges
    ]


def find_required_parts(judges: Sequence[AgentvEvaluator], vital: Collection[str]) -> set[str]:
    """The names of the turn and conversation evaluators whose entries set `required`.

    Args:
        vital: the names of entries that set `required`.
    """
    parts = (each for each in judges if isinstance(each, ConversationEvaluator))
    return {each.identity.name for each in parts if each.evaluator.identity.name in vital}


EXPECTED_KEYS: Final = ("expected_messages", "expected_output")


class CaseReader(Struct, kw_only=True):
    """Reads the cases of one eval file.

    Attributes:
        key_checker: reports unknown and ignored keys.
        evaluator_reader: reads the evaluators of the cases.
        gate_has_cases: whether the gate has one threshold for all cases.
        fixed_threshold: the threshold that replaces those of the cases; None to use theirs.
        problems: problems of the cases, except for those of their evaluators.
        template: the file's judge prompt, for cases without their own; set by ``read_cases``.
    """

    document: YamlDocument
    files: FileResolver
    key_checker: KeyChecker
    evaluator_reader: EvaluatorReader
    gate_has_cases: bool
    fixed_threshold: float | None
    problems: list[Problem] = field(default_factory=list)
    template: str = ""

    def read_cases(self, key: str) -> tuple[EvalFileCase, ...]:
        """Read the cases below ``key``; invalid cases are left out."""
        cases = self.document.value((key,))
        if not isinstance(cases, list) or not cases:
            # The list may be empty because the files with the cases have errors.
            if not any(each.severity == "error" for each in self.document.problems):
                self._add_problem(f"{key} must be a list with at least one case", (key,))
            return ()
        self.template = self._find_template(())
        read: dict[str, EvalFileCase] = {}
        ids = [_find_case_id(each) for each in cases]
        for index in range(len(cases)):
            case = self._read_case((key, index), ids)
            if case is None:
                continue
            if case.eval_case.id in read:
                message = f"two cases have the id {quote_name(case.eval_case.id)}"
                hint = (
                    f"the first is {read[case.eval_case.id].eval_case.place}; give one another id"
                )
                self._add_problem(message, (key, index, "id"), hint=hint)
            read.setdefault(case.eval_case.id, case)
        return tuple(read.values())

    def _read_case(self, at: KeyPath, ids: Sequence[str]) -> EvalFileCase | None:
        value = self.document.value(at)
        if not isinstance(value, Mapping):
            self._add_problem("each case must be a mapping with `id` and `input`", at)
            return None
        try:
            spec = CaseSpec.model_validate(value)
        except ValidationError as error:
            schema = CaseSpec.model_json_schema()
            self.problems += find_part_errors(self.document, schema, error, at=at, noun="case")
            return None
        self.key_checker.check_case(value, at)
        self._check_dependencies(spec, at, ids)
        messages = MessageReader(document=self.document, files=self.files)
        asked = self._read_input(spec, at, messages)
        line = self._find_threshold(spec, at)
        evaluators: tuple[AgentvEvaluator, ...] = self._read_evaluators(spec, at, line=line)
        if spec.turns is not None:
            reader = ConversationReader(
                document=self.document,
                key_checker=self.key_checker,
                messages=messages,
                read_turn_evaluators=lambda part: self._read_first_list(part, line),
                read_default_evaluators=lambda: self.evaluator_reader.read_default(line=line),
                gate_has_cases=self.gate_has_cases,
            )
            talk = reader.read_conversation(spec, at, asked)
            asked, evaluators = talk.first_input, reader.read_evaluators(talk, at, evaluators)
            self.evaluator_reader.required_names |= find_required_parts(
                evaluators, self.evaluator_reader.required_names
            )
            self.problems += reader.problems
        if not evaluators and not any(
            p.severity == "error" for p in self.evaluator_reader.problems
        ):
            self._add_problem(
                f"nothing judges the case {quote_name(spec.id)}: AgentV would ask a language model",
                at,
                hint="list evaluators in the case or for the whole file; or say what a good answer "
                "does, as `criteria`, and which model judges, as `judge: ...` at the top",
            )
        sample = self._make_eval_case(spec, at, asked, messages)
        self.problems += messages.problems
        self._check_criteria(sample, evaluators, at)
        return EvalFileCase(eval_case=sample, evaluators=evaluators)

    def _check_criteria(
        self, sample: AgentvCase, evaluators: tuple[AgentvEvaluator, ...], at: KeyPath
    ) -> None:
        """Report judge evaluators without criteria: their scores would be arbitrary."""
        if sample.criteria or sample.expected_messages or sample.judge_template:
            return
        for judge in evaluators:
            if isinstance(judge, LlmJudge) and judge.needs_case_criteria:
                name, hint = quote_name(judge.identity.name), "as `criteria` or `expected_output`"
                message = f"{name} has nothing to judge the case {quote_name(sample.id)} by"
                self._add_problem(message, at, hint=f"say what a good answer does, {hint}")

    def _read_input(
        self, spec: CaseSpec, at: KeyPath, reader: MessageReader
    ) -> tuple[JsonObject, ...]:
        key = _find_first_value(spec, "input_messages", "input")
        asked = () if key is None else reader.read_input((*at, key))
        if not asked and not reader.problems and spec.turns is None:
            self._add_problem(
                f"the case {quote_name(spec.id)} asks nothing", at, hint="add `input: ...`"
            )
        return asked

    def _make_eval_case(
        self, spec: CaseSpec, at: KeyPath, asked: tuple[JsonObject, ...], reader: MessageReader
    ) -> AgentvCase:
        key = _find_first_value(spec, *EXPECTED_KEYS)
        expected = () if key is None else reader.read_expected((*at, key))
        return AgentvCase(
            id=spec.id,
            criteria=spec.any_criteria,
            input_messages=asked,
            expected_messages=expected,
            guideline_files=tuple(reader.guideline_files),
            input_files=tuple(reader.input_files),
            input_texts=reader.input_texts,
            metadata=spec.metadata or {},
            judge_template=self._find_template(at) or self.template,
            place=self.document.place_of(at),
        )

    def _find_template(self, at: KeyPath) -> str:
        """The judge prompt of a case, or of the file if ``at`` is empty; "" if it is not set."""
        places = ((TEMPLATE_KEY,), (EXECUTION_KEY, TEMPLATE_KEY))
        found = [keys for keys in places if isinstance(self.document.value((*at, *keys)), str)]
        for keys in found[1:]:
            self.key_checker.warn_ignored_key((*at, *keys), ".".join(keys), first=TEMPLATE_KEY)
        if not found:
            return ""
        path = (*at, *found[0])
        given = str(self.document.value(path))
        try:
            return self.evaluator_reader.templates.read(
                given, self.document.place_of(path), LLM_JUDGE_VOCABULARY
            )
        except InputError as error:
            self.problems += error.problems
            return ""

    def _find_threshold(self, spec: CaseSpec, at: KeyPath) -> float:
        """The threshold for the scores of one case."""
        if spec.own_threshold is not None and self.gate_has_cases:
            inside = spec.execution is not None and spec.execution.threshold is not None
            where = ("execution", "threshold") if inside else ("threshold",)
            self._add_problem(
                "the gate holds all cases against one score, not against the threshold of a case",
                (*at, *where),
                hint="leave `cases` of the gate out, or give the evaluators a `min_score`",
            )
        given = spec.own_threshold if self.fixed_threshold is None else self.fixed_threshold
        return self.evaluator_reader.default_threshold if given is None else given

    def _read_evaluators(
        self, spec: CaseSpec, at: KeyPath, *, line: float
    ) -> tuple[AgentvEvaluator, ...]:
        """Read the evaluators of a case: its rubrics, then its lists, else the default judge."""
        own = self.evaluator_reader.read_rubrics((*at, RUBRICS_TYPE), line=line)
        listed = self._read_lists(spec, at, line=line)
        if own and own[0].identity.name in {judge.identity.name for judge in listed}:
            name = quote_name(own[0].identity.name)
            message = (
                f"the `rubrics` of the case {quote_name(spec.id)} are an evaluator called {name}"
            )
            self._add_problem(
                message, (*at, RUBRICS_TYPE), hint="give the other one of that name another"
            )
        has_measure = spec.any_criteria or _find_first_value(spec, *EXPECTED_KEYS) is not None
        if own or listed or spec.turns is not None or not has_measure:
            return (*own, *listed)
        return self.evaluator_reader.read_default(line=line)

    def _read_lists(
        self, spec: CaseSpec, at: KeyPath, *, line: float
    ) -> tuple[AgentvEvaluator, ...]:
        """Read the evaluator lists of a case and of the file.

        In AgentV 4 the file's evaluators are added to those of the case. In earlier versions the
        case's list replaces the file's. The first versions also dropped the file's evaluators if a
        case had an ``execution`` without evaluators. agentci keeps them, because users could
        overlook a missing evaluator.
        """
        if self.evaluator_reader.era == "seed":
            return self._read_first_list(at, line) or self._read_first_list((), line)
        skips = spec.execution is not None and spec.execution.skip_defaults
        own = self._read_first_list(at, line)
        shared = () if skips else self._read_first_list((), line)
        names = {judge.identity.name for judge in own}
        for judge in shared:
            if judge.identity.name in names:
                name = quote_name(judge.identity.name)
                message = f"two evaluators of the case {quote_name(spec.id)} are called {name}"
                self._add_problem(message, at, hint="give one of them another name")
        return (*own, *shared)

    def _read_first_list(self, at: KeyPath, line: float) -> tuple[AgentvEvaluator, ...]:
        lists = SEED_LIST_PATHS if self.evaluator_reader.era == "seed" else V4_LIST_PATHS
        given = [keys for keys in lists if self.document.value((*at, *keys)) is not None]
        for keys in given[1:]:
            self.key_checker.warn_ignored_key(
                (*at, *keys), ".".join(keys), first=".".join(given[0])
            )
        return self.evaluator_reader.read_list((*at, *given[0]), line=line) if given else ()

    def _check_dependencies(self, spec: CaseSpec, at: KeyPath, ids: Sequence[str]) -> None:
        """Report dependencies on missing cases; AgentV runs nothing then."""
        for index, named in enumerate(spec.depends_on):
            if named == spec.id or named not in ids:
                what = "itself" if named == spec.id else f"{quote_name(named)}, which is no case"
                others = [each for each in ids if each and each != spec.id]
                self._add_problem(
                    f"the case {quote_name(spec.id)} depends on {what}",
                    (*at, "depends_on", index),
                    hint=suggest_name(named, others),
                )

    def _add_problem(self, message: str, at: KeyPath, *, hint: str | None = None) -> None:
        place = self.document.place_of(at)
        self.problems.append(Problem(message=message, place=place, hint=hint))


def _find_case_id(case: Json) -> str:
    """The id of a case; empty if it has no valid one."""
    given = case.get("id") if isinstance(case, Mapping) else None
    return given if isinstance(given, str) else ""


def _find_first_value(spec: CaseSpec, *keys: str) -> str | None:
    """The first of ``keys`` that is set."""
    return next((key for key in keys if getattr(spec, key) is not None), None)
