"""Importers: scenarios from recordings of others, as packs."""

from roadworthy.scenario.importers.pack import ImportReport, import_womd

__all__ = ["ImportReport", "import_womd"]
