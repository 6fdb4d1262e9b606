"""Files of recorded outputs are named after their eval files."""

from agentci.config.discovery import get_eval_file_stem, make_output_names


def test_eval_file_extension_is_removed() -> None:
    names = ("a.eval.yaml", "a.yml", "a.jsonl", "a.txt", "a.b.yaml")
    assert [get_eval_file_stem(name) for name in names] == ["a", "a", "a", "a", "a.b"]


def test_duplicate_output_names_are_numbered() -> None:
    assert make_output_names(["x/a.yaml", "y/a.yaml", "a.eval.yml", "b.yaml", "x/a.yaml"]) == {
        "x/a.yaml": "a.outputs.jsonl",
        "y/a.yaml": "a-2.outputs.jsonl",
        "a.eval.yml": "a-3.outputs.jsonl",
        "b.yaml": "b.outputs.jsonl",
    }
