"""What GitHub cuts off or throws away, in one table; it imports nothing.

Sources: the runner's own code (``_maxIssueMessageLength``, ``_maxCountPerIssueType``, the upload of
step summaries) and GitHub's documentation of workflow commands and of SARIF files.
"""

# Annotations of one type (error, warning, notice) that a step may make; later ones are dropped.
ANNOTATIONS_PER_TYPE = 10

# UTF-16 code units of an annotation's message that are kept.
ANNOTATION_MESSAGE_UNITS = 4096

# Characters of an annotation's title.
ANNOTATION_TITLE_CHARACTERS = 255

# Of the text of a comment.
COMMENT_CHARACTERS = 65_536

# A step summary over this is not cut but lost as a whole.
SUMMARY_BYTES = 1024 * 1024

# Results of a run in a SARIF file; one that has more is refused.
SARIF_RESULTS = 25_000

# Characters of a result's message: 25,000 of this length stay far below the 10 MB, zipped, that a
# file may have.
SARIF_MESSAGE_CHARACTERS = 1000
