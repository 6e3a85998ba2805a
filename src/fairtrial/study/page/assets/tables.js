// Tables: columns are {name, get, num, text}; `get` gives what is sorted by, `text` what is shown.

function table(columns, rows, options = {}) {
  const head = columns.map((column) =>
    el("th", { class: column.num ? "num" : null, scope: "col" }, column.name));
  const body = rows.map((row) => el("tr", {}, columns.map((column) => cell(column, row))));
  const node = el("table", { class: options.class }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body));
  const label = options.label || nameTable();
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, node);
}

function cell(column, row) {
  const shown = column.text ? column.text(row) : column.get(row);
  const content = typeof shown === "number" ? number(shown) : shown ?? "–";
  return el("td", { class: column.num ? "num" : null }, content);
}

// A table that sorts by its headings and shows one page of rows at a time.
class SortedTable {
  // noun: what a row is
  constructor(columns, label, { noun = "run", pageSize = 25 } = {}) {
    Object.assign(this, { columns, noun, rows: [], page: 0, pageSize, sorting: null, descending: false });
    this.head = el("tr");
    this.body = el("tbody");
    this.headings = columns.map((column, index) => {
      const button = el("button", { type: "button", onclick: () => this.sort(index) }, column.name);
      return el("th", { class: column.num ? "num" : null, scope: "col" }, button);
    });
    this.head.append(...this.headings);
    this.place = el("span", { "aria-live": "polite" });
    this.back = el("button", { class: "button", type: "button", onclick: () => this.turn(-1) }, "Back");
    this.next = el("button", { class: "button", type: "button", onclick: () => this.turn(1) }, "Next");
    const node = el("table", { class: "full" }, el("thead", {}, this.head), this.body);
    this.node = el("div", {},
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, node),
      el("div", { class: "pager" }, this.back, this.next, this.place));
  }

  show(rows) {
    this.rows = rows;
    this.page = 0;
    this.arrange();
  }

  // Show rows that have changed a little: on the same page, and not while somebody works in it.
  refresh(rows) {
    this.rows = rows;
    this.page = Math.min(this.page, Math.max(0, Math.ceil(rows.length / this.pageSize) - 1));
    if (!this.body.contains(document.activeElement)) this.arrange();
  }

  sort(index) {
    this.descending = this.sorting === index ? !this.descending : false;
    this.sorting = index;
    this.headings.forEach((heading, i) => {
      if (i === index) heading.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
      else heading.removeAttribute("aria-sort");
    });
    this.page = 0;
    this.arrange();
  }

  turn(step) {
    this.page += step;
    this.draw();
  }

  arrange() {
    const rows = [...this.rows];
    if (this.sorting !== null) {
      const { get } = this.columns[this.sorting];
      const sign = this.descending ? -1 : 1;
      rows.sort((a, b) => compareValues(get(a), get(b), sign));
    }
    this.arranged = rows;
    this.draw();
  }

  draw() {
    const first = this.page * this.pageSize;
    const shown = this.arranged.slice(first, first + this.pageSize);
    this.body.replaceChildren(...shown.map((row) =>
      el("tr", {}, this.columns.map((column) => cell(column, row)))));
    const total = this.arranged.length;
    this.place.textContent = total
      ? `${(first + 1).toLocaleString("en-US")}–${(first + shown.length).toLocaleString("en-US")} of ${count(total, this.noun)}`
      : `No ${this.noun} matches.`;
    this.back.disabled = this.page === 0;
    this.next.disabled = first + this.pageSize >= total;
    this.back.hidden = this.next.hidden = total <= this.pageSize;
    if (total === 1) this.place.textContent = `1 ${this.noun}`;
  }
}

// Missing values come last, whatever the direction.
function compareValues(a, b, sign) {
  const missing = (value) => value === null || value === undefined;
  if (missing(a) || missing(b)) return missing(a) - missing(b);
  if (typeof a === "number" && typeof b === "number") return sign * (a - b);
  return sign * String(a).localeCompare(String(b), "en", { numeric: true });
}
