"""Files of recorded outputs are called after the eval files that they belong to."""

from agentci.runner.output_names import get_eval_file_stem, make_output_names


def test_an_ending_that_says_eval_file_is_left_out() -> None:
    names = ("a.eval.yaml", "a.yml", "a.jsonl", "a.txt", "a.b.yaml")
    assert [get_eval_file_stem(name) for name in names] == ["a", "a", "a", "a", "a.b"]


def test_names_that_would_be_one_are_numbered() -> None:
    assert make_output_names(["x/a.yaml", "y/a.yaml", "a.eval.yml", "b.yaml", "x/a.yaml"]) == {
        "x/a.yaml": "a.outputs.jsonl",
        "y/a.yaml": "a-2.outputs.jsonl",
        "a.eval.yml": "a-3.outputs.jsonl",
        "b.yaml": "b.outputs.jsonl",
    }
