// The live page: its data comes from the server, and then what is new, as server-sent events.

let stream = null;
let loading = false;
let lost = false;
const RETRY_MS = 5000;

async function ask(path, options) {
  const response = await fetch(path, { headers: { "X-Fairtrial": "1" }, ...options });
  const answer = response.headers.get("content-type")?.startsWith("application/json") ? await response.json() : {};
  if (!response.ok) throw Object.assign(new Error(answer.error || `the server answered ${response.status}`), { status: response.status });
  if (answer.wait) throw Object.assign(new Error(answer.wait), { isWaiting: true });
  return answer;
}

async function load() {
  if (loading) return;
  loading = true;
  stream?.close();
  stream = null;
  try {
    const fresh = await ask("data");
    lost = false;
    const isFirst = !data.rows;
    if (dialog.open) dialog.close();
    render(fresh);
    listen();
    if (isFirst && location.hash) route();
    performance.mark("fairtrial-loaded");
  } catch (error) {
    explainLoss(error);
    setTimeout(load, RETRY_MS);
  } finally {
    loading = false;
  }
}

function explainLoss(error) {
  lost = true;
  const text = error.status === 403 ? "The viewer was restarted: open the address that it printed, and this page goes on."
    : error.status || error.isWaiting ? error.message : "The viewer has stopped. Start `fairtrial view` again; this page goes on when it is back.";
  const place = document.getElementById("controls");
  const notice = el("div", { class: "notice", role: "status" }, text);
  if (place) place.replaceChildren(notice);
  else document.getElementById("page").replaceChildren(el("header", { class: "top" }, el("h1", {}, data.title), el("div", { id: "controls" }, notice)));
}

function listen() {
  if (document.hidden || stream) return;
  stream = new EventSource(`events?from=${encodeURIComponent(`${data.live.key}/${data.live.number}`)}`);
  stream.onmessage = (event) => receive(JSON.parse(event.data));
  stream.onerror = () => {
    if (lost) return;
    stream?.close();
    stream = null;
    explainLoss({});
    setTimeout(load, RETRY_MS);
  };
}

function receive(news) {
  if (news.key !== data.live.key) {
    load();
    return;
  }
  data.live.number = news.number;
  data.live.state = news.state;
  if (news.state.progress) data.progress = news.state.progress;
  if (data.hidden && news.rows) addRows(news.rows);
  if (data.hidden && news.charts) {
    Object.assign(data, news.charts);
    replaceSection("failures", failureSection);
    replaceSection("spending", spendingSection);
  }
  document.getElementById("lead").textContent = leadLine();
  showState();
}

function addRows(columns) {
  const isFirst = !data.rows.length;
  const places = new Map(data.rows.map((row, index) => [row.id, index]));
  Object.assign(data.runs, { agents: columns.agents, problems: columns.problems });
  for (const row of rowsOf(columns)) {
    if (places.has(row.id)) data.rows[places.get(row.id)] = row;
    else data.rows.push(row);
  }
  data.all_runs = data.rows.length;
  if (isFirst) {
    drawPage();
    return;
  }
  const choices = choicesOf(data);
  if (choices === data.choices) applyFilter(data, true);
  else if (replaceSection("runs", runSection)) data.choices = choices;
}

function choicesOf(data) {
  return JSON.stringify(["status", "failure", "condition", "problem"].map((name) => [...new Set(data.rows.map((row) => row[name]))].sort()));
}

// Replace the content of a section, unless somebody works in it; returns whether it was replaced.
function replaceSection(id, make) {
  const section = document.getElementById(id);
  const content = make(data);
  if (!section) {
    if (content && content.flat(Infinity).some(Boolean)) drawPage();
    return true;
  }
  if (section.contains(document.activeElement)) return false;
  const height = section.offsetHeight;
  const above = section.getBoundingClientRect().bottom < 0;
  section.replaceChildren(section.querySelector("h2"), ...[content].flat(Infinity).filter(Boolean));
  drawAll();
  redraws.splice(0, redraws.length, ...redraws.filter(({ holder }) => holder.isConnected));
  if (above) scrollBy({ top: section.offsetHeight - height, behavior: "instant" });
  return true;
}

const STATE_TONES = { running: "good", paused: "caution", stopped: "caution", unreadable: "bad" };

function showState() {
  const place = document.getElementById("controls");
  if (!place) return;
  const state = data.live.state;
  const progress = state.progress;
  if (place.querySelector("details[open]")?.contains(document.activeElement) || place.querySelector("button:focus")) {
    if (place.dataset.state === state.state) return;
  }
  place.dataset.state = state.state;
  const parts = [];
  if (progress) {
    const bar = el("progress", { max: progress.planned || 1, value: progress.done, "aria-label": "Runs done" });
    parts.push(bar);
  }
  const facts_ = [state.message, state.rate, state.left && `${state.left} left`, state.running ? `${count(state.running, "run")} under way` : "",
    state.again ? `${count(state.again, "run")} to be run again` : "", state.quiet || ""].filter(Boolean);
  parts.push(el("p", { role: "status" }, badge(state.state, STATE_TONES[state.state]), facts_.join(" · ")));
  if (state.runs?.length) parts.push(underWay(state.runs));
  if (data.live.control && state.owner?.pid) parts.push(controlButtons(state));
  place.replaceChildren(...parts);
}

let showsUnderWay = false;

function underWay(runs) {
  const node = el("details", { class: "under-way", open: showsUnderWay }, el("summary", {}, "Runs under way"),
    el("ul", {}, runs.map((run) => el("li", {}, el("span", { class: "mono" }, run.id.replace(/^run-/, "")), ` ${run.age} ${[run.agent, run.problem].filter(Boolean).join(" on ")}`,
      run.events.length ? el("ul", {}, run.events.map((event) => el("li", { class: "soft" }, [event.time, event.type, event.text, brief(event.facts)].filter(Boolean).join(" ")))) : null))));
  node.addEventListener("toggle", () => { showsUnderWay = node.open; });
  return node;
}

function brief(facts) {
  return Object.entries(facts).filter(([, value]) => ["string", "number", "boolean"].includes(typeof value) && value !== "")
    .slice(0, 6).map(([name, value]) => `${name}: ${typeof value === "number" ? number(value) : value}`).join(", ");
}

function controlButtons(state) {
  const send = (action) => async (event) => {
    event.target.disabled = true;
    try {
      await ask(`control/${action}`, { method: "POST" });
    } catch (error) {
      event.target.after(el("span", { class: "notice", role: "alert" }, error.message));
    }
    event.target.blur();
  };
  const cancel = async (event) => { if (confirm("Stop this study? Finished runs are kept; runs under way are cancelled.")) await send("cancel")(event); };
  return el("div", { class: "controls" },
    state.state === "paused" ? el("button", { class: "button", type: "button", onclick: send("resume") }, "Resume")
      : el("button", { class: "button", type: "button", onclick: send("pause") }, "Pause"),
    el("button", { class: "button", type: "button", onclick: cancel }, "Cancel"));
}

live.hiddenNotice = (data) => {
  const hasClaims = data.live.state.has_claims;
  const button = el("button", { class: "button", type: "button", onclick: () => look(button) },
    hasClaims ? "Show verdicts so far" : "Show outcomes so far");
  return el("div", {}, el("p", {}, hasClaims
    ? "Verdicts and outcomes are hidden until all runs are done. Showing them earlier is an interim look, and is recorded as one."
    : "Outcomes are shown when all runs are done, or now if you ask for them."), button);
};

async function look(button) {
  button.disabled = true;
  button.textContent = "Testing …";
  try {
    render(await ask("look", { method: "POST" }));
    listen();
  } catch (error) {
    button.after(el("p", { class: "notice", role: "alert" }, error.message));
    button.textContent = "Try again";
    button.disabled = false;
  }
}

live.detail = (id) => ask(`run/${encodeURIComponent(id)}`);
live.drawn = () => {
  data.choices = choicesOf(data);
  showState();
};
live.start = () => {
  document.getElementById("page").replaceChildren(el("header", { class: "top" }, el("h1", {}, data.title),
    el("div", { id: "controls" }, el("p", { role: "status" }, "Reading the study …"))));
  load();
  // A page that nobody sees takes no time from what runs.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      stream?.close();
      stream = null;
    } else if (data.live && !lost) listen();
  });
};
