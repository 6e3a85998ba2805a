// Everything about one run, in a dialog that `#run=ID` opens.

const dialog = el("dialog", { "aria-labelledby": "dialog-title" });

function openDialog(title, ...children) {
  dialog.dataset.section = "runs";
  const close = el("button", { class: "button", type: "button", onclick: () => dialog.close() }, "Close");
  dialog.replaceChildren(
    el("div", { class: "bar" }, el("h2", { id: "dialog-title" }, title), close),
    el("div", { class: "body" }, ...children));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  close.focus();
}

dialog.addEventListener("close", () => {
  if (/^#[a-z]+=/.test(location.hash)) history.replaceState(null, "", `#${dialog.dataset.section || "runs"}`);
});
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });

function showRun(data, id) {
  const row = data.rows.find((one) => one.id === id);
  const detail = data.details[id];
  const title = `Run ${id}`;
  if (!row) {
    openDialog(title, el("p", {}, "This run is not part of this page. Its details can be shown by:"),
      copyable(`fairtrial show ${quote(data.folder)} ${id}`));
    return;
  }
  openDialog(title, runFacts(data, row), detail ? runParts(detail) : live.detail ? loadedDetail(id) : missingDetail(data, id));
}

function loadedDetail(id) {
  const place = el("div", { role: "status" }, el("p", {}, "Reading …"));
  live.detail(id).then((detail) => place.replaceChildren(...runParts(detail)),
    (error) => place.replaceChildren(el("p", { class: "notice" }, error.message)));
  return place;
}

function missingDetail(data, id) {
  return el("div", {}, el("p", {}, "This page has no room for the details of every run. They can be shown by:"),
    copyable(`fairtrial show ${quote(data.folder)} ${id}`));
}

function runFacts(data, row) {
  return [
    el("p", {}, statusBadge(row), row.failure ? badge(row.failure) : null),
    facts([
      ["condition", data.conditions[row.condition]?.label],
      ["agent", data.runs.agents[row.agent]],
      ["problem", data.runs.problems[row.problem]],
      ["replicate", String(row.replicate)],
      ...data.outcomes.map((outcome, index) => [outcome.name, row.values[index] === null ? null : number(row.values[index], 5)]),
      ["latency", seconds(row.latency)],
      ["cost", row.cost ? money(row.cost) : null],
      ["tokens", row.tokens ? row.tokens.toLocaleString("en-US") : null],
      ["attempt", row.attempt > 1 ? String(row.attempt) : null],
    ]),
    el("h3", {}, "Reproduce this run"),
    el("p", { class: "soft" }, "With the study's file, in a new folder; the seed is part of the plan:"),
    copyable(`fairtrial run STUDY.yaml --only ${row.id} --output again`),
  ];
}

function runParts(detail) {
  const talk = conversation(detail.events || []);
  const events = (detail.events || []).filter((event) => !SPOKEN.has(event.event_type));
  return [
    detail.too_large ? el("p", {}, "The details of this run are too large for this page.") : null,
    detail.error ? [el("h3", {}, "Error"), output(detail.error)] : null,
    detail.traceback ? [el("h3", {}, "Traceback"), output(detail.traceback)] : null,
    detail.outputs ? [el("h3", {}, "Output"), outputs(detail.outputs)] : null,
    talk ? [el("h3", {}, "Conversation"), talk] : null,
    detail.evaluations ? [el("h3", {}, "Evaluations"), evaluationTable(detail.evaluations)] : null,
    events.length ? [el("h3", {}, `Events (${events.length})`), eventTable(events)] : null,
    detail.left_out_events ? el("p", { class: "soft" }, `${count(detail.left_out_events, "further event")} left out.`) : null,
    detail.stdout ? [el("h3", {}, "Printed"), output(detail.stdout)] : null,
    detail.stderr ? [el("h3", {}, "Printed to stderr"), output(detail.stderr)] : null,
    detail.attempts ? [el("h3", {}, "Earlier attempts"), attemptList(detail.attempts)] : null,
    detail.metrics ? block("Metrics", facts(Object.entries(detail.metrics).map(([name, value]) => [name, pretty(value)]))) : null,
    block("Where and when", facts([["started", detail.started_at], ["ended", detail.ended_at], ["host", detail.host],
      ["executor", detail.executor], ["seed", detail.seed === undefined ? null : String(detail.seed)]]) || el("p", {}, "Not recorded.")),
  ].flat(Infinity).filter(Boolean);
}

function evaluationTable(rows) {
  return table([
    { name: "metric", get: (row) => row.metric_name },
    { name: "value", get: (row) => typeof row.metric_value === "number" ? number(row.metric_value, 6) : pretty(row.metric_value ?? "–"), num: true },
    { name: "unit", get: (row) => row.metric_unit },
    { name: "evaluator", get: (row) => row.evaluator_id },
    { name: "notes", get: (row) => row.notes_json && Object.keys(row.notes_json).length ? pretty(row.notes_json) : "" },
  ], rows, { label: "Evaluations" });
}

function eventTable(rows) {
  return table([
    { name: "time", get: (row) => String(row.timestamp || "").slice(11, 23) },
    { name: "type", get: (row) => row.event_type },
    { name: "text", get: (row) => pretty(row.text ?? "").slice(0, 400) },
    { name: "facts", get: (row) => row.meta ? pretty(row.meta).slice(0, 600) : "" },
  ], rows, { label: "Events" });
}

function attemptList(attempts) {
  return attempts.map((attempt) => block(`Attempt ${attempt.attempt}: ${attempt.status}`,
    facts([["why", attempt.failure], ["latency", seconds(attempt.latency)]]),
    attempt.error ? output(attempt.error) : null, attempt.traceback ? output(attempt.traceback) : null));
}
