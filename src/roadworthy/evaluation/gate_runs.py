"""Run episodes for a gate, in random order and in blocks, until it has decided or the budget is spent.

All planned episodes stand in the ledger before the first step, cluster by cluster in random order. A look takes the
clusters that are complete. After a decision, runs are sealed as `decided`: what has not run is not missing. Without
one, they are interrupted, and the same command with a larger budget resumes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any

from roadworthy.comparison.gate import SCORE, GateDecision, Look, default_metric, gate_metric
from roadworthy.comparison.gate_stream import boundaries, place_of_cluster
from roadworthy.comparison.margins import require_margin
from roadworthy.comparison.pairs import comparable_metrics
from roadworthy.config import parse
from roadworthy.errors import UsageError
from roadworthy.evaluation.config import EvaluatorConfig
from roadworthy.evaluation.evaluate import Engines
from roadworthy.evaluation.evaluator import EvalRequest, StartedRun, run_ledger
from roadworthy.evaluation.finish import finish
from roadworthy.evaluation.gate import GateResult, GateRule
from roadworthy.evaluation.ledger import EpisodeSpec, Ledger
from roadworthy.evaluation.policy_ref import PolicyRef, policy_ref
from roadworthy.evaluation.sections import Section, chosen, evaluator_class, read_sections
from roadworthy.evaluation.training import training_of
from roadworthy.evaluation.trust import require_trust, require_trusted_code
from roadworthy.metrics.driving import AGENT_METRICS, RATIO_METRICS, TRACE_METRICS, TRIAL_METRICS
from roadworthy.policy.spec import Kind, kind_of
from roadworthy.progress import Report, Showing
from roadworthy.record import Run
from roadworthy.statistics.sequential import Verdict

ENGINES = ("inline", "workers")  # that a recorded setting may name


@dataclass(frozen=True)
class _Side:
    """A policy whose episodes the gate runs."""

    role: str
    name: str
    config: EvaluatorConfig
    policy: PolicyRef
    origins: Mapping[str, str]
    ledger_name: str | None


def run_gate(
    candidate: str,
    baseline: Run | str,
    rule: GateRule,
    *,
    suite: str | Path | None,
    evaluator: str | None,
    overrides: Mapping[str, Any] | Iterable[str],
    budget: int | None,
    out: Path,
    workers: int | None,
    trust: bool,
    showing: Showing,
    on_look: Callable[[GateDecision], None],
) -> GateResult:
    """Run episodes of a candidate, and of a baseline that is not a run, until the gate has decided."""
    rule = replace(rule, metric=_require_bounded(rule, baseline))
    pool = {} if workers is None else {"engine": "workers", "workers": workers}
    settings = {**overrides, **pool} if isinstance(overrides, Mapping) else [*overrides, *_pairs(pool)]
    if isinstance(baseline, Run):
        if suite is None:
            if overrides or evaluator:
                raise UsageError("settings and sections are those of a suite; name it with --suite")
            sides = [_recorded_side(baseline, candidate, pool, trust)]
        else:
            sides = [_side("candidate", _section(suite, evaluator or _name(baseline), candidate, settings), candidate)]
        planned = _ordered(Ledger.from_table(baseline.clustered_ledger()), rule.seed)
        pack = baseline.pack if baseline.pack.exists() else None
    else:
        planned, pack = None, None
        if suite is None:
            raise UsageError(
                f"the baseline {baseline} is not a run folder, so the gate needs episodes to run both policies on; "
                "name a suite with --suite"
            )
        sides = [
            _side(role, _section(suite, evaluator, policy, settings), policy)
            for role, policy in (("candidate", candidate), ("baseline", baseline))
        ]
        _require_different(*(side.policy for side in sides))

    def arrange(ledger: Ledger) -> Ledger:
        ordered = _ordered(ledger, rule.seed) if planned is None else planned
        list(_looks(ordered, rule.block, budget))  # raises what is wrong with the budget before anything is written
        return ordered

    with ExitStack() as stack:
        engines = stack.enter_context(Engines())
        started = []
        for side in sides:
            progress = stack.enter_context(showing("preparing"))
            request = _request(side, rule, out, engines, arrange, pack, progress)
            run = evaluator_class(side.config.type)().start(request)
            stack.enter_context(run.writer)
            started.append((run, request))
        progress = stack.enter_context(showing("running episodes"))
        ends = list(_looks(started[0][0].ledger, rule.block, budget))
        reference = baseline if isinstance(baseline, Run) else None
        decision = _play(started, reference, rule, ends, progress, on_look)
        is_complete = all(len(run.writer.done) == len(run.ledger) for run, _ in started)
        if decision.verdict is not Verdict.UNDECIDED or is_complete:
            reason = {"verdict": decision.verdict.value, "metric": rule.metric, "margin": rule.margin}
            for run, _ in reversed(started):  # the candidate last: until it is sealed, the command resumes
                run.writer.seal(run.metrics, decided=reason)
    runs = [Run(run.writer.folder) for run, _ in started]
    for run in runs:
        if run.is_sealed:
            finish(run)
    return GateResult(decision, runs[0], runs[1] if reference is None else reference, ends[-1])


def _play(
    started: Sequence[tuple[StartedRun, EvalRequest]],
    reference: Run | None,
    rule: GateRule,
    ends: Sequence[int],
    progress: Report,
    on_look: Callable[[GateDecision], None],
) -> GateDecision:
    """Run blocks, and look after each; reference: the baseline, if it is a run."""
    looks: list[Look] = []
    begin = 0
    for end in ends:
        for place, (run, request) in enumerate(started):
            done = begin * len(started) + (end - begin) * place
            _run_block(run, request, begin, end, lambda k, done=done: progress(done + k, ends[-1] * len(started)))  # type: ignore[misc]
        folders = [Run(run.writer.folder) for run, _ in started]
        decision = rule.decide(folders[0], reference or folders[1], first=end)
        looks += decision.looks
        decision = replace(decision, looks=tuple(looks))
        on_look(decision)
        if decision.verdict is not Verdict.UNDECIDED:
            break
        begin = end
    return decision


def _run_block(run: StartedRun, request: EvalRequest, begin: int, end: int, progress: Callable[[int], None]) -> None:
    """Run those of a block of planned episodes that have not ended."""
    block = Ledger(run.ledger.episodes[begin:end])
    run_ledger(run.spec, block, run.writer, request.engine, lambda done, total: progress(done), order=run.order)


def _looks(ledger: Ledger, block: int, budget: int | None) -> Iterator[int]:
    """Yield the numbers of episodes after which the gate looks: whole clusters, within the budget."""
    budget = len(ledger) if budget is None else budget
    if budget > len(ledger):
        raise UsageError(
            f"the budget is {budget:,} episodes, but {len(ledger):,} are planned; plan more scenarios (or replicates) "
            "in the suite, or lower the budget"
        )
    sizes = [len(list(group)) for _, group in groupby(ledger, cluster_of)]
    ends = [end for end in accumulate(sizes) if end <= budget]
    if not ends:
        raise UsageError(
            f"the budget is {budget:,} episodes, but a look needs a whole cluster, and the first has {sizes[0]:,}; "
            f"raise it to {sizes[0]:,} or more"
        )
    yield from (ends[number - 1] for number in boundaries(sizes[: len(ends)], block))


def cluster_of(episode: EpisodeSpec) -> str:
    """Return the cluster of a planned episode: what its scenario shares with others, else the scenario."""
    return episode.cluster or episode.scenario_id


def _ordered(ledger: Ledger, seed: int) -> Ledger:
    """Return a ledger in the order of a gate: clusters in random order, each with its episodes together."""
    places = {cluster: place_of_cluster(seed, cluster) for cluster in {cluster_of(episode) for episode in ledger}}
    return Ledger(tuple(sorted(ledger, key=lambda episode: places[cluster_of(episode)])))


def _request(
    side: _Side,
    rule: GateRule,
    out: Path,
    engines: Engines,
    arrange: Callable[[Ledger], Ledger],
    pack: Path | None,
    progress: Report,
) -> EvalRequest:
    source = side.config.source if side.config.scenarios is not None and pack is None else None
    if source is not None and source.recipe is not None and not source.is_there:
        source.fetch(progress)
    return EvalRequest(
        side.name,
        side.config,
        side.policy,
        out,
        engines.of(side.config),
        side.origins,
        ledger_name=side.ledger_name,
        progress=progress,
        pack=pack,
        arrange=arrange,
        gate={"role": side.role, "metric": rule.metric, "margin": rule.margin, "error": rule.error, "seed": rule.seed},
    )


def _section(suite: str | Path, name: str | None, policy: str, overrides: Mapping[str, Any] | Iterable[str]) -> Section:
    """Return the section of a suite that a policy runs."""
    sections = read_sections(suite, training=training_of(policy), overrides=overrides)
    found = chosen(sections, [name] if name else ())
    usable = [section for section in found if section.error is not None or section.config.policy is None]
    if len(usable) != 1:
        names = ", ".join(section.name for section in usable) or "none"
        raise UsageError(
            f"a gate runs one section, and {suite} has {len(usable)}: {names}; choose one with --evaluator"
        )
    config = usable[0].config  # raises what is wrong with it
    if config.scenarios is not None:
        config.source.require()
    return usable[0]


def _side(role: str, section: Section, policy: str) -> _Side:
    config = _for_gate(section.config)
    origins = section.resolved.origins if section.resolved is not None else {}
    return _Side(role, section.name, config, policy_ref(policy, config.policy_config), origins, section.ledger_name)


def _recorded_side(baseline: Run, candidate: str, pool: Mapping[str, Any], trust: bool) -> _Side:
    """Return the candidate with the settings of the run that is the baseline."""
    header: dict[str, Any] = baseline.header
    settings = {**header.get("carried_out", {}), **header.get("config", {})}
    if "type" not in settings:
        raise UsageError(
            f"{baseline.folder}: its settings are not those of an evaluator, so its episodes can't be run again here; "
            "run the candidate as you ran the baseline, and give both runs to the gate"
        )
    if not trust:
        require_trusted_code(baseline.folder, "evaluator", [str(settings["type"])])
    if settings.get("engine") not in ENGINES:
        settings["engine"] = ENGINES[0]
    config = parse({**settings, **pool}, evaluator_class(settings["type"]).config_type, f"{baseline.folder}/run.json")
    if not trust:
        require_trusted_code(baseline.folder, "metric", config.metrics)
        require_trusted_code(baseline.folder, "environment", [str(getattr(config, "environment", ""))])
        require_trust(baseline.folder, config.coplayers)
    is_network = kind_of(candidate) is Kind.CHECKPOINT
    config = replace(_for_gate(config), policy_config={}, conditioning=config.conditioning if is_network else {})
    return _Side("candidate", _name(baseline), config, policy_ref(candidate), {}, None)


def _for_gate(config: EvaluatorConfig) -> EvaluatorConfig:
    """Return settings without what a gate does not make: videos and reference runs."""
    return replace(config, policy=None, checkpoint=None, render=None, references=())


def _name(run: Run) -> str:
    return str(run.header["evaluator"])


def _pairs(values: Mapping[str, Any]) -> list[str]:
    return [f"{key}={value}" for key, value in values.items()]


def _require_bounded(rule: GateRule, baseline: Run | str) -> str:
    """Raise what is wrong with the metric and the margin before any episode runs; return the name of the metric."""
    if isinstance(baseline, Run):
        known = comparable_metrics(baseline, baseline)
        name = rule.metric or default_metric(known)
        require_margin(gate_metric(name, known, rule.bounds, rule.better), rule.margin)
        return name
    declared = (*TRIAL_METRICS, *AGENT_METRICS, *TRACE_METRICS, *RATIO_METRICS)
    name = rule.metric or SCORE
    if any(metric.name == name for metric in declared):
        require_margin(gate_metric(name, declared, rule.bounds, rule.better), rule.margin)
    return name


def _require_different(candidate: PolicyRef, baseline: PolicyRef) -> None:
    if candidate == baseline:
        raise UsageError(
            f"candidate and baseline are the same policy, {candidate.spec}; to try a gate out, evaluate it once and "
            "give that run as the baseline"
        )
