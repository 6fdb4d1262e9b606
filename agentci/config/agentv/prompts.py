"""Read the prompts of an eval file of AgentV 5, of which each makes a case of every test."""

from hashlib import sha256
from typing import Final

from msgspec import Struct

from agentci._util.text.javascript import stringify_json
from agentci.config.agentv.files import FileResolver
from agentci.config.agentv.tree import (
    find_first,
    find_text,
    find_value,
    make_node,
    make_sequence,
    replace_values,
)
from agentci.config.yaml_nodes import MappingNode, Node, ScalarNode, SequenceNode, plain_data
from agentci.errors import InputError
from agentci.model.values import Problem
from agentci.recordings.agentv_run import make_prompt_case_id

PROMPTS_KEY: Final = "prompts"
TEXT_KEYS: Final = ("messages", "prompt", "raw", "content", "template")
PROGRAM_KEYS: Final = ("function_file", "function", "command")
# Files that make a prompt.
PROGRAM_ENDINGS: Final = (".js", ".mjs", ".ts", ".mts", ".py")
URL_PREFIX: Final = "file://"


class Prompt(Struct, frozen=True, kw_only=True):
    """One prompt of a file.

    Attributes:
        node: text or messages with placeholders; None if there is none, or a program makes it.
        id: AgentV's name of the prompt.
    """

    node: Node | None
    id: str = ""


class PromptReader(Struct, kw_only=True):
    """Reads the prompts of one file.

    Attributes:
        problems: receives errors in prompts, and warnings about programs, which do not run.
    """

    root: MappingNode
    files: FileResolver
    problems: list[Problem]

    def read(self) -> tuple[Prompt, ...]:
        """The prompts of all cases; one without text if there are none."""
        prompts = find_value(self.root, PROMPTS_KEY)
        entries = prompts.items if isinstance(prompts, SequenceNode) else ()
        if not all(map(_is_message, entries)):
            return tuple(map(self._read_prompt, entries))
        return (self._read_prompt(prompts),) if entries or prompts else (Prompt(node=None),)

    def _read_prompt(self, given: Node | None) -> Prompt:
        """One entry of `prompts`: text, messages, a file, or a mapping with one of them."""
        own_id, kind = find_text(given, "id").strip(), "prompt"
        if isinstance(given, MappingNode) and _is_message(given):
            given = make_sequence([given], given.place)
        elif isinstance(given, MappingNode):
            program = find_first(given, PROGRAM_KEYS)
            named = find_value(given, "file")
            if isinstance(named, ScalarNode):
                named = make_node(f"{URL_PREFIX}{_strip_url(str(named.value))}", named.place)
            if program is not None:
                return self._ignore_program(program, own_id)
            given, kind = named or find_first(given, TEXT_KEYS), "string"
        if isinstance(given, ScalarNode) and str(given.value).startswith(URL_PREFIX):
            return self._read_prompt_file(given, own_id)
        if isinstance(given, SequenceNode):
            kind = "chat"
        return Prompt(node=given, id=own_id or f"{kind}-{_digest(given)}")

    def _read_prompt_file(self, node: ScalarNode, own_id: str) -> Prompt:
        """The text of the file that ``node`` names; none if it is a program or cannot be read."""
        named = _strip_url(str(node.value))
        if named.endswith(PROGRAM_ENDINGS) or named.rpartition(":")[0].endswith(PROGRAM_ENDINGS):
            return self._ignore_program(node, own_id or named)
        try:
            text = make_node(self.files.read(named, node.place).text, node.place)
        except InputError as error:
            self.problems += error.problems
            return Prompt(node=None)
        return Prompt(node=text, id=own_id or named)

    def _ignore_program(self, program: Node, name: str) -> Prompt:
        hint = "evaluators see `vars.input` as the input"
        message = "a prompt that a program makes has no effect"
        place = self.root.fields[PROMPTS_KEY].place
        self.problems.append(Problem(message=message, place=place, hint=hint, severity="warning"))
        return Prompt(node=None, id=name or f"function-{_digest(program)}")


def name_case(case: Node, prompt: Prompt | None) -> Node:
    """The case with the id that AgentV gives it for one of several prompts, None for only one."""
    given = find_value(case, "id")
    if prompt is None or not isinstance(case, MappingNode) or not isinstance(given, ScalarNode):
        return case
    needed = find_value(case, "depends_on")
    names = needed.items if isinstance(needed, SequenceNode) else ()
    values = {"id": make_node(make_prompt_case_id(str(given.value), prompt.id), given.place)}
    if isinstance(needed, SequenceNode):
        values["depends_on"] = make_sequence(
            (
                make_node(make_prompt_case_id(str(each.value), prompt.id), each.place)
                for each in names
                if isinstance(each, ScalarNode)
            ),
            needed.place,
        )
    return replace_values(case, values)


def _is_message(node: Node) -> bool:
    return isinstance(node, MappingNode) and "role" in node.fields


def _digest(node: Node | None) -> str:
    """AgentV's digest of a prompt, by which it names one without `id`."""
    data = None if node is None else plain_data(node)
    return sha256(stringify_json(data).encode()).hexdigest()[:12]


def _strip_url(named: str) -> str:
    return named.removeprefix(URL_PREFIX)
