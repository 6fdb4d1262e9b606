"""``agentci schema``: print a JSON Schema, for editors and other programs."""

import json

from agentci.config.schema import json_schema
from agentci.engines.world import World
from agentci.lockfile import lock_schema
from agentci.reporters.schema import results_schema


def show_schema(name: str, world: World) -> int:
    """Print the schema of a config, of results.json (``results``) or of agentci.lock (``lock``)."""
    schema = {"config": json_schema, "results": results_schema, "lock": lock_schema}[name]()
    world.out.write(f"{json.dumps(schema, indent=2, ensure_ascii=False)}\n")
    return 0
