// The list of the studies in a folder, and two of them side by side.

const STATES = { running: "good", paused: "caution", stopped: "caution", unreadable: "bad" };
const RETRY_MS = 5000;
const first = JSON.parse(document.getElementById("data").textContent);
const content = el("main", {}, el("p", { role: "status" }, "Reading …"));
const chosen = new Set();
document.getElementById("page").replaceChildren(
  el("header", { class: "top" }, el("h1", {}, first.title), el("p", { class: "lead", id: "lead" })), content);

function problem(text) {
  document.getElementById("lead").textContent = text;
}

function progressCell(entry) {
  const progress = entry.progress;
  if (!progress) return entry.message || "–";
  const failed = Object.entries(progress.statuses).filter(([status]) => status !== "success").map(([status, runs]) => `${runs.toLocaleString("en-US")} ${status}`);
  return [el("progress", { max: progress.planned || 1, value: progress.done, "aria-label": "Runs done" }),
    [`${progress.done.toLocaleString("en-US")} of ${progress.planned.toLocaleString("en-US")} runs`, ...failed].join(", ")];
}

function verdictCell(entry) {
  if (entry.verdicts) return entry.verdicts.length ? el("ul", { class: "plain" }, entry.verdicts.map((card) => el("li", {}, badge(card.verdict, card.tone), card.label || card.id))) : "–";
  if (!entry.has_claims) return entry.progress ? "no claims" : "–";
  return entry.is_finished ? "…" : "when all runs are done";
}

function showList(news) {
  const studies = news.studies;
  if (news.only) {  // the folder that was empty holds a study now
    location.replace(`study/${news.only}/`);
    return;
  }
  problem([news.folder, count(studies.length, "stud").replace(/studs$/, "studies").replace(/stud$/, "study"), news.quiet].filter(Boolean).join(" · "));
  if (!studies.length) {
    content.replaceChildren(el("p", {}, "There is no study here yet. This page shows it when it begins."));
    return;
  }
  if (content.contains(document.activeElement) && document.activeElement !== document.body && content.dataset.names === names(studies)) {
    updateCells(studies);
    return;
  }
  content.dataset.names = names(studies);
  const button = el("button", { class: "button", type: "button", onclick: openComparison }, "Compare two");
  const node = table([
    { name: "compare", get: (entry) => chooser(entry, button) },
    { name: "study", get: (entry) => el("div", {}, el("a", { href: `study/${entry.id}/` }, entry.title || entry.name), el("div", { class: "soft mono" }, entry.name)) },
    { name: "state", get: (entry) => badge(entry.state, STATES[entry.state]) },
    { name: "progress", get: progressCell },
    { name: "verdicts", get: verdictCell },
    { name: "cost", get: (entry) => entry.progress?.cost || "–", num: true },
    { name: "tokens", get: (entry) => entry.progress?.tokens || null, num: true },
  ], studies, { label: "Studies", class: "full studies" });
  content.replaceChildren(el("div", { class: "controls" }, button), node);
  keepTwo(button);
}

const names = (studies) => studies.map((entry) => entry.id).join();

function updateCells(studies) {
  const rows = content.querySelectorAll("tbody tr");
  studies.forEach((entry, index) => {
    rows[index].cells[2].replaceChildren(badge(entry.state, STATES[entry.state]));
    rows[index].cells[3].replaceChildren(...[progressCell(entry)].flat());
    rows[index].cells[4].replaceChildren(verdictCell(entry));
    rows[index].cells[5].replaceChildren(entry.progress?.cost || "–");
  });
}

function chooser(entry, button) {
  return el("input", { type: "checkbox", "aria-label": `Compare ${entry.title || entry.name}`, "data-id": entry.id, checked: chosen.has(entry.id),
    onchange: (event) => {
      if (event.target.checked) chosen.add(entry.id);
      else chosen.delete(entry.id);
      keepTwo(button);
    } });
}

function keepTwo(button) {
  button.disabled = chosen.size !== 2;
  for (const box of content.querySelectorAll("input[data-id]")) {
    box.checked = chosen.has(box.dataset.id);
    box.disabled = chosen.size >= 2 && !box.checked;
  }
}

function openComparison() {
  const [a, b] = chosen;
  location.assign(`compare?a=${a}&b=${b}`);
}

function sideBySide(data) {
  const [a, b] = data.studies;
  const state = (one) => one.progress.is_running ? "running" : one.progress.pending ? "not finished" : "finished";
  const rows = [
    ["state", state], ["runs", (one) => `${one.progress.done.toLocaleString("en-US")} of ${one.progress.planned.toLocaleString("en-US")}`],
    ["not successful", (one) => Object.entries(one.progress.statuses).filter(([status]) => status !== "success").map(([status, runs]) => `${runs} ${status}`).join(", ") || "none"],
    ["cost", (one) => one.progress.cost || "none recorded"], ["tokens", (one) => one.progress.tokens || null], ["folder", (one) => one.folder],
  ];
  const heads = [`${a.title} (first)`, `${b.title} (second)`];
  return [
    el("p", {}, el("a", { href: "./" }, "All studies")),
    table([{ name: "fact", get: ([name]) => name }, { name: heads[0], get: ([, get]) => get(a) }, { name: heads[1], get: ([, get]) => get(b) }], rows, { label: "Two studies", class: "full" }),
    el("section", {}, el("h2", {}, "Verdicts"), claims(a, b)),
    el("section", {}, el("h2", {}, "Outcomes by condition"), outcomes(a, b)),
    el("section", {}, el("h2", {}, "What differs in the plans"), data.differences.length
      ? [el("ul", {}, data.differences.map((text) => el("li", { class: "mono" }, text))), data.left_out ? el("p", {}, `${data.left_out} more.`) : null] : el("p", {}, "Nothing.")),
  ];
}

function claims(a, b) {
  const find = (study, id) => study.verdicts?.find((card) => card.id === id);
  const ids = [...new Set([a, b].flatMap((study) => (study.verdicts || []).map((card) => card.id)))];
  const shown = (study, id) => {
    if (!study.verdicts) return "shown when all runs are done";
    const card = find(study, id);
    return card ? el("div", {}, badge(card.verdict, card.tone), card.estimate ? ` ${card.estimate} ${card.interval}`.replaceAll("-", "−") : "") : "–";
  };
  if (!ids.length) return el("p", {}, [a, b].some((study) => !study.verdicts) ? "They are shown when all runs are done." : "Neither study states a claim.");
  return table([{ name: "claim", get: (id) => find(a, id)?.label || find(b, id)?.label || id },
    { name: "first", get: (id) => shown(a, id) }, { name: "second", get: (id) => shown(b, id) }], ids, { label: "Verdicts of two studies", class: "full" });
}

function outcomes(a, b) {
  const rows = new Map();
  [a, b].forEach((study, place) => study.outcomes.forEach((outcome) => outcome.groups.forEach((group) => {
    const key = JSON.stringify([outcome.name, group.label, group.agent]);
    if (!rows.has(key)) rows.set(key, { outcome: outcome.name, label: group.label, agent: group.agent, values: [null, null] });
    rows.get(key).values[place] = group;
  })));
  if (!rows.size) return el("p", {}, "They are shown when all runs are done.");
  const text = (group) => group && group.mean !== null ? `${number(group.mean)} (n = ${group.n}${group.sd === null ? "" : `, sd ${number(group.sd)}`})` : "–";
  return table([{ name: "outcome", get: (row) => row.outcome }, { name: "condition", get: (row) => row.label }, { name: "agent", get: (row) => row.agent },
    { name: "first", get: (row) => text(row.values[0]), num: true }, { name: "second", get: (row) => text(row.values[1]), num: true },
    { name: "first − second", get: (row) => row.values[0]?.mean != null && row.values[1]?.mean != null ? number(row.values[0].mean - row.values[1].mean) : "–", num: true },
  ], [...rows.values()], { label: "Outcomes of two studies", class: "full" });
}

async function compare() {
  const response = await fetch(`comparison${location.search}`);
  const answer = await response.json();
  if (answer.wait) {
    problem(answer.wait);
    setTimeout(compare, RETRY_MS);
  } else if (response.ok) content.replaceChildren(...sideBySide(answer));
  else problem(answer.error);
}

let stream = null;

function listen() {
  if (document.hidden || stream) return;
  stream = new EventSource("events");
  stream.onmessage = (event) => showList(JSON.parse(event.data));
  stream.onerror = () => {
    problem("The viewer has stopped, or was restarted: start `fairtrial view` again, and open the address that it prints.");
    stream?.close();
    stream = null;
    setTimeout(listen, RETRY_MS);
  };
}

if (first.kind === "comparison") compare();
else {
  listen();
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      stream?.close();
      stream = null;
    } else listen();
  });
}
