// Two conditions side by side, run by run.

function compareSection(data) {
  const indexes = [...new Set(data.rows.map((row) => row.condition))].sort((a, b) => a - b);
  if (indexes.length < 2 || !data.outcomes.length) return null;
  const result = el("div");
  const selects = [0, 1].map((place) => {
    const select = el("select", { onchange: draw }, indexes.map((index) => el("option", { value: index }, data.conditions[index]?.label ?? "?")));
    select.value = String(indexes[place]);
    return select;
  });
  const outcome = el("select", { onchange: draw }, data.outcomes.map((one, index) => el("option", { value: index }, one.name)));
  const different = el("input", { type: "checkbox", onchange: draw });
  function draw() {
    const [a, b] = selects.map((select) => Number(select.value));
    result.replaceChildren(...compareConditions(data, a, b, Number(outcome.value), different.checked));
  }
  draw();
  return [
    el("div", { class: "controls" }, el("label", {}, "First", selects[0]), el("label", {}, "Second", selects[1]),
      data.outcomes.length > 1 ? el("label", {}, "Outcome", outcome) : null,
      el("label", { class: "check" }, different, "only where they differ")),
    result,
  ];
}

function compareConditions(data, a, b, outcome, onlyDifferent) {
  const pairs = new Map();
  for (const row of data.rows) {
    if (row.condition !== a && row.condition !== b) continue;
    const agent = agentsDiffer(data, a, b) ? "" : row.agent;
    const key = `${agent}/${row.problem}/${row.replicate}`;
    const pair = pairs.get(key) || { problem: row.problem, replicate: row.replicate };
    pair[row.condition === a ? "a" : "b"] = row;
    pairs.set(key, pair);
  }
  const all = [...pairs.values()];
  const rows = all.filter((pair) => !onlyDifferent || differ(pair, outcome));
  const name = data.outcomes[outcome].name;
  const value = (row) => row?.values[outcome] ?? null;
  const shown = (row) => !row ? "–" : el("a", { href: `#run=${row.id}` }, row.status === "success" ? number(value(row)) : row.status);
  const sorted = new SortedTable([
    { name: "problem", get: (pair) => data.runs.problems[pair.problem] },
    { name: "replicate", get: (pair) => pair.replicate, num: true },
    { name: `${name}, first`, get: (pair) => value(pair.a), text: (pair) => shown(pair.a), num: true },
    { name: `${name}, second`, get: (pair) => value(pair.b), text: (pair) => shown(pair.b), num: true },
    { name: "first − second", get: (pair) => difference(pair, outcome), num: true },
  ], "Two conditions", 15);
  sorted.show(rows);
  const both = all.filter((pair) => difference(pair, outcome) !== null);
  const mean = both.length ? both.reduce((sum, pair) => sum + difference(pair, outcome), 0) / both.length : null;
  const differing = all.filter((pair) => differ(pair, outcome)).length;
  return [
    el("p", {}, `${count(all.length, "pair")} of runs with the same problem and replicate; ${differing.toLocaleString("en-US")} differ. ` +
      `Mean difference of ${name}: ${number(mean)}. A description: the tests above decide.`),
    sorted.node,
  ];
}

function agentsDiffer(data, a, b) {
  const agents = (index) => new Set(data.rows.filter((row) => row.condition === index).map((row) => row.agent));
  return ![...agents(a)].some((agent) => agents(b).has(agent));
}

function difference(pair, outcome) {
  const [a, b] = [pair.a?.values[outcome] ?? null, pair.b?.values[outcome] ?? null];
  return a === null || b === null ? null : a - b;
}

function differ(pair, outcome) {
  return !pair.a || !pair.b || pair.a.status !== pair.b.status || pair.a.values[outcome] !== pair.b.values[outcome];
}
