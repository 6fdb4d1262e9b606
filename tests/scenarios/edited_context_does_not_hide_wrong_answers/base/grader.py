"""Compares the answer with the row's expected one."""


def grade(sample: dict[str, str], item: dict[str, str]) -> float:
    return float(sample["output_text"] == item["expected"])
