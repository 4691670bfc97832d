/* One backward pass, or several side by side, step by step. `data` comes from stepper.py; nothing is fetched.
   A frame changes classes and texts only, and only where they differ from the frame before. */
function mountStepper(root, data, start, onStep) {
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  /* Places of the slider: 0 is before the backward pass, from 1 on are its steps, below 0 the forward pass. */
  const [first, last] = [-data.ahead, data.steps];
  const panels = data.panels.map((panel) => new Panel(panel, first, data.panels.length > 1, make));
  const slider = make("input", { type: "range", min: first, max: last, value: first, step: 1, "aria-label": "Turn" });
  const count = make("output", { class: "count" });
  const speed = make("select", { "aria-label": "Speed" });
  for (const [label, pause] of [["slow", 3000], ["normal", 1500], ["fast", 500]])
    speed.append(make("option", { value: pause }, label));
  speed.value = 1500;
  const button = (label, action) => {
    const element = make("button", { type: "button" }, label);
    element.addEventListener("click", action);
    return element;
  };
  const named = (step) => {
    if (step >= 0) return `turn ${step} of ${last}`;
    return step === first ? "forward, start" : `forward ${step - first} of ${-1 - first}`;
  };
  let now = null;
  let timer = null;
  const show = (step) => {
    step = Math.max(first, Math.min(last, step));
    if (step === now) return;
    now = step;
    slider.value = step;
    count.textContent = named(step);
    for (const panel of panels) panel.show(step);
    slider.setAttribute("aria-valuetext", `${named(step)}: ${panels.map((panel) => panel.told).join(" ")}`);
    if (step === last) pause();
    if (onStep) onStep(step);
  };
  const pause = () => {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
  };
  const begin = () => {
    clearInterval(timer);
    if (now === last) show(first);
    timer = setInterval(() => show(now + 1), Number(speed.value));
    play.textContent = "Pause";
  };
  const play = button("Play", () => (timer ? pause() : begin()));
  speed.addEventListener("change", () => timer && begin());
  slider.addEventListener("input", () => { pause(); show(Number(slider.value)); });
  let asCode = false;
  const turn = () => {
    asCode = !asCode;
    turning.setAttribute("aria-pressed", asCode);
    for (const panel of panels) panel.turn(asCode);
  };
  const turning = button("Inputs at the top", turn);
  turning.setAttribute("aria-pressed", asCode);
  if (data.asCode) turn();
  const controls = make(
    "div", { class: "controls" },
    button("First", () => { pause(); show(first); }), button("Back", () => { pause(); show(now - 1); }), play,
    button("Next", () => { pause(); show(now + 1); }), button("Last", () => { pause(); show(last); }),
    slider, count, speed, turning,
  );
  const box = make(
    "section", { class: "course-stepper", "aria-label": data.label },
    make("p", { class: "how" }, data.how), controls,
    make("div", { class: "panels" }, ...panels.map((panel) => panel.element)), make("p", { class: "legend" }, data.legend),
  );
  box.addEventListener("keydown", (event) => {
    if (event.target === slider || event.target === speed || event.ctrlKey || event.altKey || event.metaKey) return;
    const moves = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: first, End: last };
    if (!(event.key in moves)) return;
    event.preventDefault();
    pause();
    show(moves[event.key]);
  });
  /* JupyterLab then leaves the keys to us. It looks at the element with the focus first, so each has to say so. */
  for (const element of [...controls.children, ...panels.map((panel) => panel.graph)])
    element.setAttribute("data-lm-suppress-shortcuts", "true");
  root.replaceChildren(box);
  show(start ?? first);
  return { show, stop: pause };
}

/* One pass. Its steps may be fewer than the slider's: it then stays at its last one. */
class Panel {
  constructor(data, first, several, make) {
    this.data = data;
    this.first = first;
    this.several = several;
    this.graph = make("div", { class: "graph", tabindex: 0, role: "group", "aria-label": data.alt });
    this.graph.innerHTML = data.svg;
    this.caption = make("p", { class: "caption", "aria-live": "polite" });
    this.fill = make("span", { class: "fill" });
    this.bytes = make("span", { class: "number" });
    const start = make("span", { class: "start" });
    start.style.width = this.share(data.bytes);
    const bar = make("span", { class: "bar", "aria-hidden": "true" }, start, this.fill);
    this.element = make(
      "figure", {}, make("figcaption", {}, data.title), this.caption, make("p", { class: "bytes" }, bar, this.bytes), this.graph,
    );
    if (data.bytes === null) bar.remove();
    const find = (selector) => [...this.graph.querySelectorAll(selector)];
    /* A leaf may be drawn several times, and the arrow below an output belongs to several edges. */
    const nodes = byKey(find(".node"), (node) => [node.dataset.node]);
    const edges = byKey(find(".edge"), (edge) => edge.dataset.edges.split(" "));
    const beside = byKey(find(".beside"), (label) => label.dataset.edges.split(" "));
    const lines = byKey(find(".line"), (line) => [line.dataset.key]);
    /* For each element its marks, [place of the slider, class there, class afterwards], in order. */
    this.marks = new Map();
    const mark = (place, element, now, after) => this.marks.set(element, [...(this.marks.get(element) || []), [place, now, after]]);
    for (const [index, step] of data.forward.entries()) {
      for (const node of nodes(step.node)) mark(first + index, node, "now", "made");
      for (const edge of step.edges.flatMap(edges)) mark(first + index, edge, "now", "");
    }
    for (const element of this.marks.keys()) mark(0, element, "made", "made");
    for (const [index, step] of data.steps.entries()) {
      const place = index + 1;
      for (const node of nodes(step.node)) mark(place, node, step.failed ? "failed" : "now", step.failed ? "failed" : "done");
      for (const edge of step.edges.flatMap((key) => [...edges(key), ...beside(key)])) mark(place, edge, "now", "done");
      for (const line of step.freed.flatMap(lines)) mark(place, line, "freed", "freed");
    }
  }

  show(place) {
    for (const [element, marks] of this.marks) {
      const mark = marks.findLast(([when]) => when <= place);
      const state = mark ? mark[place === mark[0] ? 1 : 2] : "";
      if (state === (element.dataset.state || "")) continue;
      if (element.dataset.state) element.classList.remove(element.dataset.state);
      if (state) element.classList.add(state);
      element.dataset.state = state;
    }
    const { forward, steps } = this.data;
    const ahead = place < 0 && forward.length > 0;
    this.graph.classList.toggle("ahead", ahead);
    this.tell(ahead ? forward[Math.min(place - this.first, forward.length - 1)] : steps[Math.min(place, steps.length) - 1]);
  }

  tell(step) {
    this.told = step ? step.caption : this.data.before;
    this.caption.textContent = this.told;
    this.weigh(step ? step.bytes : this.data.bytes);
    if (step && step.node !== null) this.reveal(this.graph.querySelector(`.node[data-node="${step.node}"]`));
  }

  weigh(bytes) {
    if (this.data.bytes === null) {
      this.bytes.textContent = "what the nodes keep is not seen";
      return;
    }
    this.fill.style.width = this.share(bytes);
    const scale = this.several ? `; a full bar is ${this.data.most.toLocaleString("en")}` : "";
    this.bytes.textContent = `${bytes.toLocaleString("en")} of ${this.data.bytes.toLocaleString("en")} bytes kept${scale}`;
  }

  share(bytes) {
    return `${this.data.most ? (100 * bytes) / this.data.most : 0}%`;
  }

  /* Turn the picture over: what stands at the bottom comes to the top. Text stays upright. */
  turn(over) {
    const whole = this.graph.querySelector("[data-height]");
    if (!whole) return;
    const height = Number(whole.dataset.height);
    const move = (element, to) => (over ? element.setAttribute("transform", to) : element.removeAttribute("transform"));
    for (const edges of whole.querySelectorAll(".edges")) move(edges, `translate(0 ${height}) scale(1 -1)`);
    for (const part of whole.querySelectorAll("[data-y]")) move(part, `translate(0 ${height - 2 * part.dataset.y})`);
  }

  reveal(node) {
    if (!node || this.graph.scrollHeight <= this.graph.clientHeight && this.graph.scrollWidth <= this.graph.clientWidth) return;
    const [outer, inner] = [this.graph.getBoundingClientRect(), node.getBoundingClientRect()];
    if (inner.top < outer.top || inner.bottom > outer.bottom) this.graph.scrollTop += inner.top - outer.top - outer.height / 2;
    if (inner.left < outer.left || inner.right > outer.right) this.graph.scrollLeft += inner.left - outer.left - outer.width / 2;
  }
}

/* Returns a function that gives the elements with a key. */
function byKey(elements, keysOf) {
  const found = new Map();
  for (const element of elements)
    for (const key of keysOf(element)) found.set(key, [...(found.get(key) || []), element]);
  return (key) => found.get(String(key)) || [];
}
