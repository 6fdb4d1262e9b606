"""``python -m agentci``."""

import sys

from agentci.cli.main import main

sys.exit(main())
