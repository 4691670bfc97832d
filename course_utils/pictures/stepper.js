/* One backward pass, or several side by side, step by step. `data` comes from stepper.py; nothing is fetched.
   A frame changes classes and texts only, and only where they differ from the frame before. */
function mountStepper(root, data, start, onStep) {
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const last = data.steps;
  const panels = data.panels.map((panel) => new Panel(panel, make));
  const slider = make("input", { type: "range", min: 0, max: last, value: 0, step: 1, "aria-label": "Step" });
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
  let now = -1;
  let timer = null;
  const show = (step) => {
    step = Math.max(0, Math.min(last, step));
    if (step === now) return;
    now = step;
    slider.value = step;
    count.textContent = `step ${step} of ${last}`;
    for (const panel of panels) panel.show(step);
    slider.setAttribute("aria-valuetext", `step ${step} of ${last}: ${panels.map((panel) => panel.told).join(" ")}`);
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
    if (now === last) show(0);
    timer = setInterval(() => show(now + 1), Number(speed.value));
    play.textContent = "Pause";
  };
  const play = button("Play", () => (timer ? pause() : begin()));
  speed.addEventListener("change", () => timer && begin());
  slider.addEventListener("input", () => { pause(); show(Number(slider.value)); });
  const controls = make(
    "div", { class: "controls" },
    button("First", () => { pause(); show(0); }), button("Back", () => { pause(); show(now - 1); }), play,
    button("Next", () => { pause(); show(now + 1); }), button("Last", () => { pause(); show(last); }),
    slider, count, speed,
  );
  const box = make(
    "section", { class: "course-stepper", "aria-label": data.label },
    controls, make("div", { class: "panels" }, ...panels.map((panel) => panel.element)), make("p", { class: "legend" }, data.legend),
  );
  box.addEventListener("keydown", (event) => {
    if (event.target === slider || event.target === speed || event.ctrlKey || event.altKey || event.metaKey) return;
    const moves = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: last };
    if (!(event.key in moves)) return;
    event.preventDefault();
    pause();
    show(moves[event.key]);
  });
  /* JupyterLab then leaves the keys to us. It looks at the element with the focus first, so each has to say so. */
  for (const element of [...controls.children, ...panels.map((panel) => panel.graph)])
    element.setAttribute("data-lm-suppress-shortcuts", "true");
  root.replaceChildren(box);
  show(start || 0);
  return { show, stop: pause };
}

/* One pass. Its steps may be fewer than the slider's: it then stays at its last one. */
class Panel {
  constructor(data, make) {
    this.data = data;
    this.steps = data.steps;
    this.shown = 0;
    this.graph = make("div", { class: "graph", tabindex: 0, role: "group", "aria-label": data.alt });
    this.graph.innerHTML = data.svg;
    this.caption = make("p", { class: "caption", "aria-live": "polite" });
    this.fill = make("span", { class: "fill" });
    this.bytes = make("span", { class: "number" });
    const bar = make("span", { class: "bar", "aria-hidden": "true" }, this.fill);
    this.element = make(
      "figure", {}, make("figcaption", {}, data.title), this.caption, make("p", { class: "bytes" }, bar, this.bytes), this.graph,
    );
    const find = (selector) => [...this.graph.querySelectorAll(selector)];
    /* A leaf may be drawn several times, and the arrow below an output belongs to several edges. */
    const nodes = byKey(find(".node"), (node) => [node.dataset.node]);
    const edges = byKey(find(".edge"), (edge) => edge.dataset.edges.split(" "));
    const lines = byKey(find(".line"), (line) => [line.dataset.key]);
    /* For each element its marks, [step, class at that step, class afterwards]; for each step its elements. */
    this.marks = new Map();
    this.touched = [[]];
    for (const [index, step] of this.steps.entries()) {
      this.touched.push([]);
      const mark = (element, now, after) => {
        this.marks.set(element, [...(this.marks.get(element) || []), [index + 1, now, after]]);
        this.touched[index + 1].push(element);
      };
      for (const node of nodes(step.node)) mark(node, step.failed ? "failed" : "now", step.failed ? "failed" : "done");
      for (const edge of step.edges.flatMap(edges)) mark(edge, "now", "done");
      for (const line of step.freed.flatMap(lines)) mark(line, "freed", "freed");
    }
    this.tell(null);
  }

  show(step) {
    step = Math.min(step, this.steps.length);
    for (let at = Math.min(step, this.shown); at <= Math.max(step, this.shown); at++)
      for (const element of this.touched[at]) {
        element.classList.remove("now", "done", "failed", "freed");
        const mark = this.marks.get(element).findLast(([when]) => when <= step);
        if (mark) element.classList.add(mark[0] === step ? mark[1] : mark[2]);
      }
    this.shown = step;
    this.tell(step ? this.steps[step - 1] : null);
  }

  tell(step) {
    const bytes = step ? step.bytes : this.data.bytes;
    const most = this.data.most;
    this.told = step ? step.caption : this.data.before;
    this.caption.textContent = this.told;
    this.fill.style.width = `${most ? (100 * bytes) / most : 0}%`;
    this.bytes.textContent = `${bytes.toLocaleString("en")} of ${this.data.bytes.toLocaleString("en")} bytes kept`;
    if (step) this.reveal(this.graph.querySelector(`.node[data-node="${step.node}"]`));
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
