"""Limits of GitHub on annotations, comments, summaries and SARIF files.

Sources: the runner's source code (``_maxIssueMessageLength``, ``_maxCountPerIssueType``, the upload
of step summaries) and GitHub's documentation of workflow commands and SARIF files.

The module imports nothing.
"""

# Annotations per step and type (error, warning, notice); later ones are dropped.
ANNOTATIONS_PER_TYPE = 10

# UTF-16 code units of an annotation's message; the rest is cut.
ANNOTATION_MESSAGE_UNITS = 4096

# Characters of an annotation's title.
ANNOTATION_TITLE_CHARACTERS = 255

# Characters of a comment.
COMMENT_CHARACTERS = 65_536

# Bytes of a step summary; a larger one is dropped as a whole.
SUMMARY_BYTES = 1024 * 1024

# Results per run in a SARIF file; a file with more is rejected.
SARIF_RESULTS = 25_000

# Characters of a result's message: 25,000 of this length stay far below GitHub's file limit of 10
# MB (compressed).
SARIF_MESSAGE_CHARACTERS = 1000
