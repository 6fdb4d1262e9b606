"""Checks of texts: what answers, tool arguments and results contain, and whether it is secret."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.format import format_count
from agentci._util.text.json_text import decode_strict_json, describe_json_error
from agentci._util.text.patterns import compile_pattern, matches_any
from agentci._util.text.safe_schema import SafeSchema
from agentci._util.text.secrets import MIN_SECRET_CHARACTERS, REMOVED_KEY, redact
from agentci.errors import EvaluatorError
from agentci.evaluators.checks.check import (
    NO_ANSWER,
    CheckFinding,
    Texts,
    check_complete,
    collect_texts,
    list_turns,
    make_finding,
)
from agentci.model.case import Case
from agentci.model.trace import PRINTED_KEY
from agentci.model.values import Json


class SecretRule(Struct, frozen=True):
    """One format of keys or tokens, from the documentation of the service that issues them.

    Placeholders have fewer random characters than ``entropy`` requires, and are not reported.

    Attributes:
        pattern: RE2; its first group is the secret.
        words: lower-case words; every text with such a secret has at least one of them.
        entropy: the lowest Shannon entropy of the secret, in bits per character.
    """

    name: str
    pattern: str
    words: tuple[str, ...]
    entropy: float = 3.0


def _prefixed(name: str, prefix: str, rest: str, *, entropy: float = 3.0) -> SecretRule:
    """A rule for a secret that starts with a fixed text, and stands by itself."""
    return SecretRule(name, rf"\b({prefix}{rest})(?:[^0-9A-Za-z_\-]|$)", (prefix.lower(),), entropy)


_BASE64: Final = r"[0-9A-Za-z_\-]"
_REMOVED_RULE: Final = "removed-key"
_REMOVED: Final = f"an API key, which the recording does not keep (rule {_REMOVED_RULE})"
RULES: Final = (
    SecretRule(_REMOVED_RULE, r"(\[key removed\])", (REMOVED_KEY,), 0.0),
    SecretRule("aws-access-key", r"\b((?:AKIA|ASIA)[A-Z2-7]{16})\b", ("akia", "asia")),
    SecretRule(
        "aws-secret-key",
        r"(?i)aws.{0,30}?secret.{0,30}?[=:\"'\s]{1,5}([0-9a-z/+]{40})(?:[^0-9a-z/+=]|$)",
        ("aws",),
        3.5,
    ),
    SecretRule("anthropic-key", r"\b(sk-ant-[a-z0-9]{2,12}-[0-9A-Za-z_\-]{32,128})", ("sk-ant-",)),
    SecretRule(
        "openai-key",
        r"\b(sk-(?:proj-|svcacct-|admin-)?[0-9A-Za-z_\-]{20,200})(?:[^0-9A-Za-z_\-]|$)",
        ("sk-",),
        3.5,
    ),
    SecretRule("google-api-key", r"\b(AIza[0-9A-Za-z_\-]{35})(?:[^0-9A-Za-z_\-]|$)", ("aiza",)),
    SecretRule("google-oauth-token", r"\b(ya29\.[0-9A-Za-z_\-]{20,})", ("ya29.",)),
    SecretRule("google-oauth-secret", r"\b(GOCSPX-[0-9A-Za-z_\-]{28})", ("gocspx-",)),
    SecretRule(
        "github-token",
        r"\b(gh[pousr]_[0-9A-Za-z]{36,251})\b",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    ),
    _prefixed("github-fine-grained-token", "github_pat_", r"[0-9A-Za-z_]{60,255}"),
    _prefixed("gitlab-token", "glpat-", r"[0-9A-Za-z_\-]{20,64}"),
    SecretRule(
        "slack-token",
        r"\b(xox[abeoprs]-[0-9A-Za-z\-]{20,250})(?:[^0-9A-Za-z\-]|$)",
        ("xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-"),
    ),
    _prefixed("slack-app-token", "xapp-", r"[0-9]-[0-9A-Z]{8,14}-[0-9]{8,16}-[0-9a-f]{40,80}"),
    SecretRule(
        "slack-webhook",
        r"(hooks\.slack\.com/services/T[0-9A-Z]{6,14}/B[0-9A-Z]{6,14}/[0-9A-Za-z]{20,30})",
        ("hooks.slack.com",),
    ),
    SecretRule(
        "stripe-key",
        r"\b((?:sk|rk)_(?:live|test)_[0-9A-Za-z]{16,247})\b",
        ("sk_live_", "sk_test_", "rk_live_", "rk_test_"),
    ),
    SecretRule("stripe-webhook-secret", r"\b(whsec_[0-9A-Za-z+/=]{32,64})", ("whsec_",)),
    SecretRule("twilio-key", r"\b(SK[0-9a-f]{32})\b", ("sk",)),
    SecretRule("sendgrid-key", r"\b(SG\.[0-9A-Za-z_\-]{22}\.[0-9A-Za-z_\-]{43})", ("sg.",)),
    SecretRule("mailgun-key", r"\b(key-[0-9a-f]{32})\b", ("key-",)),
    _prefixed("hugging-face-token", "hf_", r"[0-9A-Za-z]{34,40}"),
    _prefixed("npm-token", "npm_", r"[0-9A-Za-z]{36}"),
    _prefixed("package-index-token", "pypi-", r"[0-9A-Za-z_\-]{60,250}"),
    _prefixed("docker-hub-token", "dckr_pat_", r"[0-9A-Za-z_\-]{27,64}"),
    _prefixed("digitalocean-token", "dop_v1_", r"[0-9a-f]{64}"),
    _prefixed("shopify-token", "shpat_", r"[0-9a-fA-F]{32}"),
    _prefixed("databricks-token", "dapi", r"[0-9a-f]{32}(?:-[0-9])?"),
    _prefixed("grafana-token", "glsa_", r"[0-9A-Za-z]{32}_[0-9a-f]{8}"),
    _prefixed("linear-key", "lin_api_", r"[0-9A-Za-z]{40}"),
    SecretRule(
        "notion-token", r"\b((?:ntn_|secret_)[0-9A-Za-z]{43,46})\b", ("ntn_", "secret_"), 3.5
    ),
    _prefixed("groq-key", "gsk_", r"[0-9A-Za-z]{52}"),
    _prefixed("perplexity-key", "pplx-", r"[0-9A-Za-z]{40,64}"),
    _prefixed("replicate-token", "r8_", r"[0-9A-Za-z]{37}"),
    _prefixed("openrouter-key", "sk-or-v1-", r"[0-9a-f]{64}"),
    _prefixed(
        "langfuse-secret-key",
        "sk-lf-",
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    ),
    SecretRule("langsmith-key", r"\b(lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10})\b", ("lsv2_",)),
    SecretRule(
        "telegram-bot-token", r"\b([0-9]{8,10}:AA[0-9A-Za-z_\-]{33})(?:[^0-9A-Za-z_\-]|$)", (":aa",)
    ),
    SecretRule("azure-storage-key", r"(?i)accountkey=([0-9a-z+/]{86}==)", ("accountkey=",), 3.5),
    SecretRule(
        "json-web-token",
        r"\b(eyJ[0-9A-Za-z_\-]{10,}\.eyJ[0-9A-Za-z_\-]{10,}\.[0-9A-Za-z_\-]{20,})",
        ("eyj",),
    ),
    SecretRule(
        "private-key",
        r"(-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----)",
        ("private key",),
        0.0,
    ),
    SecretRule(
        "url-password",
        r"\b[a-z][a-z0-9+.\-]{1,20}://[^\s:/@\"'<>]{1,100}:([^\s:/@\"'<>${}*]{6,100})@[0-9A-Za-z\-]",
        ("://",),
        2.5,
    ),
)

# Parts of examples in documentation and of masked values.
PLACEHOLDERS: Final = (
    "example",
    "xxxx",
    "****",
    "your",
    "placeholder",
    "redacted",
    "dummy",
    "sample",
)


@dataclass(frozen=True, kw_only=True)
class NoSecrets:
    """No text has a secret.

    Attributes:
        rules: of the formats that count.
        of: which texts: ``answers``, ``arguments`` and ``results``.
        variables: values of environment variables that are secrets, too; "" for one that is not
            set.
    """

    rules: tuple[SecretRule, ...]
    of: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)

    def evaluate(self, case: Case) -> CheckFinding:
        """See ``CheckRule``; names rules and places, never the secret."""
        texts = _join([collect_texts(case, of) for of in self.of])
        searched = [*texts]
        if "answers" in self.of:
            searched += [
                ("an intermediate answer", text)
                for turn in list_turns(case.trace)
                for text in turn.intermediate_texts
            ]
            searched += [
                ("what the command printed", warning)
                for warning in case.trace.warnings
                if warning.startswith(PRINTED_KEY)
            ]
        misses = dict.fromkeys(
            f"{place} has {_REMOVED if rule == _REMOVED_RULE else f'a secret: {rule}'}"
            for place, text in searched
            for rule in (*find_secrets(text, self.rules), *self._find_values(text))
        )
        check_complete(texts, is_failed=bool(misses))
        if not misses:
            self._check_variables()
        return make_finding(*misses)

    def _find_values(self, text: str) -> Iterator[str]:
        """Yield the variables whose value, in any common encoding, is in ``text``."""
        for name, value in self.variables.items():
            secret = value.strip()
            if len(secret) >= MIN_SECRET_CHARACTERS and redact(text, (secret,)) != text:
                yield f"the value of {name}"

    def _check_variables(self) -> None:
        """Check that every value could be looked for.

        Raises:
            EvaluatorError: a variable is not set, or too short.
        """
        for name, value in self.variables.items():
            if not value.strip():
                raise EvaluatorError(
                    f"environment variable {name} is not set, so its value was not looked for; "
                    "set it, or remove it from `env`"
                )
            if len(value.strip()) < MIN_SECRET_CHARACTERS:
                raise EvaluatorError(
                    f"the value of environment variable {name} has fewer than "
                    f"{MIN_SECRET_CHARACTERS} characters, so it was not looked for; remove it "
                    "from `env`"
                )


def _join(parts: list[Texts]) -> Texts:
    return Texts(
        texts=tuple(text for part in parts for text in part.texts),
        places=tuple(place for part in parts for place in part.places),
        missing="; ".join(part.missing for part in parts if part.missing),
    )


def find_secrets(text: str, rules: tuple[SecretRule, ...] = RULES) -> Iterator[str]:
    """Yield the names of the rules by which ``text`` has a secret."""
    lower = text.lower()
    for rule in rules:
        if any(word in lower for word in rule.words) and _has_secret(text, rule):
            yield rule.name


def _has_secret(text: str, rule: SecretRule) -> bool:
    for found in compile_pattern(rule.pattern).finditer(text):
        secret = found.group(1)
        is_example = any(each in secret.lower() for each in PLACEHOLDERS)
        if not is_example and measure_entropy(secret) >= rule.entropy:
            return True
    return False


def measure_entropy(text: str) -> float:
    """Return the Shannon entropy of a text in bits per character."""
    return -sum(
        number / len(text) * math.log2(number / len(text)) for number in Counter(text).values()
    )


def select_rules(names: tuple[str, ...], ignored: tuple[str, ...]) -> tuple[SecretRule, ...]:
    """Return the rules with one of the names, and none of the ignored ones."""
    return tuple(
        rule
        for rule in RULES
        if matches_any(names, rule.name) and not matches_any(ignored, rule.name)
    )


MAX_SHOWN: Final = 60
MAX_SCHEMA_PROBLEMS: Final = 5


class TextTest(Struct, frozen=True, kw_only=True):
    """One text or pattern that is looked for.

    Attributes:
        verb: what is wrong without it: "does not contain".
    """

    written: str
    verb: str
    holds: Callable[[str], bool]

    @property
    def quoted(self) -> str:
        """The text, quoted and truncated."""
        return repr(truncate.short(self.written, MAX_SHOWN))


def make_text_tests(
    kind: str, written: Sequence[str], *, ignore_case: bool
) -> tuple[TextTest, ...]:
    """Make the tests of ``contains``, ``starts_with`` or ``equals``."""
    return tuple(_make_text_test(kind, each, ignore_case=ignore_case) for each in written)


def _make_text_test(kind: str, written: str, *, ignore_case: bool) -> TextTest:
    def fold(text: str) -> str:
        return text.casefold() if ignore_case else text

    expected = fold(written)
    holds: Mapping[str, Callable[[str], bool]] = {
        "contain": lambda text: expected in fold(text),
        "start with": lambda text: fold(text).startswith(expected),
        "equal": lambda text: fold(text) == expected,
    }
    return TextTest(written=written, verb=kind, holds=holds[kind])


def make_pattern_tests(written: Sequence[str], *, full: bool) -> tuple[TextTest, ...]:
    """Make the tests of ``matches``.

    Raises:
        ValueError: a pattern is not RE2.
    """
    tests: list[TextTest] = []
    for each in written:
        pattern = compile_pattern(each)
        holds = (
            pattern.matches_whole
            if full
            else lambda text, own=pattern: own.search(text) is not None
        )
        tests.append(TextTest(written=each, verb="match", holds=holds))
    return tuple(tests)


class PresentTexts(Struct, frozen=True, kw_only=True):
    """Texts that must be there.

    Attributes:
        needs: ``all`` of them, ``any`` of them, or a ``share``, which is the score.
    """

    tests: tuple[TextTest, ...]
    of: str
    needs: str

    def evaluate(self, case: Case) -> CheckFinding:
        """See ``CheckRule``."""
        texts = collect_texts(case, self.of)
        if self.of == "answer" and not texts.texts:
            return make_finding(NO_ANSWER)
        found = [any(test.holds(text) for text in texts.texts) for test in self.tests]
        misses = tuple(
            f"{_name_source(self.of)} does not {test.verb} {test.quoted}"
            for test, is_found in zip(self.tests, found, strict=True)
            if not is_found
        )
        is_met = any(found) if self.needs == "any" else all(found)
        if not is_met and texts.missing:
            raise EvaluatorError(f"{misses[0]}, but {texts.missing}")
        if self.needs == "share":
            return CheckFinding(score=sum(found) / len(found), misses=misses)
        return make_finding(*(() if is_met else misses))


class AbsentTexts(Struct, frozen=True, kw_only=True):
    """Texts that must not be there."""

    tests: tuple[TextTest, ...]
    of: str

    def evaluate(self, case: Case) -> CheckFinding:
        """See ``CheckRule``."""
        texts = collect_texts(case, self.of)
        misses = dict.fromkeys(
            f"{place} {_VERBS[test.verb]} {test.quoted}"
            for place, text in texts
            for test in self.tests
            if test.holds(text)
        )
        check_complete(texts, is_failed=bool(misses))
        return make_finding(*misses)


_VERBS: Final = {"contain": "contains", "match": "matches"}


def _name_source(of: str) -> str:
    return {"answer": "the answer", "answers": "no answer", "all": "the run"}.get(
        of, f"no {of[:-1]}"
    )


class LengthLimits(Struct, frozen=True, kw_only=True):
    """How long the answer may be.

    Attributes:
        unit: ``word`` or ``character``.
        limits: ``max`` and ``min``.
    """

    unit: str
    limits: Mapping[str, float]

    def evaluate(self, case: Case) -> CheckFinding:
        """See ``CheckRule``."""
        texts = collect_texts(case, "answer")
        if not texts.texts:
            raise EvaluatorError(NO_ANSWER)
        text = texts.texts[-1]
        length = len(text.split()) if self.unit == "word" else len(text)
        line = f"the answer has {format_count(length, self.unit)}"
        most, least = self.limits.get("max"), self.limits.get("min")
        if most is not None and length > most:
            return make_finding(f"{line}, more than {most:,.0f}")
        if least is not None and length < least:
            return make_finding(f"{line}, fewer than {least:,.0f}")
        return make_finding(hits=(line,))


class JsonAnswer(Struct, frozen=True, kw_only=True):
    """The answer must be JSON.

    Attributes:
        schema: None for any JSON.
        fence: whether a fenced code block around it is allowed, refused or required.
    """

    schema: SafeSchema | None
    fence: str

    def evaluate(self, case: Case) -> CheckFinding:
        """See ``CheckRule``."""
        texts = collect_texts(case, "answer").texts
        if not texts:
            return make_finding(NO_ANSWER)
        text = texts[-1].strip()
        fenced = _FENCE.fullmatch(text)
        if self.fence == ("refuse" if fenced else "require"):
            is_not = "" if fenced else "not "
            return make_finding(f"the answer is {is_not}in a fenced code block")
        try:
            value = decode_strict_json(fenced[1] if fenced else text)
        except ValueError as error:
            return make_finding(f"the answer is not JSON: {describe_json_error(error)}")
        return make_finding(*self._find_problems(value))

    def _find_problems(self, value: Json) -> tuple[str, ...]:
        if self.schema is None:
            return ()
        try:
            return self.schema.find_problems(value, MAX_SCHEMA_PROBLEMS)
        except ValueError as error:
            raise EvaluatorError(f"{error}") from None


_FENCE: Final = re.compile(r"```[^\n`]*\n(.*?)\n?```", re.DOTALL)
