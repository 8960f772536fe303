"""The training config of a checkpoint: the lowest layer of every section that evaluates it."""

from __future__ import annotations

import json
from pathlib import Path

from roadworthy.config import Layer
from roadworthy.errors import ConfigError
from roadworthy.policy.spec import checkpoint_folder

ABOUT = "policy.json"
TRAINING = "train"  # the key of the training config there, with tables as in a config file


def training_of(checkpoint: str | Path) -> Layer | None:
    """Return the training config of a checkpoint; None for other policies, and for a checkpoint without one."""
    folder = checkpoint_folder(checkpoint)
    if folder is None:
        return None
    path = (folder if folder.is_dir() else folder.parent) / ABOUT
    if not path.is_file():
        return None
    try:
        values = json.loads(path.read_text(encoding="utf-8")).get(TRAINING)
    except (OSError, ValueError, AttributeError) as error:
        raise ConfigError(f"{path} can't be read: {error}") from error
    return Layer(str(path), values, is_record=True) if isinstance(values, dict) else None
