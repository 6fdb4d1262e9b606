"""Templates of judges as an eval file gives them: as text, or as the name of a file."""

import re
from collections.abc import Callable
from pathlib import PurePath
from typing import Final, Protocol

from msgspec import Struct

from agentci._util.text.suggest import did_you_mean, quoted
from agentci._util.text.templates import names_in
from agentci.errors import InputError
from agentci.model.place import Place
from agentci.model.problem import Problem

SCHEME: Final = "file://"
PROGRAMS: Final = frozenset({".ts", ".mts", ".js", ".mjs", ".py"})

# One word that nobody would say to a judge.
_PATH: Final = re.compile(r"[^\s{}]*/[^\s{}]*|[^\s{}]+\.(?:md|markdown|txt|ts|mts|js|mjs|py)")


class TemplateFiles(Protocol):
    """The files of an eval file in which templates stand, and the programs that write prompts."""

    def text(self, named: str, place: Place) -> str | None:
        """What the file says that is named at ``place``; None where there is none.

        Raises:
            InputError: it is out of bounds, or no text.
        """
        ...

    def path(self, named: str, place: Place) -> str:
        """The absolute path of the file that is named at ``place``.

        Raises:
            InputError: it is missing, or out of bounds.
        """
        ...

    def warn(self, problem: Problem) -> None:
        """Have something told that keeps nothing from being judged."""
        ...


class Vocabulary(Struct, frozen=True, kw_only=True):
    """What templates of one kind may name.

    Attributes:
        known: all of it.
        needed: of which a template names something, or there is nothing to judge.
        around: a template around words that name nothing.
    """

    known: frozenset[str]
    needed: frozenset[str]
    around: Callable[[str], str]


class TemplateReader(Struct, frozen=True, kw_only=True):
    """Reads templates.

    Attributes:
        only_by_scheme: whether files are named as ``file://path`` alone, as in AgentV 4; before,
            whatever is the path of a file is one.
    """

    files: TemplateFiles
    only_by_scheme: bool

    def read(self, given: str, place: Place, vocabulary: Vocabulary) -> str:
        """The template that is given at ``place``.

        Raises:
            InputError: its file is missing or unreadable, or it shows nothing of what is judged.
        """
        named = given.removeprefix(SCHEME).strip()
        is_word = _PATH.fullmatch(named) is not None
        if given.startswith(SCHEME) or (not self.only_by_scheme and "\n" not in given):
            text = self.files.text(named, place)
            if text is not None:
                return self._checked(text, place, vocabulary, named)
        if given.startswith(SCHEME) or (is_word and not self.only_by_scheme):
            raise InputError.of(
                f"there is no file {named}",
                place=place,
                hint="it is looked for beside this file, and in the folders above",
            )
        if is_word:
            raise InputError.of(
                f"the prompt is the word {quoted(given)}",
                place=place,
                hint=f"a file is named as {SCHEME}{named}",
            )
        return self._checked(given, place, vocabulary, "")

    def _checked(self, template: str, place: Place, vocabulary: Vocabulary, file: str) -> str:
        names = names_in(template)
        whose = file or "the prompt"
        for name in names:
            if name not in vocabulary.known:
                message = f"{whose} names {quoted(name)}, which is no variable and stays as it is"
                hint = did_you_mean(name, sorted(vocabulary.known))
                problem = Problem(message=message, place=place, hint=hint, severity="warning")
                self.files.warn(problem)
        if vocabulary.needed.intersection(names):
            return template
        if not names and not file:
            return vocabulary.around(template)
        wanted = " or ".join(f"{{{{ {name} }}}}" for name in sorted(vocabulary.needed))
        is_program = PurePath(file).suffix in PROGRAMS
        raise InputError.of(
            f"{whose} shows the judge nothing of what it is to judge",
            place=place,
            hint=f"a program that writes prompts is named as `prompt: {{script: [..., {file}]}}`"
            if is_program
            else f"put in {wanted}",
        )
