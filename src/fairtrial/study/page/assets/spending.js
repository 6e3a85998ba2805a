// Cost and tokens against their ceilings, latency, and when runs were under way.

function spendingSection(data) {
  const spending = data.spending;
  return [
    facts([
      ["cost", spending.cost ? `${money(spending.cost)}${spending.max_cost ? ` of at most ${money(spending.max_cost)}` : ""}` : "none recorded"],
      ["tokens", spending.tokens ? `${spending.tokens.toLocaleString("en-US")}${spending.max_tokens ? ` of at most ${spending.max_tokens.toLocaleString("en-US")}` : ""}` : null],
      ["tokens of results", spending.input_tokens || spending.output_tokens ? `${spending.input_tokens.toLocaleString("en-US")} in, ${spending.output_tokens.toLocaleString("en-US")} out` : null],
    ]),
    spending.steps.some(([, cost]) => cost) ? spent(spending, 1, "cost in $", spending.max_cost) : null,
    spending.steps.some(([, , tokens]) => tokens) ? spent(spending, 2, "tokens", spending.max_tokens) : null,
    latencies(spending),
    timeLine(data, spending.timeline),
  ];
}

function spent(spending, column, name, ceiling) {
  const [unit, size] = timeUnit(spending.steps.at(-1)[0]);
  const points = spending.steps.map((step) => ({ time: step[0] / size, value: step[column] }));
  return figure({
    title: `${name[0].toUpperCase()}${name.slice(1)} over time`,
    caption: ceiling ? "The line across is the study's ceiling." : "The study states no ceiling.",
    label: `${name} over time: ${number(points.at(-1).value)} at the end.`,
    draw: () => ({
      height: 220, marginLeft: 64, marginBottom: 46, marginTop: 20,
      x: { label: `${unit} since the first result`, labelAnchor: "center", labelArrow: "none" },
      y: { label: name, grid: true, zero: true, labelArrow: "none" },
      marks: [
        Plot.areaY(points, { x: "time", y1: 0, y2: "value", fill: "var(--band)", curve: "step-after" }),
        Plot.line(points, { x: "time", y: "value", stroke: "var(--c1)", strokeWidth: 2, curve: "step-after" }),
        ceiling ? Plot.ruleY([ceiling], { stroke: "var(--bad)", strokeDasharray: "4 3" }) : null,
      ],
    }),
    table: table([{ name: unit, get: (point) => point.time, num: true }, { name, get: (point) => point.value, num: true }], points),
  });
}

// Of fewer runs, charts of time say nothing.
const FEWEST_RUNS = 5;

function latencies(spending) {
  const { bins, quantiles } = spending.latency;
  if (!bins.length) return null;
  if (d3.sum(bins, ([, , runs]) => runs) < FEWEST_RUNS) return facts([["latency", `median ${seconds(quantiles[0])}, longest ${seconds(quantiles[3])}`]]);
  const names = ["median", "90% within", "99% within", "longest"];
  const rows = bins.map(([from, to, runs]) => ({ from, to, runs }));
  return figure({
    title: "Latency of runs",
    caption: names.map((name, index) => `${name} ${seconds(quantiles[index])}`).join(", ") + "." +
      (spending.timeout ? ` Runs may take ${seconds(spending.timeout)}.` : ""),
    label: `Histogram of latencies: ${names.map((name, index) => `${name} ${seconds(quantiles[index])}`).join(", ")}.`,
    draw: (width) => ({
      height: 200, marginLeft: 56, marginRight: 24, marginBottom: 46, marginTop: 20,
      x: { type: "log", label: "latency", labelAnchor: "center", labelArrow: "none", tickFormat: seconds, ticks: logTicks(rows[0].from, rows.at(-1).to, width - 80) },
      y: { label: "runs", grid: true, labelArrow: "none", ticks: countTicks(d3.max(rows, (row) => row.runs)) },
      marks: [Plot.rectY(rows, { x1: "from", x2: "to", y: "runs", fill: "var(--c1)", inset: 0.5,
        title: (row) => `${seconds(row.from)} to ${seconds(row.to)}: ${count(row.runs, "run")}`, tip: true }), Plot.ruleY([0], { stroke: "var(--zero)" })],
    }),
    table: table([{ name: "from", get: (row) => seconds(row.from), num: true }, { name: "to", get: (row) => seconds(row.to), num: true },
      { name: "runs", get: (row) => row.runs, num: true }], rows, { label: "Latency of runs" }),
  });
}

const STATUS_COLORS = { success: "var(--c1)", failed: "var(--bad)", broken: "var(--c2)" };

function timeLine(data, line) {
  if (line.bins.length) return endings(line);
  if (line.bars.length < 2) return null;
  const bars = line.bars.map(([lane, from, to, status, id]) => ({ lane, from, to, status, id }));
  const lanes = Math.max(...bars.map((bar) => bar.lane)) + 1;
  const statuses = [...new Set(bars.map((bar) => bar.status))];
  const least = line.seconds / 1500;
  const [unit, size] = timeUnit(line.seconds);
  return figure({
    title: "When runs were under way",
    caption: `Each bar is a run, each lane has one run at a time; ${count(lanes, "lane")}. Gaps are time in which nothing ran.`,
    label: `Time line of ${count(bars.length, "run")} in ${count(lanes, "lane")}, ${seconds(line.seconds)} in all.`,
    legend: statuses.length > 1 ? legend(statuses, (status) => STATUS_COLORS[status] || "var(--c8)") : null,
    draw: () => ({
      height: 62 + lanes * 22, marginLeft: 56, marginRight: 24, marginBottom: 46, marginTop: 8,
      x: { label: `${unit} since the start`, labelAnchor: "center", labelArrow: "none", grid: true },
      y: { type: "band", domain: d3.range(lanes), label: null, tickFormat: (lane) => `lane ${lane + 1}`, tickSize: 0, padding: 0.2 },
      marks: [Plot.barX(bars, { y: "lane", x1: (bar) => bar.from / size, x2: (bar) => Math.max(bar.to, bar.from + least) / size, fill: (bar) => STATUS_COLORS[bar.status] || "var(--c8)",
        insetRight: 0.3, title: (bar) => `${bar.id}\n${bar.status}, ${seconds(bar.to - bar.from)}`, tip: true })],
    }),
    table: table([{ name: "run", get: (bar) => bar.id }, { name: "lane", get: (bar) => bar.lane + 1, num: true },
      { name: "from, seconds", get: (bar) => bar.from, num: true }, { name: "to, seconds", get: (bar) => bar.to, num: true }, { name: "status", get: (bar) => bar.status }],
      bars.slice(0, 200), { label: "Time line, first 200 runs" }),
  });
}

function endings(line) {
  const width = line.seconds / line.bins.length;
  const [unit, size] = timeUnit(line.seconds);
  const rows = line.bins.flatMap(([from, good, bad]) => [
    { from, runs: good, status: "success" }, { from, runs: bad, status: "not successful" }]);
  const color = (status) => status === "success" ? "var(--c1)" : "var(--bad)";
  return figure({
    title: "When runs ended",
    caption: `How many runs ended in each ${seconds(width)}.`,
    label: `Runs that ended over time, ${seconds(line.seconds)} in all.`,
    legend: legend(["success", "not successful"], color),
    draw: () => ({
      height: 200, marginLeft: 56, marginRight: 24, marginBottom: 46, marginTop: 20,
      x: { label: `${unit} since the start`, labelAnchor: "center", labelArrow: "none" }, y: { label: "runs", grid: true, labelArrow: "none", ticks: countTicks(d3.max(line.bins, (bin) => bin[1] + bin[2])) },
      marks: [Plot.rectY(rows, { x1: (row) => row.from / size, x2: (row) => (row.from + width) / size, y: "runs", fill: (row) => color(row.status), insetRight: 0.5 }), Plot.ruleY([0], { stroke: "var(--zero)" })],
    }),
    table: table([{ name: "from, seconds", get: (bin) => bin[0], num: true }, { name: "success", get: (bin) => bin[1], num: true },
      { name: "not successful", get: (bin) => bin[2], num: true }], line.bins, { label: "When runs ended" }),
  });
}
