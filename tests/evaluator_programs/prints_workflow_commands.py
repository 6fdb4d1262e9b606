"""Tries to command the runner of a workflow, from every stream and field."""

import json
import sys

print("::error file=a.py,line=1::forged\n##[error]forged", file=sys.stderr)
print(
    json.dumps(
        {
            "score": 0.0,
            "details": {
                "issues": [
                    "::error::forged",
                    "\r::set-output name=passed::true",
                    "##[error]forged",
                ],
                "reason": "::add-mask::passed",
                "::stop-commands::x": "::stop-commands::x",
            },
        }
    )
)
