"""Stands in for a language model: it looks for words in `backticks` in the answer.

It reads a prompt from stdin, as every judge program does, and prints a verdict in the form that the
prompt requires.
"""

import json
import re
import sys

prompt = sys.stdin.read()
answers = re.findall(
    r'<untrusted id="\w+" name="candidate_answer">\n(.*?)\n</untrusted', prompt, re.DOTALL
)


def holds(text: str) -> bool:
    """Whether an answer has all words that ``text`` puts into backticks."""
    return all(word in answer for answer in answers for word in re.findall("`(.+?)`", text))


rubrics = re.findall(r"^- \[(.+?)\].*?: (.+)$", prompt, re.MULTILINE)
if rubrics:
    checks = [
        {"id": name, "reasoning": "looked for its words", "satisfied": holds(text)}
        for name, text in rubrics
    ]
    print(json.dumps({"checks": checks, "overall_reasoning": "looked for words"}))
else:
    found = bool(answers) and holds("`await`")
    print(json.dumps({"reasoning": "looked for `await`", "score": float(found)}))
