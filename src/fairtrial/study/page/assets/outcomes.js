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
  const all = d3.sum(groups, (group) => group.n);
  if (!all) return el("p", {}, `No run has a value of ${outcome.name}.`);
  const keys = new Map(groups.map((group) => [`${group.condition}/${group.agent}`, group.key]));
  const dots = data.rows
    .map((row) => ({ key: keys.get(`${row.condition}/${row.agent}`), value: row.values[position], row }))
    .filter((dot) => dot.key !== undefined && dot.value !== null);
  if (all === 1 && dots.length === 1) {
    return el("p", {}, `${outcome.name}: ${number(dots[0].value, 5)} in `, el("a", { href: `#run=${dots[0].row.id}` }, "one run"), ".");
  }
  const axis = outcome.is_yes_no ? yesNoAxis() : spreadAxis(groups);
  return figure({
    title: outcome.is_yes_no ? `${outcome.name}: share of yes by condition` : `${outcome.name} by condition`,
    caption: distributionCaption(outcome, groups, dots.length, axis),
    label: `${outcome.name} by condition. ` + groups.map((group) => `${group.label}: mean ${number(group.mean)}, ${count(group.n, "run")}`).join(". "),
    draw: (width) => distributionPlot(outcome, groups, dots, width, axis),
    click: openDots,
    table: table([
      { name: "condition", get: (group) => group.label },
      { name: "runs with a value", get: (group) => group.n, num: true },
      { name: "without", get: (group) => group.runs - group.n, num: true },
      { name: "of these failed", get: (group) => group.failed, num: true },
      { name: "mean", get: (group) => group.mean, num: true },
      { name: "sd", get: (group) => group.sd, num: true },
      ...["lowest", "lower quartile", "median", "upper quartile", "highest"].map((name, index) =>
        ({ name, get: (group) => group.quantiles?.[index], num: true })),
    ], groups, { label: `${outcome.name} by condition` }),
  });
}

function distributionCaption(outcome, groups, shown, axis) {
  const [all, runs, failed] = ["n", "runs", "failed"].map((name) => d3.sum(groups, (group) => group[name]));
  const lost = runs - all;
  return [
    outcome.is_yes_no ? "Each dot is a run; select one to open it. The bar and the diamond are the share of yes."
      : "Each dot is a run; select one to open it. The box has the middle half of the runs, the line in it is the median, the diamond the mean.",
    axis(100).type ? "The axis is logarithmic, since values are far apart." : "",
    lost ? `${count(lost, "run")} without a value ${lost === 1 ? "is" : "are"} not in the chart${failed ? `; ${failed.toLocaleString("en-US")} of them failed` : ""}.` : "",
    shown < all ? `Dots are ${shown.toLocaleString("en-US")} of ${all.toLocaleString("en-US")} runs, evenly chosen; ${outcome.is_yes_no ? "shares" : "boxes"} are of all.` : "",
  ].filter(Boolean).join(" ");
}

// Functions from the width of an axis to the axis.
function yesNoAxis() {
  return () => ({ domain: [-0.06, 1.06], ticks: [0, 0.25, 0.5, 0.75, 1], tickFormat: (value) => `${100 * value} %` });
}

function spreadAxis(groups) {
  const known = groups.filter((group) => group.quantiles);
  const [low, high] = [d3.min(known, (group) => group.quantiles[0]), d3.max(known, (group) => group.quantiles[4])];
  const boxes = known.map((group) => group.quantiles[3] - group.quantiles[1]).filter((size) => size > 0);
  const tails = known.map((group) => (group.quantiles[4] - group.quantiles[0]) / (group.quantiles[3] - group.quantiles[1]));
  const isFar = boxes.length && d3.median(tails) > FAR_TAILS;
  return (width) => valueAxis(low, high, width, isFar ? Math.max(d3.min(boxes), (high - low) * 1e-6) : 0);
}

const ROW_HEIGHT = 46;
const BAND_HEIGHT = ROW_HEIGHT * 0.14;
// Beyond this many boxes from the lowest to the highest value, most dots would lie on one another.
const FAR_TAILS = 15;
// Beyond this many, most cells of a heat map would have the same color.
const FAR_MEANS = 6;

// The same small shifts on every draw: by the position of the run.
function shiftOf(index) {
  return (index * 0.5698403) % 1 - 0.5;
}

function bandOf(index) {
  return Math.round(shiftOf(index) * ROW_HEIGHT * 0.62 / BAND_HEIGHT);
}

function distributionPlot(outcome, groups, dots, width, axis) {
  const space = labelSpace(groups.map((group) => group.label), width);
  const labels = new Map(groups.map((group) => [group.key, group.label]));
  const known = groups.filter((group) => group.quantiles);
  const aside = (dot, index) => outcome.is_yes_no ? ((index * 0.7548777) % 1 - 0.5) * 0.09 : 0;
  const places = new Map(dots.map((dot, index) => [dot, dot.value + aside(dot, index)]));
  const bands = [-2, -1, 0, 1, 2].map((band) => {
    const part = dots.filter((_, index) => bandOf(index) === band);
    return Plot.dot(part, { x: (dot) => places.get(dot), y: "key", dy: band * BAND_HEIGHT, r: 2.2,
      fill: "var(--dot)", fillOpacity: dots.length > 800 ? 0.25 : 0.5, render: noteRuns(part) });
  });
  const box = outcome.is_yes_no ? { x1: 0, x2: "mean" } : { x1: (group) => group.quantiles[1], x2: (group) => group.quantiles[3] };
  return {
    marginLeft: space, marginRight: 20, marginTop: 8, marginBottom: 46, height: 62 + groups.length * ROW_HEIGHT,
    x: { ...axis(width - space), label: fitText(outcome.name, width - space - 20), labelAnchor: "center", labelArrow: "none", grid: true },
    y: { domain: groups.map((group) => group.key), label: null, tickSize: 0, padding: 0.25,
      tickFormat: (key) => wrapLabel(labels.get(key), space, 3) },
    marks: [
      Plot.barX(known, { y: "key", ...box, fill: "var(--band)" }),
      ...bands,
      outcome.is_yes_no ? null : Plot.tickX(known, { y: "key", x: (group) => group.quantiles[2], stroke: "var(--ink)", strokeWidth: 2 }),
      Plot.dot(known, { y: "key", x: "mean", symbol: "diamond", r: 5, fill: "var(--bg)", stroke: "var(--ink)", strokeWidth: 1.8,
        title: (group) => `${group.label}\nmean ${number(group.mean)}, median ${number(group.quantiles[2])}\n${count(group.n, "run")}`, tip: true }),
      Plot.text(groups.filter((group) => !group.quantiles), { y: "key", frameAnchor: "left", dx: 8, fill: "var(--soft)",
        text: (group) => group.failed ? `${group.failed.toLocaleString("en-US")} of ${count(group.runs, "run")} failed, none has a value` : `none of ${count(group.runs, "run")} has a value` }),
    ],
  };
}

// A step in drawing dots that notes the run of each.
function noteRuns(dots) {
  return (index, scales, values, dimensions, context, next) => {
    const group = next(index, scales, values, dimensions, context);
    [...group.children].forEach((circle, place) => {
      circle.dataset.run = dots[index[place]].row.id;
      circle.style.cursor = "pointer";
    });
    return group;
  };
}

function openDots(plot) {
  plot.addEventListener("click", (event) => {
    if (event.target.dataset?.run) location.hash = `run=${event.target.dataset.run}`;
  });
}

function heatMap(data, outcome) {
  const problems = [...new Set(outcome.cells.map((cell) => cell.p))].sort((a, b) => a - b);
  const conditions = [...new Set(outcome.cells.map((cell) => cell.c))].sort((a, b) => a - b);
  if (problems.length < 2 && conditions.length < 2) return null;
  const byPlace = new Map(outcome.cells.map((cell) => [`${cell.c}/${cell.p}`, cell]));
  const means = outcome.cells.map((cell) => cell.mean).filter((mean) => mean !== null);
  const shade = (t) => d3.interpolateViridis(0.08 + 0.9 * t);
  const [lowest, lower, upper, highest] = [0, 0.25, 0.75, 1].map((share) => d3.quantile(means, share));
  const isFar = highest - lowest > FAR_MEANS * (upper - lower);
  const scale = isFar ? d3.scaleSequentialQuantile(means, shade) : d3.scaleSequential([lowest, highest], shade);
  const head = el("tr", {}, el("th", { scope: "col" }, "condition"),
    problems.map((problem) => el("th", { scope: "col" }, breakable(data.runs.problems[problem]))));
  const body = conditions.map((condition) => el("tr", {},
    el("th", { scope: "row" }, el("div", {}, breakable(data.conditions[condition]?.label ?? "?"))),
    problems.map((problem) => heatCell(data, outcome, byPlace.get(`${condition}/${problem}`), scale))));
  const left = data.runs.problems.length > problems.length ? ` The first ${problems.length} problems are shown.` : "";
  const label = `Mean of ${outcome.name} by condition and problem`;
  return el("figure", {},
    el("figcaption", {}, el("strong", {}, label), `Select a cell to see its runs. The brighter, the higher${isFar ? ", by rank" : ""}.${left}`),
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
    button.style.color = luminance(color) > 0.179 ? "#000" : "#fff";
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
    legend: legend(lines, color, second),
    draw: (width) => ({
      height: 310, marginLeft: 64, marginRight: 24, marginBottom: 54, marginTop: 24,
      x: { type: "point", domain: levels, label: first, labelAnchor: "center", labelArrow: "none", padding: 0.4,
        tickFormat: (level) => wrapLabel(level, (width - 88) / levels.length + 10, 3) },
      y: { ...valueAxis(...d3.extent(pair.points, (point) => point.mean), 400), label: outcome.name, grid: true, labelArrow: "none" },
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
