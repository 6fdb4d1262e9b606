"""What stands for something else in the texts of AgentV 4: ``{{ name }}`` and ``${{ NAME }}``."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct, field

from agentci._util.text.javascript import stringify
from agentci._util.text.suggest import did_you_mean, quoted
from agentci.config.agentv.tree import node_of, with_texts
from agentci.config.yaml_nodes import Node, Scalar
from agentci.model.json import Json, JsonObject
from agentci.model.problem import Problem

OF_CASE: Final = re.compile(r"(?<!\$)\{\{\s*([A-Za-z_][A-Za-z0-9_.]*)\s*\}\}")
OF_ENVIRONMENT: Final = re.compile(r"\$\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")


class CaseFiller(Struct, kw_only=True):
    """Puts the ``vars`` of one case into its texts.

    Attributes:
        problems: warnings of placeholders that stay as they are; AgentV says nothing of them.
    """

    values: JsonObject
    problems: list[Problem] = field(default_factory=list)

    def filled(self, node: Node) -> Node:
        """``node`` with values in place of names; a text that is one name becomes the value."""
        return with_texts(node, self._filled)

    def look_over(self, node: Node) -> None:
        """Tell of placeholders in ``node``, which AgentV 4 leaves alone there."""
        with_texts(node, self._looked_over)

    def _filled(self, node: Scalar, text: str) -> Node:
        for name in self._unknown(text):
            self._warn(
                node,
                f"`vars` have no {quoted(name)}: the placeholder stays as it is",
                did_you_mean(name, list(self.values)),
            )
        whole = OF_CASE.fullmatch(text)
        if whole is not None and self._knows(whole[1]):
            return node_of(value_at(self.values, whole[1]), node.place)
        return node_of(OF_CASE.sub(self._written, text), node.place)

    def _written(self, match: re.Match[str]) -> str:
        if not self._knows(match[1]):
            return match[0]
        found = value_at(self.values, match[1])
        return found if isinstance(found, str) else stringify(found)

    def _looked_over(self, node: Scalar, text: str) -> Node:
        known = (each[1] for each in OF_CASE.finditer(text) if self._knows(each[1]))
        for name in known:
            self._warn(
                node,
                f"`vars` are not put into evaluators: {{{{{name}}}}} stays as it is, as in AgentV",
                "write the value out",
            )
        return node

    def _unknown(self, text: str) -> Iterator[str]:
        return (each[1] for each in OF_CASE.finditer(text) if not self._knows(each[1]))

    def _knows(self, name: str) -> bool:
        try:
            value_at(self.values, name)
        except KeyError:
            return False
        return True

    def _warn(self, node: Scalar, message: str, hint: str | None) -> None:
        self.problems.append(
            Problem(message=message, place=node.place, hint=hint, severity="warning")
        )


def value_at(values: JsonObject, name: str) -> Json:
    """The value that ``name`` leads to, dot by dot through mappings.

    Raises:
        KeyError: it leads nowhere.
    """
    value: Json = values
    for step in name.split("."):
        if not isinstance(value, Mapping):
            raise KeyError(name)
        value = value[step]
    return value


class EnvironmentFiller(Struct, kw_only=True):
    """Puts variables of the environment into texts.

    Attributes:
        problems: variables that are not set. AgentV takes them for empty, and a text that has to
            contain nothing is contained in every answer.
    """

    variables: Mapping[str, str]
    problems: list[Problem] = field(default_factory=list)

    def filled(self, node: Node) -> Node:
        """``node`` with values in place of names; a text that is one name may become a number."""
        return with_texts(node, self._filled)

    def _filled(self, node: Scalar, text: str) -> Node:
        if "${{" not in text:
            return node
        for name in dict.fromkeys(each[1] for each in OF_ENVIRONMENT.finditer(text)):
            if name not in self.variables:
                self.problems.append(
                    Problem(
                        message=f"there is no variable {name} in the environment",
                        place=node.place,
                        hint="set it where agentci is started, as in `env:` of a step",
                    )
                )
        told = OF_ENVIRONMENT.sub(lambda match: self.variables.get(match[1], ""), text)
        whole = OF_ENVIRONMENT.fullmatch(text)
        return node_of(told if whole is None else _plain(told), node.place)


def _plain(text: str) -> Json:
    """Truth and numbers, which an environment holds as text."""
    if text in ("true", "false"):
        return text == "true"
    if NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    return text
