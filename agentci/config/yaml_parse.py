"""Parse YAML into a tree with positions, within limits on size and depth.

The tree is built from the parser's events, so that a malicious file is rejected before it uses
much memory. PyYAML's own loader has no such limits.
"""

import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from functools import reduce
from typing import Final, TypeAlias

import yaml
from msgspec import Struct

from agentci._util.workspace import find_place_after
from agentci.config.yaml_nodes import MappingEntry, MappingNode, Node, ScalarNode, SequenceNode
from agentci.errors import InputError
from agentci.model.values import Place, Problem

_DATE_PATTERN = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_DATETIME_PATTERN = re.compile(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})(?:[Tt]|[ \t]+)"
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
    r"(?:\.(?P<fraction>[0-9]*))?"
    r"(?:[ \t]*(?P<zone>Z|(?P<sign>[-+])(?P<hours>[0-9]{1,2})(?::(?P<minutes>[0-9]{2}))?))?"
)


def format_iso_date(text: str) -> str | None:
    """Format a date or time in ISO 8601, as agentevals passes it to evaluators; else None."""
    try:
        if found := _DATE_PATTERN.fullmatch(text):
            return date(int(found[1]), int(found[2]), int(found[3])).isoformat()
        if found := _DATETIME_PATTERN.fullmatch(text):
            return _parse_datetime(found).isoformat().replace("+00:00", "Z")
    except ValueError:
        # A date that does not exist, such as 30 February, is text.
        return None
    return None


def _parse_datetime(found: re.Match[str]) -> datetime:
    return datetime(
        int(found["year"]),
        int(found["month"]),
        int(found["day"]),
        int(found["hour"]),
        int(found["minute"]),
        int(found["second"]),
        int((found["fraction"] or "")[:6].ljust(6, "0")),
        _parse_timezone(found),
    )


def _parse_timezone(found: re.Match[str]) -> timezone | None:
    if found["zone"] == "Z":
        return UTC
    if found["sign"] is None:
        return None
    offset = timedelta(hours=int(found["hours"]), minutes=int(found["minutes"] or 0))
    return timezone(-offset if found["sign"] == "-" else offset)


# Longer numbers are mistakes, and slow to convert.
MAX_NUMBER_CHARACTERS = 1000

# YAML 1.1 reads these as booleans, YAML 1.2 and most people as text.
BOOLEAN_WORDS = {"yes": True, "on": True, "no": False, "off": False}


class ResolvedScalar(Struct, frozen=True, kw_only=True):
    """The value of a plain scalar.

    Attributes:
        error: why the text has no usable value; ``hint`` suggests a fix.
        note: what the user should know about the value.
    """

    value: str | float | bool | None
    error: str | None = None
    note: str | None = None
    hint: str | None = None


def resolve_plain_scalar(text: str) -> ResolvedScalar:
    """Resolve an unquoted value."""
    if text in _CONSTANTS:
        return ResolvedScalar(value=_CONSTANTS[text])
    if text[0] in "0123456789+-.":
        for pattern, read in _SCALAR_PATTERNS:
            if found := pattern.fullmatch(text):
                is_short = len(text) <= MAX_NUMBER_CHARACTERS or read is _resolve_date
                return read(found) if is_short else _make_length_error(text)
    return ResolvedScalar(value=text)


def _list_case_variants(word: str) -> tuple[str, str, str]:
    return word, word.capitalize(), word.upper()


_CONSTANTS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", *_list_case_variants("null"))),
    **{
        text: value
        for word, value in {"true": True, "false": False, **BOOLEAN_WORDS}.items()
        for text in _list_case_variants(word)
    },
}


def _make_length_error(text: str) -> ResolvedScalar:
    return _make_scalar_error(
        f"a number of {len(text)} characters is too long", "put it in quotes if it is a string"
    )


def _resolve_integer(found: re.Match[str]) -> ResolvedScalar:
    digits = found[0].replace("_", "")
    value = int(digits, 0)
    return ResolvedScalar(value=value) if _is_in_range(value) else _make_size_error(found[0])


def _resolve_octal(found: re.Match[str]) -> ResolvedScalar:
    value = int(found[0], 8)
    if not _is_in_range(value):
        return _make_size_error(found[0])
    return ResolvedScalar(
        value=value,
        note=f"{found[0]} is read as the number {value} (YAML 1.2)",
        hint="put it in quotes if it is a string",
    )


def _reject_leading_zero(found: re.Match[str]) -> ResolvedScalar:
    text = found[0]
    return _make_scalar_error(
        f"{text} is ambiguous: YAML 1.1 and 1.2 read the leading zero differently",
        f'write the number without the zero, or "{text}" in quotes if it is a string',
    )


def _reject_sexagesimal(found: re.Match[str]) -> ResolvedScalar:
    text = found[0]
    parts = text.replace("_", "").lstrip("+-").split(":")
    seconds = reduce(lambda so_far, part: so_far * 60 + float(part), parts, 0.0)
    return _make_scalar_error(
        f"{text} is ambiguous: the number {seconds:.15g} in YAML 1.1 (base 60), a string in 1.2",
        f'write the number, or "{text}" in quotes if it is a string',
    )


def _resolve_decimal(found: re.Match[str]) -> ResolvedScalar:
    return _resolve_finite(found[0].replace("_", ""), notice=None)


def _resolve_scientific(found: re.Match[str]) -> ResolvedScalar:
    """Read ``1e3`` as a number; YAML 1.1 reads it as text, since it requires a dot and a sign."""
    text = found[0]
    return _resolve_finite(
        text, notice=f"{text} is read as the number {float(text):.15g} (YAML 1.2)"
    )


def _resolve_finite(digits: str, *, notice: str | None) -> ResolvedScalar:
    value = float(digits)
    if math.isinf(value):
        return _make_size_error(digits)
    hint = None if notice is None else "put it in quotes if it is a string"
    return ResolvedScalar(value=value, note=notice, hint=hint)


def _is_in_range(value: int) -> bool:
    """Return whether an integer can be compared and combined with floats."""
    return abs(value) <= sys.float_info.max


def _make_size_error(text: str) -> ResolvedScalar:
    return _make_scalar_error(
        f"{text} is too large for a number", "put it in quotes if it is a string"
    )


def _reject_not_finite(found: re.Match[str]) -> ResolvedScalar:
    return _make_scalar_error(
        f"{found[0]} is not supported: JSON, which evaluators read, has no such number",
        f'write a number, or "{found[0]}" in quotes if it is a string',
    )


def _resolve_date(found: re.Match[str]) -> ResolvedScalar:
    text = found[0]
    value = format_iso_date(text) or text
    if value == text:
        return ResolvedScalar(value=value)
    return ResolvedScalar(
        value=value,
        note=f"{text} is a date in YAML, read as {value}",
        hint="put it in quotes to keep it unchanged",
    )


def _make_scalar_error(message: str, hint: str) -> ResolvedScalar:
    return ResolvedScalar(value=None, error=message, hint=hint)


_ScalarResolver = Callable[[re.Match[str]], ResolvedScalar]

# Tried in this order. The YAML 1.1 forms are from https://yaml.org/type/.
_SCALAR_PATTERNS: tuple[tuple[re.Pattern[str], _ScalarResolver], ...] = (
    (
        re.compile(r"[-+]?(?:0|[1-9][0-9_]*|0x[0-9a-fA-F_]*[0-9a-fA-F][0-9a-fA-F_]*)"),
        _resolve_integer,
    ),
    (re.compile(r"[-+]?0b[01_]*[01][01_]*"), _resolve_integer),
    (re.compile(r"[-+]?0o[0-7]+"), _resolve_octal),
    (re.compile(r"[-+]?0[0-9_]+"), _reject_leading_zero),
    (re.compile(r"[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+"), _reject_sexagesimal),
    (re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*"), _reject_sexagesimal),
    (re.compile(r"[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?"), _resolve_decimal),
    (re.compile(r"\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"), _resolve_decimal),
    (re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"), _resolve_scientific),
    (re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"), _reject_not_finite),
    (re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*"), _resolve_date),
)


_SYNTAX_HINTS: Final = {
    "mapping values are not allowed": (
        "put values that contain a colon in quotes; indent all keys of a mapping equally"
    ),
    "cannot start any token": "put values that begin with @, ` or % in quotes",
    "unexpected end of stream": "a quote or bracket is not closed",
    "did not find expected ',' or": "a bracket is not closed, or a comma is missing",
    "did not find expected key": "indent all keys of a mapping equally",
    "did not find expected '-'": "indent the `-` of all items of a list equally",
    "could not find expected ':'": "write `key: value`, with a space after the colon",
    "<document start>": "remove what follows the end of the document",
}

# Characters that are not printable in YAML 1.1.
_UNPRINTABLE: Final = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)


def find_unprintable_character(text: str, *, file: str) -> Problem | None:
    """Find the first character in ``text`` that YAML does not allow; None if there is none."""
    found = _UNPRINTABLE.search(text)
    if found is None:
        return None
    return Problem(
        message=f"the character U+{ord(found[0]):04X} is not allowed in a YAML file",
        place=find_place_after(text[: found.start()], file=file),
        hint="write it as an escape in double quotes, or remove it",
    )


def make_syntax_problem(error: yaml.YAMLError, text: str, *, file: str) -> Problem:
    """Describe a syntax error in ``text`` with its position."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return Problem(message="invalid YAML", place=Place(file=file))
    what = error.problem or "it cannot be read"
    mark = error.problem_mark
    if "unexpected end of stream" in what and error.context_mark is not None:
        # The position of the unclosed quote is more useful than the end of the file.
        mark = error.context_mark
    if bracket := _find_open_bracket(what, error.problem_mark, text, file):
        return bracket
    if tab := _find_indentation_tab(text, mark.line):
        return Problem(
            message="the line is indented with a tab, which YAML does not allow",
            place=Place(file=file, line=mark.line + 1, column=tab),
            hint="use spaces",
        )
    return Problem(
        message=f"invalid YAML: {what}{_format_context(error, mark)}",
        place=Place(file=file, line=mark.line + 1, column=mark.column + 1),
        hint=next((hint for words, hint in _SYNTAX_HINTS.items() if words in what), None),
    )


def _find_open_bracket(what: str, error: yaml.Mark, text: str, file: str) -> Problem | None:
    """Describe the innermost bracket that is not closed, if that may be the error.

    Args:
        error: position of the error.
    """
    if "expected" not in what:
        return None
    opened: list[tuple[yaml.Mark, str, str]] = []
    try:
        for token in _scan_around(error, text):
            if isinstance(token, yaml.FlowSequenceStartToken):
                opened.append((token.start_mark, "[", "]"))
            elif isinstance(token, yaml.FlowMappingStartToken):
                opened.append((token.start_mark, "{", "}"))
            elif opened and isinstance(token, yaml.FlowSequenceEndToken | yaml.FlowMappingEndToken):
                opened.pop()
    except yaml.YAMLError:
        return None
    opened = [each for each in opened if each[0].index < error.index]
    if not opened:
        return None
    mark, opening, closing = opened[-1]
    return Problem(
        message=f"invalid YAML: `{opening}` is not closed",
        place=Place(file=file, line=mark.line + 1, column=mark.column + 1),
        hint=f"add `{closing}`",
    )


# Enough to see whether a bracket before the error is closed; a file may be large.
MAX_TOKENS_AFTER_ERROR: Final = 1000


def _scan_around(error: yaml.Mark, text: str) -> Iterator[yaml.Token]:
    """Yield the tokens before an error, and some after it."""
    left = MAX_TOKENS_AFTER_ERROR
    for token in yaml.scan(text, Loader=_LOADER):
        left -= token.start_mark.index >= error.index
        if left < 0:
            return
        yield token


def _find_indentation_tab(text: str, line: int) -> int:
    """The column of a tab in the indentation of a line (0-based); 0 if there is none."""
    lines = text.splitlines()
    if line >= len(lines):
        return 0
    blanks = lines[line][: len(lines[line]) - len(lines[line].lstrip(" \t-"))]
    return blanks.find("\t") + 1


def _format_context(error: yaml.MarkedYAMLError, shown: yaml.Mark) -> str:
    """Where the construct being parsed began, unless that line is shown already."""
    begin = error.context_mark
    if error.context is None or begin is None or begin.line == shown.line:
        return ""
    return f" ({error.context} from line {begin.line + 1})"


NodePair: TypeAlias = tuple[Node, Node]


def build_mapping_node(
    pairs: Sequence[NodePair], place: Place
) -> tuple[MappingNode, tuple[Problem, ...]]:
    """Build a mapping from keys and values in file order.

    Keys are taken as written, including numbers. The first of two equal keys counts. Keys of the
    mapping itself take precedence over keys merged by ``<<``. Among merged mappings, the first of a
    list and the last of several ``<<`` take precedence, as in PyYAML.
    """
    problems: list[Problem] = []
    fields: dict[str, MappingEntry] = {}
    merged: list[MappingNode] = []
    for key, value in pairs:
        if isinstance(key, ScalarNode) and key.plain and key.text == "<<":
            merged = [*_find_merged_mappings(value, problems), *merged]
            continue
        problem = _find_key_problem(key, fields)
        if problem is not None:
            problems.append(problem)
        elif isinstance(key, ScalarNode):
            fields[key.text] = MappingEntry(place=key.place, value=value)
    for mapping in merged:
        fields = {**mapping.fields, **fields}
    return _make_sized_mapping(fields, place), tuple(problems)


def _find_key_problem(key: Node, before: dict[str, MappingEntry]) -> Problem | None:
    if not isinstance(key, ScalarNode):
        hint = "put strings that begin with { or [ in quotes"
        return Problem(message="a key must be a string", place=key.place, hint=hint)
    text = key.text
    if text in before:
        message = f"duplicate key {text!r}, first set on line {before[text].place.line}"
        return Problem(message=message, place=key.place, hint="remove one of them")
    if key.plain and text.lower() in BOOLEAN_WORDS:
        message = f"YAML reads the key {text} as true or false"
        return Problem(message=message, place=key.place, hint=f'put it in quotes: "{text}"')
    if key.plain and text in {"", "~"}:
        return Problem(message="a key is missing before the colon", place=key.place)
    return None


def _find_merged_mappings(node: Node, problems: list[Problem]) -> Iterator[MappingNode]:
    """Find the mappings merged by ``<<``, highest precedence first."""
    for part in node.items if isinstance(node, SequenceNode) else (node,):
        if isinstance(part, MappingNode):
            yield part
        else:
            message = "`<<` merges mappings, but this is not a mapping"
            hint = "use an alias of a mapping (`<<: *name`), or a list of aliases"
            problems.append(Problem(message=message, place=part.place, hint=hint))


def _make_sized_mapping(fields: dict[str, MappingEntry], place: Place) -> MappingNode:
    values = [field.value for field in fields.values()]
    return MappingNode(
        place=place,
        fields=fields,
        size=1 + sum(1 + value.size for value in values),
        height=1 + max((value.height for value in values), default=0),
    )


MAX_DEPTH: Final = 64
MAX_NODES: Final = 100_000

_EXPECTED_KEYS_HINT: Final = (
    "run `agentci init`, which writes a config, or add `traces:` with `checks:` or `evaluators:`; "
    "an eval file has `tests:`"
)
_SIZE_HINT: Final = "move data to other files"
_LOADER: Final = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader

_STANDARD: Final = "tag:yaml.org,2002:"
_COLLECTION_TAGS: Final = frozenset({"!", f"{_STANDARD}seq", f"{_STANDARD}map"})
_TEXT_TAGS: Final = frozenset({"!", f"{_STANDARD}str"})
_SCALAR_TAGS: Final[dict[str, tuple[type, ...]]] = {
    f"{_STANDARD}int": (int,),
    f"{_STANDARD}float": (int, float),
    f"{_STANDARD}bool": (bool,),
    f"{_STANDARD}null": (type(None),),
}


def parse_yaml_mapping(
    text: str, *, file: str, content_hint: str = ""
) -> tuple[MappingNode, tuple[Problem, ...]]:
    """Parse YAML with a mapping at the top level.

    Args:
        content_hint: what to write, if there is nothing or no mapping; empty for a config.

    Returns:
        The tree, and the errors and notes that leave it usable.

    Raises:
        InputError: the text is not YAML, not one mapping, or beyond the limits.
    """
    root, problems = parse_yaml_node(text, file=file, content_hint=content_hint)
    if not isinstance(root, MappingNode):
        raise _not_a_mapping_error(root, content_hint)
    return root, problems


def parse_yaml_node(
    text: str, *, file: str, content_hint: str = ""
) -> tuple[Node, tuple[Problem, ...]]:
    """Parse YAML with any top level; otherwise like ``parse_yaml_mapping``.

    Raises:
        InputError: the text is not YAML, not one document, or beyond the limits.
    """
    if problem := find_unprintable_character(text, file=file):
        raise InputError([problem])
    composer = _NodeComposer(text, file, content_hint or _EXPECTED_KEYS_HINT)
    try:
        root = composer.compose_document()
    except yaml.YAMLError as error:
        raise InputError([make_syntax_problem(error, text, file=file)]) from None
    return root, tuple(composer.problems)


class _NodeComposer:
    def __init__(self, text: str, file: str, content_hint: str) -> None:
        self.problems: list[Problem] = []
        self._file = file
        self._content_hint = content_hint
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=_LOADER)
        self._anchors: dict[str, Node | None] = {}
        self._size = 0

    def compose_document(self) -> Node:
        next(self._events)  # the start of the stream
        if isinstance(next(self._events), yaml.StreamEndEvent):
            raise InputError.from_message(
                "the file is empty", place=Place(file=self._file), hint=self._content_hint
            )
        root = self._compose_node(next(self._events), depth=0)
        next(self._events)  # the end of the document
        after = next(self._events)
        if isinstance(after, yaml.DocumentStartEvent):
            raise InputError.from_message(
                "the file has more than one YAML document",
                place=self._make_place(after),
                hint="put each config in its own file",
            )
        return root

    def _compose_node(self, event: yaml.Event, *, depth: int) -> Node:
        place = self._make_place(event)
        self._check_limits(1, depth, place)
        match event:
            case yaml.AliasEvent():
                return self._resolve_alias(event, depth, place)
            case yaml.ScalarEvent():
                node: Node = self._compose_scalar(event, place)
            case yaml.SequenceStartEvent():
                self._start_collection(event, place)
                node = self._compose_sequence(depth, place)
            case yaml.MappingStartEvent():
                self._start_collection(event, place)
                node = self._compose_mapping(depth, place)
            case _:  # pragma: no cover (the parser has no other events here)
                raise TypeError(event)
        self._anchors[event.anchor or ""] = node
        return node

    def _start_collection(self, event: yaml.CollectionStartEvent, place: Place) -> None:
        """Register the anchor of a node that is not complete yet, and reject unknown tags."""
        self._anchors[event.anchor or ""] = None
        if event.tag is not None and event.tag not in _COLLECTION_TAGS:
            self._add_problem(*_format_unknown_tag(event.tag), place)

    def _resolve_alias(self, event: yaml.AliasEvent, depth: int, place: Place) -> Node:
        name = event.anchor
        if name not in self._anchors:
            raise InputError.from_message(
                f"unknown alias *{name}: no anchor &{name} precedes it",
                place=place,
                hint="put strings that begin with * in quotes",
            )
        node = self._anchors[name]
        if node is None:
            raise InputError.from_message(
                f"the alias *{name} is inside its own anchor &{name}", place=place
            )
        self._check_limits(node.size, depth + node.height, place)
        return node

    def _compose_sequence(self, depth: int, place: Place) -> SequenceNode:
        items: list[Node] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._compose_node(event, depth=depth + 1))
        return SequenceNode(
            place=place,
            items=tuple(items),
            size=1 + sum(item.size for item in items),
            height=1 + max((item.height for item in items), default=0),
        )

    def _compose_mapping(self, depth: int, place: Place) -> MappingNode:
        pairs: list[NodePair] = []
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._compose_key(event) or self._compose_node(event, depth=depth + 1)
            pairs.append((key, self._compose_node(next(self._events), depth=depth + 1)))
        fields, problems = build_mapping_node(pairs, place)
        self.problems += problems
        return fields

    def _compose_key(self, event: yaml.Event) -> ScalarNode | None:
        """A key as written, without YAML type resolution; None if it is not a scalar."""
        if not isinstance(event, yaml.ScalarEvent):
            return None
        plain = event.tag is None and event.implicit[0]
        node = ScalarNode(
            place=self._make_place(event), value=event.value, text=event.value, plain=plain
        )
        self._anchors[event.anchor or ""] = node
        return node

    def _compose_scalar(self, event: yaml.ScalarEvent, place: Place) -> ScalarNode:
        text = event.value
        if event.tag in _TEXT_TAGS or (event.tag is None and not event.implicit[0]):
            return ScalarNode(place=place, value=text, text=text, plain=False)
        reading = resolve_plain_scalar(text)
        if event.tag is not None:
            types = _SCALAR_TAGS.get(event.tag)
            if types is None:
                self._add_problem(*_format_unknown_tag(event.tag), place)
            elif not isinstance(reading.value, types):
                self._add_problem(f"{text!r} does not match its YAML tag", "remove the tag", place)
        if reading.error is not None:
            self._add_problem(reading.error, reading.hint, place)
        if reading.note is not None:
            self.problems.append(
                Problem(message=reading.note, place=place, hint=reading.hint, severity="note")
            )
        return ScalarNode(place=place, value=reading.value, text=text, plain=True)

    def _add_problem(self, message: str, hint: str | None, place: Place) -> None:
        self.problems.append(Problem(message=message, place=place, hint=hint))

    def _check_limits(self, size: int, depth: int, place: Place) -> None:
        self._size += size
        if self._size > MAX_NODES:
            message = f"the file has more than {MAX_NODES:,} values after expanding aliases"
            raise InputError.from_message(message, place=place, hint=_SIZE_HINT)
        if depth > MAX_DEPTH:
            message = f"nested more than {MAX_DEPTH} levels deep"
            raise InputError.from_message(message, place=place, hint=_SIZE_HINT)

    def _make_place(self, event: yaml.Event) -> Place:
        mark = event.start_mark
        if mark is None:  # pragma: no cover (only PyYAML's types make marks optional)
            return Place(file=self._file)
        return Place(file=self._file, line=mark.line + 1, column=mark.column + 1)


def _format_unknown_tag(tag: str) -> tuple[str, str]:
    short = tag.replace(_STANDARD, "!!")
    return f"unsupported YAML tag {short}", "remove it; configs have only plain values"


def _not_a_mapping_error(root: Node, content_hint: str) -> InputError:
    match root:
        case SequenceNode():
            message, hint = (
                "the top level must be a mapping, not a list",
                "put evaluators below `evaluators:`, or cases below `tests:`",
            )
        case ScalarNode(value=None, plain=True):
            message, hint = "the file has no content", _EXPECTED_KEYS_HINT
        case _:
            message, hint = "the top level must be a mapping, not a string", _EXPECTED_KEYS_HINT
    return InputError.from_message(message, place=root.place, hint=content_hint or hint)
