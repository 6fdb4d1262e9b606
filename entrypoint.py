"""The front door of the image: a command line where there are arguments, else the action."""

import os
import sys

if len(sys.argv) > 1 or os.environ.get("GITHUB_ACTIONS") != "true":
    from agentci.cli.main import main
else:
    from agentci.cli.action import main

if __name__ == "__main__":
    sys.exit(main())
