"""Cases of several turns: what is said in them, and what judges each turn and all of them."""

from collections.abc import Callable, Collection, Sequence

from msgspec import Struct, field
from pydantic import ValidationError

from agentci.config.agentv.ignored_keys import KeyReader
from agentci.config.agentv.messages import MessageReader
from agentci.config.agentv.models import CaseSpec, TurnSpec
from agentci.config.agentv.schema import MEMBER_LISTS
from agentci.config.schema_errors import breaches
from agentci.config.yaml_document import YamlDocument
from agentci.config.yaml_nodes import KeyPath
from agentci.evaluators.agentv.agentv_evaluator import Judge
from agentci.evaluators.agentv.conversation import Talk, TalkJudge, TurnOfTalk
from agentci.model.json import JsonObject
from agentci.model.problem import Problem, Severity
from agentci.model.values import replace


class ConversationReader(Struct, kw_only=True):
    """Reads the turns of one case.

    Attributes:
        judges_of: the evaluators that the part of the file at a path lists.
        by_default: what judges a turn that expects something and lists none.
        looks_at_cases: whether the gate holds the means of whole cases against a score.
        problems: what is wrong with the turns, and what has no effect.
    """

    document: YamlDocument
    keys: KeyReader
    messages: MessageReader
    judges_of: Callable[[KeyPath], tuple[Judge, ...]]
    by_default: Callable[[], tuple[Judge, ...]]
    looks_at_cases: bool
    problems: list[Problem] = field(default_factory=list)

    def talk(self, spec: CaseSpec, at: KeyPath, opening: tuple[JsonObject, ...]) -> Talk:
        """The conversation of the case at ``at``, as far as its turns are as they should be."""
        if spec.mode is None:
            hint = "add `mode: conversation`; without it AgentV passes them over"
            self._tell("turns belong to a conversation", (*at, "turns"), hint=hint)
        self._look_at_aggregation(spec, at)
        turns = (self._turn((*at, "turns", index)) for index in range(len(spec.turns or ())))
        return Talk(
            opening=opening,
            turns=tuple(turn for turn in turns if turn is not None),
            window=spec.window_size,
        )

    def judges(self, talk: Talk, at: KeyPath, of_all: Sequence[Judge]) -> tuple[Judge, ...]:
        """What judges the turns, then ``of_all`` that judge the conversation.

        Weights are such that each turn counts as much as another, and as all that was said: the
        mean over the case is AgentV's.
        """
        found: list[Judge] = []
        for turn in range(len(talk.turns)):
            path = (*at, "turns", turn)
            judges = self.judges_of(path)
            lists = [key for key in MEMBER_LISTS if self.document.value((*path, key)) is not None]
            if talk.turns[turn].expected and not lists:
                judges = self.by_default()
                if not judges:
                    self._tell(
                        f"nothing judges turn {turn + 1}: AgentV would ask a language model",
                        path,
                        hint="list `assertions` in the turn, leave out what is expected, or say "
                        "which model judges, as `judge: ...` at the top",
                    )
            found += _part(judges, talk, turn)
        return (*found, *_part(of_all, talk, None))

    def _turn(self, at: KeyPath) -> TurnOfTalk | None:
        value = self.document.value(at)
        try:
            spec = TurnSpec.model_validate(value)
        except ValidationError as error:
            schema = TurnSpec.model_json_schema()
            self.problems += breaches(self.document, schema, error, at=at, noun="turn")
            return None
        self.keys.of_turn(spec.model_dump(exclude_unset=True), at)
        return TurnOfTalk(
            asked=self.messages.asked((*at, "input")),
            expected=self.messages.expected((*at, "expected_output")),
        )

    def _look_at_aggregation(self, spec: CaseSpec, at: KeyPath) -> None:
        place = (*at, "aggregation")
        if spec.aggregation != "mean" and self.looks_at_cases:
            self._tell(
                f"a gate over whole cases takes means, not `aggregation: {spec.aggregation}`",
                place,
                hint="leave `cases` of the gate out: then every turn has to pass",
            )
        elif spec.aggregation == "max":
            hint = "AgentV takes the best of them"
            self._tell("every turn has to pass", place, hint=hint, severity="warning")

    def _tell(self, message: str, at: KeyPath, *, hint: str, severity: Severity = "error") -> None:
        place = self.document.place_of(at)
        self.problems.append(Problem(message=message, place=place, hint=hint, severity=severity))


def _part(judges: Sequence[Judge], talk: Talk, turn: int | None) -> list[TalkJudge]:
    """Judges of one part of a conversation, which weigh 1 together."""
    total = sum(judge.identity.weight for judge in judges)
    prefix = "" if turn is None else f"turn-{turn + 1}/"
    return [
        TalkJudge(
            identity=replace(
                judge.identity,
                name=f"{prefix}{judge.identity.name}",
                weight=judge.identity.weight / total if total else 0.0,
            ),
            judge=judge,
            talk=talk,
            turn=turn,
        )
        for judge in judges
    ]


def vital_parts(judges: Sequence[Judge], vital: Collection[str]) -> set[str]:
    """The names of those whose entries say of themselves that they are required.

    Args:
        vital: the names of such entries.
    """
    parts = (each for each in judges if isinstance(each, TalkJudge))
    return {each.identity.name for each in parts if each.judge.identity.name in vital}
