"""Pictures of every page, in light and dark, wide and narrow; those of the docs are made here."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from roadworthy.viewer.catalog import Catalog
from tests.report.test_realism import rollouts
from tests.viewer.made_up import results, write_run, write_training

# Where pictures for the docs go, if they are wanted: ROADWORTHY_PICTURES=docs/pictures.
PICTURES = os.environ.get("ROADWORTHY_PICTURES")
CLEAR = 4.5  # contrast of text, WCAG 2.2 level AA
# The lowest contrast of texts on a page with what is behind them.
CONTRAST = """
() => {
  const light = (color) => {
    const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = color.map((part) => linear(part / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const behind = (element) => {
    for (let place = element; place; place = place.parentElement) {
      const found = parts(getComputedStyle(place).backgroundColor);
      if (found.length === 3 || found[3] > 0.9) return found.slice(0, 3);
    }
    return [255, 255, 255];
  };
  let worst = [99, ""];
  for (const element of document.querySelectorAll("main *, header *")) {
    const text = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data.trim()).join("");
    if (!text || element.closest("svg, option, [hidden]") || !element.getClientRects().length) continue;
    const [a, b] = [light(parts(getComputedStyle(element).color).slice(0, 3)), light(behind(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < worst[0]) worst = [contrast, text.slice(0, 60)];
  }
  return worst;
}
"""


@pytest.fixture(scope="module")
def site(served: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The addresses of servers, and the keys of what they show; the realism page has a server of its own."""
    root = tmp_path_factory.mktemp("runs")
    runs = [write_run(root, results(180, seed=k), policy=f"policy-{k}", step=500_000 * (k + 1)) for k in range(3)]
    training = write_training(root / "training")
    for k in range(4):
        write_run(training / "evaluations", results(120, seed=9 + k), policy="training", step=100_000 * (k + 1))
    bad = write_run(root, results(4), policy="copied-half")
    (bad.folder / "run.json").write_text("{")
    realism = tmp_path_factory.mktemp("realism")
    return {
        "address": served(root),
        "realism": served(realism),
        "A": runs[0].header["run_id"],
        "B": runs[2].header["run_id"],
        "R": rollouts(realism).header["run_id"],
        "T": next(iter(Catalog([root]).trainings)),
    }


@pytest.mark.row("UI-2")
@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("runs", "runs"),
        ("run", "run/A?f=factors.grip~range~0.5~0.8&xy=factors.grip,outcomes.distance_m"),
        ("compare", "compare/A/B"),
        ("history", "history?suite=town"),
        ("sensitivity", "sensitivity/A"),
        ("training", "training/T"),
        ("realism", "realism/R"),
    ],
)
def test_pages_are_readable_and_fill_the_screen(page: Any, site: dict[str, str], name: str, path: str) -> None:
    for key in "ABRT":
        path = path.replace(f"/{key}", f"/{site[key]}")
    page.goto(f"{site.get(name, site['address'])}#/{path}")
    page.wait_for_selector(f"html[data-ready={name}]")
    page.wait_for_timeout(150)
    for width, height, scheme in ((1280, 900, "light"), (1280, 900, "dark"), (360, 780, "light")):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(50)
        contrast, text = page.evaluate(CONTRAST)
        assert contrast >= CLEAR, (scheme, contrast, text)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
        assert len(np.unique(np.asarray(picture).reshape(-1, 3), axis=0)) > 20
        if PICTURES and (scheme == "light" or name == "run"):
            suffix = "-dark" if scheme == "dark" else "" if width == 1280 else "-narrow"
            save(picture, Path(PICTURES) / f"viewer-{name}{suffix}.png")


def save(picture: Image.Image, path: Path) -> None:
    """Write a picture with few colors, which makes its file small."""
    picture.quantize(64, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(path, optimize=True)
