"""The TensorBoard sink: figures as scalars, videos as animated GIFs, settings as a table, in event files."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import av
import numpy as np
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.types_pb2 import DT_STRING
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from roadworthy.errors import ConfigError
from roadworthy.folders import require_writable
from roadworthy.render.video import write_gif
from roadworthy.sinks.publish import Publication, Training, TrainingScalars, flat


@dataclass(frozen=True)
class TensorBoardConfig:
    """The table `[sinks.tensorboard]`."""

    folder: Path | None = None
    # The folder of event files; none: `tensorboard` in the folder of the runs or of the training.
    gif_width_px: int = 480
    # The width of animated GIFs, which TensorBoard shows instead of videos.
    gif_frames: int = 120
    # The maximum number of frames of a GIF, evenly chosen.

    def __post_init__(self) -> None:
        if self.gif_width_px < 16 or self.gif_frames < 1:
            raise ConfigError(
                f"gif_width_px is {self.gif_width_px} and gif_frames is {self.gif_frames}; expected at least 16 and 1"
            )


class TensorBoardSink:
    """Writes event files, flushed with every publication."""

    config_type: ClassVar[type] = TensorBoardConfig

    def __init__(self, config: TensorBoardConfig, folder: Path) -> None:
        self._config = config
        self._writer = EventFileWriter(str(_place(config, folder)))

    @classmethod
    def check(cls, config: TensorBoardConfig, folder: Path) -> str:
        place = _place(config, folder)
        require_writable(place)
        return f"event files go to {place}"

    def describe(self, training: Training) -> None:
        """Show the settings of a training as a table under Text; a resumed training has it already."""
        if training.is_resumed:
            return
        lines = ["| setting | value |", "|---|---|"]
        lines += [f"| {key} | {value} |" for key, value in flat(training.config).items()]
        about = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
        text = TensorProto(dtype=DT_STRING, string_val=["\n".join(lines).encode()])
        self._add(0, [Summary.Value(tag="config/text_summary", metadata=about, tensor=text)])

    def write(self, publication: Publication | TrainingScalars) -> None:
        figures = publication.named_figures() | {publication.epoch_name: float(publication.epoch)}
        scalars = [Summary.Value(tag=name, simple_value=value) for name, value in figures.items()]
        try:
            self._add(publication.step, scalars)
            for name, path in publication.named_videos().items():
                self._add(publication.step, [Summary.Value(tag=name, image=self._picture(path))])
        finally:
            self._writer.flush()

    def close(self) -> None:
        self._writer.close()

    def _add(self, step: int, values: list[Any]) -> None:
        self._writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))

    def _picture(self, path: Path) -> Any:
        """Return a video as an animated GIF."""
        width = self._config.gif_width_px
        with av.open(str(path)) as video, tempfile.TemporaryDirectory() as folder:
            stream = video.streams.video[0]
            height = max(1, round(stream.height * width / stream.width))
            every = -(-max(stream.frames, 1) // self._config.gif_frames)
            frames = (
                np.asarray(frame.to_ndarray(format="rgb24", width=width, height=height), np.uint8)
                for number, frame in enumerate(video.decode(stream))
                if number % every == 0
            )
            gif = Path(folder) / "video.gif"
            write_gif(gif, frames, float(stream.average_rate or 10) / every)
            data = gif.read_bytes()
        return Summary.Image(height=height, width=width, colorspace=3, encoded_image_string=data)


def _place(config: TensorBoardConfig, folder: Path) -> Path:
    return config.folder or folder / "tensorboard"
