"""Importers: packs from recordings in the formats of other projects.

An importer is a class with the three methods of `Importer`, named by an entry point of the group
`roadworthy.importers`, by `module:Name` or by `file.py:Name`. Everything else is shared by all formats: parallel
reading, progress, damaged records, counts of omitted data, and writing the pack.
"""

from roadworthy.scenario.importers.importer import Damage, Importer, Location, Record
from roadworthy.scenario.importers.run import ImportReport, import_scenarios

__all__ = ["Damage", "ImportReport", "Importer", "Location", "Record", "import_scenarios"]
