// The table of runs, with search and filters.

let runTable = null;
const runFilter = {};

function rowsOf(runs) {
  return runs.id.map((id, index) => ({
    id, condition: runs.condition[index], agent: runs.agent[index], problem: runs.problem[index],
    replicate: runs.replicate[index], status: runs.status[index], failure: runs.failure[index],
    error: runs.error[index], attempt: runs.attempt[index], latency: runs.latency[index],
    cost: runs.cost[index], tokens: runs.tokens[index], start: runs.start[index], end: runs.end[index],
    values: runs.values.map((column) => column[index]),
  }));
}

function statusBadge(row) {
  return badge(row.status, row.status === "success" ? "good" : row.status === "skipped" ? "" : "bad");
}

function runSection(data) {
  const label = (row) => data.conditions[row.condition]?.label ?? "?";
  const columns = [
    { name: "run", get: (row) => row.id, text: (row) => el("a", { href: `#run=${row.id}`, class: "mono" }, row.id.replace(/^run-/, "")) },
    { name: "status", get: (row) => row.status, text: statusBadge },
    { name: "condition", get: label },
    ...(data.runs.agents.length > 1 && !agentIsInLabel(data) ? [{ name: "agent", get: (row) => data.runs.agents[row.agent] }] : []),
    ...(data.runs.problems.length > 1 ? [{ name: "problem", get: (row) => data.runs.problems[row.problem] }] : []),
    { name: "replicate", get: (row) => row.replicate, num: true },
    ...data.outcomes.map((outcome, index) => ({ name: outcome.name, get: (row) => row.values[index], num: true })),
    { name: "latency", get: (row) => row.latency, text: (row) => seconds(row.latency), num: true },
    ...(data.rows.some((row) => row.cost) ? [{ name: "cost", get: (row) => row.cost, text: (row) => row.cost ? money(row.cost) : "–", num: true }] : []),
    ...(data.rows.some((row) => row.tokens) ? [{ name: "tokens", get: (row) => row.tokens, num: true }] : []),
  ];
  runTable = new SortedTable(columns, "Table of runs");
  const controls = runControls(data);
  applyFilter(data);
  const part = data.all_runs > data.rows.length
    ? el("p", { class: "soft" }, `${data.rows.length.toLocaleString("en-US")} of ${count(data.all_runs, "run")}: those that did not succeed first, the others evenly over the plan. ` +
      "The files beside the ledger have all runs.") : null;
  return [part, controls, runTable.node];
}

// Whether each condition's label names its agent, as where the agent is a factor.
function agentIsInLabel(data) {
  const labels = data.conditions.map((condition) => condition.label.split(" · "));
  return data.rows.every((row) => labels[row.condition]?.includes(data.runs.agents[row.agent]));
}

function runControls(data) {
  const search = el("input", { type: "search", id: "run-search", autocomplete: "off", value: runFilter.text || "",
    oninput: (event) => changeFilter(data, "text", event.target.value) });
  const choices = [
    choice("status", "Status", [...new Set(data.rows.map((row) => row.status))].map((status) => [status, status]), data),
    choice("failure", "Kind of failure", [...new Set(data.rows.map((row) => row.failure).filter(Boolean))].map((kind) => [kind, kind]), data),
    choice("condition", "Condition", [...new Set(data.rows.map((row) => row.condition))].sort((a, b) => a - b)
      .map((index) => [String(index), data.conditions[index]?.label ?? "?"]), data),
    choice("problem", "Problem", data.runs.problems.map((name, index) => [String(index), name]), data),
  ];
  const clear = el("button", { class: "button", type: "button", onclick: () => filterRuns({}) }, "Clear");
  return el("div", { class: "controls", role: "search", "aria-label": "Filter runs" },
    el("label", {}, "Search ids, errors, conditions", search), choices, clear);
}

function choice(name, title, options, data) {
  if (options.length < 2 && name !== "failure" || !options.length) return null;
  const select = el("select", { "data-filter": name, onchange: (event) => changeFilter(data, name, event.target.value) },
    el("option", { value: "" }, "all"), options.map(([value, text]) => el("option", { value }, text)));
  select.value = runFilter[name] || "";
  return el("label", {}, title, select);
}

function applyFilter(data, isRefresh) {
  const text = (runFilter.text || "").toLowerCase();
  runTable[isRefresh ? "refresh" : "show"](data.rows.filter((row) =>
    (!runFilter.status || row.status === runFilter.status)
    && (!runFilter.failure || row.failure === runFilter.failure)
    && (!runFilter.condition || String(row.condition) === runFilter.condition)
    && (!runFilter.problem || String(row.problem) === runFilter.problem)
    && (!text || `${row.id} ${row.error} ${row.failure ?? ""} ${data.conditions[row.condition]?.label} ${data.runs.problems[row.problem]}`.toLowerCase().includes(text))));
}

// The address of the runs that match, so that it can be passed on.
function filterHash(filter) {
  const parts = new URLSearchParams(Object.entries(filter).filter(([, value]) => value)).toString();
  return parts ? `#runs?${parts}` : "#runs";
}

function changeFilter(data, name, value) {
  runFilter[name] = value;
  applyFilter(data);
  history.replaceState(null, "", filterHash(runFilter));
}

// Show the runs that match, and scroll there.
function filterRuns(filter) {
  const hash = filterHash(filter);
  if (location.hash === hash) route();
  else location.hash = hash;
}

function setFilter(data, text) {
  for (const name of Object.keys(runFilter)) delete runFilter[name];
  Object.assign(runFilter, Object.fromEntries(new URLSearchParams(text)));
  for (const select of document.querySelectorAll("select[data-filter]")) select.value = runFilter[select.dataset.filter] || "";
  const search = document.getElementById("run-search");
  if (search) search.value = runFilter.text || "";
  if (runTable) applyFilter(data);
}
