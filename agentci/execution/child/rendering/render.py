r"""Fills a Jinja2 template, and keeps what was put in apart from the template's own words.

Runs as a program, because a template is one, too: it can loop for ever. On stdin it reads
``{"template", "variables"}``; on stdout it prints ``{"text", "values"}``: where a value goes the
text has ``\0N\0``, and ``values[N]`` is ``[name, text]``, with an empty name for what is no
variable as it is. A template that cannot be filled has this exit with 1, and the reason on stderr.
"""

import json
import re
import sys
from typing import Any, Final

from jinja2 import StrictUndefined, UndefinedError
from jinja2.sandbox import SandboxedEnvironment

PLACEHOLDER: Final = re.compile("\0([0-9]+)\0")


class TemplateValues:
    """What a template prints, in its order; of use to one template."""

    def __init__(self, variables: dict[str, Any]) -> None:
        self.printed: list[tuple[str, str]] = []
        self._names = {id(value): name for name, value in variables.items() if name.isidentifier()}

    def add(self, value: Any) -> str:
        """Note ``value``; what stands for it in the text."""
        text = value if isinstance(value, str) else _format_value(value)
        name = self._names.get(id(value), "")
        # What a macro or a block has put together holds values that are noted already.
        self.printed.append(
            (name, PLACEHOLDER.sub(lambda place: self.printed[int(place[1])][1], text))
        )
        return f"\0{len(self.printed) - 1}\0"


def main() -> int:
    """Fill one template, and say how that went."""
    asked = json.load(sys.stdin.buffer)
    variables = {name: _strip_nul(value) for name, value in asked["variables"].items()}
    values = TemplateValues(variables)
    environment = SandboxedEnvironment(
        undefined=StrictUndefined, finalize=values.add, keep_trailing_newline=True
    )
    try:
        text = environment.from_string(_strip_nul(asked["template"])).render(variables)
    except UndefinedError as error:
        sys.stderr.write(f"{error.message}; the variables are {', '.join(variables)}\n")
        return 1
    except Exception as error:  # noqa: BLE001 (whatever a template does is its own fault)
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    json.dump({"text": text, "values": values.printed}, sys.stdout)
    return 0


def _format_value(value: Any) -> str:
    """Lists and mappings as JSON; raises where ``value`` is not defined."""
    if isinstance(value, list | dict | bool) or value is None:
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _strip_nul(value: Any) -> Any:
    return value.replace("\0", "") if isinstance(value, str) else value


if __name__ == "__main__":
    sys.exit(main())
