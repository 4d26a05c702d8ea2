// Draws the frames that Python sends and sends back what is clicked, typed or pressed. Nothing is counted or decided
// here, and every text goes in as text: no frame can bring markup or code.

const STATES = { new: "·", repeat: "=", warn: "▲", stop: "■", ahead: "░", none: "" };
const STEPS = [
  ["|<", "first batch (g)", { kind: "edge", to: "first" }],
  ["<", "previous batch (left arrow)", { kind: "step", by: -1 }],
  [">", "next batch (right arrow)", { kind: "step", by: 1 }],
  [">|", "last batch (G)", { kind: "edge", to: "last" }],
  ["<!", "previous warning or stop ([)", { kind: "decision", by: -1 }],
  ["!>", "next warning or stop (])", { kind: "decision", by: 1 }],
];
const CONTROLS = [
  ["pause", "Pause", "hold the next batch before its tools run"],
  ["next", "Step", "let one batch go, hold the next"],
  ["continue", "Continue", "hold nothing more"],
  ["follow", "Follow", "go with the newest batch"],
];
const MAIN_LIMITS = 5;
const COLUMN = 26;
let widgets = 0;

function make(name, look, ...inside) {
  const element = document.createElement(name);
  if (look) element.className = look;
  element.append(...inside);
  return element;
}

function button(text, title, act, look = "") {
  const found = make("button", look, text);
  found.type = "button";
  found.title = title;
  found.setAttribute("aria-label", title);
  found.addEventListener("click", act);
  return found;
}

function isDark(element) {
  const { body } = document;
  if (body.dataset.jpThemeLight) return body.dataset.jpThemeLight === "false";
  if (body.dataset.vscodeThemeKind) return body.dataset.vscodeThemeKind.includes("dark");
  for (let at = element; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    const parts = colour.match(/^rgba?\(([^)]*)\)/)?.[1].split(/[\s,/]+/).map(Number);
    if (!parts || (parts.length > 3 && parts[3] < 0.5)) continue;
    return parts[0] * 0.299 + parts[1] * 0.587 + parts[2] * 0.114 < 128;
  }
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

class View {
  constructor(model, host) {
    this.model = model;
    this.name = `loopscope-${(widgets += 1)}`;
    this.root = make("div", "loopscope");
    this.root.tabIndex = 0;
    this.root.setAttribute("role", "region");
    // JupyterLab's single-key commands would take the keys away.
    this.root.dataset.lmSuppressShortcuts = "true";
    this.fields = new Map();
    this.waiting = {};
    this.build();
    this.root.addEventListener("keydown", (event) => this.pressed(event));
    host.append(this.root);
    this.draw = this.draw.bind(this);
    model.on("change:frame", this.draw);
    this.sizes = new ResizeObserver(() => this.resized());
    this.sizes.observe(this.root);
    this.look = new MutationObserver(() => this.theme());
    for (const element of [document.documentElement, document.body]) {
      this.look.observe(element, { attributes: true, attributeFilter: ["class", "style", "data-jp-theme-light", "data-theme"] });
    }
    this.system = matchMedia("(prefers-color-scheme: dark)");
    this.theme = this.theme.bind(this);
    this.system.addEventListener("change", this.theme);
    this.theme();
    this.draw();
  }

  close() {
    this.model.off("change:frame", this.draw);
    this.sizes.disconnect();
    this.look.disconnect();
    this.system.removeEventListener("change", this.theme);
    Object.values(this.waiting).forEach(clearTimeout);
  }

  send(message) {
    this.model.send(message);
  }

  build() {
    this.title = make("span", "source");
    this.lanes = make("select", "lanes");
    this.lanes.setAttribute("aria-label", "scope that the timeline shows");
    this.lanes.addEventListener("change", () => this.send({ kind: "lane", at: this.lanes.selectedIndex }));
    this.mode = make("span", "mode");
    this.verdict = make("span", "verdict");
    this.verdict.setAttribute("role", "status");
    this.slider = make("input", "slider");
    this.slider.type = "range";
    this.slider.min = "0";
    this.slider.setAttribute("aria-label", "batch");
    this.slider.addEventListener("input", () => this.later({ kind: "place", to: Number(this.slider.value) }));
    this.position = make("span", "position");
    const steps = STEPS.map(([text, title, message]) => button(text, title, () => this.send(message)));
    this.controls = make("span", "controls");
    this.buttons = CONTROLS.map(([verb, text, title]) => button(text, title, () => this.send({ kind: "control", verb })));
    this.controls.append(...this.buttons);
    this.held = make("div", "held");
    this.strip = make("div", "strip");
    this.strip.setAttribute("role", "group");
    this.overview = make("div", "overview");
    this.overview.setAttribute("aria-hidden", "true");
    this.counts = make("div", "counts");
    this.limits = make("div", "limits");
    this.more = make("details", "more", make("summary", "", "More limits"));
    this.moreLimits = make("div", "limits");
    this.more.append(this.moreLimits);
    this.difference = make("div", "difference");
    this.difference.setAttribute("role", "status");
    this.tabs = make("div", "tabs");
    this.tabs.setAttribute("role", "tablist");
    this.panel = make("pre", "panel");
    this.panel.id = `${this.name}-panel`;
    this.panel.tabIndex = 0;
    this.panel.setAttribute("role", "tabpanel");
    this.said = make("span", "said");
    this.said.setAttribute("role", "status");
    this.text = make("textarea", "copied");
    this.text.readOnly = true;
    this.text.hidden = true;
    this.text.setAttribute("aria-label", "the policy as text");
    const copies = [["toml", "Copy TOML"], ["python", "Copy Python"]].map(([kind, label]) =>
      button(label, `copy the limits as ${kind === "toml" ? "a loopscope.toml" : "Python"}`, () => this.copy(kind)));
    this.reset = button("Reset", "back to the run's own limits", () => this.send({ kind: "reset" }));
    this.root.append(
      make("div", "head", this.title, this.lanes, this.mode, this.verdict),
      make("div", "bar", make("span", "steps", ...steps), this.slider, this.position, this.controls),
      this.held,
      this.overview,
      this.strip,
      make("div", "beside", this.counts, make("div", "trying", this.limits, this.more, this.difference)),
      this.tabs,
      this.panel,
      make("div", "foot", ...copies, this.reset, this.said),
      this.text,
    );
  }

  theme() {
    this.root.classList.toggle("dark", isDark(this.root.parentElement || this.root));
  }

  resized() {
    const width = this.root.clientWidth;
    if (!width) return;
    const probe = make("span", "probe", "0".repeat(50));
    this.panel.append(probe);
    const character = probe.getBoundingClientRect().width / 50 || 8;
    probe.remove();
    const size = {
      columns: Math.max(4, Math.floor((this.strip.clientWidth || width) / COLUMN)),
      width: Math.max(30, Math.floor((this.panel.clientWidth - 24) / character)),
    };
    if (this.size && this.size.columns === size.columns && this.size.width === size.width) return;
    this.size = size;
    this.later({ kind: "size", ...size });
  }

  // A dragged slider or window edge asks only for where it has come to.
  later(message) {
    clearTimeout(this.waiting[message.kind]);
    this.waiting[message.kind] = setTimeout(() => this.send(message), 40);
  }

  focused() {
    return this.root.getRootNode().activeElement;
  }

  // Where the focus goes when the batch or link that has it is drawn anew, so that keys go on after a click.
  keeper() {
    const focused = this.focused();
    if (this.strip.contains(focused)) return this.root;
    return focused !== this.panel && this.panel.contains(focused) ? this.panel : null;
  }

  draw() {
    const frame = this.model.get("frame");
    if (!frame || frame.total === undefined) return;
    const keeper = this.keeper();
    this.root.setAttribute("aria-label", `loopscope: ${frame.source}`);
    this.title.textContent = frame.source;
    this.verdict.textContent = frame.verdict;
    this.verdict.className = `verdict ${frame.state}`;
    this.drawLanes(frame.lanes);
    this.drawLive(frame.live);
    this.slider.max = String(Math.max(0, frame.length - 1));
    if (this.focused() !== this.slider || Number(this.slider.value) !== frame.place) {
      this.slider.value = String(frame.place);
    }
    this.slider.setAttribute("aria-valuetext", `batch ${frame.cursor} of ${frame.total}: ${frame.verdict}`);
    this.position.textContent = `${frame.cursor}/${frame.total}`;
    this.drawStrip(frame);
    this.counts.replaceChildren(...frame.sections.map((section) => this.section(section)));
    this.drawLimits(frame);
    this.drawTabs(frame);
    this.panel.replaceChildren(...frame.lines.map((line) => this.line(line)));
    this.said.textContent = frame.said || "";
    this.export = frame.export;
    if (!this.text.hidden) this.text.value = frame.export[this.copied] || "";
    keeper?.focus({ preventScroll: true });
  }

  drawLanes(lanes) {
    const labels = lanes.map(([label]) => label);
    if (String(labels) !== String(this.labels)) this.lanes.replaceChildren(...labels.map((label) => make("option", "", label)));
    this.labels = labels;
    this.lanes.selectedIndex = lanes.findIndex(([, here]) => here);
    this.lanes.hidden = lanes.length < 3;
  }

  drawLive(live) {
    this.mode.hidden = this.controls.hidden = !live;
    this.held.hidden = !live || !live.held;
    if (!live) return;
    this.mode.textContent = live.words;
    this.mode.className = `mode ${live.mode}`;
    this.held.textContent = live.held ? `HELD before its tools run: ${live.held}` : "";
    this.buttons.forEach((each, place) => {
      const verb = CONTROLS[place][0];
      each.disabled = verb !== "follow" && Boolean(live.denied);
      each.title = each.disabled ? live.denied : CONTROLS[place][2];
      if (verb === "follow") each.setAttribute("aria-pressed", String(live.following));
      if (verb === "pause") each.setAttribute("aria-pressed", String(live.mode === "paused"));
    });
  }

  drawStrip(frame) {
    const words = frame.columns.map(([n, letter, count, state]) => `#${n} ${letter} ${count} ${state}`);
    this.strip.setAttribute("aria-label", `timeline: ${words.join(", ")}`);
    const cursor = frame.columns.findIndex((column) => column[4]);
    this.strip.replaceChildren(...frame.columns.map(([n, letter, count, state, here], place) => {
      const tried = frame.override[place];
      const differs = tried !== undefined && tried !== "" && state !== "ahead" && tried !== state;
      const cell = button("", `batch ${n}: ${letter}, ${state}, ${count} in the window`, () => this.send({ kind: "seek", to: n }),
        `cell ${state}${here ? " here" : ""}`);
      cell.tabIndex = -1;
      if (here) cell.setAttribute("aria-current", "true");
      cell.append(
        make("span", "number", here || (place % 5 === 0 && Math.abs(place - cursor) > 1) ? String(n) : ""),
        make("span", "letter", letter),
        make("span", "count", String(count)),
        make("span", "state", STATES[state] ?? ""),
      );
      if (frame.override.length) cell.append(make("span", `tried ${tried || "none"}${differs ? " differs" : ""}`, STATES[tried] ?? ""));
      return cell;
    }));
    this.overview.replaceChildren(...frame.overview.map((state) => make("span", state)));
  }

  section(section) {
    const head = make("div", "layer", section.layer.replaceAll("_", " "), make("span", "dim", ` ${section.about}  ${section.limits}`));
    const rows = section.counts.map((count) => {
      const end = count.hard ?? count.warn ?? 1;
      const fill = make("span", `fill ${count.state}`);
      fill.style.width = `${Math.min(100, (100 * count.value) / end)}%`;
      const track = make("span", "track", fill);
      for (const [limit, look] of [[count.warn, "warn"], [count.hard, "stop"]]) {
        if (limit === null || limit === undefined) continue;
        const tick = make("span", `tick ${look}`);
        tick.style.left = `${(100 * limit) / end}%`;
        track.append(tick);
      }
      const label = make("span", "label", count.letter ? make("b", "", `${count.letter} `) : "", count.label);
      label.title = count.label;
      const row = make("div", `row${count.moved ? " moved" : ""}`, label, track, make("span", "value", count.said), make("span", "note", count.note));
      row.title = count.coming.join("; ");
      return row;
    });
    if (section.more) rows.push(make("div", "dim", section.more));
    return make("div", "section", head, ...rows);
  }

  drawLimits(frame) {
    frame.limits.forEach((limit, place) => {
      let field = this.fields.get(limit.name);
      if (!field) {
        field = this.field(limit);
        this.fields.set(limit.name, field);
        (place < MAIN_LIMITS ? this.limits : this.moreLimits).append(field.label);
      }
      const changed = JSON.stringify(limit.value) !== JSON.stringify(limit.baseline);
      field.label.classList.toggle("changed", changed);
      field.was.textContent = changed ? ` was ${limit.baseline ?? "off"}` : "";
      field.value = limit.value;
      if (this.focused() !== field.input) field.show(limit.value);
    });
    this.difference.textContent = frame.problem || frame.difference;
    this.difference.classList.toggle("problem", Boolean(frame.problem));
    this.reset.disabled = !frame.difference && !frame.problem;
  }

  field(limit) {
    const number = limit.kind === "count" || limit.kind === "limit" || limit.kind === "amount";
    const { choices } = limit;
    const input = choices.length ? make("select", "", ...choices.map((choice) => make("option", "", String(choice)))) : make("input", "");
    if (number) {
      input.type = "number";
      input.min = limit.kind === "amount" ? "0" : "1";
      input.step = limit.kind === "amount" ? "any" : "1";
      if (limit.kind !== "count") input.placeholder = "off";
    }
    const read = () => {
      if (choices.length) return choices[input.selectedIndex];
      const text = input.value.trim();
      if (text === "") return null;
      return number ? Number(text) : text;
    };
    const show = (value) => {
      if (choices.length) input.selectedIndex = choices.indexOf(value);
      else input.value = value === null ? "" : String(value);
    };
    const was = make("span", "was");
    const field = { label: make("label", "", make("span", "name", limit.label), input, was), input, was, show, value: limit.value };
    input.addEventListener(number ? "input" : "change", () => {
      if (read() === null && limit.kind === "count") return;
      this.send({ kind: "override", name: limit.name, value: read() });
    });
    // What was left half typed gives way to what holds.
    input.addEventListener("blur", () => show(field.value));
    return field;
  }

  drawTabs(frame) {
    if (!this.tabs.childElementCount) {
      frame.tabs.forEach(([name, label]) => {
        const tab = button(label, label, () => this.send({ kind: "tab", name }));
        tab.dataset.tab = name;
        tab.id = `${this.name}-${name}`;
        tab.setAttribute("role", "tab");
        tab.setAttribute("aria-controls", this.panel.id);
        this.tabs.append(tab);
      });
    }
    for (const tab of this.tabs.children) {
      const here = tab.dataset.tab === frame.tab;
      tab.setAttribute("aria-selected", String(here));
      tab.tabIndex = here ? 0 : -1;
    }
    this.panel.setAttribute("aria-labelledby", `${this.name}-${frame.tab}`);
  }

  line(spans) {
    const line = make("div", "line");
    for (const [text, style, mark, link] of spans) {
      if (link > 0) line.append(button(text, `go to batch ${link}`, () => this.send({ kind: "seek", to: link }), `link s-${style} m-${mark}`));
      else line.append(make("span", `s-${style} m-${mark}`, text));
    }
    if (!line.childElementCount) line.append("\u200b");
    return line;
  }

  async copy(kind) {
    const text = this.export[kind];
    this.copied = kind;
    try {
      await navigator.clipboard.writeText(text);
      this.said.textContent = `copied as ${kind === "toml" ? "TOML" : "Python"}`;
      this.text.hidden = true;
    } catch {
      this.text.hidden = false;
      this.text.value = text;
      this.text.select();
      this.said.textContent = "the browser refused the clipboard: copy the text below";
    }
  }

  pressed(event) {
    const typing = event.target.matches("input, select, textarea, summary") && !(event.target === this.slider && event.key.length === 1);
    // A bracket needs AltGr on many keyboards, which is ctrl and alt at once.
    if ((event.ctrlKey || event.metaKey || event.altKey) && !event.getModifierState("AltGraph")) return;
    const tabs = [...this.tabs.children];
    const tab = tabs.indexOf(event.target);
    const turned = { ArrowLeft: tab - 1, ArrowRight: tab + 1, Home: 0, End: -1 }[event.key];
    if (tab >= 0 && turned !== undefined) {
      const next = tabs.at(turned % tabs.length);
      next.focus();
      next.click();
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    const keys = {
      ArrowLeft: { kind: "step", by: -1 }, h: { kind: "step", by: -1 }, ArrowRight: { kind: "step", by: 1 }, l: { kind: "step", by: 1 },
      "[": { kind: "decision", by: -1 }, "]": { kind: "decision", by: 1 }, g: { kind: "edge", to: "first" }, G: { kind: "edge", to: "last" },
      w: { kind: "tab", name: "why" },
    };
    const live = (this.model.get("frame") || {}).live;
    if (live && !live.denied && event.target === this.root) {
      keys[" "] = { kind: "control", verb: live.mode === "paused" ? "continue" : "pause" };
      keys.n = { kind: "control", verb: "next" };
      keys.f = { kind: "control", verb: "follow" };
    }
    const message = typing ? undefined : keys[event.key];
    event.stopPropagation();
    if (!message) return;
    event.preventDefault();
    this.send(message);
  }
}

export default {
  render({ model, el }) {
    const view = new View(model, el);
    return () => view.close();
  },
};
