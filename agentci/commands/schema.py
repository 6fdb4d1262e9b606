"""``agentci schema``: print a JSON Schema, for editors and other programs."""

import json
from collections.abc import Callable, Mapping

from agentci.config.eval_file.schema import eval_file_schema
from agentci.config.schema import json_schema
from agentci.engines.world import World
from agentci.lockfile import lock_schema
from agentci.reporters.schema import results_schema


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
