"""Files of recorded outputs are called after the eval files that they belong to."""

from agentci._util.text.output_names import file_names, stem_of


def test_an_ending_that_says_eval_file_is_left_out() -> None:
    names = ("a.eval.yaml", "a.yml", "a.jsonl", "a.txt", "a.b.yaml")
    assert [stem_of(name) for name in names] == ["a", "a", "a", "a", "a.b"]


def test_names_that_would_be_one_are_numbered() -> None:
    assert file_names(["x/a.yaml", "y/a.yaml", "a.eval.yml", "b.yaml", "x/a.yaml"]) == {
        "x/a.yaml": "a.outputs.jsonl",
        "y/a.yaml": "a-2.outputs.jsonl",
        "a.eval.yml": "a-3.outputs.jsonl",
        "b.yaml": "b.outputs.jsonl",
    }
