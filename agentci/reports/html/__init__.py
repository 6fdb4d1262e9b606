"""``report.html``: one page that needs no other file."""
