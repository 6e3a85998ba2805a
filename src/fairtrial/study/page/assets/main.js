// The page as a whole: sections, navigation, deep links.

let data = null;

function sections() {
  const describes = data.hidden && !data.live.state.has_claims;
  const list = [];
  const add = (id, title, content) => {
    if (content && content.flat(Infinity).some(Boolean)) list.push([id, title, content]);
  };
  add("verdicts", describes ? "Outcomes" : "Verdicts", data.hidden ? [live.hiddenNotice(data)] : verdictSection(data));
  for (const part of data.parts) add(part.name, part.title, partViews[part.name](part.data));
  add("effects", "Effects", effectSection(data));
  data.outcomes.forEach((outcome, index) =>
    add(index ? `outcomes-${index}` : "outcomes", index ? `Outcome: ${outcome.name}` : `Outcomes: ${outcome.name}`, outcomeSection(data, outcome, index)));
  if (data.rows.length) add("runs", "Runs", runSection(data));
  add("compare", "Compare conditions", compareSection(data));
  add("failures", "Failures", failureSection(data));
  add("spending", "Cost and time", spendingSection(data));
  add("record", "Plan and record", recordSection(data));
  return list;
}

function leadLine() {
  const progress = data.progress;
  const state = progress.is_running ? "running" : progress.pending ? `not finished${progress.ended_how ? ` (${progress.ended_how})` : ""}` : "finished";
  const failed = Object.entries(progress.statuses).filter(([status]) => status !== "success")
    .map(([status, runs]) => `${runs.toLocaleString("en-US")} ${status}`);
  return [data.study, data.live ? null : state, `${progress.done.toLocaleString("en-US")} of ${count(progress.planned, "run")}`, ...failed,
    progress.cost || null].filter(Boolean).join(" · ");
}

function render(fresh) {
  data = fresh;
  data.rows = rowsOf(data.runs);
  drawPage();
}

function drawPage() {
  redraws.length = 0;
  const list = sections();
  const names = { outcomes: "Outcomes" };
  const links = list.filter(([id]) => !id.startsWith("outcomes-"))
    .map(([id, title]) => el("li", {}, el("a", { href: `#${id}` }, names[id] || title)));
  document.getElementById("page").replaceChildren(
    el("a", { class: "skip", href: `#${list[0][0]}` }, "Skip to the content"),
    el("header", { class: "top" }, el("h1", {}, data.title), el("p", { class: "lead", id: "lead" }, leadLine()),
      data.description ? el("p", {}, data.description) : null, el("div", { id: "controls" })),
    el("nav", { class: "top", "aria-label": "Sections" }, el("ul", {}, links)),
    el("main", {}, list.map(([id, title, content]) => el("section", { id, "aria-labelledby": `${id}-title`, tabindex: "-1" },
      el("h2", { id: `${id}-title` }, title), content))),
    el("footer", {}, `Made by fairtrial ${data.version}, ${data.made_at.slice(0, 16).replace("T", " ")} UTC, from ${data.folder}. ${data.live ? "It shows what is on this machine only." : "This file needs no network."}`),
    dialog);
  drawAll();
  if (live.drawn) live.drawn();
}

function readHash() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";  // not an address that this page makes
  }
}

// #section, #run=ID, #runs?condition=0&problem=1, #compare?first=0&second=1, #claim=ID
function route() {
  if (!data.rows) return;
  const hash = readHash();
  const [name, value] = [hash.split("=")[0], hash.slice(hash.indexOf("=") + 1)];
  if (dialog.open && name !== "run" && !Object.hasOwn(partRoutes, name)) dialog.close();
  if (hash.startsWith("run=")) showRun(data, hash.slice(4));
  else if (hash.includes("=") && Object.hasOwn(partRoutes, name)) partRoutes[name](value);
  else if (hash.startsWith("runs")) {
    setFilter(data, hash.slice(5));
    document.getElementById("runs")?.scrollIntoView();
  } else if (hash.startsWith("compare?") && chooseConditions) {
    chooseConditions(hash.slice(8));
    document.getElementById("compare")?.scrollIntoView();
  } else if (hash) document.getElementById(hash)?.scrollIntoView();
}

const PRINT_WIDTH = 680;  // pixels that fit on A4 and on letter
let unfolded = [];

// On paper charts are as wide as the page, and what verdicts rest on is unfolded.
function arrangePrint(isPrinting) {
  for (const node of unfolded) node.open = false;
  unfolded = isPrinting ? [...document.querySelectorAll(".card details:not([open]), #record details:not([open])")] : [];
  for (const node of unfolded) node.open = true;
  printWidth = isPrinting ? PRINT_WIDTH : 0;
  drawAll();
}

function start() {
  data = JSON.parse(document.getElementById("data").textContent);
  if (live.start) live.start();
  else render(data);
  addEventListener("hashchange", route);
  let timer = 0;
  addEventListener("resize", () => { clearTimeout(timer); timer = setTimeout(drawAll, 150); });
  addEventListener("beforeprint", () => arrangePrint(true));
  addEventListener("afterprint", () => arrangePrint(false));
  if (location.hash && !live.start) route();
  performance.mark("fairtrial-drawn");
}

start();
