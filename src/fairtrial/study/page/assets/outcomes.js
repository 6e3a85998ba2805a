// Outcomes: distributions by condition, the heat map of conditions and problems, interactions.

function groupLabels(data) {
  const agents = data.runs.agents;
  return (group) => {
    const label = data.conditions[group.condition]?.label ?? "?";
    const agent = agents[group.agent];
    return agents.length > 1 && agent !== undefined && !label.split(" · ").includes(agent) ? `${agent} · ${label}` : label;
  };
}

function outcomeSection(data, outcome, position) {
  return [
    outcome.description ? el("p", { class: "soft" }, outcome.description) : null,
    distribution(data, outcome, position),
    heatMap(data, outcome),
    ...outcome.interactions.map((pair) => interaction(outcome, pair)),
  ];
}

function distribution(data, outcome, position) {
  const label = groupLabels(data);
  const groups = outcome.groups.map((group, index) => ({ ...group, key: String(index), label: label(group) }));
  if (!groups.some((group) => group.quantiles)) return el("p", {}, `No run has a value of ${outcome.name}.`);
  const keys = new Map(groups.map((group) => [`${group.condition}/${group.agent}`, group.key]));
  const dots = data.rows
    .map((row) => ({ key: keys.get(`${row.condition}/${row.agent}`), value: row.values[position], row }))
    .filter((dot) => dot.key !== undefined && dot.value !== null);
  const all = groups.reduce((sum, group) => sum + group.n, 0);
  const part = dots.length < all ? ` Dots are ${dots.length.toLocaleString("en-US")} of ${all.toLocaleString("en-US")} runs, evenly chosen; boxes are of all.` : "";
  const opacity = dots.length > 800 ? 0.25 : 0.5;
  return figure({
    title: `${outcome.name} by condition`,
    caption: `Each dot is a run; select one to open it. The box has the middle half of the runs, the line in it is the median, the diamond the mean.${part}`,
    label: `${outcome.name} by condition. ` + groups.map((group) => `${group.label}: mean ${number(group.mean)}, ${count(group.n, "run")}`).join(". "),
    draw: (width) => distributionPlot(groups, dots, width, outcome.name, opacity),
    click: (plot) => openDots(plot, dots),
    table: table([
      { name: "condition", get: (group) => group.label },
      { name: "runs", get: (group) => group.n, num: true },
      { name: "failed", get: (group) => group.failed, num: true },
      { name: "mean", get: (group) => group.mean, num: true },
      { name: "sd", get: (group) => group.sd, num: true },
      ...["lowest", "lower quartile", "median", "upper quartile", "highest"].map((name, index) =>
        ({ name, get: (group) => group.quantiles?.[index], num: true })),
    ], groups, { label: `${outcome.name} by condition` }),
  });
}

function distributionPlot(groups, dots, width, name, opacity) {
  const space = labelSpace(groups.map((group) => group.label), width);
  const labels = new Map(groups.map((group) => [group.key, group.label]));
  const known = groups.filter((group) => group.quantiles);
  const rowHeight = 46;
  // The same small shifts on every draw: by the position of the run.
  const shift = (dot, index) => ((index * 0.618034) % 1 - 0.5) * rowHeight * 0.62;
  const bands = [-2, -1, 0, 1, 2].map((band) => {
    const part = dots.filter((dot, index) => Math.round(shift(dot, index) / (rowHeight * 0.14)) === band);
    return Plot.dot(part, { x: "value", y: "key", dy: band * rowHeight * 0.14, r: 2.2, fill: "var(--dot)",
      fillOpacity: opacity, ariaLabel: "runs" });
  });
  return {
    marginLeft: space, marginRight: 16, marginTop: 8, marginBottom: 46, height: 62 + groups.length * rowHeight,
    x: { label: name, labelAnchor: "center", labelArrow: "none", grid: true, nice: true },
    y: { domain: groups.map((group) => group.key), label: null, tickSize: 0, padding: 0.25,
      tickFormat: (key) => wrapLabel(labels.get(key), space) },
    marks: [
      Plot.barX(known, { y: "key", x1: (group) => group.quantiles[1], x2: (group) => group.quantiles[3], fill: "var(--band)" }),
      ...bands,
      Plot.tickX(known, { y: "key", x: (group) => group.quantiles[2], stroke: "var(--ink)", strokeWidth: 2 }),
      Plot.dot(known, { y: "key", x: "mean", symbol: "diamond", r: 5, fill: "var(--bg)", stroke: "var(--ink)", strokeWidth: 1.8,
        title: (group) => `${group.label}\nmean ${number(group.mean)}, median ${number(group.quantiles[2])}\n${count(group.n, "run")}`, tip: true }),
    ],
  };
}

function openDots(plot, dots) {
  for (const circle of plot.querySelectorAll('g[data-part="runs"] circle')) circle.style.cursor = "pointer";
  const bands = [...plot.querySelectorAll('g[data-part="runs"]')];
  plot.addEventListener("click", (event) => {
    const group = event.target.closest?.('g[data-part="runs"]');
    if (!group || event.target.tagName !== "circle") return;
    const rowHeight = 46;
    const band = bands.indexOf(group) - 2;
    const part = dots.filter((dot, index) =>
      Math.round(((index * 0.618034) % 1 - 0.5) * rowHeight * 0.62 / (rowHeight * 0.14)) === band);
    const dot = part[[...group.children].indexOf(event.target)];
    if (dot) location.hash = `run=${dot.row.id}`;
  });
}

function heatMap(data, outcome) {
  const problems = [...new Set(outcome.cells.map((cell) => cell.p))].sort((a, b) => a - b);
  const conditions = [...new Set(outcome.cells.map((cell) => cell.c))].sort((a, b) => a - b);
  if (problems.length < 2 && conditions.length < 2) return null;
  const byPlace = new Map(outcome.cells.map((cell) => [`${cell.c}/${cell.p}`, cell]));
  const means = outcome.cells.map((cell) => cell.mean).filter((mean) => mean !== null);
  const scale = d3.scaleSequential(d3.extent(means), (t) => d3.interpolateViridis(0.08 + 0.9 * t));
  const head = el("tr", {}, el("th", { scope: "col" }, "condition"),
    problems.map((problem) => el("th", { scope: "col" }, data.runs.problems[problem])));
  const body = conditions.map((condition) => el("tr", {},
    el("th", { scope: "row" }, data.conditions[condition]?.label ?? "?"),
    problems.map((problem) => heatCell(data, outcome, byPlace.get(`${condition}/${problem}`), scale))));
  const left = data.runs.problems.length > problems.length ? ` The first ${problems.length} problems are shown.` : "";
  const label = `Mean of ${outcome.name} by condition and problem`;
  return el("figure", {},
    el("figcaption", {}, el("strong", {}, label), `Select a cell to see its runs.${left}`),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
      el("table", { class: "heat" }, el("thead", {}, head), el("tbody", {}, body))));
}

function heatCell(data, outcome, cell, scale) {
  if (!cell) return el("td", {}, el("span", { class: "soft" }, "–"));
  const names = `${data.conditions[cell.c]?.label}, ${data.runs.problems[cell.p]}`;
  const lost = cell.failed ? `, ${cell.failed} failed` : "";
  const button = el("button", { type: "button", title: `${names}: ${count(cell.n, "run")}${lost}`,
    "aria-label": `${names}: mean ${number(cell.mean)}, ${count(cell.n, "run")}${lost}. Show these runs`,
    onclick: () => filterRuns({ condition: String(cell.c), problem: String(cell.p) }) },
    cell.mean === null ? (cell.failed ? "failed" : "–") : number(cell.mean));
  if (cell.mean !== null) {
    const color = d3.color(scale(cell.mean) || "#888").rgb();
    button.style.backgroundColor = color.formatHex();
    button.style.color = luminance(color) > 0.19 ? "#000" : "#fff";
  }
  return el("td", {}, button);
}

function luminance({ r, g, b }) {
  const [red, green, blue] = [r, g, b].map((value) => {
    const share = value / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function interaction(outcome, pair) {
  const lines = [...new Set(pair.points.map((point) => point.line))];
  const levels = [...new Set(pair.points.map((point) => point.x))];
  const color = (line) => COLORS[lines.indexOf(line) % COLORS.length];
  const [first, second] = [pair.x, pair.line].map((name) => name.split(".").at(-1));
  return figure({
    title: `${outcome.name}: ${first} and ${second} together`,
    caption: `Means of all runs at each combination. Lines that are not parallel hint at an interaction; a test decides.`,
    label: `Interaction plot of ${outcome.name}. ` + pair.points.map((point) => `${point.x}, ${point.line}: ${number(point.mean)}`).join(". "),
    legend: legend(lines.map((line) => line), (line) => color(line)),
    draw: (width) => ({
      height: 300, marginLeft: 56, marginRight: 24, marginBottom: 48, marginTop: 24,
      x: { type: "point", domain: levels, label: first, labelAnchor: "center", labelArrow: "none", padding: 0.4,
        tickFormat: (level) => shorten(level, width / levels.length) },
      y: { label: outcome.name, grid: true, nice: true, labelArrow: "none" },
      marks: [
        Plot.line(pair.points, { x: "x", y: "mean", z: "line", stroke: (point) => color(point.line), strokeWidth: 2 }),
        Plot.dot(pair.points, { x: "x", y: "mean", r: 4.5, fill: (point) => color(point.line),
          title: (point) => `${second} ${point.line}, ${first} ${point.x}\nmean ${number(point.mean)} of ${count(point.n, "run")}`, tip: true }),
      ],
    }),
    table: table([
      { name: first, get: (point) => point.x },
      { name: second, get: (point) => point.line },
      { name: "runs", get: (point) => point.n, num: true },
      { name: "mean", get: (point) => point.mean, num: true },
    ], pair.points),
  });
}
