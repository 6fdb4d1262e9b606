"""``agentci schema``: print a JSON Schema, for editors and other programs."""

import json
from collections.abc import Callable, Mapping

from agentci.config.agentv.schema import eval_file_schema
from agentci.config.schema import json_schema
from agentci.remote.lock.file import lock_schema
from agentci.reports.results_schema import results_schema
from agentci.runner.services import World


def show_schema(name: str, world: World) -> int:
    """Print the schema ``config``, ``evalfile`` (AgentV's), ``results`` or ``lock``."""
    schemas: Mapping[str, Callable[[], object]] = {
        "config": json_schema,
        "evalfile": eval_file_schema,
        "results": results_schema,
        "lock": lock_schema,
    }
    schema = schemas[name]()
    world.out.write(f"{json.dumps(schema, indent=2, ensure_ascii=False)}\n")
    return 0
