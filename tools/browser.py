"""Make sure that tests of the viewer find Chromium: install it as root on Debian, otherwise say what to install."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALL = "apt-get install -y --no-install-recommends chromium"


def main() -> int:
    """Return 0 if there is a browser, or if it could be installed."""
    if any(map(shutil.which, NAMES)):
        return 0
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        print(f"There is no Chromium; tests of the viewer are skipped. As root on Debian: {INSTALL}", file=sys.stderr)
        return 1
    print(f"Tests of the viewer need a browser: {INSTALL}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update", "-qq"], [*INSTALL.split(), "-qq"]):
        if subprocess.run(command, env=environment, check=False).returncode:
            print(f"{' '.join(command)} failed; install it by hand: {INSTALL}", file=sys.stderr)
            return 1
    return int(not any(map(shutil.which, NAMES)))


if __name__ == "__main__":
    sys.exit(main())
