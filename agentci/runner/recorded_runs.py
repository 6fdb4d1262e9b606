"""Read the recorded runs of a suite, select those of its config, and group them into cases."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from agentci._util.files import SpooledChunks
from agentci._util.workspace import ResolvedPath
from agentci.config.settings import Settings
from agentci.evaluators.agentevals.match_eval_case import (
    EvalCaseMatcher,
    has_multi_turn_case,
    name_eval_case,
)
from agentci.model.case import EvalSet
from agentci.model.problem import Problem
from agentci.model.trace import Trace
from agentci.recordings.runs import RunGroup, convert_run, group_runs
from agentci.runner.load_configs import LoadedSuite
from agentci.runner.load_inputs import read_recordings
from agentci.runner.select_runs import drop_inactive_traces, select_runs
from agentci.runner.services import Services


class RecordedRuns(Struct, frozen=True, kw_only=True):
    """Recorded runs, which are converted one at a time.

    Attributes:
        case_names: ids of the eval cases that the config names, by file and id of a run.
        matcher: finds the eval cases of the runs.
        broken: the problems of files that could not be read.
        problems: of the selection.
    """

    groups: tuple[RunGroup, ...]
    spool: SpooledChunks
    case_names: Mapping[tuple[str, str], str]
    matcher: EvalCaseMatcher
    broken: tuple[Problem, ...]
    problems: tuple[Problem, ...]

    def list_traces(self) -> Iterator[Trace]:
        """Convert the runs, in order."""
        for group in self.groups:
            yield name_eval_case(convert_run(group, self.spool), self.case_names)


def read_recorded_runs(
    files: Sequence[ResolvedPath],
    loaded: LoadedSuite,
    eval_set: EvalSet | None,
    settings: Settings,
    services: Services,
    *,
    accepts_new: bool = False,
) -> RecordedRuns:
    """Read the runs in files.

    Args:
        accepts_new: whether a run without an eval case is one to come: conversations are kept
            together, and the only run does not belong to the only eval case unless it asks the
            same.

    Raises:
        InputError: none of them has agent activity.
    """
    spool = SpooledChunks()
    recorded, broken = read_recordings(files, loaded, settings, services, spool=spool)
    active, ignored = drop_inactive_traces(recorded, are_all=not broken)
    workspace = services.workspace
    selected = select_runs(active, loaded, workspace, is_given=bool(settings.traces))
    groups = group_runs(
        selected.runs,
        spool,
        group_by=settings.group_by or loaded.suite.group_by,
        multi_turn_eval_cases=accepts_new or has_multi_turn_case(eval_set),
    )
    runs = RecordedRuns(
        groups=groups,
        spool=spool,
        case_names=selected.case_names,
        matcher=EvalCaseMatcher(eval_set, has_one_trace=len(groups) == 1 and not accepts_new),
        broken=tuple(broken),
        problems=(*ignored, *selected.problems),
    )
    runs.matcher.count_runs(runs.list_traces)
    return runs
