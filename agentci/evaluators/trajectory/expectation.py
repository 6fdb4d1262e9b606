"""Expected tool calls as written in a config: the grammar, and all problems of what is written."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from agentci._util.text.patterns import matches_name
from agentci._util.text.suggest import join_with_or, suggest_name
from agentci.evaluators.trajectory.matchers import (
    EXACT,
    IGNORE,
    MODES,
    PREFIX,
    SUPERSET,
    ArgumentRules,
    ExpectationProblem,
    ExpectationProblems,
    KeyPath,
    Matcher,
    MatcherReader,
    format_value,
)
from agentci.model.values import Json, JsonObject

GroupOrder: TypeAlias = Literal["in_order", "any_order", "any_of"]

IN_ORDER: Final = "in_order"
ANY_ORDER: Final = "any_order"
ANY_OF: Final = "any_of"
GROUPS: Final = (IN_ORDER, ANY_ORDER, ANY_OF)
RESERVED: Final = ("tool", "name", *GROUPS)
ALIASES: Final = {"name": "tool", "arguments": "args"}
CALL_KEYS: Final = (
    *("tool", "args", "args_match", "ignore", "defaults", "optional", "times", "status"),
)
FORBIDDEN_KEYS: Final = (
    *("tool", "args", "args_match", "ignore", "defaults", "status", "before", "after"),
)
PATTERN_KEYS: Final = ("tool", "args", "args_match", "ignore", "defaults", "status")
CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "order": (IN_ORDER, ANY_ORDER),
    "score": ("strict", "f1", "recall", "precision"),
    "parallel": ("free", "strict"),
    "credit": ("full", "arguments"),
    "scope": ("turn", "run"),
}
OPTIONS: Final = (
    *("calls", "order", "extra", "forbidden", "score", "threshold", "parallel", "credit"),
    *("args_match", "tools", "scope"),
)
STATUSES: Final = ("any", "ok", "error")
MAX_TIMES: Final = 1000
_TIMES: Final = re.compile(r"\s*(\d{1,6})\s*(?:(\.\.)\s*(\d{1,6})?\s*)?")


class CallPattern(Struct, frozen=True, kw_only=True):
    """Which calls are meant.

    Attributes:
        tools: names, with ``*`` and ``?``.
        args: None if arguments are not compared.
        by_tool: the rules for calls of a tool with options of its own, by the pattern of its name.
        status: ``any``, ``ok`` or ``error``.
    """

    tools: tuple[str, ...]
    args: ArgumentRules | None = None
    by_tool: Mapping[str, ArgumentRules | None] = {}
    status: str = "any"

    def names(self, tool: str) -> bool:
        """Return whether a call of ``tool`` can be meant."""
        return any(matches_name(pattern, tool) for pattern in self.tools)

    def find_rules(self, tool: str) -> ArgumentRules | None:
        """Return the rules for the arguments of a call of ``tool``."""
        for pattern, rules in self.by_tool.items():
            if matches_name(pattern, tool):
                return rules
        return self.args


class CallItem(Struct, frozen=True, kw_only=True):
    """A call that is expected ``least`` to ``most`` times; None for no upper limit."""

    pattern: CallPattern
    least: int = 1
    most: int | None = 1


class CallGroup(Struct, frozen=True, kw_only=True):
    """Calls and groups in order, in any order, or as alternatives."""

    order: GroupOrder
    items: "tuple[CallItem | CallGroup, ...]"
    optional: bool = False


class ForbiddenCall(Struct, frozen=True, kw_only=True):
    """A call that must not be made: ever, before one of another pattern, or after one."""

    pattern: CallPattern
    before: CallPattern | None = None
    after: CallPattern | None = None


class ExpectedTrajectory(Struct, frozen=True, kw_only=True):
    """The expected calls of a turn or a run, and how they are compared and scored.

    Attributes:
        extra: names of tools that may be called more often than expected.
    """

    calls: CallGroup
    extra: tuple[str, ...] = ()
    forbidden: tuple[ForbiddenCall, ...] = ()
    score: str = "strict"
    threshold: float = 1.0
    parallel: str = "free"
    credit: str = "full"
    scope: str = "turn"


class InvalidExpectationError(ValueError):
    """What is written is not an expectation; lists every problem."""

    def __init__(self, problems: Sequence[ExpectationProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(each.message for each in self.problems))


def read_trajectory(written: Json) -> ExpectedTrajectory:
    """Read a list of calls, or a mapping with ``calls`` and options.

    Raises:
        InvalidExpectationError: it breaks the grammar, or a matcher is invalid.
    """
    problems = ExpectationProblems()
    trajectory = _read_trajectory(written, problems)
    if problems.found:
        raise InvalidExpectationError(problems.distinct)
    return trajectory


def read_forbidden(written: Json) -> tuple[ForbiddenCall, ...]:
    """Read a list of calls that must not be made.

    Raises:
        InvalidExpectationError: it breaks the grammar, or a matcher is invalid.
    """
    problems = ExpectationProblems()
    found = _read_forbidden(written, (), problems)
    if problems.found:
        raise InvalidExpectationError(problems.distinct)
    return found


def _read_trajectory(written: Json, problems: ExpectationProblems) -> ExpectedTrajectory:
    if isinstance(written, Mapping):
        options: JsonObject = written
        path: KeyPath = ("calls",)
    else:
        options, path = {"calls": written}, ()
    if options and not any(key in OPTIONS or suggest_name(key, OPTIONS) for key in options):
        problems.add((), "calls must be a list, not a mapping", "begin each call with `- `")
        options = {"calls": []}
    for key in options:
        if key not in OPTIONS:
            problems.add_unknown_key((), key, OPTIONS, "a trajectory")
    reader = _CallReader(problems, options)
    calls = options.get("calls", [])
    if "calls" not in options and "forbidden" not in options:
        problems.add((), "the trajectory has no `calls`", "add `calls: [...]`")
    order = _read_choice(options, "order", problems)
    return ExpectedTrajectory(
        calls=CallGroup(
            order=ANY_ORDER if order == ANY_ORDER else IN_ORDER,
            items=reader.read_items(calls, path),
        ),
        extra=_read_extra(options, problems),
        forbidden=_read_forbidden(options.get("forbidden", []), ("forbidden",), problems),
        score=_read_choice(options, "score", problems),
        threshold=_read_threshold(options, problems),
        parallel=_read_choice(options, "parallel", problems),
        credit=_read_choice(options, "credit", problems),
        scope=_read_choice(options, "scope", problems),
    )


def _read_choice(options: JsonObject, name: str, problems: ExpectationProblems) -> str:
    choices = CHOICES[name]
    value = options.get(name, choices[0])
    if isinstance(value, str) and value in choices:
        return value
    hint = suggest_name(value, choices) if isinstance(value, str) else None
    message = f"`{name}` must be {join_with_or(choices)}, not {format_value(value)}"
    problems.add((name,), message, hint)
    return choices[0]


def _read_extra(options: JsonObject, problems: ExpectationProblems) -> tuple[str, ...]:
    value = options.get("extra", "forbid")
    if value in ("forbid", "allow"):
        return ("*",) if value == "allow" else ()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _read_names(value, ("extra",), problems)
    message = f"`extra` must be forbid, allow or a list of tools, not {format_value(value)}"
    problems.add(("extra",), message)
    return ()


def _read_threshold(options: JsonObject, problems: ExpectationProblems) -> float:
    value = options.get("threshold", 1.0)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    message = f"`threshold` must be a number from 0 to 1, not {format_value(value)}"
    problems.add(("threshold",), message)
    return 1.0


def _read_names(value: Json, path: KeyPath, problems: ExpectationProblems) -> tuple[str, ...]:
    """Read one name, or a list of names."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, Sequence):
        hint = f"write `{path[-1]}: NAME`"
        problems.add(path, f"`{path[-1]}` must be a name or a list of names", hint)
        return ()
    for index, name in enumerate(names):
        if not isinstance(name, str) or not name:
            problems.add((*path, index), f"a name must be a string, not {format_value(name)}")
    return tuple(str(name) for name in names)


def _read_forbidden(
    written: Json, path: KeyPath, problems: ExpectationProblems
) -> tuple[ForbiddenCall, ...]:
    if not isinstance(written, Sequence) or isinstance(written, str):
        message = f"forbidden calls must be a list, not {format_value(written)}"
        problems.add(path, message, "for example `[delete_order]`")
        return ()
    reader = _CallReader(problems, {"args_match": SUPERSET})
    return tuple(
        reader.read_forbidden_call(each, (*path, index)) for index, each in enumerate(written)
    )


class _ArgumentOptions(Struct, frozen=True, kw_only=True):
    """``args_match``, ``ignore`` and ``defaults``; None where one is not set."""

    mode: str | None = None
    only: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    defaults: JsonObject = {}


_CALLS_HINT: Final = "for example `[find_order, {refund: {amount: 5}}]`"
_TOOLS_HINT: Final = "for example `tools: {find_order: {ignore: [id]}}`"


class _CallReader:
    """Reads calls and groups.

    Args:
        options: of the whole trajectory, for ``args_match`` and ``tools``.
    """

    def __init__(self, problems: ExpectationProblems, options: JsonObject) -> None:
        self._problems = problems
        shared = {key: options[key] for key in ("args_match",) if key in options}
        self._shared = self._read_options(shared, ())
        self._tools = self._read_tools(options.get("tools", {}))

    def _read_tools(self, tools: Json) -> Mapping[str, _ArgumentOptions]:
        if not isinstance(tools, Mapping):
            message = "`tools` must be a mapping of tools to their options"
            self._problems.add(("tools",), message, _TOOLS_HINT)
            return {}
        read: dict[str, _ArgumentOptions] = {}
        for name, options in tools.items():
            path: KeyPath = ("tools", name)
            if not isinstance(options, Mapping):
                self._problems.add(path, "the options of a tool must be a mapping", _TOOLS_HINT)
                continue
            for key in options:
                if key not in ("args_match", "ignore", "defaults"):
                    known = ("args_match", "ignore", "defaults")
                    self._problems.add_unknown_key(path, key, known, "a tool")
            read[name] = self._read_options(options, path)
        return read

    def _read_options(self, written: JsonObject, path: KeyPath) -> _ArgumentOptions:
        mode, only = self._read_args_match(written.get("args_match"), (*path, "args_match"))
        ignore = written.get("ignore", [])
        defaults = written.get("defaults", {})
        if not isinstance(defaults, Mapping):
            message = "`defaults` must be a mapping of arguments"
            hint = "for example `defaults: {limit: 10}`"
            self._problems.add((*path, "defaults"), message, hint)
            defaults = {}
        names = _read_names(ignore, (*path, "ignore"), self._problems)
        return _ArgumentOptions(mode=mode, only=only, ignore=names, defaults=defaults)

    def _read_args_match(
        self, value: Json, path: KeyPath
    ) -> tuple[str | None, tuple[str, ...] | None]:
        if value is None:
            return None, None
        if isinstance(value, Sequence) and not isinstance(value, str):
            return EXACT, _read_names(value, path, self._problems)
        if isinstance(value, str) and value in MODES:
            return MODES[value], None
        hint = suggest_name(value, [*MODES]) if isinstance(value, str) else None
        message = (
            f"`args_match` must be {join_with_or([*dict.fromkeys(MODES.values())])}, "
            f"or a list of arguments, not {format_value(value)}"
        )
        self._problems.add(path, message, hint)
        return None, None

    def read_items(self, written: Json, path: KeyPath) -> "tuple[CallItem | CallGroup, ...]":
        """Read a list of calls and groups."""
        if not isinstance(written, Sequence) or isinstance(written, str):
            self._problems.add(
                path, f"calls must be a list, not {format_value(written)}", _CALLS_HINT
            )
            return ()
        return tuple(self.read_item(each, (*path, index)) for index, each in enumerate(written))

    def read_item(self, written: Json, path: KeyPath) -> CallItem | CallGroup:
        """Read a call or a group."""
        if isinstance(written, Mapping) and (group := _find_group(written)):
            return self._read_group(written, group, path)
        call = self._expand(written, path, CALL_KEYS)
        least, most = self._read_times(call, path)
        pattern = self._read_pattern(call, path, _find_args_key(written))
        return CallItem(pattern=pattern, least=least, most=most)

    def _read_group(self, written: JsonObject, order: str, path: KeyPath) -> CallGroup:
        known = (order,) if order == ANY_OF else (order, "optional")
        for key in written:
            if key not in known:
                self._problems.add_unknown_key(path, key, known, f"`{order}`")
        optional = written.get("optional", False)
        if not isinstance(optional, bool):
            self._problems.add(
                (*path, "optional"), "`optional` must be true or false", "write `optional: true`"
            )
        inner, items = written[order], (*path, order)
        if order == ANY_OF:
            return CallGroup(order=ANY_OF, items=self._read_paths(inner, items))
        if inner in ([], ()):
            self._problems.add(items, f"`{order}` must not be empty", _CALLS_HINT)
        return CallGroup(
            order=ANY_ORDER if order == ANY_ORDER else IN_ORDER,
            items=self.read_items(inner, items),
            optional=optional is True,
        )

    def _read_paths(self, written: Json, path: KeyPath) -> "tuple[CallItem | CallGroup, ...]":
        if not isinstance(written, Sequence) or isinstance(written, str) or not written:
            message = "`any_of` must be a list of calls and of lists of calls"
            hint = "for example `any_of: [refund, [find_order, cancel]]`"
            self._problems.add(path, message, hint)
            return ()
        return tuple(
            CallGroup(order=IN_ORDER, items=self.read_items(each, (*path, index)))
            if isinstance(each, Sequence) and not isinstance(each, str)
            else self.read_item(each, (*path, index))
            for index, each in enumerate(written)
        )

    def read_forbidden_call(self, written: Json, path: KeyPath) -> ForbiddenCall:
        """Read an item of ``forbidden``."""
        call = self._expand(written, path, FORBIDDEN_KEYS)
        others: dict[str, CallPattern | None] = {"before": None, "after": None}
        for key in others:
            if key in call:
                place = (*path, key)
                inner = self._expand(call[key], place, PATTERN_KEYS)
                others[key] = self._read_pattern(inner, place, _find_args_key(call[key]))
        pattern = self._read_pattern(call, path, _find_args_key(written))
        return ForbiddenCall(pattern=pattern, **others)

    def _expand(self, written: Json, path: KeyPath, known: tuple[str, ...]) -> JsonObject:
        """Return a call in its long form; empty if it is none."""
        if isinstance(written, str) and written:
            return {"tool": written}
        if not isinstance(written, Mapping) or not written:
            message = f"a call must be a name or a mapping, not {format_value(written)}"
            self._problems.add(path, message, "for example `find_order` or `refund: {amount: 5}`")
            return {}
        (first, value), *others = written.items()
        if not others and first not in RESERVED:
            return self._expand_short(first, value, path)
        is_short = written.keys().isdisjoint((*known, *RESERVED, *ALIASES))
        if is_short and (value is None or not any(suggest_name(key, known) for key in written)):
            return self._explain_several_keys(written, path)
        return self._read_long_form(written, path, known)

    def _read_long_form(
        self, written: JsonObject, path: KeyPath, known: tuple[str, ...]
    ) -> JsonObject:
        call = {ALIASES.get(key, key): each for key, each in written.items()}
        if len(call) < len(written):
            self._problems.add(
                path, "`name` is `tool`, and `arguments` is `args`; keep one of the two"
            )
        unknown = [key for key in call if key not in known]
        if unknown and "args" in call and call["args"] is None:
            args_key = _find_args_key(written)
            hint = f"indent {_list_names(unknown)} below it"
            self._problems.add((*path, args_key), f"`{args_key}` has no value", hint, key=True)
            return {key: call[key] for key in call if key in known and key != "args"}
        for key in call:
            if key not in known:
                names = (*known, *GROUPS) if known is CALL_KEYS else known
                self._problems.add_unknown_key(path, key, names, "a call")
        if "tool" not in call:
            hint = suggest_name(next(iter(written)), RESERVED) or "add `tool: NAME`"
            self._problems.add(path, "the call has no `tool`", hint)
        return call

    def _explain_several_keys(self, written: JsonObject, path: KeyPath) -> JsonObject:
        """Report a short form with several keys: its arguments, or a second call."""
        (first, value), *others = written.items()
        names = [key for key, _ in others]
        if value is None:
            message = f"`{first}` has no arguments"
            hint = f"indent {_list_names(names)} below it"
            self._problems.add((*path, first), message, hint, key=True)
        else:
            message = f"a call has several tools: {_list_names([first, *names])}"
            self._problems.add(path, message, "write a list item, with its own `-`, for each call")
        return {"tool": first}

    def _expand_short(self, tool: str, args: Json, path: KeyPath) -> JsonObject:
        if args is not None:
            return {"tool": tool, "args": args}
        hint = f"write `{tool}` for any arguments, or `{tool}: {{}}` for none"
        self._problems.add((*path, tool), f"`{tool}` has no arguments", hint)
        return {"tool": tool}

    def _read_pattern(self, call: JsonObject, path: KeyPath, args_key: str) -> CallPattern:
        tools = _read_names(call["tool"], (*path, "tool"), self._problems) if "tool" in call else ()
        if call.get("tool") in ([], ()):
            self._problems.add((*path, "tool"), "`tool` must not be empty", "write `tool: NAME`")
        status = call.get("status", STATUSES[0])
        if status not in STATUSES:
            message = f"`status` must be {join_with_or(STATUSES)}, not {format_value(status)}"
            self._problems.add((*path, "status"), message)
        own = self._read_options(call, path)
        by_tool = {
            pattern: self._make_rules(call, (*path, args_key), own, options)
            for pattern, options in self._tools.items()
        }
        return CallPattern(
            tools=tools,
            args=self._make_rules(call, (*path, args_key), own, _ArgumentOptions()),
            by_tool=by_tool,
            status=str(status),
        )

    def _make_rules(
        self, call: JsonObject, path: KeyPath, own: _ArgumentOptions, tool: _ArgumentOptions
    ) -> ArgumentRules | None:
        """Make the rules of a call, whose arguments are at ``path``.

        Its own options come before those of its tool.
        """
        first = next(each for each in (own, tool, self._shared, _EXACT) if each.mode is not None)
        if "args" not in call or first.mode == IGNORE:
            return None
        args = call["args"]
        if not isinstance(args, Mapping):
            message = f"arguments must be a mapping, not {format_value(args)}"
            self._problems.add(path, message, "for example `{amount: 5}`")
            return None
        named, whole = self._read_arguments(args, path, is_open=first.mode == SUPERSET)
        return ArgumentRules(
            named=named,
            whole=whole,
            mode=first.mode or EXACT,
            only=first.only,
            ignore=(*own.ignore, *tool.ignore),
            defaults={**tool.defaults, **own.defaults},
        )

    def _read_arguments(
        self, args: JsonObject, path: KeyPath, *, is_open: bool
    ) -> tuple[Mapping[str, Matcher], Matcher | None]:
        reader = MatcherReader(self._problems, is_open=is_open)
        if any(key.startswith(PREFIX) for key in args):
            return {}, reader.read(args, path)
        return {key: reader.read(value, (*path, key)) for key, value in args.items()}, None

    def _read_times(self, call: JsonObject, path: KeyPath) -> tuple[int, int | None]:
        optional = call.get("optional", False)
        if not isinstance(optional, bool):
            self._problems.add(
                (*path, "optional"), "`optional` must be true or false", "write `optional: true`"
            )
        least, most = 1, _ONCE
        if "times" in call:
            found = _parse_times(call["times"])
            if found is None:
                message = f"`times` must be a count or a range, not {format_value(call['times'])}"
                hint = 'such as `3`, `"1..3"`, `"2.."` or `{min: 1, max: 3}`'
                self._problems.add((*path, "times"), message, hint)
            else:
                least, most = found
        return (0 if optional is True else least), most


_ONCE: Final[int | None] = 1
_EXACT: Final = _ArgumentOptions(mode=EXACT)


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(f"`{each}`" for each in names)


def _find_args_key(written: Json) -> str:
    """The key of a call's arguments; in the short form, the tool's name."""
    keys = [*written] if isinstance(written, Mapping) else []
    return next((key for key in ("args", "arguments") if key in keys), (*keys, "args")[0])


def _find_group(written: JsonObject) -> str | None:
    return next((key for key in GROUPS if key in written), None)


def _parse_times(value: Json) -> tuple[int, int | None] | None:
    """Parse ``3``, ``"1..3"``, ``"2.."`` or ``{min, max}``; None if it is none of them."""
    if isinstance(value, int) and not isinstance(value, bool):
        return _check_range(value, value)
    if isinstance(value, str) and (found := _TIMES.fullmatch(value)):
        least, dots, most = int(found[1]), found[2], found[3]
        return _check_range(least, least if not dots else int(most) if most else None)
    if isinstance(value, Mapping) and value and value.keys() <= {"min", "max"}:
        low, high = value.get("min", 0), value.get("max")
        if _is_count(low) and (high is None or _is_count(high)):
            return _check_range(int(str(low)), None if high is None else int(str(high)))
    return None


def _is_count(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_range(least: int, most: int | None) -> tuple[int, int | None] | None:
    highest = least if most is None else most
    return (least, most) if 0 <= least <= highest <= MAX_TIMES and highest > 0 else None
