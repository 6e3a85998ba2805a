// The conversation of a run, from its events `message`, `tool_call`, `tool_result`, `model_call`.

const SPOKEN = new Set(["message", "tool_call", "tool_result", "model_call"]);
const ROLES = new Set(["system", "user", "assistant", "tool"]);

function conversation(events) {
  const spoken = events.filter((event) => SPOKEN.has(event.event_type));
  if (!spoken.length) return null;
  return el("div", {}, spoken.map(turn));
}

function turn(event) {
  const meta = event.meta && typeof event.meta === "object" ? event.meta : {};
  if (event.event_type === "model_call") return modelCall(meta);
  if (event.event_type === "message") {
    const role = String(meta.role || event.actor_id || "message");
    const calls = Array.isArray(meta.tool_calls) ? meta.tool_calls : [];
    return message(role, [role, meta.name, meta.model].filter(Boolean).join(" · "),
      event.text || meta.content, calls.map((call) => el("div", {}, el("p", { class: "who" }, `calls ${call?.name ?? "a tool"}`),
        output(pretty(call?.arguments ?? "")))));
  }
  const isCall = event.event_type === "tool_call";
  const failed = meta.is_error ? badge("error", "bad") : null;
  return message("tool", [`${isCall ? "call of" : "result of"} ${event.tool_name || "a tool"} `, failed], event.text);
}

function message(role, who, text, more = []) {
  return el("div", { class: `message ${ROLES.has(role) ? role : ""}` }, el("p", { class: "who" }, who),
    text ? output(pretty(text)) : null, more);
}

function modelCall(meta) {
  const parts = [meta.model, meta.endpoint,
    Number.isFinite(meta.input_tokens) ? `${meta.input_tokens.toLocaleString("en-US")} tokens in` : null,
    Number.isFinite(meta.output_tokens) ? `${meta.output_tokens.toLocaleString("en-US")} out` : null,
    Number.isFinite(meta.cost_usd) ? money(meta.cost_usd) : null,
    Number.isFinite(meta.seconds) ? seconds(meta.seconds) : null,
    meta.cached ? "from the cache" : null, meta.finish_reason, meta.attempts > 1 ? `${meta.attempts} attempts` : null];
  return el("p", { class: "soft" }, `model call: ${parts.filter(Boolean).join(" · ")}`);
}
