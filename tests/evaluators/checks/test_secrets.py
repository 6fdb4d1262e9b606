"""Which texts hold a secret; put together here, so that no scanner reports this file."""

import random
import string

import pytest

from agentci.evaluators.checks.texts import RULES, find_secrets, measure_entropy

LETTERS = string.ascii_letters + string.digits
HEX = "0123456789abcdef"


def characters(alphabet: str, number: int) -> str:
    return "".join(random.Random(7).choices(alphabet, k=number))


EXAMPLES = {
    "aws-access-key": "AKIA" + characters(string.ascii_uppercase + "234567", 16),
    "aws-secret-key": 'aws_secret_access_key = "' + characters(LETTERS + "/+", 40) + '"',
    "anthropic-key": "sk-ant-api03-" + characters(LETTERS, 95),
    "openai-key": "sk-proj-" + characters(LETTERS, 60),
    "google-api-key": "AIza" + characters(LETTERS, 35),
    "google-oauth-token": "ya29." + characters(LETTERS, 60),
    "google-oauth-secret": "GOCSPX-" + characters(LETTERS, 28),
    "github-token": "ghp_" + characters(LETTERS, 36),
    "github-fine-grained-token": "github_pat_" + characters(LETTERS, 82),
    "gitlab-token": "glpat-" + characters(LETTERS, 20),
    "slack-token": "xoxb-" + characters(string.digits, 12) + "-" + characters(LETTERS, 24),
    "slack-app-token": "xapp-" + "1-" + "A0123456789-" + "1234567890123-" + characters(HEX, 64),
    "slack-webhook": "https://hooks.slack.com/services/T01234567/B01234567/"
    + characters(LETTERS, 24),
    "stripe-key": "sk_" + "live_" + characters(LETTERS, 24),
    "stripe-webhook-secret": "whsec_" + characters(LETTERS, 32),
    "twilio-key": "SK" + characters(HEX, 32),
    "sendgrid-key": "SG." + characters(LETTERS, 22) + "." + characters(LETTERS, 43),
    "mailgun-key": "key-" + characters(HEX, 32),
    "hugging-face-token": "hf_" + characters(LETTERS, 34),
    "npm-token": "npm_" + characters(LETTERS, 36),
    "package-index-token": "pypi-" + characters(LETTERS, 100),
    "docker-hub-token": "dckr_pat_" + characters(LETTERS, 27),
    "digitalocean-token": "dop_v1_" + characters(HEX, 64),
    "shopify-token": "shpat_" + characters(HEX, 32),
    "databricks-token": "dapi" + characters(HEX, 32),
    "grafana-token": "glsa_" + characters(LETTERS, 32) + "_" + characters(HEX, 8),
    "linear-key": "lin_api_" + characters(LETTERS, 40),
    "notion-token": "ntn_" + characters(LETTERS, 46),
    "groq-key": "gsk_" + characters(LETTERS, 52),
    "perplexity-key": "pplx-" + characters(LETTERS, 48),
    "replicate-token": "r8_" + characters(LETTERS, 37),
    "openrouter-key": "sk-or-v1-" + characters(HEX, 64),
    "langfuse-secret-key": "sk-lf-" + "-".join(characters(HEX, n) for n in (8, 4, 4, 4, 12)),
    "langsmith-key": "lsv2_" + "pt_" + characters(HEX, 32) + "_" + characters(HEX, 10),
    "telegram-bot-token": "123456789:AA" + characters(LETTERS, 33),
    "azure-storage-key": "AccountKey=" + characters(LETTERS + "+/", 86) + "==",
    "json-web-token": "eyJ"
    + characters(LETTERS, 20)
    + ".eyJ"
    + characters(LETTERS, 40)
    + "."
    + characters(LETTERS, 43),
    "removed-key": "[key removed]",
    "private-key": "-----BEGIN " + "OPENSSH PRIVATE KEY-----",
    "url-password": "postgres://user:" + characters(LETTERS, 16) + "@db.internal/x",
}


@pytest.mark.parametrize("name", [rule.name for rule in RULES])
def test_secret_is_found(name: str) -> None:
    assert name in list(find_secrets(f'the value is "{EXAMPLES[name]}", keep it'))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "call_" + "abc123DEF456ghi789",
        "4bf92f3577b34da6a3ce929d0e0e4736",
        "123e4567-e89b-12d3-a456-426614174000",
        "AKIA" + "IOSFODNN7EXAMPLE",
        "sk-" + "xxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "set OPENAI_API_KEY=sk-" + "your-key-goes-here-please",
        "risk-" + "assessment-of-the-whole-portfolio-2026",
        "https://user:" + "${PASSWORD}@example.com",
        "postgres://user:" + "password@db",
        "task-" + "1234567890",
        "hf_hub_download and npm_config_cache",
    ],
)
def test_other_text_is_no_secret(text: str) -> None:
    found = list(find_secrets(text))
    assert found == ([] if "password@db" not in text else ["url-password"])


def test_entropy() -> None:
    assert measure_entropy("aaaa") == 0
    assert measure_entropy("abcd") == 2
