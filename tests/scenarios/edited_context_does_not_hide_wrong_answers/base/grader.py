"""Compares the answer with the row's expected one."""

EXPECTED = "expected"


def grade(sample, item):
    return float(sample["output_text"] == item[EXPECTED])
