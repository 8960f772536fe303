"""`python -m roadworthy` is the command line."""

import sys

from roadworthy.cli.main import main

sys.exit(main())
