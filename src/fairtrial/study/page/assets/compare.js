// Two conditions side by side, run by run.

let chooseConditions = null;  // shows the conditions that an address names

function compareSection(data) {
  const indexes = [...new Set(data.rows.map((row) => row.condition))].sort((a, b) => a - b);
  if (indexes.length < 2 || !data.outcomes.length) return null;
  const result = el("div");
  const choose = (options) => el("select", { onchange: () => change() }, options.map(([value, text]) => el("option", { value: String(value) }, text)));
  const labels = indexes.map((index) => [index, data.conditions[index]?.label ?? "?"]);
  const inputs = { first: choose(labels), second: choose(labels), outcome: choose(data.outcomes.map((one, index) => [index, one.name])),
    different: el("input", { type: "checkbox", onchange: () => change() }) };
  const draw = () => result.replaceChildren(...compareConditions(data, Number(inputs.first.value), Number(inputs.second.value),
    Number(inputs.outcome.value), inputs.different.checked));
  // What is chosen is in the address, so that it can be passed on.
  const change = () => {
    const { first, second, outcome, different } = inputs;
    history.replaceState(null, "", `#compare?${new URLSearchParams({ first: first.value, second: second.value, outcome: outcome.value, ...(different.checked ? { different: "yes" } : {}) })}`);
    draw();
  };
  chooseConditions = (text) => {
    const wanted = new URLSearchParams(text);
    for (const name of ["first", "second", "outcome"]) {
      const isKnown = [...inputs[name].options].some((option) => option.value === wanted.get(name));
      if (isKnown) inputs[name].value = wanted.get(name);
    }
    inputs.different.checked = wanted.has("different");
    draw();
  };
  inputs.second.value = String(indexes[1]);
  draw();
  return [
    el("div", { class: "controls" }, el("label", {}, "First", inputs.first), el("label", {}, "Second", inputs.second),
      data.outcomes.length > 1 ? el("label", {}, "Outcome", inputs.outcome) : null,
      el("label", { class: "check" }, inputs.different, "only where they differ")),
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
  ], "Two conditions", { noun: "pair", pageSize: 15 });
  sorted.show(rows);
  const both = all.filter((pair) => difference(pair, outcome) !== null);
  const mean = both.length ? both.reduce((sum, pair) => sum + difference(pair, outcome), 0) / both.length : null;
  const differing = all.filter((pair) => differ(pair, outcome)).length;
  return [
    el("p", {}, `${count(all.length, "pair")} of runs with the same problem and replicate${data.all_runs > data.rows.length ? " (of the runs on this page)" : ""}; ${differing.toLocaleString("en-US")} differ. ` +
      `Mean difference of ${name}: ${number(mean)}.${data.verdicts.length ? " This describes; the tests above decide." : ""}`),
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
