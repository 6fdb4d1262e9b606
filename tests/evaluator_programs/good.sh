#!/bin/sh
# Any language will do: this one only looks whether a tool was called.
if grep -q '"tool_calls":\[{'; then
  echo '{"score": 1, "details": {"language": "sh"}}'
else
  echo '{"score": 0}'
fi
