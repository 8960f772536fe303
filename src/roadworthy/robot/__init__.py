"""A table-top robot task in MuJoCo: pick an object up and put it in a tray, with factors that vary between episodes."""
