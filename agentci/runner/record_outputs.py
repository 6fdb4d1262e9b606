"""Keeps what agents answered, in files that can be named as recorded outputs."""

from collections.abc import Mapping, Sequence

from agentci._util.files import open_folder, write_files
from agentci._util.text import strict_json
from agentci._util.text.output_names import file_names
from agentci.config.settings import Settings
from agentci.errors import InputError
from agentci.model.policy import Gate
from agentci.model.problem import Problem
from agentci.recordings.agentv.recorded_run import RecordedRun
from agentci.recordings.agentv.write import row_of
from agentci.runner.services import World


def keep(
    runs: Mapping[str, Sequence[RecordedRun]],
    gates: Sequence[Gate],
    settings: Settings,
    world: World,
) -> tuple[Problem, ...]:
    """Write the runs of each config, whole; tell which could not be.

    Args:
        runs: by their config.
        gates: of all configs of the plan.
    """
    names = file_names(gate.config for gate in gates)
    files = {names[config]: map(_line, own) for config, own in runs.items()}
    try:
        folder = open_folder(settings.output_dir, world.workspace)
    except InputError as error:
        return error.problems
    refused = write_files(folder, files, world.workspace)
    return tuple(
        Problem(message=f"{name} cannot be written: {why}") for name, why in refused.items()
    )


def _line(run: RecordedRun) -> str:
    return f"{strict_json.dumps(row_of(run.case_id or '', run.attempt, run.transcript))}\n"
