"""What is looser than the policy of the base commit."""

from agentci._util.text import truncate
from agentci.model.policy import PolicyComparison
from agentci.model.result import Report
from agentci.reports.html.markup import Markup, tag
from agentci.reports.policy import (
    LOOSER_TITLE,
    MAX_CHANGES,
    choose_title,
    format_cells,
    list_columns,
    list_policy_remarks,
)


def render_policy(report: Report) -> Markup:
    """Render the section; empty if there is nothing to show."""
    policy = report.policy
    if policy is None:
        return Markup("")
    remarks = [tag("li", remark) for remark in list_policy_remarks(policy)]
    if not (policy.loosened or remarks):
        return Markup("")
    return tag(
        "section",
        tag("h2", choose_title(policy)),
        _render_table(policy) if policy.loosened else "",
        tag("ul", *remarks) if remarks else "",
    )


def _render_table(policy: PolicyComparison) -> Markup:
    rows = [format_cells(each, policy) for each in policy.loosened[:MAX_CHANGES]]
    left = len(policy.loosened) - len(rows)
    head = (tag("th", each, scope="col") for each in list_columns(policy))
    body = (tag("tr", *(tag("td", cell) for cell in row)) for row in rows)
    return tag(
        "div",
        tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body)),
        tag("p", truncate.format_omitted(left)) if left else "",
        class_="wide",
        tabindex=0,
        role="region",
        aria_label=LOOSER_TITLE,
    )
