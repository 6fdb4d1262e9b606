"""Insert an eval file's shared values, variables, placeholders and prompts into its cases."""

import re
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import Final, TypeAlias

from msgspec import Struct, field

from agentci._util.text.javascript import stringify_json
from agentci._util.text.suggest import quote_name, suggest_name
from agentci.config.agentv.files import FileResolver
from agentci.config.variables import ConfigVariables
from agentci.config.yaml_nodes import (
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    change_items,
    change_texts,
    find_first,
    find_text,
    find_value,
    make_mapping,
    make_node,
    make_sequence,
    plain_data,
    replace_values,
)
from agentci.errors import InputError
from agentci.model.values import Json, JsonObject, Problem
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


CASE_PLACEHOLDER: Final = re.compile(r"(?<!\$)\{\{\s*([A-Za-z_][A-Za-z0-9_.]*)\s*\}\}")
ENVIRONMENT_PLACEHOLDER: Final = re.compile(r"\$\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
# Since AgentV 5, with a default in quotes.
VERSION5_PLACEHOLDER: Final = re.compile(
    r"\{\{\s*env\.([A-Za-z_][A-Za-z0-9_]*)\s*"
    r"(?:\|\s*default\(\s*(?:\"([^\"]*)\"|'([^']*)')\s*(?:,\s*true\s*)?\)\s*)?\}\}"
)
# Keys that name a variable, whose value must not be in the config.
SECRET_KEYS: Final = ("api_key", "apiKey")
NUMBER_PATTERN: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")


class CaseSubstitution(Struct, kw_only=True):
    """Substitutes the ``vars`` of one case in its texts.

    Attributes:
        keeps_unknown: whether placeholders that are not variables are allowed.
        problems: warnings about placeholders that are not replaced; AgentV does not report them.
    """

    values: JsonObject
    keeps_unknown: bool = False
    problems: list[Problem] = field(default_factory=list)

    def substitute(self, node: Node) -> Node:
        """Replace placeholders in ``node``; a text with only a placeholder becomes its value."""
        return change_texts(node, self._substitute_text)

    def warn_unsubstituted(self, node: Node) -> None:
        """Warn about placeholders in ``node``, a part in which AgentV 4 does not replace them."""
        change_texts(node, self._check_text)

    def _substitute_text(self, node: ScalarNode, text: str) -> Node:
        for name in () if self.keeps_unknown else self._list_unknown(text):
            self._add_warning(
                node,
                f"unknown variable {quote_name(name)}: its placeholder is not replaced",
                suggest_name(name, list(self.values)),
            )
        whole = CASE_PLACEHOLDER.fullmatch(text)
        if whole is not None and self._is_known(whole[1]):
            return make_node(find_variable(self.values, whole[1]), node.place)
        return make_node(CASE_PLACEHOLDER.sub(self._format_value, text), node.place)

    def _format_value(self, match: re.Match[str]) -> str:
        if not self._is_known(match[1]):
            return match[0]
        found = find_variable(self.values, match[1])
        return found if isinstance(found, str) else stringify_json(found)

    def _check_text(self, node: ScalarNode, text: str) -> Node:
        known = (each[1] for each in CASE_PLACEHOLDER.finditer(text) if self._is_known(each[1]))
        for name in known:
            self._add_warning(
                node,
                f"`vars` do not apply to evaluators, as in AgentV: {{{{{name}}}}} is not replaced",
                "write the value itself",
            )
        return node

    def _list_unknown(self, text: str) -> Iterator[str]:
        return (each[1] for each in CASE_PLACEHOLDER.finditer(text) if not self._is_known(each[1]))

    def _is_known(self, name: str) -> bool:
        try:
            find_variable(self.values, name)
        except KeyError:
            return False
        return True

    def _add_warning(self, node: ScalarNode, message: str, hint: str | None) -> None:
        self.problems.append(
            Problem(message=message, place=node.place, hint=hint, severity="warning")
        )


def find_variable(values: JsonObject, name: str) -> Json:
    """Look up the dotted ``name`` in nested mappings.

    Raises:
        KeyError: it does not exist.
    """
    value: Json = values
    for step in name.split("."):
        if not isinstance(value, Mapping):
            raise KeyError(name)
        value = value[step]
    return value


class EnvironmentSubstitution(Struct, kw_only=True):
    """Substitutes environment variables in texts.

    Attributes:
        is_version5: whether `{{ env.NAME }}` names a variable, too.
        own: values that the file itself sets, which take precedence.
        problems: errors for variables that are refused or not set. AgentV reads the latter as
            empty, and then a check that a response contains the empty text always passes. A
            placeholder of AgentV 5 stays, with a warning.
    """

    variables: ConfigVariables
    is_version5: bool = False
    own: Mapping[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def substitute(self, node: Node) -> Node:
        """Replace placeholders in ``node``; a text with only a placeholder may become a number."""
        if isinstance(node, MappingNode):
            values = {
                key: self.substitute(each.value)
                for key, each in node.fields.items()
                if key not in SECRET_KEYS
            }
            return replace_values(node, values)
        if isinstance(node, SequenceNode):
            return change_items(node, self.substitute)
        return change_texts(node, self._substitute_text)

    def _substitute_text(self, node: ScalarNode, text: str) -> Node:
        if self.is_version5 and VERSION5_PLACEHOLDER.search(text):
            text = VERSION5_PLACEHOLDER.sub(lambda match: self._find_value(match, node), text)
            node = make_node(text, node.place)  # type: ignore[assignment]
        if "${{" not in text:
            return node
        for name in dict.fromkeys(each[1] for each in ENVIRONMENT_PLACEHOLDER.finditer(text)):
            if refusal := self.variables.explain_refusal(name):
                message, hint = refusal
                self.problems.append(Problem(message=message, place=node.place, hint=hint))
            elif name not in self.variables:
                self.problems.append(
                    Problem(
                        message=f"environment variable {name} is not set",
                        place=node.place,
                        hint="set it for agentci, for example in `env:` of the workflow step",
                    )
                )
        value = ENVIRONMENT_PLACEHOLDER.sub(lambda match: self.variables.get(match[1]), text)
        whole = ENVIRONMENT_PLACEHOLDER.fullmatch(text)
        return make_node(value if whole is None else _parse_environment_value(value), node.place)

    def _find_value(self, match: re.Match[str], node: ScalarNode) -> str:
        """The value of a variable or its default; the placeholder itself if there is neither."""
        name = match[1]
        default = next((each for each in match.groups()[1:] if each is not None), None)
        if name in self.own:
            return self.own[name]
        if refusal := self.variables.explain_refusal(name):
            message, hint = refusal
            self.problems.append(Problem(message=message, place=node.place, hint=hint))
        elif name in self.variables and (self.variables.get(name) or default is None):
            return self.variables.get(name)
        elif default is not None:
            return default
        else:
            self.problems.append(
                Problem(
                    message=f"environment variable {name} is not set: its placeholder stays",
                    place=node.place,
                    hint="set it for agentci, for example in `env:` of the workflow step",
                    severity="warning",
                )
            )
        return match[0]


def _parse_environment_value(text: str) -> Json:
    """Parse booleans and numbers, which the environment holds as text."""
    if text in ("true", "false"):
        return text == "true"
    if NUMBER_PATTERN.fullmatch(text):
        return float(text) if "." in text else int(text)
    return text


INPUT_KEY: Final = "input"
INPUT_FILES_KEY: Final = "input_files"
TURNS_KEY: Final = "turns"
# Keys of a case's input, in order of precedence.
INPUT_KEYS: Final = ("input_messages", INPUT_KEY)
# `vars` are substituted in these keys of cases and turns; as in AgentV, not in evaluators.
SUBSTITUTED_KEYS: Final = (
    *("criteria", "expected_outcome", "outcome", *INPUT_KEYS, INPUT_FILES_KEY),
    *("expected_output", "expected_messages"),
)
UNSUBSTITUTED_KEYS: Final = ("assertions", "assert", "evaluators", "execution")

Substitute: TypeAlias = Callable[[Node], Node]


class SharedValues(Struct, kw_only=True):
    """The top level of an eval file, with values shared by all cases.

    Attributes:
        warns_about_evaluators: whether to warn about ``vars`` in evaluators.
        problems: errors about values that cannot be combined, and warnings.
    """

    root: MappingNode
    warns_about_evaluators: bool = True
    problems: list[Problem] = field(default_factory=list)

    def complete_case(self, case: Node) -> Node:
        """Insert shared values into ``case``; a node that is not a mapping is unchanged."""
        if not isinstance(case, MappingNode):
            return case
        fill = self._make_substitute(case)
        values = _substitute_case(case, fill)
        skips = find_value(find_value(case, "execution"), "skip_defaults")
        top = None if isinstance(skips, ScalarNode) and skips.value is True else self.root
        key = next((each for each in INPUT_KEYS if find_value(case, each) is not None), None)
        before = _substitute_node(fill, find_value(top, INPUT_KEY))
        if key is not None:
            attached = values.get(INPUT_FILES_KEY) or _substitute_node(
                fill, find_value(top, INPUT_FILES_KEY)
            )
            values[key] = self._merge_input(values[key], before=before, attached=attached)
        elif before is not None and find_value(case, TURNS_KEY) is not None:
            values[INPUT_KEY] = before
        metadata = _merge_metadata(find_value(self.root, "metadata"), find_value(case, "metadata"))
        if metadata is not None:
            values["metadata"] = metadata
        return replace_values(case, values)

    def _make_substitute(self, case: MappingNode) -> Substitute:
        given = find_value(case, "vars")
        if not isinstance(given, MappingNode):
            return lambda node: node
        values: JsonObject = {key: plain_data(each.value) for key, each in given.fields.items()}
        filler = CaseSubstitution(values=values, problems=self.problems)
        for owner in (case, *_list_turns(case)) if self.warns_about_evaluators else ():
            for node in (find_value(owner, key) for key in UNSUBSTITUTED_KEYS):
                if node is not None:
                    filler.warn_unsubstituted(node)
        return filler.substitute

    def _merge_input(self, own: Node, *, before: Node | None, attached: Node | None) -> Node:
        """Put the messages of ``before`` in front of the case's own; invalid input is unchanged."""
        if attached is not None:
            own = self._prepend_files(own, attached)
        if before is None:
            return own
        first, then = _make_messages(before), _make_messages(own)
        return make_sequence((*first, *then), own.place) if first and then else own

    def _prepend_files(self, own: Node, attached: Node) -> Node:
        """Turn a text into a message that starts with files."""
        if not isinstance(attached, SequenceNode):
            return own
        if not isinstance(own, ScalarNode):
            self.problems.append(
                Problem(
                    message=f"`{INPUT_FILES_KEY}` requires a text `{INPUT_KEY}`",
                    place=own.place,
                    hint="refer to files in messages: {type: file, value: PATH}",
                )
            )
            return own
        files = [_make_part("file", each) for each in attached.items]
        parts = make_sequence((*files, _make_part("text", own)), own.place)
        return make_sequence([_make_message(parts)], own.place)


def _substitute_case(case: MappingNode, fill: Substitute) -> dict[str, Node]:
    values = {key: fill(each.value) for key, each in case.fields.items() if key in SUBSTITUTED_KEYS}
    turns = find_value(case, TURNS_KEY)
    if isinstance(turns, SequenceNode):
        values[TURNS_KEY] = change_items(
            turns,
            lambda turn: (
                replace_values(turn, _substitute_case(turn, fill))
                if isinstance(turn, MappingNode)
                else turn
            ),
        )
    return values


def _substitute_node(fill: Substitute, node: Node | None) -> Node | None:
    return None if node is None else fill(node)


def _list_turns(case: MappingNode) -> tuple[Node, ...]:
    turns = find_value(case, TURNS_KEY)
    return turns.items if isinstance(turns, SequenceNode) else ()


def _make_messages(asked: Node) -> tuple[Node, ...]:
    """Convert input to messages; empty if it is invalid."""
    match asked:
        case SequenceNode():
            return asked.items
        case MappingNode() if "role" in asked.fields:
            return (asked,)
        case MappingNode() | ScalarNode(value=str()):
            return (_make_message(asked),)
        case _:
            return ()


def _make_message(part: Node) -> Node:
    return make_mapping({"role": make_node("user", part.place), "content": part}, part.place)


def _make_part(kind: str, value: Node) -> Node:
    return make_mapping({"type": make_node(kind, value.place), "value": value}, value.place)


def _merge_metadata(shared: Node | None, own: Node | None) -> Node | None:
    """Merge metadata; the case's values take precedence. None keeps the case's own node."""
    if isinstance(shared, MappingNode) and isinstance(own, MappingNode):
        return replace_values(shared, {key: each.value for key, each in own.fields.items()})
    return shared if own is None else None
