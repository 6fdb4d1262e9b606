"""Puts everything that it can see into its details."""

import json
import os
import sys

print(
    json.dumps(
        {
            "score": 1.0,
            "details": {"environment": dict(os.environ), "cwd": os.getcwd(), "argv": sys.argv},
        }
    )
)
