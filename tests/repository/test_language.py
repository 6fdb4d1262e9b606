"""Words and phrases that texts of the product do not use.

The list keeps the wording that reviewers found hard to read out of messages, help, prompts, docs
and reports. It is no style checker: a phrase is on it because it was in the product.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tests.helpers.modules import MODULES, read_module
from tests.helpers.support import ROOT

# Pattern, and what to write instead.
PHRASES: Final = {
    r"anew": "again",
    r"nobody|anybody|whoever|somebody": "the subject's name",
    r"befell|befall": "happened to",
    r"(?:is|are) of no use": "name the reason: not found, not comparable",
    r"(?:hardly|may be|be by) chance": "significant, not significant (p = ...)",
    r"golden (?:case|answer|set|turn)s?": "eval case, expected answer",
    r"(?:the )?gate (?:is |was |stays |opens|shut|open)": "the gate passed, the gate failed",
    r"(?:shut|opens?) the gate|shut gate|open gate": "fail, pass",
    r"told|said|retold|untold": "reported, shown, printed",
    r"wanted at least|asked for at least": "threshold",
    r"the input is broken": "invalid input, configuration error",
    r"(?:nothing|something) to judge|nothing was judged": "skipped",
    r"could not be judged|cannot be judged": "errored",
    r"(?:was|is|were|been) broken off": "interrupted",
    r"as it should be": "passed, failed",
    r"(?:mis)?spelt|spoilt": "spelled, damaged",
    r"in vain": "the effect",
    r"(?:spoke|speaks?) off? protocol|speaks? of": "violates the protocol, mentions",
    r"(?:is|are|was) no (?:folder|object|list|number|text|JSON|mapping|string)s?": "is not a ...",
    r"is not any more|not any longer": "no longer",
    r"cannot be had": "cannot be fetched",
    r"judges (?:recordings|recorded|agents|cases)": "evaluate",
    r"recorded repl(?:y|ies)|repl(?:y|ies) of (?:an )?earlier": "cached response",
    r"by themselves alone|of its own accord": "by itself",
    r"what (?:is|was) (?:kept|asked|wanted|meant)": "the noun",
    r"a line a \w+|a sentence each": "one line per ...",
    r"kept elsewhere": "remote",
    r"is in the way": "already exists",
}
BANNED: Final = re.compile(
    "|".join(rf"\b(?:{pattern})\b" for pattern in PHRASES), re.IGNORECASE | re.ASCII
)

TEXT_FILES: Final = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "action.yml")
TEXT_GLOBS: Final = (
    "docs/**/*.md",
    "schemas/*.json",
    "agentci/reports/html/*.js",
    "agentci/reports/html/*.html",
    "examples/**/README.md",
)


def iterate_lines(source: Path) -> Iterator[tuple[int, str]]:
    yield from enumerate(source.read_text(encoding="utf-8").splitlines(), start=1)


def find_banned(texts: Iterable[tuple[int, str]], name: str) -> Iterator[str]:
    for line, text in texts:
        for match in BANNED.finditer(text):
            yield f"{name}:{line}: {match[0]}"


def test_messages_and_prompts_use_the_words_of_the_field() -> None:
    offenders = [
        found
        for source in MODULES
        for texts in (read_module(source).docstrings, read_module(source).messages)
        for found in find_banned(texts, str(source.relative_to(ROOT)))
    ]
    assert not offenders, "\n".join(offenders)


def test_docs_and_reports_use_the_words_of_the_field() -> None:
    files = [ROOT / name for name in TEXT_FILES]
    files += [path for pattern in TEXT_GLOBS for path in sorted(ROOT.glob(pattern))]
    offenders = [
        found
        for source in files
        for found in find_banned(iterate_lines(source), str(source.relative_to(ROOT)))
    ]
    assert not offenders, "\n".join(offenders)


def test_test_names_use_the_words_of_the_field() -> None:
    banned = re.compile(
        r"^ *def test(?:_[a-z0-9]+)*"
        r"_(?:told|said|anew|whoever|somebody|golden|(?:mis)?spelt)(?:_|\b)"
    )
    offenders = [
        f"{source.relative_to(ROOT)}:{number}: {line.strip()}"
        for source in sorted((ROOT / "tests").rglob("test_*.py"))
        for number, line in iterate_lines(source)
        if banned.match(line)
    ]
    assert not offenders, "\n".join(offenders)


def test_messages_say_that_docs_are_those_of_agentci() -> None:
    """The user's repository has no page of that path."""
    pages = re.compile(r"(?<!agentci's )(?<!\.md and )\bdocs/[a-z-]+\.md")
    offenders = [
        f"{source.relative_to(ROOT)}:{line}: {match[0]}"
        for source in MODULES
        for line, text in read_module(source).messages
        if (match := pages.search(text))
    ]
    assert not offenders, "\n".join(offenders)


def iterate_unknown_names(source: Path) -> Iterator[tuple[int, str]]:
    """Yield line and name of what ``Args`` of a docstring describes although it is no argument.

    Those of a class may also be its fields.
    """
    code = source.read_text(encoding="utf-8")
    if " Args:\n" not in code:
        return
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        text = ast.get_docstring(node) or ""
        section = re.search(r"^Args:\n((?: {4}.*\n?)+)", text, re.MULTILINE)
        if not section:
            continue
        listed = re.findall(r"^ {4}(\w[\w, ]*):", section[1], re.MULTILINE)
        known = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
        known |= {ast.unparse(each.target) for each in node.body if isinstance(each, ast.AnnAssign)}
        names = (name for names in listed for name in names.split(", "))
        yield from ((node.lineno, name) for name in names if name not in known)


def test_docstrings_name_only_arguments_that_exist() -> None:
    offenders = [
        f"{source.relative_to(ROOT)}:{line}: {name}"
        for source in MODULES
        for line, name in iterate_unknown_names(source)
    ]
    assert not offenders, "\n".join(offenders)
