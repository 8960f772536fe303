"""Scenarios by a word: a pack, the part of it that has a tag, or a pack that is generated once and kept in the cache.

town.pack                         all scenarios of a pack; ~ and $VAR are expanded
town.pack#hard_stop               those with a tag
generate:town?count=256&seed=1    what the generator makes of the classes that are set in towns
generate:all?seed=7#merge         of all classes; those with a tag
generate:cut_in,merge?count=24    of these classes; further keys: steps
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from urllib.parse import parse_qsl

from roadworthy.config import parse, plain
from roadworthy.errors import ConfigError
from roadworthy.kernels.compile import cache_folder
from roadworthy.plugins import nearest
from roadworthy.scenario.detect import BEHAVIORS
from roadworthy.scenario.generate.config import GenerateConfig

SCHEME = "generate:"
# Classes by a common name. Those of the towns are set in streets with junctions, not on motorways.
CLASSES = {
    "all": BEHAVIORS,
    "town": (
        "roundabout",
        "unprotected_left",
        "unprotected_right",
        "protected_left",
        "pedestrian_crossing",
        "nudge_parked",
    ),
}
_NUMBERS = tuple(f.name for f in fields(GenerateConfig) if f.name != "classes")


@dataclass(frozen=True)
class ScenarioSource:
    """Where scenarios come from: a pack file, or what to generate."""

    file: Path | None
    recipe: GenerateConfig | None
    tag: str | None
    # Only scenarios that have it.

    @property
    def path(self) -> Path:
        """The pack. A generated one is named by a hash of its recipe and of the generator's sources."""
        if self.file is not None:
            return self.file
        assert self.recipe is not None
        sources = cache_folder("scenario")
        digest = hashlib.sha256(json.dumps([plain(self.recipe), sources.name], sort_keys=True).encode()).hexdigest()
        return sources.parent.parent / "packs" / f"seed{self.recipe.seed}-{self.recipe.count}-{digest[:16]}.pack"

    @property
    def is_there(self) -> bool:
        """Whether the pack exists, or has to be generated first."""
        return self.path.exists()

    def require(self) -> None:
        """Raise ConfigError if the pack is a file that does not exist."""
        if self.file is not None and not self.file.is_file():
            near = nearest(self.file.name, [path.name for path in self.file.parent.glob("*.pack")])
            raise ConfigError(f"there is no pack {str(self.file)!r}; {near}")

    def fetch(self, progress: Callable[[int, int], None] | None = None) -> Path:
        """The pack, generated first where it has to be; `progress` is called with finished and all scenarios then."""
        if self.recipe is not None and not self.is_there:
            from roadworthy.scenario.generate.pack import generate_pack

            self.path.parent.mkdir(parents=True, exist_ok=True)
            generate_pack(self.recipe, self.path, progress=progress)  # two at once write the same bytes
        return self.path


def parse_source(text: str, key: str = "scenarios") -> ScenarioSource:
    """Read the word for a source; `key` is the setting that it stands in, for errors."""
    place, _, tag = text.partition("#") if text.startswith(SCHEME) else _split_name(text)
    if not place:
        raise ConfigError(f'{key} is {text!r}, expected a pack, as "town.pack", or "{SCHEME}town?count=96&seed=1"')
    if not place.startswith(SCHEME):
        return ScenarioSource(Path(expanded(place, key)), None, tag or None)
    name, _, query = place.removeprefix(SCHEME).partition("?")
    return ScenarioSource(None, _recipe(name, query, f"{key} is {text!r}"), tag or None)


def expanded(text: str, key: str) -> str:
    """A place with ~ and $VAR expanded; a variable that is not defined would silently name another place."""
    for match in re.finditer(r"\$(?:\{(\w+)\}|(\w+))", text):
        name = match[1] or match[2]
        if name not in os.environ:
            raise ConfigError(f"{key} is {text!r}, but the variable {name} is not defined; set it first")
    return os.path.expanduser(os.path.expandvars(text))


def _split_name(text: str) -> tuple[str, str, str]:
    """A tag stands behind the file's name: a folder may have a # in it."""
    folder, slash, name = text.rpartition("/")
    file, mark, tag = name.partition("#")
    return folder + slash + file, mark, tag


def _recipe(name: str, query: str, where: str) -> GenerateConfig:
    values: dict[str, object] = {"classes": list(CLASSES.get(name or "all", name.split(",")))}
    for key, number in parse_qsl(query, keep_blank_values=True):
        if key not in _NUMBERS or not number.isdecimal():
            raise ConfigError(f"{where} with {key}={number}, expected whole numbers for {', '.join(_NUMBERS)}")
        values[key] = int(number)
    try:
        return parse(values, GenerateConfig, where)
    except ConfigError as error:
        raise ConfigError(f"{error}; or in one word: {', '.join(CLASSES)}") from error
