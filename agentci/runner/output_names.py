"""Names of the files of recorded outputs, derived from the names of their eval files."""

from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import PurePath
from typing import Final

# Endings of output files, after the name of the eval file.
OUTPUT_SUFFIXES: Final = (".outputs.jsonl", ".outputs.json")
EVAL_FILE_SUFFIXES: Final = (".eval.yaml", ".eval.yml", ".yaml", ".yml", ".jsonl")


def get_eval_file_stem(name: str) -> str:
    """The name of an eval file without its suffix."""
    bare = (name.removesuffix(each) for each in EVAL_FILE_SUFFIXES if name.endswith(each))
    return next(bare, PurePath(name).stem)


def make_output_names(configs: Iterable[str]) -> Mapping[str, str]:
    """The name of the output file of each config; equal names are numbered."""
    names: dict[str, str] = {}
    for config in dict.fromkeys(configs):
        stem = get_eval_file_stem(PurePath(config).name)
        numbered = (
            f"{stem}{'' if number == 1 else f'-{number}'}{OUTPUT_SUFFIXES[0]}"
            for number in count(1)
        )
        names[config] = next(name for name in numbered if name not in names.values())
    return names
