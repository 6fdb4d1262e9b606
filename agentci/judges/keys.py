"""Keys to services: out of the environment, or made of the identity of a workflow."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from agentci._util.text.secrets import without
from agentci.errors import EvaluatorError, SkippedError
from agentci.judges.federation import EXCHANGES
from agentci.judges.registry import PROVIDERS
from agentci.judges.tokens import IDENTITY_VARIABLES, Tokens
from agentci.judges.transport import Transport
from agentci.model.judging import ModelReply, ModelSettings
from agentci.model.values import replace

NO_IDENTITY: Final = (
    "this job can get no id token of GitHub: give it `permissions: {id-token: write}`"
)
NOT_IN_ACTIONS: Final = "`auth: {type: github-oidc}` works in GitHub Actions alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What opens a service; empty where nothing has to."""

    secret: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def hidden_in(self, text: str) -> str:
        """A text without the key."""
        return without(text, (self.secret,)) if self.secret else text

    def left_out(self, reply: ModelReply) -> ModelReply:
        """A reply without the key: what models say is kept, and shown in reports."""
        said, reason = self.hidden_in(reply.text), self.hidden_in(reply.finish_reason)
        return replace(reply, text=said, finish_reason=reason)


class Keys:
    """The keys of a run, for any number of threads.

    Args:
        variables: the environment.
        transport: by which short-lived ones are got.
        withheld: why those that are missing could not be there; empty where they should be.
    """

    def __init__(
        self, variables: Mapping[str, str], transport: Transport, *, withheld: str = ""
    ) -> None:
        self.withheld = withheld
        self._variables = variables
        self._tokens = Tokens(variables, transport)

    def missing(self, settings: ModelSettings) -> str:
        """What is missing for a model to be asked; empty where nothing is."""
        name = settings.key_variable
        if settings.federation is not None:
            if all(self._variables.get(each) for each in IDENTITY_VARIABLES):
                return ""
            is_step = self._variables.get("GITHUB_ACTIONS") == "true"
            return NO_IDENTITY if is_step else NOT_IN_ACTIONS
        if name and not self._variables.get(name, "").strip():
            return f"the environment variable {name}, for the judge's key, is not set"
        return ""

    def of(self, settings: ModelSettings, *, until: float) -> Key:
        """The key to a service.

        Args:
            until: when nobody waits for it any more, by the clock of the transport.

        Raises:
            EvaluatorError: it is needed, and not there.
            SkippedError: nor could it be.
        """
        if said := self.missing(settings):
            if self.withheld:
                raise SkippedError(f"{said}: {self.withheld}")
            raise EvaluatorError(said)
        if settings.federation is not None:
            token = self._tokens.of(settings, settings.federation, until=until)
            more = EXCHANGES[settings.provider].headers
            return Key(secret=token, headers={"Authorization": f"Bearer {token}", **more})
        secret = self._variables.get(settings.key_variable, "").strip()
        if not secret or settings.provider not in PROVIDERS:
            return Key(secret=secret)
        header = PROVIDERS[settings.provider].key_header(secret)
        return Key(secret=secret, headers=dict([header]))
