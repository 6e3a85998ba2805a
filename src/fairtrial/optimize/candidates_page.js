// Candidates of optimizers: verdicts, lineages, diffs, samples, the winner.

const CANDIDATE_TONES = { faster: "good", passed: "good", rejected: "bad", slower: "bad", equivalent: "open", inconclusive: "caution" };

partViews.candidates = (part) => {
  const many = part.runs.length > 1;
  return [
    ...part.runs.map((run, index) => many
      ? candidateRunBlock(run, index)
      : el("div", {}, candidateRun(run, false))),
    part.left_out ? el("p", { class: "soft" }, `${count(part.left_out, "further run")} tried candidates; candidates.csv has them all.`) : null,
  ];
};

partRoutes.candidate = (value) => {
  const runs = data.parts.find((part) => part.name === "candidates").data.runs;
  const [runId, id] = value.includes("/") ? value.split("/") : [null, value];
  const run = runs.find((one) => (!runId || one.run === runId) && one.candidates.some((candidate) => candidate.candidate_id === id));
  if (!run) {
    openDialog(`Candidate ${id}`, el("p", {}, "This candidate is not part of this page; candidates.csv has all."));
    dialog.dataset.section = "candidates";
    return;
  }
  showCandidate(run, run.candidates.find((candidate) => candidate.candidate_id === id));
};

function candidateLink(run, candidate, text) {
  const several = data.parts.find((part) => part.name === "candidates").data.runs.length > 1;
  return el("a", { href: `#candidate=${several ? `${run.run}/` : ""}${candidate.candidate_id}` }, text || candidate.candidate_id);
}

function candidateRunBlock(run, index) {
  const node = lazyBlock(`${run.run} · ${run.problem} · ${count(run.candidates.length, "candidate")} · ` +
    (run.best ? `best: ${run.best}, ${speedText(run.speed)}` : "none is worth adopting"), () => el("div", {}, candidateRun(run, true)));
  if (index === 0) node.open = true;
  return node;
}

function candidateRun(run, many) {
  const best = run.candidates.find((candidate) => candidate.candidate_id === run.best);
  return [
    el("p", {}, best ? ["The best is ", candidateLink(run, best, candidateName(best)), `: ${speedText(run.speed)} in fresh sessions. `]
      : "No candidate is worth adopting. ", run.why_over ? `No more were requested: ${sentence(run.why_over)} ` : "",
      many ? el("a", { href: `#run=${run.run}` }, "The run") : null),
    ratioChart(run),
    el("h3", {}, "Lineages"),
    el("p", { class: "soft" }, "Each first proposal, and the candidates that were made from it."),
    el("div", { class: "tree" }, lineages(run, null)),
    candidateTable(run),
    run.dropped.length ? [el("h3", {}, "Looked better, and not confirmed"), el("ul", {}, run.dropped.map(([id, why]) => el("li", {}, `${id}: ${why}`)))] : null,
    run.explanation.map((section) => explanationBlock(section)),
    run.notes.length ? block("Notes", el("ul", {}, run.notes.map((note) => el("li", {}, note)))) : null,
  ];
}

function speedText(text) {
  return text.replace(/(\d)x/, "$1×");
}

// Its id, and its name if that says more than its kind and id.
function candidateName(candidate) {
  const isMade = /^(initial|repair|refine|adapt|select)-[\d.]+$/.test(candidate.name || "");
  return `${candidate.candidate_id} ${isMade ? candidate.kind : candidate.name || ""}`.trim();
}

function verdictBadge(candidate) {
  return candidate.duplicate_of && !candidate.verdict ? badge("duplicate")
    : badge(candidate.verdict || "not judged", CANDIDATE_TONES[candidate.verdict] || "");
}

function ratioText(candidate) {
  return candidate.ratio === null ? "" : `${number(candidate.ratio, 4)}× [${number(candidate.low, 4)}, ${number(candidate.high, 4)}]`;
}

function ratioChart(run) {
  const rows = run.candidates.filter((candidate) => candidate.ratio > 0 && candidate.low > 0 && candidate.high > 0);
  if (!rows.length) return null;
  const least = rows.find((candidate) => candidate.min_effect)?.min_effect ?? null;
  const name = candidateName;
  const labels = new Map(rows.map((candidate) => [candidate.candidate_id, name(candidate)]));
  return figure({
    title: "Speed relative to the base",
    caption: "Ratio and interval of each candidate that was timed; to the right of 1 is faster." +
      (least ? ` Inside the gray band, a difference is smaller than ${number(100 * least)} %, the smallest effect of interest.` : ""),
    label: "Speed of candidates relative to the base. " + rows.map((candidate) => `${name(candidate)}: ${ratioText(candidate)}, ${candidate.verdict}`).join(". "),
    draw: (width) => {
      const space = labelSpace([...labels.values()], width);
      const color = (candidate) => TONE_COLORS[CANDIDATE_TONES[candidate.verdict]] || "var(--c1)";
      const ends = rows.flatMap((candidate) => [candidate.low, candidate.high, candidate.ratio]);
      const low = Math.min(1 / (1 + (least || 0.02)), ...ends) / 1.03;
      const high = Math.max(1 + (least || 0.02), ...ends) * 1.03;
      return {
        marginLeft: space, marginRight: 24, marginTop: 8, marginBottom: 46, height: 62 + rows.length * 32,
        x: { type: "log", domain: [low, high], label: "times as fast as the base (log axis)", labelAnchor: "center", labelArrow: "none",
          grid: true, ticks: logTicks(low, high, width - space, 44), tickFormat: tickNumber },
        y: { domain: rows.map((candidate) => candidate.candidate_id), label: null, tickSize: 0, tickFormat: (id) => wrapLabel(labels.get(id), space) },
        marks: [
          least ? Plot.rect([0], { x1: 1 / (1 + least), x2: 1 + least, fill: "var(--band)" }) : null,
          Plot.ruleX([1], { stroke: "var(--zero)" }),
          Plot.ruleY(rows, { y: "candidate_id", x1: "low", x2: "high", strokeWidth: 2.5, stroke: color }),
          Plot.dot(rows, { y: "candidate_id", x: "ratio", r: 5, fill: color, title: (candidate) => `${name(candidate)}\n${ratioText(candidate)}`, tip: true }),
        ],
      };
    },
    table: table([
      { name: "candidate", get: name, text: (candidate) => candidateLink(run, candidate, name(candidate)) },
      { name: "verdict", get: (candidate) => candidate.verdict },
      { name: "times as fast", get: (candidate) => candidate.ratio, num: true },
      { name: "from", get: (candidate) => candidate.low, num: true },
      { name: "to", get: (candidate) => candidate.high, num: true },
      { name: "sessions", get: (candidate) => candidate.sessions, num: true },
    ], rows, { label: "Speed relative to the base" }),
  });
}

function lineages(run, parent) {
  const known = new Set(run.candidates.map((candidate) => candidate.candidate_id));
  const children = run.candidates.filter((candidate) => parent === null
    ? !known.has(candidate.parent_id) : candidate.parent_id === parent);
  if (!children.length) return null;
  return el("ul", {}, children.map((candidate) => el("li", {},
    candidateLink(run, candidate), " ", verdictBadge(candidate), ` ${[candidateKind(candidate), ratioText(candidate)].filter(Boolean).join(" · ")}`,
    candidate.candidate_id === run.best ? [" ", badge("best", "good")] : null,
    candidate.duplicate_of ? el("span", { class: "soft" }, ` equals ${candidate.duplicate_of}`) : null,
    lineages(run, candidate.candidate_id))));
}

function candidateKind(candidate) {
  const name = candidateName(candidate).slice(candidate.candidate_id.length + 1);
  return [candidate.kind, name === candidate.kind ? "" : name].filter(Boolean).join(" · ");
}

function candidateTable(run) {
  const rejected = run.candidates.filter((candidate) => candidate.verdict === "rejected");
  if (!rejected.length) return null;
  return [el("h3", {}, "Rejected"), table([
    { name: "candidate", get: (candidate) => candidate.candidate_id, text: (candidate) => candidateLink(run, candidate) },
    { name: "why", get: (candidate) => candidate.reason },
    { name: "where", get: (candidate) => firstDifference(candidate)?.where ?? "" },
    { name: "expected", get: (candidate) => firstDifference(candidate)?.expected ?? "", text: (candidate) => shortValue(firstDifference(candidate)?.expected) },
    { name: "actual", get: (candidate) => firstDifference(candidate)?.actual ?? "", text: (candidate) => shortValue(firstDifference(candidate)?.actual) },
  ], rejected, { label: "Rejected candidates", class: "full" })];
}

function firstDifference(candidate) {
  return candidate.failures.flatMap((failure) => failure.differences || [])[0];
}

function shortValue(text) {
  return text === undefined ? "" : el("code", {}, text.length > 120 ? `${text.slice(0, 119)}…` : text);
}

function showCandidate(run, candidate) {
  const strips = [[candidate.candidate_id, "Every sample"], [`${candidate.candidate_id} again`, "Every sample of the fresh sessions"]]
    .filter(([key]) => run.strips[key]).map(([key, title]) => sessionStrip(run.strips[key], title));
  openDialog(`Candidate ${candidate.candidate_id}`,
    el("p", {}, verdictBadge(candidate), candidate.candidate_id === run.best ? badge("best", "good") : null, candidate.adopt ? badge("worth adopting", "good") : null),
    facts([
      ["name", candidate.name], ["made by", candidate.kind], ["made from", candidate.parent_id], ["equals", candidate.duplicate_of],
      ["speed", ratioText(candidate)], ["sessions", candidate.sessions === null ? null : String(candidate.sessions)],
      ["rests on", candidate.basis], ["why rejected", candidate.reason],
      ["tokens", candidate.tokens ? candidate.tokens.toLocaleString("en-US") : null],
      ["cost", candidate.cost_usd ? money(candidate.cost_usd) : null],
    ]),
    candidate.note ? [el("h3", {}, "What its maker says, unchecked"), output(candidate.note)] : null,
    candidate.failures.length ? [el("h3", {}, "Failures"), candidate.failures.map(failureBlock)] : null,
    el("h3", {}, "Change"),
    candidate.diff.length ? diffView(candidate.diff) : el("p", { class: "soft" }, candidate.diff_bytes ? "The page has no room for it; events.csv has it." : "None."),
    strips);
  dialog.dataset.section = "candidates";
  drawAll();
}

function failureBlock(failure) {
  const differences = failure.differences || [];
  return el("div", {}, el("p", {}, `${failure.check} · ${failure.what}: ${failure.message}`),
    differences.length ? table([
      { name: "where", get: (one) => one.where },
      { name: "expected", get: (one) => one.expected, text: (one) => el("code", {}, one.expected) },
      { name: "actual", get: (one) => one.actual, text: (one) => el("code", {}, one.actual) },
    ], differences, { label: "Expected and actual" }) : null);
}

function diffView(lines) {
  return el("div", { class: "diff", tabindex: "0", role: "region", "aria-label": "Diff" },
    lines.map(([kind, ...words]) => el("div", { class: kind || null },
      words.map(([name, text]) => name ? el("span", { class: `tok-${name}` }, text) : text))));
}

// All samples in the order in which they were taken, relative to the base's median.
function sessionStrip(strip, title) {
  return strip.benchmarks.map((benchmark, number_) => {
    const samples = strip.arm.map((arm, index) => ({ arm, seconds: strip.seconds[index], session: strip.session[index],
      kept: strip.kept[index], benchmark: strip.benchmark[index] })).filter((sample) => sample.benchmark === number_);
    samples.forEach((sample, index) => { sample.order = index; });
    const base = d3.median(samples.filter((sample) => sample.arm === 0 && sample.kept), (sample) => sample.seconds);
    if (!base) return null;
    const starts = samples.filter((sample, index) => index && sample.session !== samples[index - 1].session);
    const names = ["base", "candidate"];
    const colors = ["var(--c8)", "var(--c1)"];
    const [fastest, slowest] = d3.extent(samples.filter((sample) => sample.seconds > 0), (sample) => sample.seconds / base);
    const sessions = d3.groups(samples.filter((sample) => sample.kept), (sample) => sample.session).map(([session, some]) => ({ session,
      medians: [0, 1].map((arm) => d3.median(some.filter((sample) => sample.arm === arm), (sample) => sample.seconds)) }));
    return figure({
      title: `${title}: ${benchmark}`,
      caption: `Time per call in the order of measuring, as a multiple of the base's median (${seconds(base)}); lines part the sessions. ` +
        "Hollow samples warm up and don't count. A slope or a step in both arms is drift of the machine." +
        (strip.left_out ? ` ${count(strip.left_out, "later sample")} left out.` : ""),
      label: `${count(samples.length, "sample")} in ${count(sessions.length, "session")}.`,
      legend: legend(names, (name, index) => colors[index]),
      draw: () => ({
        height: 260, marginLeft: 56, marginBottom: 46, marginTop: 12,
        x: { label: "sample, in order", labelAnchor: "center", labelArrow: "none" },
        y: { type: "log", domain: [Math.min(fastest, 0.95), Math.max(slowest, 1.05)], nice: true, label: "× base", grid: true, labelArrow: "none", ticks: logTicks(Math.min(fastest, 0.95), Math.max(slowest, 1.05), 200, 18), tickFormat: tickNumber },
        marks: [
          Plot.ruleX(starts, { x: (sample) => sample.order - 0.5, stroke: "var(--line)" }),
          Plot.ruleY([1], { stroke: "var(--zero)" }),
          Plot.dot(samples.filter((sample) => sample.seconds > 0), { x: "order", y: (sample) => sample.seconds / base, r: 2.2,
            fill: (sample) => sample.kept ? colors[sample.arm] : "none", stroke: (sample) => colors[sample.arm], strokeWidth: 0.8 }),
        ],
      }),
      table: table([
        { name: "session", get: (row) => row.session, num: true },
        { name: "base, median", get: (row) => seconds(row.medians[0]), num: true },
        { name: "candidate, median", get: (row) => seconds(row.medians[1]), num: true },
        { name: "times as fast", get: (row) => row.medians[0] / row.medians[1], num: true },
      ], sessions, { label: "Medians by session" }),
    });
  });
}

// The sections of the winner's explanation; profiles of base and winner stand side by side.
function explanationBlock(section) {
  const nodes = tree(section.tree);
  const open = section.title === "What could still be wrong";
  let column = null;
  let pair = null;
  const arranged = [];
  for (const node of nodes) {
    const text = node.textContent || "";
    if (section.title === "Where the time goes" && node.nodeName === "P" && /^(Before|With it)/.test(text)) {
      column = el("div", {}, node);
      if (!pair || text.startsWith("Before")) arranged.push(pair = el("div", { class: "two" }));
      pair.append(column);
    } else if (column && !/^H\d/.test(node.nodeName)) column.append(node);
    else { column = pair = null; arranged.push(node); }
  }
  const result = block(section.title, arranged);
  result.open = open;
  return result;
}
