"""``agentci schema``: print a JSON Schema, for editors and other programs."""

import json
from collections.abc import Callable, Mapping

from agentci.config.agentv.schema import make_eval_file_schema
from agentci.config.schema import make_config_schema
from agentci.remote.lock.file import lock_schema
from agentci.reports.results_schema import make_results_schema
from agentci.runner.services import Services


def print_schema(name: str, world: Services) -> int:
    """Print the schema ``config``, ``evalfile`` (AgentV's), ``results`` or ``lock``."""
    schemas: Mapping[str, Callable[[], object]] = {
        "config": make_config_schema,
        "evalfile": make_eval_file_schema,
        "results": make_results_schema,
        "lock": lock_schema,
    }
    schema = schemas[name]()
    world.out.write(f"{json.dumps(schema, indent=2, ensure_ascii=False)}\n")
    return 0
