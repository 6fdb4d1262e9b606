"""How files of recorded outputs are called, by the eval files that they belong to."""

from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import PurePath
from typing import Final

# What follows the name of an eval file in the names of files beside it.
OUTPUT_SUFFIXES: Final = (".outputs.jsonl", ".outputs.json")
EVAL_FILE_SUFFIXES: Final = (".eval.yaml", ".eval.yml", ".yaml", ".yml", ".jsonl")


def get_eval_file_stem(name: str) -> str:
    """The name of an eval file without what says that it is one."""
    bare = (name.removesuffix(each) for each in EVAL_FILE_SUFFIXES if name.endswith(each))
    return next(bare, PurePath(name).stem)


def make_output_names(configs: Iterable[str]) -> Mapping[str, str]:
    """The name of the file for each config: as if it lay beside it; numbered where two are one."""
    names: dict[str, str] = {}
    for config in dict.fromkeys(configs):
        stem = get_eval_file_stem(PurePath(config).name)
        numbered = (
            f"{stem}{'' if number == 1 else f'-{number}'}{OUTPUT_SUFFIXES[0]}"
            for number in count(1)
        )
        names[config] = next(name for name in numbered if name not in names.values())
    return names
