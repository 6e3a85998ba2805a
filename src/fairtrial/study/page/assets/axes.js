// Labels and axes of charts: as much text as there is space for, and ticks that can be read.

const ruler = document.createElement("canvas").getContext("2d");

function textWidth(text) {
  ruler.font = "12px system-ui, sans-serif";
  return ruler.measureText(text).width;
}

// Space for the labels on the left of a chart: what they need, and at most about a third of it.
function labelSpace(labels, width) {
  const longest = Math.max(0, ...labels.map(textWidth));
  return Math.ceil(Math.min(Math.max(56, longest + 16), Math.max(110, width * 0.36)));
}

// A label in as many lines as it needs, and at most so many.
function wrapLabel(text, space, most = 2) {
  const room = space - 14;
  if (textWidth(text) <= room) return text;
  const parts = text.split(" · ");
  if (parts.length > 1 && parts.length <= most && parts.every((part) => textWidth(part) <= room)) return parts.join("\n");
  const lines = [""];
  for (const word of text.split(/\s+/)) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (textWidth(longer) <= room || !lines.at(-1)) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  const rest = lines.slice(most - 1).join(" ");
  return [...lines.slice(0, most - 1), rest].map((line) => fitText(line, room)).join("\n");
}

// A text cut to fit a width; its end is kept, since names often differ there.
function fitText(text, room) {
  if (textWidth(text) <= room) return text;
  const tail = text.slice(-Math.min(10, Math.floor(room / 18)));
  const cut = (letters) => `${text.slice(0, letters).trimEnd()}…${tail}`;
  let [fits, fails] = [0, text.length];
  while (fails - fits > 1) {
    const middle = (fits + fails) >> 1;
    if (textWidth(cut(middle)) <= room) fits = middle;
    else fails = middle;
  }
  return cut(fits);
}

// The number at a tick: as short as it can be.
function tickNumber(value) {
  const size = Math.abs(value);
  const rounded = Number(value.toPrecision(10));
  const text = size !== 0 && (size >= 1e6 || size < 1e-4) ? rounded.toExponential().replace("e+", "e") : rounded.toLocaleString("en-US", { maximumFractionDigits: 10 });
  return text.replaceAll("-", "−");
}

// The axis of values from low to high. near: values nearer to 0 than this are not told apart on a
// logarithmic axis; without it the axis is linear.
function valueAxis(low, high, width, near = 0) {
  const most = Math.max(2, Math.floor(width / 76));
  if (low === high) {
    const pad = Math.abs(low) * 0.05 || 1;
    return { domain: [low - pad, high + pad], ticks: [low], tickFormat: tickNumber };
  }
  if (!near) return { domain: [low, high], nice: 10, ticks: most, tickFormat: tickNumber };
  if (low > 0) return { type: "log", domain: [low, high], ticks: logTicks(low, high, width), tickFormat: tickNumber };
  const room = Math.max(2, Math.floor((most - 1) / (low < 0 && high > 0 ? 2 : 1)));
  const side = (end) => end > near ? thin(decades(near, end), room) : [];
  const ticks = [...side(-low).map((tick) => -tick).reverse(), 0, ...side(high)];
  return { type: "symlog", constant: near, domain: [low, high], ticks, tickFormat: tickNumber };
}

// Ticks of a logarithmic axis: 1, 2, 3 …, or fewer, such that they are so many pixels apart.
function logTicks(low, high, width, gap = 56) {
  const place = d3.scaleLog([low, high], [0, width]);
  const powers = decades(low / 10, high);
  for (const digits of [[1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 3, 4, 5, 7], [1, 2, 3, 5], [1, 2, 5], [1, 3], [1]]) {
    const ticks = powers.flatMap((power) => digits.map((digit) => Number(`${digit}e${Math.round(Math.log10(power))}`))).filter((tick) => tick >= low && tick <= high);
    const isWide = ticks.every((tick, index) => !index || place(tick) - place(ticks[index - 1]) >= gap);
    if (isWide) return ticks.length > 1 ? ticks : d3.ticks(low, high, Math.max(2, Math.floor(width / gap / 2)));
  }
  return thin(decades(low, high), Math.max(2, Math.floor(width / gap)));
}

// The powers of ten from low to high.
function decades(low, high) {
  return d3.range(Math.floor(Math.log10(low)), Math.ceil(Math.log10(high)) + 1).map((power) => Number(`1e${power}`))
    .filter((value) => value >= low && value <= high);
}

function thin(values, most) {
  const step = Math.ceil(values.length / most);
  return values.filter((_, index) => index % step === 0);
}

// Ticks of an axis of counts: whole numbers.
function countTicks(highest) {
  return d3.ticks(0, highest, 4).filter(Number.isInteger);
}

// The unit of an axis of time: its name and its seconds.
function timeUnit(seconds_) {
  return [["days", 86400], ["hours", 3600], ["minutes", 60]].find(([, size]) => seconds_ > 3 * size) || ["seconds", 1];
}
