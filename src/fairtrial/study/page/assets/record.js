// Failures, the record of plan and deviations, and the environment.

function failureSection(data) {
  if (!data.failures.length) return null;
  return [table([
    { name: "kind", get: (group) => group.kind, text: (group) => el("button", { class: "link", type: "button", onclick: () => filterRuns({ failure: group.kind }) }, group.kind) },
    { name: "runs", get: (group) => group.runs, num: true },
    { name: "message", get: (group) => group.message },
    { name: "examples", get: (group) => group.examples.length, text: (group) => group.examples.slice(0, 3).flatMap((id, index) =>
      [index ? ", " : "", el("a", { href: `#run=${id}`, class: "mono" }, id.replace(/^run-/, ""))]) },
  ], data.failures, { label: "Failures by kind", class: "full" })];
}

function recordSection(data) {
  return [
    ...precisionSection(data),
    ...data.record.map((section, index) => {
      const node = block(section.title, tree(section.tree));
      node.open = index === 0;
      return node;
    }),
    environment(data.environment),
    block("Files and commands", el("p", {}, "The complete report in Markdown, and the tables as CSV:"),
      copyable(`fairtrial report ${quote(data.folder)}`), copyable(`fairtrial export ${quote(data.folder)}`)),
  ];
}

function environment(sessions) {
  if (!sessions.length) return null;
  return block("Environment", sessions.map((session) => {
    const { provenance, ...facts_ } = session;
    return [el("h3", {}, `Session ${session.session}`),
      facts(Object.entries(facts_).map(([name, value]) => [name.replaceAll("_", " "), value === null ? null : String(value)])),
      provenance && Object.keys(provenance).length ? output(pretty(provenance)) : null];
  }));
}
