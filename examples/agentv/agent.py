"""A minimal agent: it knows two things, and reports which one it looked up."""

import json
import sys

KNOWN = {
    "call": "Put `await` in front of the call, inside of an `async` function.",
    "wait": "`asyncio.gather` waits for several at a time; `await` it.",
}

question = sys.argv[1].lower()
topic = next((each for each in KNOWN if each in question), None)
look_up = {"tool": "look_up", "input": {"topic": topic}, "output": KNOWN.get(topic or "")}
messages = [
    {"role": "assistant", "tool_calls": [look_up]},
    {"role": "assistant", "content": KNOWN.get(topic or "", "I do not know.")},
]
json.dump({"output_messages": messages, "cost_usd": 0.001}, sys.stdout)
