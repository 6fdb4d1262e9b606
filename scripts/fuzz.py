"""Fuzz the loaders of foreign input, guided by the coverage of agentci: `make fuzz`.

Every target of `tests/fuzz/targets.py` runs in a process of its own, for an equal share of the
time. Its corpus grows in `.fuzz/TARGET/`. An input that is a bug is kept as
`.fuzz/TARGET-crash-...`; `.venv/fuzz/bin/python -m scripts.fuzz 0 TARGET FILE...` runs it again.
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

import atheris

CORPORA: Final = Path(".fuzz")
MAX_INPUT_BYTES: Final = 16_384
MEMORY_MB: Final = 2_048
# Of one input, by the clock: against hangs that the limit of processor time cannot interrupt.
HANG_SECONDS: Final = 120

with atheris.instrument_imports(include=["agentci", "yaml"]):
    from tests.fuzz.targets import TARGETS, Target, change


def main(arguments: Sequence[str]) -> int:
    """Fuzz all targets, or one of them, or run the inputs in files."""
    seconds, *rest = arguments or ["60"]
    names, files = rest[:1] or list(TARGETS), rest[1:]
    if files:
        for file in files:
            TARGETS[names[0]].check(Path(file).read_bytes())
        return 0
    # Modules that are imported late are instrumented here, once for all processes.
    with atheris.instrument_imports(include=["agentci"]):
        for name in names:
            for seed in TARGETS[name].list_seeds():
                TARGETS[name].check(seed)
    share = max(1, int(seconds) // len(names))
    failed = [name for name in names if _fuzz_in_child(name, share)]
    print(f"{len(names)} targets, {share} s each: {', '.join(failed) or 'no'} bugs found")
    return bool(failed)


def _fuzz_in_child(name: str, seconds: int) -> bool:
    child = os.fork()
    if not child:
        _fuzz(name, TARGETS[name], seconds)
    _, status = os.waitpid(child, 0)
    return status != 0


def _fuzz(name: str, target: Target, seconds: int) -> None:
    """Fuzz one target; ends the process."""
    corpus = CORPORA / name
    corpus.mkdir(parents=True, exist_ok=True)
    seeds = Path(tempfile.mkdtemp(prefix="agentci-seeds-"))
    for number, data in enumerate(target.list_seeds()):
        (seeds / str(number)).write_bytes(data[:MAX_INPUT_BYTES])

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        random = Random(seed)  # noqa: S311 (no secret)
        if random.random() < 0.5:  # noqa: PLR2004 (half of the changes know about values)
            return change(data, random)[:max_size]
        return bytes(atheris.Mutate(data, max_size))

    options = [
        f"-max_total_time={seconds}",
        f"-max_len={MAX_INPUT_BYTES}",
        f"-rss_limit_mb={MEMORY_MB}",
        f"-timeout={HANG_SECONDS}",
        f"-artifact_prefix={corpus}-",
        "-verbosity=0",
        "-print_final_stats=1",
        str(corpus),
        str(seeds),
    ]
    atheris.Setup([name, *options], target.check, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
