"""What started this step of a workflow, out of the file that the runner leaves."""

import json
from typing import Final

from agentci._util.workspace import read_file
from agentci.errors import InputError
from agentci.github.context import GitHub
from agentci.github.event import Event, event_of
from agentci.github.workflow_run import EVENT, Origin, origin_of
from agentci.model.json import Json

# More than GitHub sends.
MAX_EVENT_BYTES: Final = 32 * 1024**2


def read_event(github: GitHub) -> Event:
    """What is known of the event; no more than its name where its file cannot be read."""
    return event_of(github.event, github.sha, _payload(github))


def read_origin(github: GitHub) -> Origin | None:
    """The run that this one follows; None where it follows none."""
    return origin_of(_payload(github)) if github.event == EVENT else None


def _payload(github: GitHub) -> Json:
    if github.event_file is None:
        return None
    try:
        content = read_file(github.event_file, name="the event", limit_bytes=MAX_EVENT_BYTES)
        payload: Json = json.loads(content)
    except (InputError, ValueError, RecursionError):
        return None
    return payload
