"""``agentci schema``: print a JSON Schema, for editors and other programs."""

import json

from agentci.config.schema import json_schema
from agentci.engines.world import World
from agentci.reporters.schema import results_schema


def show_schema(name: str, world: World) -> int:
    """Print the schema of a config (``config``) or of results.json (``results``)."""
    schema = results_schema() if name == "results" else json_schema()
    world.out.write(f"{json.dumps(schema, indent=2, ensure_ascii=False)}\n")
    return 0
