"use strict";
// Draws the calls of one profile, or the difference of two, below their callers.
(() => {
  const data = document.getElementById("calls");
  if (!data) return;
  const { names, profiles } = JSON.parse(data.textContent);
  const HEIGHT = 19;
  const element = (name, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };
  const micros = (value) => (Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(1));
  const signed = (value) => (value < 0 ? "−" : "+") + micros(Math.abs(value));

  // The calls as a tree, with microseconds per request.
  const tree = (profile) => {
    const per = profile.micros / profile.samples;
    const root = { name: "all of it", depth: 0, size: profile.micros, calls: new Map() };
    const nodes = [];
    for (let at = 0; at < profile.calls.length; at += 3) {
      const back = profile.calls[at + 1];
      const caller = back === 0 ? root : nodes[at / 3 - back];
      const name = names[profile.calls[at]];
      const node = { name, depth: caller.depth + 1, size: profile.calls[at + 2] * per, calls: new Map(), caller };
      caller.calls.set(name, node);
      nodes.push(node);
    }
    return root;
  };
  const functions = (root) => {
    const all = new Map();
    const walk = (node, above) => {
      let own = node.size;
      for (const call of node.calls.values()) {
        own -= call.size;
        walk(call, new Set(above).add(node.name));
      }
      const known = all.get(node.name) ?? { own: 0, total: 0 };
      known.own += Math.max(own, 0);
      if (!above.has(node.name)) known.total += node.size;
      all.set(node.name, known);
    };
    walk(root, new Set());
    all.delete(root.name);
    return all;
  };
  // The part of a name that says whose code it is.
  const owner = (name) => name.replace(/^[<&_]*(dyn |mut )?/, "").split(/::|[<( ]/)[0];
  const hue = (name) => {
    let sum = 7;
    for (const character of owner(name)) sum = (sum * 31 + character.codePointAt(0)) % 360;
    return sum;
  };

  const table = (own, other) => {
    const rows = [...own.keys(), ...(other ? [...other.keys()].filter((name) => !own.has(name)) : [])]
      .map((name) => {
        const mine = own.get(name) ?? { own: 0, total: 0 };
        const theirs = other?.get(name) ?? { own: 0, total: 0 };
        return { name, mine, change: mine.own - theirs.own };
      });
    rows.sort((a, b) => (other ? Math.abs(b.change) - Math.abs(a.change) : b.mine.own - a.mine.own));
    const head = ["function", "by itself, µs", "with its calls, µs", ...(other ? ["change by itself, µs"] : [])];
    const body = element("tbody");
    for (const { name, mine, change } of rows.slice(0, 40)) {
      const cells = [micros(mine.own), micros(mine.total), ...(other ? [signed(change)] : [])];
      const first = element("th", { textContent: name, scope: "row" });
      body.append(element("tr", {}, first, ...cells.map((cell) => element("td", { textContent: cell }))));
    }
    const heads = head.map((title) => element("th", { textContent: title, scope: "col" }));
    const made = element("table", { className: "figures" }, element("thead", {}, element("tr", {}, ...heads)), body);
    return element("div", { className: "wide" }, made);
  };

  const graph = (figure) => {
    const own = profiles.filter((profile) => profile.route === figure.dataset.route);
    const label = (profile) => `${profile.title}: ${profile.process}`;
    const choice = element("select");
    const against = element("select", {}, element("option", { textContent: "nothing", value: "" }));
    own.forEach((profile, index) => {
      choice.append(element("option", { textContent: label(profile), value: index }));
      against.append(element("option", { textContent: label(profile), value: index }));
    });
    const whole = element("button", { type: "button", textContent: "Show all" });
    const controls = element("p", { className: "tools" },
      element("label", {}, "Profile ", choice), element("label", {}, " compared with ", against), whole);
    const canvas = element("div", { className: "calls", role: "group" });
    const said = element("p", { className: "said" });
    said.setAttribute("aria-live", "polite");
    const numbers = element("details", { className: "numbers" }, element("summary", { textContent: "Show the numbers as a table" }));
    figure.append(controls, said, canvas, numbers);

    let root;
    let before;
    const twin = (node) => {
      if (!before) return undefined;
      if (!node.caller) return before;
      return twin(node.caller)?.calls.get(node.name);
    };
    const describe = (node) => {
      const share = `${micros(node.size)} µs, ${(100 * node.size / root.size).toFixed(1)} %`;
      const change = before ? `, ${signed(node.size - (twin(node)?.size ?? 0))} µs` : "";
      return `${node.name} (${share}${change})`;
    };
    const draw = (focus) => {
      canvas.replaceChildren();
      const scale = 100 / focus.size;
      let deepest = 0;
      const place = (node, left, width) => {
        if (width < 0.15) return;
        deepest = Math.max(deepest, node.depth);
        const frame = element("button", { type: "button", textContent: node.name, title: describe(node) });
        frame.style.left = `${left}%`;
        frame.style.width = `${width}%`;
        frame.style.top = `${node.depth * HEIGHT}px`;
        if (before) {
          const change = (node.size - (twin(node)?.size ?? 0)) / root.size;
          const strength = Math.min(Math.abs(change) * 8, 1);
          frame.style.setProperty("--hue", change > 0 ? 20 : 215);
          frame.style.setProperty("--colour", `${Math.round(strength * 85)}%`);
        } else {
          frame.style.setProperty("--hue", hue(node.name));
        }
        frame.addEventListener("click", () => { said.textContent = describe(node); draw(node); });
        canvas.append(frame);
        let next = left;
        for (const call of [...node.calls.values()].sort((a, b) => b.size - a.size)) {
          const own = call.size * scale;
          if (width >= 0.15) place(call, next, own);
          next += own;
        }
      };
      // The callers of what is enlarged stand above it in full width.
      const path = [];
      for (let node = focus.caller; node; node = node.caller) path.unshift(node);
      for (const node of path) {
        const frame = element("button", { type: "button", textContent: node.name, title: describe(node), className: "above" });
        frame.style.cssText = `left:0;width:100%;top:${node.depth * HEIGHT}px`;
        frame.addEventListener("click", () => { said.textContent = describe(node); draw(node); });
        canvas.append(frame);
      }
      place(focus, 0, 100);
      canvas.style.height = `${(deepest + 1) * HEIGHT}px`;
    };
    const show = () => {
      const profile = own[choice.value];
      root = tree(profile);
      before = against.value === "" ? undefined : tree(own[against.value]);
      canvas.setAttribute("aria-label", `Calls of ${label(profile)}, ${micros(root.size)} µs per request`);
      said.textContent = before
        ? `${describe(root)}; orange: more than “${label(own[against.value])}”, blue: less`
        : `${describe(root)}, ${profile.samples} samples`;
      numbers.querySelector(".wide")?.remove();
      numbers.append(table(functions(root), before && functions(before)));
      draw(root);
    };
    choice.addEventListener("change", show);
    against.addEventListener("change", show);
    whole.addEventListener("click", show);
    show();
  };
  // Drawn when it comes into sight, since a page may hold many; on paper all of them.
  const waiting = new Set(document.querySelectorAll("figure.flame"));
  const drawn = (figure) => {
    if (waiting.delete(figure)) graph(figure);
  };
  const watch = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) if (isIntersecting) drawn(target);
  }, { rootMargin: "400px" });
  waiting.forEach((figure) => watch.observe(figure));
  addEventListener("beforeprint", () => waiting.forEach(drawn));
})();
