"""Keys of an eval file that nobody reads."""

from collections.abc import Collection, Iterable, Iterator

from agentci.config.eval_file.models import PREPROCESSORS, UNREAD, UNREAD_AT_THE_TOP
from agentci.config.yaml_document import YamlDocument
from agentci.model.problem import Problem
from agentci.text.names import did_you_mean, quoted

Path = tuple[str | int, ...]


def key_problems(
    keys: Iterable[str], known: Collection[str], document: YamlDocument, at: Path
) -> Iterator[Problem]:
    """Keys that nobody reads: a warning, since AgentV passes them over; others change too much."""
    unread = UNREAD if at else UNREAD | UNREAD_AT_THE_TOP
    for key in keys:
        if key in unread:
            yield Problem(
                message=f"`{key}` is not read by this version of agentci",
                place=document.place_of((*at, key), key=True),
                hint=unread[key],
            )
        elif key == PREPROCESSORS:
            yield Problem(
                message="`preprocessors` have no effect",
                place=document.place_of((*at, key), key=True),
                hint="record what the agent answered as text",
                severity="warning",
            )
        elif key not in known and not key.startswith("x-"):
            yield Problem(
                message=f"unknown key {quoted(key)}, which has no effect",
                place=document.place_of((*at, key), key=True),
                hint=did_you_mean(key, list(known)),
                severity="warning",
            )
