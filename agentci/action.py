"""The action: reads the inputs of a workflow step instead of a command line."""

import os
from collections.abc import Mapping

from agentci.commands.run import run
from agentci.engines.world import World
from agentci.errors import InputError
from agentci.options import OPTIONS
from agentci.process import run_guarded
from agentci.publishing import refuse
from agentci.settings import settings_of

CONFIG_INPUT = "config"


def main() -> int:
    """Run the action on the inputs that the environment holds."""
    inputs = {
        name: os.environ.get(f"INPUT_{name.upper()}", "")
        for name in (CONFIG_INPUT, *(option.name for option in OPTIONS if not option.cli_only))
    }
    return run_guarded(lambda world: run_action(inputs, world), os.environ)


def run_action(inputs: Mapping[str, str], world: World) -> int:
    """Judge as ``inputs`` say, one value a line where an input takes several.

    Outputs are written on every way out, also when the inputs themselves are wrong.
    """
    repeated = {option.name for option in OPTIONS if option.repeats}
    values = {
        name: tuple(text.split("\n")) if name in repeated else (text,)
        for name, text in inputs.items()
    }
    configs = tuple(line.strip() for line in inputs[CONFIG_INPUT].split("\n") if line.strip())
    try:
        settings = settings_of(configs, values)
    except InputError as error:
        return refuse(error.problems, world)
    return run(settings, world)
