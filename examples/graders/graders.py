"""Graders of a shop's support agent."""

MAX_CHARACTERS = 200


def stays_brief(sample, item):
    """Answers above the limit score lower."""
    return min(1.0, MAX_CHARACTERS / max(1, len(sample["output_text"])))


def keeps_to_the_policy(sample, item):
    """The answer contains the policy's words."""
    missing = [words for words in item["policy"] if words not in sample["output_text"]]
    return {
        "score": 1 - len(missing) / len(item["policy"]),
        "reason": f"not said: {', '.join(missing)}" if missing else "all of it is said",
    }


def asks_before_refunding(sample, item):
    """Every refund was confirmed by the customer."""
    names = [call["name"] for call in sample["tool_calls"]]
    if "create_refund" not in names:
        return True
    return "confirm_with_customer" in names[: names.index("create_refund")]
