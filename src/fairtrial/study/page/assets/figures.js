// Charts: each is redrawn to the width it has, says in words what it shows, and has its numbers in a
// table below.

const COLORS = ["var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)", "var(--c5)", "var(--c6)", "var(--c7)", "var(--c8)"];
const TONE_COLORS = { good: "var(--good)", bad: "var(--bad)", caution: "var(--caution)", open: "var(--open)" };
const redraws = [];

// options: title, caption, label (alternative text), draw(width) -> Plot options, table, legend
function figure(options) {
  const holder = el("div", { class: "chart" });
  let drawn = 0;
  const redraw = () => {
    const width = Math.floor(holder.clientWidth || 640);
    if (width === drawn) return;
    drawn = width;
    const plot = Plot.plot({ className: "plot", width, ...options.draw(width) });
    plot.setAttribute("role", "img");
    plot.setAttribute("aria-label", options.label);
    // Plot labels its groups, which assistive technology doesn't expect inside a picture.
    for (const group of plot.querySelectorAll("g[aria-label]")) {
      group.dataset.part = group.getAttribute("aria-label");
      group.removeAttribute("aria-label");
    }
    if (options.click) options.click(plot);
    holder.replaceChildren(plot);
  };
  redraws.push({ holder, redraw });
  return el("figure", {},
    el("figcaption", {}, el("strong", {}, options.title), options.caption),
    options.legend || null, holder,
    options.table ? el("details", {}, el("summary", {}, "Numbers of this chart"), options.table) : null);
}

function drawAll() {
  for (const { holder, redraw } of redraws) if (holder.isConnected) redraw();
}

function legend(names, color) {
  return el("ul", { class: "legend" }, names.map((name, index) => {
    const mark = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    mark.setAttribute("viewBox", "0 0 10 10");
    mark.setAttribute("aria-hidden", "true");
    const circle = document.createElementNS("http://www.w3.org/2000/svg", "circle");
    for (const [key, value] of Object.entries({ cx: 5, cy: 5, r: 5, fill: color(name, index) })) circle.setAttribute(key, value);
    mark.append(circle);
    return el("li", {}, mark, name);
  }));
}

// Labels on the left of a chart: as wide as they need to be, and never more than a third of it.
function labelSpace(labels, width) {
  const longest = Math.max(0, ...labels.map((label) => label.length));
  return Math.min(Math.max(60, longest * 6.6 + 16), Math.max(90, width * 0.36));
}

// Labels that are too long for their space: one part of the condition on each line.
function wrapLabel(text, space) {
  if (text.length <= lettersIn(space)) return text;
  return text.split(" · ").map((part) => shorten(part, space)).join("\n");
}

function lettersIn(space) {
  return Math.max(8, Math.floor((space - 12) / 6.9));
}

function shorten(text, space) {
  const most = lettersIn(space);
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
