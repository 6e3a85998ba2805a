// Elements are made here only: texts become text nodes, never markup.

// Sections of extensions: functions from their data to elements, and what `#name=value` opens.
const partViews = {};
const partRoutes = {};
// What the live page adds.
const live = { start: null, detail: null, drawn: null, hiddenNotice: null };

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

const TREE_TAGS = new Set(("p ul ol li h2 h3 h4 h5 h6 strong em code pre table thead tbody tr th td " +
  "blockquote hr").split(" "));

let namelessTables = 0;

// A name for a table without one, since regions are told apart by their names.
function nameTable() {
  namelessTables += 1;
  return `Table ${namelessTables}`;
}

// A tree of `markdown_tree.py`: texts, and elements as [tag, child, ...].
function tree(children) {
  return children.map((child) => {
    if (!Array.isArray(child)) return document.createTextNode(String(child));
    const [tag, ...rest] = child;
    if (!TREE_TAGS.has(tag)) return el("span", {}, tree(rest));
    const shown = { h2: "h3", h3: "h4", h4: "h5" }[tag] || tag;
    const node = el(shown, {}, tree(rest));
    if (tag === "table") return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": nameTable() }, node);
    if (tag === "pre") node.tabIndex = 0;
    return node;
  });
}

function number(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  const isFar = size !== 0 && (size < 1e-4 || size >= 1e9);
  const text = isFar ? value.toExponential(digits - 1).replace("e+", "e")
    : size >= 10 ** digits ? Math.round(value).toLocaleString("en-US") : String(Number(value.toPrecision(digits)));
  return text.replaceAll("-", "−");
}

// A name that may be broken at its signs, and inside very long words.
function breakable(name) {
  return name.split(/(?<=[/_.:-])|(?<=[^\s/_.:-]{14})/u).flatMap((part, index) => index ? [el("wbr"), part] : [part]);
}

function money(value) {
  return `$${value.toLocaleString("en-US", { maximumSignificantDigits: 3 })}`;
}

function count(value, noun) {
  return `${value.toLocaleString("en-US")} ${noun}${value === 1 ? "" : "s"}`;
}

function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 1e-3) return `${number(value * 1e6)} µs`;
  if (value < 1) return `${number(value * 1e3)} ms`;
  if (value < 120) return `${number(value)} s`;
  if (value < 7200) return `${number(value / 60)} min`;
  return `${number(value / 3600)} h`;
}

function badge(text, tone) {
  return el("span", { class: `badge ${tone || ""}` }, text);
}

function facts(pairs) {
  const list = el("dl");
  for (const [name, value] of pairs) {
    if (value === null || value === undefined || value === "") continue;
    list.append(el("dt", {}, name), el("dd", {}, value));
  }
  return list.childElementCount ? list : null;
}

function block(title, ...children) {
  return el("details", { class: "block" }, el("summary", {}, title), ...children);
}

// Text of agents: shown as it is, in a box that scrolls.
function output(text) {
  return el("pre", { tabindex: "0" }, text);
}

function pretty(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

// What an agent returned: texts of several lines as they are, the rest as JSON.
function outputs(value) {
  const isText = (one) => typeof one === "string" && one.includes("\n");
  if (value === null || typeof value !== "object" || Array.isArray(value) || !Object.values(value).some(isText)) return output(pretty(value));
  const rest = Object.fromEntries(Object.entries(value).filter(([, one]) => !isText(one)));
  return [
    Object.entries(value).filter(([, one]) => isText(one)).map(([name, one]) => [el("p", { class: "soft" }, name), output(one)]),
    Object.keys(rest).length ? output(pretty(rest)) : null,
  ];
}

function copyable(text) {
  const button = el("button", { class: "button", type: "button" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      const range = document.createRange();
      range.selectNodeContents(button.previousSibling);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      button.textContent = "Selected: copy it";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  return el("div", { class: "copy" }, el("code", {}, text), button);
}

function quote(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
