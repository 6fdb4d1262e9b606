"""Evaluators out of the lists of an eval file; each is made once, whichever cases it judges."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import ValidationError

from agentci.config.eval_file.files import Files
from agentci.config.eval_file.naming import name_of
from agentci.config.eval_file.schema import MEMBER_LISTS, entry_schema
from agentci.config.schema_words import shown
from agentci.config.violations import breaches
from agentci.config.yaml_document import YamlDocument
from agentci.dialects.agentv.judge import Era, Judge, Surroundings
from agentci.dialects.agentv.payload import Wire
from agentci.dialects.agentv.types import NOT_YET, TYPES, canonical, entry_data, known_types
from agentci.dialects.panels import Judges
from agentci.errors import InputError
from agentci.model.json import Json, JsonObject
from agentci.model.place import Place
from agentci.model.problem import Problem
from agentci.text.names import did_you_mean, one_of, quoted

Path = tuple[str | int, ...]

EXAMPLE: Final = "- {name: mine, type: code_judge, script: [python3, mine.py]}"


@dataclass(slots=True, kw_only=True)
class JudgeReader:
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
    _made: dict[tuple[Path, float], tuple[Judge, ...]] = field(default_factory=dict)

    def listed(self, at: Path, *, line: float) -> tuple[Judge, ...]:
        """The evaluators of the list at ``at``, those that are as they should be.

        Args:
            line: the score that passes, where an entry names none.
        """
        if (at, line) not in self._made:
            self._made[at, line] = tuple(self._judges(at, line))
        return self._made[at, line]

    def _judges(self, at: Path, line: float) -> list[Judge]:
        entries = self.document.value(at)
        if not isinstance(entries, list):
            self._complain(f"{at[-1]} must be a list, not {self._shown(at)}", at)
            return []
        judges: list[Judge] = []
        names: set[str] = set()
        for index, entry in enumerate(entries):
            path = (*at, index)
            judge = self._judge(entry, path, names, line)
            if judge is not None:
                judges.append(judge)
        return judges

    def _judge(self, entry: Json, at: Path, names: set[str], line: float) -> Judge | None:
        if not isinstance(entry, Mapping):
            what = f"each evaluator must be a mapping with `name` and `type`, not {self._shown(at)}"
            self._complain(what, at, hint=f"like `{EXAMPLE}`")
            return None
        kind = self._kind(entry, at)
        if kind is None:
            return None
        name = name_of(entry, kind, era=self.era, taken=names)
        if name is None:
            message = f"an evaluator of type {kind} has no 'name'"
            self._complain(message, at, hint="add `name: ...`")
            return None
        if name in names:
            message = f"two evaluators of one list are called {quoted(name)}"
            self._complain(message, (*at, "name"), hint="give one of them another name")
            return None
        names.add(name)
        if entry.get("required") not in (None, False):
            self.vital.add(name)
        return self._built(entry, name, kind, at, line)

    def _built(
        self, entry: JsonObject, name: str, kind: str, at: Path, line: float
    ) -> Judge | None:
        members: tuple[Judge, ...] = ()
        if TYPES[kind].has_members:
            lists = [key for key in MEMBER_LISTS if key in entry]
            members = tuple(each for key in lists for each in self.listed((*at, key), line=line))
            entry = {key: value for key, value in entry.items() if key not in lists}
        try:
            read = TYPES[kind].entry.model_validate(entry_data(entry, name, kind))
            return TYPES[kind].build(read, self._surroundings(at, members, line))
        except ValidationError as error:
            schema = entry_schema(kind)
            self.problems += breaches(self.document, schema, error, at=at, noun="evaluator")
        except InputError as error:
            self.problems += error.problems
        return None

    def _kind(self, entry: JsonObject, at: Path) -> str | None:
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

    def _surroundings(self, at: Path, members: tuple[Judge, ...], line: float) -> Surroundings:
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
            members=members,
        )

    def _complain(self, message: str, at: Path, *, hint: str | None = None) -> None:
        place = self.document.place_of(at)
        self.problems.append(Problem(message=message, place=place, hint=hint))

    def _shown(self, at: Path) -> str:
        return shown(self.document.value(at), self.document.written(at))
