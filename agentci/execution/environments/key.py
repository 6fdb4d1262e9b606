"""When two evaluators may share an environment."""

import hashlib
import json
import sys
from functools import cache
from typing import Final

from agentci.execution.environments.requirements import Requirements
from agentci.execution.environments.sdk_files import contents

# Of what an environment consists of beside its packages; a higher one makes all of them anew.
FORMAT: Final = 1


def digest_of(requirements: Requirements) -> str:
    """Name the environment that ``requirements`` need on this machine, in hexadecimal.

    Comments, blanks and the order of lines make no difference.

    Raises:
        EvaluatorError: there is something in them that is not to be installed.
    """
    facts = {
        "format": FORMAT,
        "python": base_python(),
        "lines": sorted(set(requirements.installed())),
        "locked": bool(requirements.locked),
        "shipped": {name: hashlib.sha256(data).hexdigest() for name, data in contents().items()},
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


@cache
def base_python() -> tuple[str, ...]:
    """What an environment does not survive a change of: the Python that it leans on."""
    import sysconfig  # noqa: PLC0415 (only needed where something is installed)

    base = str(getattr(sys, "_base_executable", sys.executable))  # Python has no public name for it
    return (sys.version, str(sysconfig.get_config_var("SOABI")), sysconfig.get_platform(), base)
