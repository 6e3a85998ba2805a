// Verdict cards, and the forest plot of all effects.

function verdictSection(data) {
  // Where candidates are on trial, a study without hypotheses has its verdicts there.
  if (!data.verdicts.length && !data.warning.length && data.parts.length) return null;
  const cards = data.verdicts.map((card) => el("article", { class: `card ${card.tone}`, id: `claim=${card.id}` },
    el("div", {}, badge(card.preliminary ? `${card.verdict} so far` : card.verdict, card.tone),
      card.standing === card.verdict ? null : badge(card.standing)),
    el("h3", {}, card.label || card.id),
    card.claim ? el("p", { class: "claim" }, card.claim) : null,
    card.estimate ? el("p", { class: "effect" }, effectText(card)) : null,
    card.estimate ? el("p", { class: "of" }, `${card.difference} on ${card.outcome}${precisionText(card)}`) : null,
    el("p", {}, sentence(card.why)),
    card.direction && !card.why.toLowerCase().includes(card.direction.toLowerCase()) ? el("p", {}, sentence(card.direction)) : null,
    el("details", {}, el("summary", {}, "What it rests on"), facts(card.facts),
      card.notes.length ? el("ul", {}, card.notes.map((note) => el("li", {}, note))) : null)));
  return [
    data.warning.length ? el("div", { class: "notice" }, tree(data.warning)) : null,
    cards.length ? el("div", { class: "cards" }, cards)
      : el("p", {}, "This study states no hypothesis: it describes, and decides nothing."),
    data.standing.length ? el("div", { class: "soft" }, tree(data.standing)) : null,
  ];
}

// A one-sided claim that was shown has a bound, as in the report; else there is an interval.
function effectText(card) {
  const range = card.bound ? `(${card.bound})` : card.interval;
  return `${card.estimate} ${range}`.trim().replaceAll("-", "−");
}

function precisionText(card) {
  if (card.bound) return `, ${card.confidence} bound`;
  return card.interval ? `, ${card.confidence} interval` : "";
}

function sentence(text) {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

function effectSection(data) {
  const outcomes = [...new Set(data.effects.map((effect) => effect.outcome))];
  const others = data.verdicts.filter((card) => card.verdict !== "not tested" && !data.effects.some((effect) => effect.id === card.id))
    .map((card) => card.label || card.id);
  return [
    ...outcomes.map((outcome) => forest(outcome, data.effects.filter((effect) => effect.outcome === outcome))),
    outcomes.length && others.length ? el("p", { class: "soft" }, `Not in a chart, since the test has no single difference: ${others.join("; ")}.`) : null,
  ];
}

function forest(outcome, effects) {
  const rows = effects.map((effect, index) => ({ ...effect, key: String(index) }));
  const names = new Map(rows.map((row) => [row.key, effectName(row, rows)]));
  const hasMargin = rows.some((row) => row.margin !== null);
  const hasRing = rows.some((row) => row.low === null || row.high === null);
  const caption = "Estimate and interval of each test." + (hasMargin
    ? " The gray band is the smallest effect of interest: an interval wholly inside it rules such an effect out." : "")
    + (hasRing ? " A ring is an estimate without an interval." : "");
  const main = figure({
    title: `Effects on ${outcome}`,
    caption,
    label: `Forest plot of ${count(rows.length, "effect")} on ${outcome}. ` + rows.map((row) =>
      `${effectName(row, rows)}: ${number(row.estimate)}, from ${number(row.low)} to ${number(row.high)}, ${row.verdict}`).join(". "),
    draw: (width) => forestPlot(rows, names, width, `${outcome}: difference`),
    table: table([
      { name: "claim", get: (row) => effectName(row, rows) },
      { name: "difference", get: (row) => row.difference },
      { name: "estimate", get: (row) => row.estimate, num: true },
      { name: "from", get: (row) => row.low, num: true },
      { name: "to", get: (row) => row.high, num: true },
      { name: "smallest of interest", get: (row) => row.margin, num: true },
      { name: "verdict", get: (row) => row.verdict },
    ], rows, { label: `Effects on ${outcome}` }),
  });
  const byProblem = rows.filter((row) => row.decides && row.problems.length > 1).map((row) =>
    lazyBlock(`Problem by problem: ${row.label || row.id}`, () => problemForest(row)));
  return [main, ...byProblem];
}

function effectName(row, rows) {
  const name = row.label || row.id;
  const same = rows.filter((other) => (other.label || other.id) === name);
  return same.length > 1 ? `${name} (${row.test})` : name;
}

function forestPlot(rows, names, width, title) {
  const space = labelSpace([...names.values()], width);
  const hasInterval = (row) => row.low !== null && row.high !== null;
  const known = rows.filter(hasInterval);
  const ends = rows.flatMap((row) => [0, row.estimate, row.low, row.high, row.margin ?? null, row.margin ? -row.margin : null]).filter((end) => end !== null);
  const tone = (row) => TONE_COLORS[row.tone] || "var(--c1)";
  return {
    marginLeft: space, marginRight: 16, marginTop: 8, marginBottom: 46, height: 62 + rows.length * 34,
    x: { ...valueAxis(...d3.extent(ends), width - space), label: fitText(title, width - space - 16), labelAnchor: "center", labelArrow: "none", grid: true },
    y: { domain: rows.map((row) => row.key), label: null, tickSize: 0,
      tickFormat: (key) => wrapLabel(names.get(key), space) },
    marks: [
      Plot.barX(rows.filter((row) => row.margin !== null && row.margin !== undefined),
        { y: "key", x1: (row) => -row.margin, x2: "margin", fill: "var(--band)" }),
      Plot.ruleX([0], { stroke: "var(--zero)" }),
      Plot.ruleY(known, { y: "key", x1: "low", x2: "high", strokeWidth: 2.5, stroke: tone }),
      Plot.dot(known, { y: "key", x: "estimate", r: 5, fill: tone,
        title: (row) => `${names.get(row.key)}\n${number(row.estimate)} [${number(row.low)}, ${number(row.high)}]`, tip: true }),
      // Without an interval an estimate is a ring, so that it doesn't look precise.
      Plot.dot(rows.filter((row) => !hasInterval(row)), { y: "key", x: "estimate", r: 5, fill: "var(--bg)", stroke: tone,
        strokeWidth: 1.5, title: (row) => `${names.get(row.key)}\n${number(row.estimate)}, no interval`, tip: true }),
    ],
  };
}

function problemForest(effect) {
  const rows = effect.problems.map((row, index) => ({ ...row, key: String(index), tone: "" }));
  const names = new Map(rows.map((row) => [row.key, row.problem]));
  return figure({
    title: `${effect.difference} on ${effect.outcome}, problem by problem`,
    caption: "Estimates with 95% intervals, each from the runs of one problem.",
    label: `Forest plot of the effect in ${count(rows.length, "problem")}.`,
    draw: (width) => forestPlot(rows, names, width, `${effect.outcome}: ${effect.difference}`),
    table: table([
      { name: "problem", get: (row) => row.problem },
      { name: "runs", get: (row) => row.n.join(" + "), num: true },
      { name: "estimate", get: (row) => row.estimate, num: true },
      { name: "from", get: (row) => row.low, num: true },
      { name: "to", get: (row) => row.high, num: true },
    ], rows),
  });
}

// A block whose content is made when it is opened.
function lazyBlock(title, make) {
  const node = block(title);
  node.addEventListener("toggle", () => {
    if (node.open && node.childElementCount === 1) {
      node.append(make());
      drawAll();
    }
  });
  return node;
}

function precisionSection(data) {
  if (!data.precision.length) return [];
  return [
    el("h3", {}, "Power that was planned, precision that was reached"),
    table([
      { name: "claim", get: (row) => row.id },
      { name: "outcome", get: (row) => row.outcome },
      { name: "smallest effect of interest", get: (row) => row.effect, num: true },
      { name: "planned power", get: (row) => row.power, text: (row) => row.power > 0.9995 ? "> 0.999" : row.power, num: true },
      { name: "reached: ±", get: (row) => row.half_width, num: true },
      { name: "verdict", get: (row) => row.verdict },
    ], data.precision, { label: "Planned power and reached precision" }),
    el("p", { class: "soft" }, "Power is the chance that the planned test finds the smallest effect of interest. " +
      "Reached is half the width of the interval of the difference of means."),
    data.precision.some((row) => row.assumption) ? el("details", {}, el("summary", {}, "What the power assumes"),
      facts(data.precision.map((row) => [data.precision.some((one) => one !== row && one.id === row.id) ? `${row.id}, ${row.outcome}` : row.id, row.assumption]))) : null,
  ];
}
