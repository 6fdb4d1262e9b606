r"""Render a Jinja2 template, keeping inserted values separate from the template's own text.

Runs as a program, because a template can loop forever. Stdin is ``{"template", "variables"}``, and
``templates`` by name if it extends one.
Stdout is ``{"text", "values"}``: ``text`` has ``\0N\0`` in place of a value, and ``values[N]`` is
``[name, text]``, where the name is empty unless the value is an unchanged variable. If the template
cannot be rendered, the exit code is 1, and the reason is on stderr.
"""

import json
import re
import sys
from typing import Any, Final

from jinja2 import DictLoader, StrictUndefined, UndefinedError
from jinja2.sandbox import SandboxedEnvironment

PLACEHOLDER: Final = re.compile("\0([0-9]+)\0")


class TemplateValues:
    """Collects the values that one template prints, in order."""

    def __init__(self, variables: dict[str, Any]) -> None:
        self.printed: list[tuple[str, str]] = []
        self._names = {id(value): name for name, value in variables.items() if name.isidentifier()}

    def add(self, value: Any) -> str:
        """Record ``value``, and return its placeholder."""
        text = value if isinstance(value, str) else _format_value(value)
        name = self._names.get(id(value), "")
        # The output of a macro or block contains placeholders of values that are recorded already.
        self.printed.append(
            (name, PLACEHOLDER.sub(lambda place: self.printed[int(place[1])][1], text))
        )
        return f"\0{len(self.printed) - 1}\0"


def main() -> int:
    """Render the template from stdin, and return the exit code."""
    request = json.load(sys.stdin.buffer)
    variables = {name: _strip_nul(value) for name, value in request["variables"].items()}
    values = TemplateValues(variables)
    environment = SandboxedEnvironment(
        undefined=StrictUndefined,
        finalize=values.add,
        keep_trailing_newline=True,
        loader=DictLoader(request.get("templates", {})),
    )
    try:
        text = environment.from_string(_strip_nul(request["template"])).render(variables)
    except UndefinedError as error:
        sys.stderr.write(f"{error.message}; available variables: {', '.join(variables)}\n")
        return 1
    except Exception as error:  # noqa: BLE001 (any failure is the template's)
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    json.dump({"text": text, "values": values.printed}, sys.stdout)
    return 0


def _format_value(value: Any) -> str:
    """Format lists, mappings, booleans and None as JSON; raise if ``value`` is undefined."""
    if isinstance(value, list | dict | bool) or value is None:
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _strip_nul(value: Any) -> Any:
    return value.replace("\0", "") if isinstance(value, str) else value


if __name__ == "__main__":
    sys.exit(main())
