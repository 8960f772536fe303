"""Read logs of Inspect AI: `.eval` (a zip archive) and `.json`.

A sample is a scenario, an epoch a replicate, and each scorer an outcome; the first scorer says whether an episode
succeeded. Letters of scores count as in Inspect: C 1, P 0.5, I and N 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from roadworthy.errors import RecordError
from roadworthy.record.readers.archive import Archive
from roadworthy.record.readers.log import Log, Record, Role, flat, printable
from roadworthy.record.readers.mapping import ColumnMapping, rows_for_analysis
from roadworthy.record.readers.row_streams import Skip, read_whole_json
from roadworthy.record.readers.whole_json import as_list, as_share, as_table, as_text, starts_with_keys

_SCORES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_LONGEST_WORD = 100  # characters of metadata that can be a factor
_SAMPLE = re.compile(r"samples/.+\.json")
_SUMMARIES = re.compile(r"_journal/summaries/(\d+)\.json")
_ROLES = {
    "sample": Role.SCENARIO,
    "epoch": Role.REPLICATE,
    "metadata.*": Role.FACTOR,
    "scores.*": Role.OUTCOME,
    "error": Role.ERROR,
    "completed_at": Role.ORDER,
    "working_time": Role.LENGTH,
    "total_time": Role.OUTCOME,
    "messages": Role.OUTCOME,
    "tokens": Role.OUTCOME,
    "hit_limit": Role.OUTCOME,
}


class InspectReader:
    """Reads a log of Inspect AI."""

    def detects(self, path: Path) -> bool:
        """Return whether a file is a `.eval` archive, or a .json file that starts like a log."""
        if path.suffix.lower() == ".eval":
            return path.is_file()
        return starts_with_keys(path, ("version", "status", "eval"))

    def open(self, path: Path, skip: Skip | None = None) -> Log:
        """Return the log."""
        if path.suffix.lower() == ".json":
            whole = as_table(path, "the file", read_whole_json(path))
            samples = as_list(path, "samples", whole.get("samples"))
            return _log(path, whole, lambda: ((f"samples[{k}]", sample) for k, sample in enumerate(samples)))
        archive = Archive(path)
        names = archive.names
        if "header.json" in names:
            header = as_table(path, "header.json", archive.json("header.json"))
        elif "_journal/start.json" in names:  # the evaluation was killed before its end
            header = as_table(path, "_journal/start.json", archive.json("_journal/start.json")) | {"status": "started"}
        else:
            raise RecordError(f"{path}: has neither header.json nor _journal/start.json; is it a log of Inspect?")
        return _log(path, header, lambda: _archived_samples(archive))

    def read(self, path: Path) -> list[dict[str, Any]]:
        """Return the rows with factors and outcomes."""
        return rows_for_analysis(ColumnMapping.of(self.open(path)))


def _archived_samples(archive: Archive) -> Iterator[tuple[str, Any]]:
    """Yield the samples, from their summaries where those have everything: samples can be large."""
    members = [name for name in archive.names if _SAMPLE.fullmatch(name)]
    summaries = []
    if "summaries.json" in archive.names:
        summaries = as_list(archive.path, "summaries.json", archive.json("summaries.json"))
    else:
        parts = [name for name in archive.names if _SUMMARIES.fullmatch(name)]
        for name in sorted(parts, key=lambda name: int(_SUMMARIES.fullmatch(name)[1])):  # type: ignore[index]
            summaries += as_list(archive.path, name, archive.json(name))
    is_complete = len(summaries) == len(members) or not members
    if summaries and is_complete and all(isinstance(one, dict) and "metadata" in one for one in summaries):
        yield from ((f"summaries[{number}]", sample) for number, sample in enumerate(summaries))
        return
    for name in members:
        yield printable(name), archive.json(name)


def _log(path: Path, header: Mapping[str, Any], samples: Callable[[], Iterator[tuple[str, Any]]]) -> Log:
    spec = as_table(path, "eval", header.get("eval"))
    results = header.get("results") if isinstance(header.get("results"), dict) else {}
    scorer = _first_scorer(spec, results or {}, samples)
    if scorer is None:
        raise RecordError(
            f"{path}: none of its samples has a score, so nothing says whether they succeeded; score the log with "
            "`inspect score` first"
        )

    def records() -> Iterator[Record]:
        for place, sample in samples():
            yield _record(path, place, as_table(path, place, sample))

    status = header.get("status")
    notes = () if status in ("success", None) else (f"the evaluation did not end normally: its status is {status!r}",)
    dataset = spec.get("dataset") if isinstance(spec.get("dataset"), dict) else {}
    assert isinstance(dataset, dict)
    kept = {
        key: spec[key] for key in ("task", "task_id", "run_id", "created", "model") if isinstance(spec.get(key), str)
    }
    return Log(
        path,
        "inspect",
        records,
        {**_ROLES, scorer: Role.SUCCESS},
        job=as_text(spec.get("task")).rpartition("/")[2],
        policy=as_text(spec.get("model")),
        planned=_planned(spec, dataset),
        has_plan=True,
        reported=_reported(results or {}, scorer),
        facts=kept | {"dataset": as_text(dataset.get("name")), "status": as_text(status)},
        notes=notes,
    )


def _record(path: Path, place: str, sample: dict[str, Any]) -> Record:
    for key in ("id", "epoch"):
        if key not in sample:
            raise RecordError(f"{path}, {place}: has no {key}; is it a sample of Inspect?")
    epoch = sample["epoch"]
    if isinstance(epoch, bool) or not isinstance(epoch, int) or epoch < 1:
        raise RecordError(f"{path}, {place}: epoch is {str(epoch)[:40]!r}; expected a whole number from 1")
    values: dict[str, Any] = {"sample": str(sample["id"]), "epoch": epoch - 1}
    values |= _scores(sample)
    metadata = sample.get("metadata")
    if isinstance(metadata, dict):
        found = flat({"metadata": metadata}, f"{path}, {place}")
        values |= {name: v for name, v in found.items() if not isinstance(v, str) or len(v) <= _LONGEST_WORD}
    error = sample.get("error")
    if error is not None:
        values["error"] = str(error.get("message", "error")) if isinstance(error, dict) else str(error)
    for name in ("completed_at", "working_time", "total_time"):
        if isinstance(sample.get(name), int | float | str):
            values[name] = sample[name]
    messages = sample.get("messages", sample.get("message_count"))
    if isinstance(messages, list | int):
        values["messages"] = len(messages) if isinstance(messages, list) else messages
    usage = sample.get("model_usage")
    if isinstance(usage, dict):
        tokens = [part.get("total_tokens") for part in usage.values() if isinstance(part, dict)]
        values["tokens"] = sum(number for number in tokens if isinstance(number, int))
    if sample.get("limit") is not None:
        values["hit_limit"] = True
    return Record(place, values)


def _scores(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scores of a sample by column, letters as numbers."""
    scores = sample.get("scores")
    if scores is None and isinstance(sample.get("score"), dict):  # logs of early versions
        scores = {"score": sample["score"]}
    found: dict[str, Any] = {}
    for name, score in scores.items() if isinstance(scores, dict) else ():
        value = score.get("value") if isinstance(score, dict) else None
        if isinstance(value, dict):
            found |= {f"scores.{name}.{key}": _number(part) for key, part in value.items()}
        elif isinstance(value, list):
            found |= {f"scores.{name}[{place}]": _number(part) for place, part in enumerate(value)}
        elif value is not None:
            found[f"scores.{name}"] = _number(value)
    return found


def _number(value: Any) -> Any:
    """Return a letter or word of a score as a number; other values as they are."""
    if not isinstance(value, str):
        return value if not isinstance(value, dict | list) else None
    return _SCORES.get(value, _SCORES.get(value.lower(), value) if len(value) > 1 else value)


def _first_scorer(
    spec: Mapping[str, Any], results: Mapping[str, Any], samples: Callable[[], Iterator[tuple[str, Any]]]
) -> str | None:
    """Return the column of the scorer that the log names first, among those that samples have."""
    found: list[str] = []
    for _, sample in samples():
        found = list(_scores(sample)) if isinstance(sample, dict) else []
        if found:
            break
    scorers, scores = spec.get("scorers"), results.get("scores")
    named = [part.get("name") for part in scorers if isinstance(part, dict)] if isinstance(scorers, list) else []
    named += [part.get("name") for part in scores if isinstance(part, dict)] if isinstance(scores, list) else []
    for name in named:
        if isinstance(name, str):
            for column in found:
                if column == f"scores.{name}" or column.startswith((f"scores.{name}.", f"scores.{name}[")):
                    return column
    return found[0] if found else None


def _reported(results: Mapping[str, Any], scorer: str) -> float | None:
    """Return the accuracy that the log states for a scorer."""
    scores = results.get("scores")
    for part in scores if isinstance(scores, list) else ():
        if isinstance(part, dict) and f"scores.{part.get('name')}" == scorer:
            metrics = part.get("metrics")
            accuracy = metrics.get("accuracy") if isinstance(metrics, dict) else None
            return as_share(accuracy.get("value") if isinstance(accuracy, dict) else None)
    return None


def _planned(spec: Mapping[str, Any], dataset: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """Return the samples and epochs that the evaluation was to run."""
    config = spec.get("config")
    epochs = config.get("epochs") if isinstance(config, dict) else None
    ids = dataset.get("sample_ids")
    if not isinstance(ids, list) or not all(isinstance(id, int | str) for id in ids):
        return ()
    count = epochs if isinstance(epochs, int) and 0 < epochs <= 10_000 else 1
    if len(ids) * count > 10_000_000:
        return ()
    return tuple((str(id), epoch) for epoch in range(count) for id in dict.fromkeys(ids))
