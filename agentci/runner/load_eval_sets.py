"""Reads the golden cases that a suite is judged by, and says what they leave open."""

from collections.abc import Iterator, Sequence

from agentci._util.workspace import Workspace, read_file
from agentci.config.suite import Suite
from agentci.errors import InputError
from agentci.model.case import Golden, GoldenSet
from agentci.model.place import COMMAND_LINE, Place
from agentci.model.problem import Problem
from agentci.recordings.registry import is_recording
from agentci.runner.load_configs import LoadedSuite

MAX_EVAL_SET_BYTES = 64 * 1024**2


def read_goldens(
    loaded: LoadedSuite, workspace: Workspace, *, given: str | None = None
) -> GoldenSet | None:
    """Read the golden cases of a suite, if it names any.

    Args:
        loaded: names an eval set inside of the workspace, or none.
        workspace: what paths are relative to.
        given: any file that the command line names in its place.

    Raises:
        InputError: with every problem of the eval set.
    """
    named, place = loaded.suite.eval_set, loaded.suite.place_of("eval_set")
    if given is not None:
        path, place = workspace.cwd / given, COMMAND_LINE
    elif named is not None:
        path = loaded.locator.locate(named, place)
    else:
        return None
    from agentci.recordings.adk_eval_set import read_eval_set  # noqa: PLC0415 (many runs have none)

    name = workspace.name_of(path)
    data = read_file(path, name=name, limit_bytes=MAX_EVAL_SET_BYTES, place=place)
    try:
        return read_eval_set(data, file=name)
    except InputError:
        if is_recording(data):
            message = "the file is a recording, not an eval set"
            hint = "name it as `traces:`, or give it with --traces"
            raise InputError.of(message, place=Place(file=name), hint=hint) from None
        raise


def gaps(
    suite: Suite, goldens: GoldenSet | None, uncovered: Sequence[Golden] = ()
) -> Iterator[Problem]:
    """Warn of evaluators without anything to compare with, and of golden cases without a run."""
    needy = [each.identity for each in suite.evaluators if each.identity.needs_golden]
    if needy and goldens is None:
        names = ", ".join(identity.name for identity in needy)
        yield Problem(
            message=f"there is no eval set for {names} to compare with",
            place=needy[0].place,
            hint="add `eval_set:`, or give --eval-set",
            severity="warning",
        )
    elif needy and goldens is not None and not any(golden.turns for golden in goldens.cases):
        yield Problem(
            message="the eval set has no case with turns to compare with",
            place=goldens.place,
            severity="warning",
        )
    for golden in uncovered:
        yield Problem(
            message=f"no recording is judged by the golden case {golden.id!r}",
            place=golden.place,
            hint="a recording belongs to the case that begins with the same question; "
            "`gate: {on_skip: fail}` shuts the gate on a case without one",
            severity="warning",
        )
