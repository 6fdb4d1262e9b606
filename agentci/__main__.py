"""``python -m agentci``."""

import sys

from agentci.cli import main

sys.exit(main())
