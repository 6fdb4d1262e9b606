"""Evaluators out of the lists of an eval file; each is made once, whichever cases it judges."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from pydantic import ValidationError

from agentci._util.text.suggest import did_you_mean, one_of, quoted
from agentci.config.agentv.evaluator_names import name_of
from agentci.config.agentv.file_references import Files
from agentci.config.agentv.schema import MEMBER_LISTS, entry_schema
from agentci.config.agentv.templates import FilesOfTemplates
from agentci.config.schema_errors import breaches
from agentci.config.schema_messages import shown
from agentci.config.yaml_document import YamlDocument
from agentci.config.yaml_nodes import KeyPath
from agentci.errors import InputError
from agentci.evaluators.agentv.agentv_evaluator import Era, Judge, Surroundings
from agentci.evaluators.agentv.judge_templates import TemplateReader
from agentci.evaluators.agentv.payload import Wire
from agentci.evaluators.agentv.types import NOT_YET, TYPES, canonical, entry_data, known_types
from agentci.evaluators.judge_config import Judges
from agentci.evaluators.repeat import NO_REPEAT, ONLY_BY_CHANCE, check_repeat_by
from agentci.model.json import Json, JsonObject
from agentci.model.place import Place
from agentci.model.problem import Problem

# The type, and the name, of what judges where nothing else does.
DEFAULT: Final = "llm_judge"
RUBRICS: Final = "rubrics"
# What AgentV calls the evaluator of a case's own criteria.
RUBRIC: Final = "rubric"
EXAMPLE: Final = "- {name: mine, type: code_judge, script: [python3, mine.py]}"


class JudgeReader(Struct, kw_only=True):
    """Reads the evaluators of one eval file.

    Attributes:
        line: the score that passes, where neither entries nor cases name one.
        problems: what is wrong with them.
        vital: names of those that say of themselves that they are required.
    """

    document: YamlDocument
    files: Files
    era: Era
    line: float
    wire: Wire
    judges: Judges
    problems: list[Problem] = field(default_factory=list)
    vital: set[str] = field(default_factory=set)
    _made: dict[tuple[KeyPath, float], tuple[Judge, ...]] = field(default_factory=dict)

    @property
    def templates(self) -> TemplateReader:
        """Reads what judges are asked by."""
        files = FilesOfTemplates(files=self.files, problems=self.problems)
        return TemplateReader(files=files, only_by_scheme=self.era == "v4")

    def listed(self, at: KeyPath, *, line: float) -> tuple[Judge, ...]:
        """The evaluators of the list at ``at``, those that are as they should be.

        Args:
            line: the score that passes, where an entry names none.
        """
        if (at, line) not in self._made:
            self._made[at, line] = tuple(self._judges(at, line))
        return self._made[at, line]

    def by_default(self, *, line: float) -> tuple[Judge, ...]:
        """The model that judges what nothing else judges, where somebody said which one."""
        if not self.judges.is_named:
            return ()
        if ((), line) not in self._made:
            judge = self._built({}, DEFAULT, DEFAULT, ("judge",), line)
            self._made[(), line] = () if judge is None else (judge,)
        return self._made[(), line]

    def by_rubrics(self, at: KeyPath, *, line: float) -> tuple[Judge, ...]:
        """The model that judges a case by the criteria that it lists at ``at``."""
        listed = self.document.value(at)
        if listed is None:
            return ()
        judge = self._built({RUBRICS: listed}, RUBRIC, RUBRICS, at, line)
        return () if judge is None else (judge,)

    def _judges(self, at: KeyPath, line: float) -> list[Judge]:
        entries = self.document.value(at)
        if not isinstance(entries, list):
            self._complain(f"{at[-1]} must be a list, not {self._shown(at)}", at)
            return []
        judges: list[Judge] = []
        names: set[str] = set()
        for index, entry in self._gathered(entries):
            path = (*at, index)
            judge = self._judge(entry, path, names, line)
            if judge is not None:
                judges.append(judge)
        return judges

    def _gathered(self, entries: Sequence[Json]) -> Iterator[tuple[int, Json]]:
        """The entries with their places in the list; since AgentV 4 texts are criteria of one."""
        texts = [each for each in entries if self._is_criterion(each)]
        for index, entry in enumerate(entries):
            if not self._is_criterion(entry):
                yield index, entry
            elif texts:
                yield index, {"type": RUBRICS, "criteria": texts, "weight": len(texts)}
                texts = []

    def _is_criterion(self, entry: Json) -> bool:
        return self.era == "v4" and isinstance(entry, str) and bool(entry.strip())

    def _judge(self, entry: Json, at: KeyPath, names: set[str], line: float) -> Judge | None:
        if not isinstance(entry, Mapping):
            what = f"each evaluator must be a mapping with `name` and `type`, not {self._shown(at)}"
            self._complain(what, at, hint=f"like `{EXAMPLE}`")
            return None
        kind = self._kind(entry, at)
        if kind is None:
            return None
        name = name_of(entry, era=self.era, taken=names)
        if name is None:
            return self._nameless(entry, kind, at, line)
        if name in names:
            message = f"two evaluators of one list are called {quoted(name)}"
            self._complain(message, (*at, "name"), hint="give one of them another name")
            return None
        names.add(name)
        if entry.get("required") not in (None, False):
            self.vital.add(name)
        return self._built(entry, name, kind, at, line)

    def _nameless(self, entry: JsonObject, kind: str, at: KeyPath, line: float) -> Judge | None:
        if entry.get("name") is not None:  # its model says what is wrong with it
            return self._built(entry, entry["name"], kind, at, line)
        message = f"an evaluator of type {kind} has no 'name'"
        self._complain(message, at, hint="add `name: ...`")
        return None

    def _built(
        self, entry: JsonObject, name: Json, kind: str, at: KeyPath, line: float
    ) -> Judge | None:
        members: tuple[Judge, ...] = ()
        if TYPES[kind].has_members:
            lists = [key for key in MEMBER_LISTS if key in entry]
            members = tuple(each for key in lists for each in self.listed((*at, key), line=line))
            entry = {key: value for key, value in entry.items() if key not in lists}
        if entry.get("repeat") is not None and "repeat" not in TYPES[kind].entry.model_fields:
            self._complain(NO_REPEAT, (*at, "repeat"), hint=ONLY_BY_CHANCE)
            return None
        try:
            read = TYPES[kind].entry.model_validate(entry_data(entry, name, kind))
            surroundings = self._surroundings(at, members, line)
            check_repeat_by(
                read, of=surroundings.place, at=self.document.place_of((*at, "repeat_by"))
            )
            return TYPES[kind].build(read, surroundings)
        except ValidationError as error:
            schema = entry_schema(kind)
            self.problems += breaches(self.document, schema, error, at=at, noun="evaluator")
        except InputError as error:
            self.problems += error.problems
        return None

    def _kind(self, entry: JsonObject, at: KeyPath) -> str | None:
        """The type of an entry in the table, None where it has none of these."""
        given = entry.get("type")
        name = canonical(given) if isinstance(given, str) else ""
        if name in TYPES:
            return name
        if name in NOT_YET:
            message = f"evaluators of type {quoted(str(given))} are not run by this version"
            self._complain(f"{message} of agentci", (*at, "type"), hint=NOT_YET[name])
        elif given is None:
            owner = entry.get("name")
            who = f"the evaluator {quoted(owner)}" if isinstance(owner, str) else "an evaluator"
            self._complain(f"{who} has no 'type'", at, hint="add `type: code_judge`")
        else:
            known = known_types()
            message = f"type must be {one_of(known)}, not {self._shown((*at, 'type'))}"
            own = "a type of your own is a program in .agentv/assertions, called as the type"
            hint = did_you_mean(name, known) or (own if isinstance(given, str) else None)
            self._complain(message, (*at, "type"), hint=hint)
        return None

    def _surroundings(self, at: KeyPath, members: tuple[Judge, ...], line: float) -> Surroundings:
        place_of: Callable[[str], Place] = lambda key: self.document.place_of((*at, key))  # noqa: E731
        return Surroundings(
            place=self.document.place_of(at),
            place_of=place_of,
            era=self.era,
            line=line,
            wire=self.wire,
            folder=lambda named: self.files.folder(named, place_of("cwd")),
            home=self.files.home,
            judges=self.judges,
            templates=self.templates,
            members=members,
        )

    def _complain(self, message: str, at: KeyPath, *, hint: str | None = None) -> None:
        place = self.document.place_of(at)
        self.problems.append(Problem(message=message, place=place, hint=hint))

    def _shown(self, at: KeyPath) -> str:
        return shown(self.document.value(at), self.document.written(at))
