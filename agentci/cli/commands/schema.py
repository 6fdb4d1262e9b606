"""``agentci schema``: print a JSON Schema, for editors and other programs."""

import json
from collections.abc import Callable, Mapping
from typing import TextIO

from agentci.config.agentv.schema import make_eval_file_schema
from agentci.config.case_file import make_cases_schema
from agentci.config.schema import make_config_schema
from agentci.remote.lock_file import lock_schema
from agentci.reports.results_json import make_results_schema


def print_schema(name: str, out: TextIO) -> int:
    """Print the schema ``config``, ``cases``, ``evalfile`` (AgentV's), ``results`` or ``lock``."""
    schemas: Mapping[str, Callable[[], object]] = {
        "config": make_config_schema,
        "cases": make_cases_schema,
        "evalfile": make_eval_file_schema,
        "results": make_results_schema,
        "lock": lock_schema,
    }
    schema = schemas[name]()
    out.write(f"{json.dumps(schema, indent=2, ensure_ascii=False)}\n")
    return 0
