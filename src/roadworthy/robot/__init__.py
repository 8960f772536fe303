"""A table-top robot task in MuJoCo: pick an object up and put it in a tray, under factors that can be varied."""
