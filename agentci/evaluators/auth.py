"""``auth`` of a judge: the identity of a job in the place of a key."""

from typing import Final, Literal

from pydantic import Field

from agentci.evaluators.fields import Strict, Text
from agentci.model.judging import Federation

# Members of `auth` that are no ids.
NO_IDS: Final = frozenset({"type", "audience"})


class AuthSpec(Strict):
    """How the identity of a job in GitHub Actions is taken for a key; ids as the provider has them.

    OpenAI wants `identity_provider_id` and `service_account_id`, Anthropic `federation_rule_id` and
    `organization_id`, Azure `tenant_id` and `client_id`.
    """

    type: Literal["github-oidc"] = Field(description="By the id token that GitHub gives to a job.")
    identity_provider_id: Text | None = Field(default=None, description="Of OpenAI.")
    service_account_id: Text | None = Field(
        default=None, description="Of OpenAI; of Anthropic where its rule does not name one."
    )
    federation_rule_id: Text | None = Field(default=None, description="Of Anthropic.")
    organization_id: Text | None = Field(default=None, description="Of Anthropic.")
    workspace_id: Text | None = Field(default=None, description="Of Anthropic, if there are some.")
    tenant_id: Text | None = Field(default=None, description="Of Azure.")
    client_id: Text | None = Field(default=None, description="Of Azure.")
    audience: Text | None = Field(
        default=None, description="Of the id token, where the service expects an unusual one."
    )


def federation_of(auth: dict[str, str] | None) -> Federation | None:
    """How an identity is to be taken for a key; None where ``auth`` is not there."""
    if auth is None:
        return None
    ids = tuple((name, given) for name, given in auth.items() if name not in NO_IDS)
    return Federation(ids=ids, audience=auth.get("audience", ""))
