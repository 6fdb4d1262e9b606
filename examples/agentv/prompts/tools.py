"""Prints the prompt for a judge of how an agent used its tools."""

import json
import sys

data = json.load(sys.stdin)
calls = [
    f"{call['tool']} {json.dumps(call.get('input'))}"
    for message in data["output_messages"]
    for call in message.get("tool_calls", [])
]
print("Did the agent need all of these tools, and no others, for its answer?")
print("\n".join(calls) or "It used none.")
print("Its answer:", data["candidate_answer"])
print("What a good answer does:", data["criteria"])
