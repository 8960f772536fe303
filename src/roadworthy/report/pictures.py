"""Filmstrips and videos of episodes in a page, as many as its size allows."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from roadworthy.record.files import file_inside
from roadworthy.report.facts import Episode, RunFacts
from roadworthy.report.markup import Html, data_uri, join, tag, void

FILMSTRIP = "filmstrip"  # the artifact's name
VIDEO = "video_"  # prefix of the artifact names of videos; the rest is the view
STRIP_BYTES = 1_800_000  # of all strips of a page, encoded
VIDEO_BYTES = 8_000_000


@dataclass
class Pictures:
    """The remaining space for pictures in a page; the worst episodes are served first."""

    page: Path  # links are relative to this file
    strip_bytes: int
    video_bytes: int

    def shared(self, parts: int) -> Pictures:
        """Return an equal share of the space for each of several runs."""
        return Pictures(self.page, self.strip_bytes // parts, self.video_bytes // parts)

    def of(self, facts: RunFacts, episode: Episode) -> Html | None:
        """Return the strip and the videos of an episode; None if it has neither, or there is no space."""
        # A record may name any path: only files in the run folder are put into the page.
        found = {name: file_inside(facts.run.folder, path) for name, path in sorted(episode.artifacts.items())}
        files = {name: path for name, path in found.items() if path is not None and path.is_file()}
        videos = [
            self._video(path, f"{name.removeprefix(VIDEO)} of {episode.id}")
            for name, path in files.items()
            if name.startswith(VIDEO)
        ]
        strip = self._strip(files[FILMSTRIP], episode) if FILMSTRIP in files else None
        return join((strip, tag("div", *videos, class_="videos") if videos else None)) if strip or videos else None

    def _strip(self, path: Path, episode: Episode) -> Html | None:
        uri = data_uri("image/png", path.read_bytes())
        if len(uri) > self.strip_bytes:
            return None
        self.strip_bytes -= len(uri)
        return void("img", src=uri, alt=f"moments of episode {episode.id}", class_="filmstrip")

    def _video(self, path: Path, title: str) -> Html:
        """Return a video in the page, or a link to it if it is too large."""
        size = path.stat().st_size * 4 // 3
        link = quote(Path(os.path.relpath(path, self.page.absolute().parent)).as_posix())
        if size > self.video_bytes:
            return tag("a", f"▶ video, {title} ({path.stat().st_size / 1e6:.1f} MB)", href=link, class_="video-link")
        self.video_bytes -= size
        return tag(
            "video", src=data_uri("video/mp4", path.read_bytes()), controls=True, preload="metadata", title=title
        )
