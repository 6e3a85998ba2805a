// Charts: each is redrawn to the width it has, says in words what it shows, and has its numbers in a
// table below.

const COLORS = ["var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)", "var(--c5)", "var(--c6)", "var(--c7)", "var(--c8)"];
const TONE_COLORS = { good: "var(--good)", bad: "var(--bad)", caution: "var(--caution)", open: "var(--open)" };
const redraws = [];
let printWidth = 0;  // of charts while the page is printed

// options: title, caption, label (alternative text), draw(width) -> Plot options, table, legend
function figure(options) {
  const holder = el("div", { class: "chart" });
  let drawn = 0;
  const redraw = () => {
    const width = printWidth || Math.floor(holder.clientWidth || 640);
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

// title: what the names are levels of
function legend(names, color, title = "") {
  return el("ul", { class: "legend" }, title ? el("li", { class: "soft" }, `${title}:`) : null, names.map((name, index) => {
    const mark = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    mark.setAttribute("viewBox", "0 0 10 10");
    mark.setAttribute("aria-hidden", "true");
    const circle = document.createElementNS("http://www.w3.org/2000/svg", "circle");
    for (const [key, value] of Object.entries({ cx: 5, cy: 5, r: 5, fill: color(name, index) })) circle.setAttribute(key, value);
    mark.append(circle);
    return el("li", {}, mark, name);
  }));
}
