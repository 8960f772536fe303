"""The style of reports in light mode, dark mode and print, and the script that sorts tables."""

_LIGHT = """--page: #ffffff; --panel: #f4f6f5; --line: #d9dddb; --ink: #1b2226; --soft: #5f6a71; --accent: #1f5f8b;
  --fine: #d3e3dd; --good: #2f7d65; --middling: #93690a; --bad: #c13f2a; --second: #7a5ea8;"""

STYLE = (
    f"""
:root {{ color-scheme: light dark; {_LIGHT} }}
@media (prefers-color-scheme: dark) {{ :root {{
  --page: #14181b; --panel: #1d2327; --line: #39424a; --ink: #e8ebe9; --soft: #9aa5ac; --accent: #6db3e0;
  --fine: #2b4740; --good: #58b898; --middling: #dbb04a; --bad: #f0755c; --second: #b39ae0;
}} }}
"""
    + """
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; color: var(--ink);
  background: var(--page); max-width: 74rem; margin: 0 auto; padding: 2rem 1.5rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0.2rem 0 0.4rem; overflow-wrap: anywhere; }
h2 { font-size: 1.4rem; margin: 3rem 0 0.5rem; padding-top: 1.1rem; border-top: 2px solid var(--ink); }
h3 { font-size: 1.1rem; margin: 2.2rem 0 0.5rem; }
a { color: var(--accent); }
p { margin: 0.4rem 0; }
pre, .key { font: 0.82rem/1.45 ui-monospace, "SF Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere; }
pre { background: var(--panel); border-radius: 6px; padding: 0.8rem; margin: 0.4rem 0; white-space: pre-wrap; }
details { margin: 0.9rem 0; }
summary { cursor: pointer; color: var(--accent); }
nav { display: flex; flex-wrap: wrap; gap: 0.2rem 1rem; margin: 1rem 0; font-size: 0.9rem; }
footer { margin-top: 4rem; border-top: 1px solid var(--line); padding-top: 0.8rem; }
.over { color: var(--soft); letter-spacing: 0.08em; text-transform: uppercase; font-size: 0.78rem; }
.lead { color: var(--soft); }
.note, .meaning, .muted { color: var(--soft); font-size: 0.87em; }
.meaning { line-height: 1.35; }
.status { border: 1px solid currentColor; border-radius: 1em; padding: 0.15em 0.7em; vertical-align: middle;
  font-size: 0.8rem; font-weight: 600; white-space: nowrap; }
.completed { color: var(--good); }
.failed { color: var(--bad); }
.interrupted, .running { color: var(--middling); }
.warnings { background: var(--panel); border-left: 4px solid var(--middling); padding: 0.6rem 1.1rem; }
.warnings ul { margin: 0.3rem 0; padding-left: 1.1rem; }

.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); gap: 0.8rem; margin: 1.2rem 0; }
.tile { background: var(--panel); border-radius: 8px; padding: 0.9rem 1.1rem; break-inside: avoid; }
.tile-name::first-letter, .forest td:first-child b::first-letter { text-transform: uppercase; }
.forest td:first-child b { display: inline-block; }
.tile-value { font-size: 2rem; font-weight: 650; line-height: 1.25; }
.tile-range { font-size: 0.9rem; }
.tile-count { color: var(--soft); font-size: 0.85rem; }

.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.32rem 0.7rem 0.32rem 0; text-align: left; vertical-align: top; }
th { color: var(--soft); font-size: 0.82rem; font-weight: 600; }
thead th { border-bottom: 1px solid var(--ink); vertical-align: bottom; }
thead:not(:has(th)) { display: none; }
tbody tr { border-bottom: 1px solid var(--line); }
.number { text-align: right; white-space: nowrap; }
td.muted { white-space: normal; max-width: 15rem; }
.plot { width: 1%; padding-top: 0.2rem; padding-bottom: 0.2rem; vertical-align: middle; }
.forest td:first-child { min-width: 13rem; }
.forest .axis-row, .forest tr:has(+ .axis-row) { border-bottom: 0; }
.compact td { vertical-align: middle; }
.compact td:first-child { white-space: nowrap; }
.compact td:first-child:has(a) { white-space: normal; overflow-wrap: anywhere; min-width: 7rem; }
.compact td + .number { padding-right: 1.1rem; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.likelihoods td:first-child { min-width: 11rem; }
.likelihoods th.number { white-space: normal; max-width: 8rem; }
.origin th { width: 15rem; font-size: 0.9rem; }
.sortable th { cursor: pointer; }
.sortable th[aria-sort=ascending]::after { content: " ▲"; }
.sortable th[aria-sort=descending]::after { content: " ▼"; }

svg { display: block; }
svg text { font: 11.5px system-ui, sans-serif; fill: var(--ink); }
svg .axis { fill: var(--soft); }
svg .title { font-weight: 600; font-size: 13px; }
.grid { stroke: var(--line); }
.zero { stroke: var(--soft); stroke-width: 1.4; }
.range { stroke: var(--accent); stroke-width: 2.4; stroke-linecap: round; }
.worst { stroke: var(--accent); stroke-width: 9; stroke-opacity: 0.28; }
.end { stroke: var(--accent); stroke-width: 1.6; }
.dot { fill: var(--accent); }
.hollow { fill: var(--page); stroke: var(--accent); stroke-width: 1.8; }
.curve { fill: none; stroke: var(--accent); stroke-width: 1.6; opacity: 0.75; }
.c1 { --accent: var(--second); }
.c2 { --accent: var(--bad); }
.c3 { --accent: var(--middling); }
.c4 { --accent: var(--good); }
.filled { fill: var(--accent); opacity: 0.55; }
.whisker { stroke: var(--ink); stroke-width: 1.6; }
.recorded { fill: none; stroke: var(--ink); stroke-width: 1.8; }
.air { fill: transparent; }
.swatch { background: var(--accent); opacity: 0.55; display: inline-block; width: 0.8em; height: 0.8em; }
.charts { display: flex; flex-wrap: wrap; gap: 1.5rem; margin: 0.8rem 0; }
.strip, .chart { max-width: 100%; height: auto; }
.strip rect { fill: var(--shade); }
.strip a:hover rect, .strip g:hover rect { stroke: var(--ink); stroke-width: 1.5; }
.legend { white-space: nowrap; }
.legend i { background: var(--shade); display: inline-block; width: 1em; height: 0.8em; }
.b0 { --shade: var(--fine); }
.b1 { --shade: color-mix(in oklab, var(--bad) 20%, var(--fine)); }
.b2 { --shade: color-mix(in oklab, var(--bad) 40%, var(--fine)); }
.b3 { --shade: color-mix(in oklab, var(--bad) 60%, var(--fine)); }
.b4 { --shade: color-mix(in oklab, var(--bad) 80%, var(--fine)); }
.b5 { --shade: var(--bad); }
.none { --shade: var(--line); }

.cards { display: grid; gap: 1.1rem; margin: 0.8rem 0; }
.card { background: var(--panel); border-radius: 8px; padding: 0.8rem 1rem; break-inside: avoid; min-width: 0; }
.card:target { outline: 3px solid var(--accent); }
.card-head { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; margin-bottom: 0.5rem; }
.verdict { font-weight: 650; min-width: 3.6rem; }
.chip { border: 1px solid currentColor; border-radius: 1em; padding: 0.05em 0.65em; font-size: 0.78rem;
  white-space: nowrap; }
.good { color: var(--good); }
.bad { color: var(--bad); }
.middling { color: var(--middling); }
.filmstrip { display: block; max-width: 100%; border-radius: 4px; margin-bottom: 0.4rem; }
.videos { display: flex; flex-wrap: wrap; gap: 0.8rem; margin: 0.4rem 0; }
video { max-width: min(100%, 40rem); border-radius: 4px; }
"""
    + f"""
@media (max-width: 44rem) {{
  body {{ padding: 1.2rem 0.9rem; }}
  table {{ font-size: 0.84rem; }}
  th, td {{ padding-right: 0.4rem; }}
  .plot {{ padding: 0; }}
  .plot svg, .axis-row, .compact tfoot {{ display: none; }}
  .forest td:first-child, .likelihoods td:first-child {{ min-width: 7rem; }}
  .forest .number {{ white-space: normal; }}
  .compact td + .number {{ padding-right: 0.4rem; }}
  .compact td:first-child:has(a) {{ min-width: 3.5rem; }}
  .compact td {{ overflow-wrap: break-word; }}
  .compact thead th {{ text-align: right; }}
  .compact thead th:first-child {{ text-align: left; }}
  .origin th {{ width: 6.5rem; }}
}}
@media print {{
  :root {{ color-scheme: light; {_LIGHT} }}
  body {{ max-width: none; padding: 0; font-size: 10pt; }}
  nav, video {{ display: none; }}
  .scroll {{ overflow: visible; }}
  tr, svg {{ break-inside: avoid; }}
  h2, h3 {{ break-after: avoid; }}
  * {{ print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
}}
"""
)

# Pages work without it.
SCRIPT = """
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const key = cell => cell.dataset.sort === undefined ? cell.textContent : Number(cell.dataset.sort);
  const sort = (head, k) => {
    const order = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    heads.forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", order === 1 ? "ascending" : "descending");
    const rows = [...body.rows].map(row => [key(row.cells[k]), row]);
    rows.sort(([a], [b]) => order * (a < b ? -1 : a > b ? 1 : 0));
    body.append(...rows.map(([, row]) => row));
  };
  heads.forEach((head, k) => {
    head.tabIndex = 0;
    head.addEventListener("click", () => sort(head, k));
    head.addEventListener("keydown", event => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(head, k); }
    });
  });
}
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(part => part.open = true));
"""
