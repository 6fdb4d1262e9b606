"""Read the cases of an eval file, with their conversations and evaluators."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from agentci._util.text.suggest import quote_name, suggest_name
from agentci.config.agentv.evaluators import RUBRICS_TYPE, EvaluatorReader, make_unique_name
from agentci.config.agentv.files import FileResolver
from agentci.config.agentv.models import (
    EXECUTION_KEY,
    SEED_LIST_PATHS,
    TEMPLATE_KEY,
    V4_LIST_PATHS,
    CaseSpec,
    MessageSpec,
    TurnSpec,
)
from agentci.config.agentv.schema import MEMBER_LIST_KEYS, KeyChecker
from agentci.config.suite import EvalFileCase
from agentci.config.validate import read_part
from agentci.config.yaml_document import YamlDocument
from agentci.config.yaml_nodes import KeyPath
from agentci.errors import InputError
from agentci.evaluators.agentv.agentv_evaluator import AgentvEvaluator
from agentci.evaluators.agentv.conversation import (
    Conversation,
    ConversationEvaluator,
    ConversationTurn,
)
from agentci.evaluators.agentv.llm_judge import LLM_JUDGE_VOCABULARY, LlmJudge
from agentci.model.case import AgentvCase
from agentci.model.values import Json, JsonObject, Problem, Severity, replace

USER, ASSISTANT = "user", "assistant"


class MessageReader(Struct, kw_only=True):
    """Reads the messages of one case.

    Attributes:
        problems: errors in the messages.
        guideline_files, input_files: absolute paths of the files that input messages refer to.
        input_texts, input_paths: contents and paths of ``input_files``, by their names in the
            messages.
    """

    document: YamlDocument
    files: FileResolver
    problems: list[Problem] = field(default_factory=list)
    guideline_files: list[str] = field(default_factory=list)
    input_files: list[str] = field(default_factory=list)
    input_texts: dict[str, str] = field(default_factory=dict)
    input_paths: dict[str, str] = field(default_factory=dict)

    def read_input(self, at: KeyPath) -> tuple[JsonObject, ...]:
        """Read the input messages at ``at``; parts that refer to files stay unchanged."""
        messages = self._read_messages(at, USER)
        for message, path in messages:
            for index, part in enumerate(_iter_parts(message)):
                self._attach_file(part, (*path, "content", index))
        return tuple(message for message, _ in messages)

    def read_expected(self, at: KeyPath) -> tuple[JsonObject, ...]:
        """Read the expected messages at ``at``, with the content of the files they refer to."""
        return tuple(self._expand_content(*each) for each in self._read_messages(at, ASSISTANT))

    def _read_messages(self, at: KeyPath, role: str) -> list[tuple[JsonObject, KeyPath]]:
        """The messages with their paths; a shorthand is expanded to a message with ``role``."""
        value = self.document.value(at)
        if isinstance(value, Mapping) and "role" in value:
            return [(value, at)] if self._is_message(value, at) else []
        if isinstance(value, list) and (role == USER or _starts_with_message(value)):
            numbered = [(each, (*at, index)) for index, each in enumerate(value)]
            return [(m, path) for m, path in numbered if self._is_message(m, path)]
        if isinstance(value, list):
            value = self._iter_mappings(value, at)
        return [] if value is None else [({"role": role, "content": value}, at)]

    def _iter_mappings(self, items: Sequence[Json], at: KeyPath) -> list[Json]:
        """The items of a shorthand that AgentV keeps."""
        kept: list[Json] = [each for each in items if isinstance(each, Mapping)]
        if len(kept) < len(items):
            self.problems.append(
                Problem(
                    message="only the mappings of a list are used as expected output, as in AgentV",
                    place=self.document.place_of(at),
                    hint="write the data as a mapping, or as the content of a message",
                    severity="warning",
                )
            )
        return kept

    def _is_message(self, value: Json, at: KeyPath) -> bool:
        message, problems = read_part(self.document, MessageSpec, at=at, noun="message", data=value)
        self.problems += problems
        if message is None:
            return False
        if message.content is None and message.tool_calls is None:
            self.problems.append(
                Problem(
                    message="a message has neither `content` nor `tool_calls`",
                    place=self.document.place_of(at),
                )
            )
            return False
        return True

    def _find_file_reference(self, part: JsonObject, at: KeyPath) -> str | None:
        """The file that a part of a message names; None if it is not a reference to a file."""
        if part.get("type") != "file":
            return None
        named = part.get("value")
        if not isinstance(named, str) or not named:
            self.problems.append(
                Problem(
                    message="a message part of type `file` needs `value`, a path",
                    place=self.document.place_of((*at, "value")),
                )
            )
            return None
        return named

    def _attach_file(self, part: JsonObject, at: KeyPath) -> None:
        named = self._find_file_reference(part, at)
        if named is None:
            return
        try:
            found = self.files.read(named, self.document.place_of((*at, "value")))
        except InputError as error:
            self.problems += error.problems
            return
        if found.is_guideline:
            self.guideline_files.append(found.path)
            return
        self.input_files.append(found.path)
        self.input_texts[named] = found.text
        self.input_paths[named] = found.path

    def _expand_content(self, message: JsonObject, at: KeyPath) -> JsonObject:
        if not isinstance(message.get("content"), list):
            return message
        parts = enumerate(_iter_parts(message))
        return {**message, "content": [self._expand_part(p, (*at, "content", i)) for i, p in parts]}

    def _expand_part(self, part: JsonObject, at: KeyPath) -> JsonObject:
        named = self._find_file_reference(part, at)
        if named is None:
            return part
        try:
            found = self.files.read(named, self.document.place_of((*at, "value")))
        except InputError as error:
            self.problems += error.problems
            return part
        return {
            "type": "file",
            "path": found.display_name,
            "text": found.text,
            "resolved_path": found.path,
        }


def _starts_with_message(items: Sequence[Json]) -> bool:
    return bool(items) and isinstance(items[0], Mapping) and "role" in items[0]


def _iter_parts(message: JsonObject) -> Iterator[JsonObject]:
    content = message.get("content")
    yield from (each for each in _as_list(content) if isinstance(each, Mapping))


def _as_list(content: Json) -> Sequence[Json]:
    return content if isinstance(content, list) else ()


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
            hint = "add `mode: conversation`; AgentV ignores turns without it"
            message = "`turns` requires `mode: conversation`"
            self._add_problem(message, (*at, "turns"), hint=hint)
        self._check_aggregation(spec, at)
        turns = (self._read_turn((*at, "turns", index)) for index in range(len(spec.turns or ())))
        return Conversation(
            preamble=opening,
            turns=tuple(turn for turn in turns if turn is not None),
            window=spec.window_size,
        )

    def read_evaluators(
        self, conversation: Conversation, at: KeyPath, of_all: Sequence[AgentvEvaluator]
    ) -> tuple[AgentvEvaluator, ...]:
        """Read the evaluators of the turns, followed by ``of_all`` for the whole conversation.

        Each turn has the same total weight as the whole conversation. The mean over the case is
        then the same as in AgentV.
        """
        found: list[AgentvEvaluator] = []
        for turn in range(len(conversation.turns)):
            path = (*at, "turns", turn)
            evaluators = self.read_turn_evaluators(path)
            lists = [
                key for key in MEMBER_LIST_KEYS if self.document.value((*path, key)) is not None
            ]
            if conversation.turns[turn].expected_messages and not lists:
                evaluators = self.read_default_evaluators()
                if not evaluators:
                    self._add_problem(
                        f"turn {turn + 1} has no evaluators (AgentV would use a judge model)",
                        path,
                        hint="add `assertions` to the turn, add a top-level `judge`, or remove "
                        "`expected_output`",
                    )
            found += _weight_evaluators(evaluators, conversation, turn)
        return (*found, *_weight_evaluators(of_all, conversation, None))

    def _read_turn(self, at: KeyPath) -> ConversationTurn | None:
        spec, problems = read_part(self.document, TurnSpec, at=at, noun="turn")
        self.problems += problems
        if spec is None:
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
                f"`gate.cases` uses mean scores and does not support `aggregation: "
                f"{spec.aggregation}`",
                place,
                hint="remove `gate.cases`; every turn must then pass",
            )
        elif spec.aggregation == "max":
            hint = "AgentV uses the score of the best turn"
            message = "`aggregation: max` has no effect: every turn must pass"
            self._add_problem(message, place, hint=hint, severity="warning")

    def _add_problem(
        self, message: str, at: KeyPath, *, hint: str, severity: Severity = "error"
    ) -> None:
        place = self.document.place_of(at)
        self.problems.append(Problem(message=message, place=place, hint=hint, severity=severity))


def _weight_evaluators(
    evaluators: Sequence[AgentvEvaluator], conversation: Conversation, turn: int | None
) -> list[ConversationEvaluator]:
    """Make evaluators for one part of a conversation, with weights that sum to 1."""
    total = sum(evaluator.identity.weight for evaluator in evaluators)
    prefix = "" if turn is None else f"turn-{turn + 1}/"
    return [
        ConversationEvaluator(
            identity=replace(
                evaluator.identity,
                name=f"{prefix}{evaluator.identity.name}",
                weight=evaluator.identity.weight / total if total else 0.0,
            ),
            evaluator=evaluator,
            conversation=conversation,
            turn=turn,
        )
        for evaluator in evaluators
    ]


def find_required_parts(
    evaluators: Sequence[AgentvEvaluator], required: Collection[str]
) -> set[str]:
    """The names of the turn and conversation evaluators whose entries set `required`.

    Args:
        required: the names of entries that set `required`.
    """
    parts = (each for each in evaluators if isinstance(each, ConversationEvaluator))
    return {each.identity.name for each in parts if each.evaluator.identity.name in required}


EXPECTED_KEYS: Final = ("expected_messages", "expected_output")


class CaseReader(Struct, kw_only=True):
    """Reads the cases of one eval file.

    Attributes:
        key_checker: reports unknown and ignored keys.
        evaluator_reader: reads the evaluators of the cases.
        gate_has_cases: whether the gate has one threshold for all cases.
        target: name and provider of the target whose output is evaluated; empty if unknown.
        fixed_threshold: the threshold that replaces those of the cases; None to use theirs.
        problems: problems of the cases, except for those of their evaluators.
        own_thresholds: the thresholds of the cases that set one, by id.
        template: the file's judge prompt, for cases without their own; set by ``read_cases``.
    """

    document: YamlDocument
    files: FileResolver
    key_checker: KeyChecker
    evaluator_reader: EvaluatorReader
    gate_has_cases: bool
    target: tuple[str, str]
    fixed_threshold: float | None
    problems: list[Problem] = field(default_factory=list)
    own_thresholds: dict[str, float] = field(default_factory=dict)
    template: str = ""

    def read_cases(self, key: str) -> tuple[EvalFileCase, ...]:
        """Read the cases below ``key``; invalid cases are left out."""
        cases = self.document.value((key,))
        if not isinstance(cases, list) or not cases:
            # The list may be empty because the files with the cases have errors.
            if not any(each.severity == "error" for each in self.document.problems):
                self._add_problem(f"`{key}` must be a list with at least one case", (key,))
            return ()
        self.template = self._find_template(())
        read: dict[str, EvalFileCase] = {}
        ids = [_find_case_id(each) for each in cases]
        for index in range(len(cases)):
            case = self._read_case((key, index), ids)
            if case is None:
                continue
            if case.eval_case.id in read:
                message = f"duplicate case id {quote_name(case.eval_case.id)}"
                first = read[case.eval_case.id].eval_case.place
                hint = f"first used at {first}; give each case a unique id"
                self._add_problem(message, (key, index, "id"), hint=hint)
            read.setdefault(case.eval_case.id, case)
        return tuple(read.values())

    def _read_case(self, at: KeyPath, ids: Sequence[str]) -> EvalFileCase | None:
        value = self.document.value(at)
        if not isinstance(value, Mapping):
            self._add_problem("each case must be a mapping with `id` and `input`", at)
            return None
        spec, problems = read_part(self.document, CaseSpec, at=at, noun="case")
        self.problems += problems
        if spec is None:
            return None
        self.key_checker.check_case(value, at)
        self._check_dependencies(spec, at, ids)
        messages = MessageReader(document=self.document, files=self.files)
        input_messages = self._read_input(spec, at, messages)
        threshold = self._find_threshold(spec)
        evaluators = self._read_evaluators(spec, at, threshold=threshold)
        if spec.turns is not None:
            reader = ConversationReader(
                document=self.document,
                key_checker=self.key_checker,
                messages=messages,
                read_turn_evaluators=lambda part: self._read_first_list(part, threshold),
                read_default_evaluators=lambda: self.evaluator_reader.read_default(
                    threshold=threshold
                ),
                gate_has_cases=self.gate_has_cases,
            )
            conversation = reader.read_conversation(spec, at, input_messages)
            input_messages, evaluators = (
                conversation.first_input,
                reader.read_evaluators(conversation, at, evaluators),
            )
            self.evaluator_reader.required_names |= find_required_parts(
                evaluators, self.evaluator_reader.required_names
            )
            self.problems += reader.problems
        known = (*self.document.problems, *self.evaluator_reader.problems)
        if not evaluators and not any(each.severity == "error" for each in known):
            self._add_problem(
                f"case {quote_name(spec.id)} has no evaluators (AgentV would use a judge model)",
                at,
                hint="add evaluators to the case or the file; or add `criteria` to the case and a "
                "top-level `judge`",
            )
        key = _find_first_value(spec, *EXPECTED_KEYS)
        expected = () if key is None else messages.read_expected((*at, key))
        case = AgentvCase(
            id=spec.id,
            criteria=spec.any_criteria,
            input_messages=input_messages,
            expected_messages=expected,
            guideline_files=tuple(messages.guideline_files),
            input_files=tuple(messages.input_files),
            input_texts=messages.input_texts,
            input_paths=messages.input_paths,
            metadata=spec.metadata or {},
            target=self.target[0],
            provider=self.target[1],
            judge_template=self._find_template(at) or self.template,
            place=self.document.place_of(at),
        )
        self.problems += messages.problems
        self._check_criteria(case, evaluators, at)
        return EvalFileCase(eval_case=case, evaluators=evaluators)

    def _check_criteria(
        self, case: AgentvCase, evaluators: tuple[AgentvEvaluator, ...], at: KeyPath
    ) -> None:
        """Report judge evaluators without criteria: their scores would be arbitrary."""
        if case.criteria or case.expected_messages or case.judge_template:
            return
        for judge in evaluators:
            if isinstance(judge, LlmJudge) and judge.needs_case_criteria:
                name = quote_name(judge.identity.name)
                message = f"case {quote_name(case.id)} has no criteria for evaluator {name}"
                self._add_problem(message, at, hint="add `criteria` or `expected_output`")

    def _read_input(
        self, spec: CaseSpec, at: KeyPath, reader: MessageReader
    ) -> tuple[JsonObject, ...]:
        key = _find_first_value(spec, "input_messages", "input")
        input_messages = () if key is None else reader.read_input((*at, key))
        if not input_messages and not reader.problems and spec.turns is None:
            self._add_problem(
                f"case {quote_name(spec.id)} has no input", at, hint="add `input: ...`"
            )
        return input_messages

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

    def _find_threshold(self, spec: CaseSpec) -> float:
        if spec.own_threshold is not None and self.fixed_threshold is None:
            self.own_thresholds[spec.id] = spec.own_threshold
        given = spec.own_threshold if self.fixed_threshold is None else self.fixed_threshold
        return self.evaluator_reader.default_threshold if given is None else given

    def _read_evaluators(
        self, spec: CaseSpec, at: KeyPath, *, threshold: float
    ) -> tuple[AgentvEvaluator, ...]:
        """Read the evaluators of a case: its rubrics, then its lists, else the default judge."""
        own = self.evaluator_reader.read_rubrics((*at, RUBRICS_TYPE), threshold=threshold)
        listed = self._read_lists(spec, at, threshold=threshold)
        if own and own[0].identity.name in {evaluator.identity.name for evaluator in listed}:
            name = quote_name(own[0].identity.name)
            message = (
                f"`rubrics` of case {quote_name(spec.id)} make an evaluator with the name {name}, "
                "which another one has"
            )
            self._add_problem(message, (*at, RUBRICS_TYPE), hint="rename the other evaluator")
        has_measure = spec.any_criteria or _find_first_value(spec, *EXPECTED_KEYS) is not None
        if own or listed or spec.turns is not None or not has_measure:
            return (*own, *listed)
        return self.evaluator_reader.read_default(threshold=threshold)

    def _read_lists(
        self, spec: CaseSpec, at: KeyPath, *, threshold: float
    ) -> tuple[AgentvEvaluator, ...]:
        """Read the evaluator lists of a case and of the file.

        In AgentV 4 the file's evaluators are added to those of the case. In earlier versions the
        case's list replaces the file's. The first versions also dropped the file's evaluators if a
        case had an ``execution`` without evaluators. agentci keeps them, because users could
        overlook a missing evaluator.
        """
        if self.evaluator_reader.version == "seed":
            return self._read_first_list(at, threshold) or self._read_first_list((), threshold)
        skips = spec.execution is not None and spec.execution.skip_defaults
        own = self._read_first_list(at, threshold)
        shared = () if skips else self._read_first_list((), threshold)
        kept = list(own)
        for evaluator in shared:
            name, taken = evaluator.identity.name, {each.identity.name for each in kept}
            unique = make_unique_name(name, taken)
            if unique != name and name not in self.evaluator_reader.made_names:
                self._warn_renamed(evaluator, unique)
            kept.append(evaluator if unique == name else self._rename(evaluator, unique))
        return tuple(kept)

    def _warn_renamed(self, evaluator: AgentvEvaluator, name: str) -> None:
        given = quote_name(evaluator.identity.name)
        warning = Problem(
            message=f"evaluator {given} is named {quote_name(name)} in cases that have their own "
            f"{given}",
            place=evaluator.identity.place,
            hint="rename one of them; `gate.evaluators` and `--only` take the new name",
            severity="warning",
        )
        if warning not in self.problems:
            self.problems.append(warning)

    def _rename(self, evaluator: AgentvEvaluator, name: str) -> AgentvEvaluator:
        if evaluator.identity.name in self.evaluator_reader.required_names:
            self.evaluator_reader.required_names.add(name)
        identity = replace(evaluator.identity, name=name)
        return replace(evaluator, identity=identity)  # type: ignore[type-var]  # all are structs

    def _read_first_list(self, at: KeyPath, threshold: float) -> tuple[AgentvEvaluator, ...]:
        lists = SEED_LIST_PATHS if self.evaluator_reader.version == "seed" else V4_LIST_PATHS
        given = [keys for keys in lists if self.document.value((*at, *keys)) is not None]
        for keys in given[1:]:
            self.key_checker.warn_ignored_key(
                (*at, *keys), ".".join(keys), first=".".join(given[0])
            )
        return (
            self.evaluator_reader.read_list((*at, *given[0]), threshold=threshold) if given else ()
        )

    def _check_dependencies(self, spec: CaseSpec, at: KeyPath, ids: Sequence[str]) -> None:
        """Report dependencies on missing cases; AgentV runs nothing then."""
        for index, named in enumerate(spec.depends_on):
            if named == spec.id or named not in ids:
                what = "itself" if named == spec.id else f"unknown case {quote_name(named)}"
                others = [each for each in ids if each and each != spec.id]
                self._add_problem(
                    f"case {quote_name(spec.id)} depends on {what}",
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
