"use strict";
// Sorts, filters, hides and copies the cost tables. Everything is there without it.
(() => {
  const number = (cell) => {
    const found = /[−-]?[\d,]+(\.\d+)?/.exec(cell.firstChild ? cell.firstChild.textContent : "");
    return found ? Number(found[0].replace("−", "-").replaceAll(",", "")) : NaN;
  };
  const element = (name, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };

  // A line and the lines indented below it stay together.
  const blocks = (body) => {
    const all = [];
    for (const row of body.querySelectorAll("tr[class^=in]")) {
      if (row.className === "in1" || all.length === 0) all.push([]);
      all.at(-1).push(row);
    }
    return all;
  };

  const sort = (table, column, order) => {
    for (const body of table.tBodies) {
      const parts = blocks(body);
      parts.forEach((rows) => { rows[0].dataset.place ??= parts.indexOf(rows); });
      // By size in the reference's column, by relative change in the others.
      const key = (rows) => {
        const own = number(rows[0].cells[column]);
        const reference = number(rows[0].cells[2]);
        if (column === 2) return own;
        return reference === 0 ? (own === 0 ? 0 : Infinity) : own / reference - 1;
      };
      const place = (rows) => Number(rows[0].dataset.place);
      parts.sort((a, b) => {
        if (order === 0) return place(a) - place(b);
        const [x, y] = [key(a), key(b)];
        if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
        return (y - x) * order || place(a) - place(b);
      });
      const remarks = [...body.querySelectorAll("tr.remark")];
      body.append(...parts.flat(), ...remarks);
    }
  };

  const sortable = (table) => {
    const heads = [...table.tHead.rows[0].cells];
    const orders = [1, -1, 0];
    heads.forEach((head, column) => {
      if (column < 2) return;
      const button = element("button", { type: "button" }, ...head.childNodes);
      button.title = column === 2 ? "Sort by size" : "Sort by change against the reference";
      let next = 0;
      button.addEventListener("click", () => {
        const order = orders[next];
        next = (next + 1) % orders.length;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        if (order) head.setAttribute("aria-sort", order > 0 ? "descending" : "ascending");
        sort(table, column, order);
      });
      head.replaceChildren(button);
    });
  };

  const filter = (table, wanted) => {
    const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
    for (const body of table.tBodies) {
      const title = body.rows[0].textContent.toLowerCase();
      const fits = (text) => words.every((word) => text.includes(word) || title.includes(word));
      let any = false;
      for (const row of body.querySelectorAll("tr:not(.group)")) {
        const name = row.cells[0].textContent.toLowerCase();
        row.hidden = words.length > 0 && !fits(name);
        any ||= !row.hidden;
      }
      body.rows[0].hidden = !any;
    }
  };

  const shown = (table) => [...table.rows]
    .filter((row) => !row.hidden && !row.classList.contains("remark") && !row.closest("[hidden]"))
    .map((row) => [...row.cells].filter((cell) => !cell.hidden).map((cell) => {
      const copy = cell.cloneNode(true);
      copy.querySelectorAll("sup").forEach((sup) => sup.remove());
      return copy.textContent.trim().replace(/\s+/g, " ");
    }));

  const markdown = (rows) => {
    const width = Math.max(...rows.map((row) => row.length));
    const line = (cells) => "| " + cells.map((cell) => cell.replace(/[\\|`*_<>[\]]/g, "\\$&")).join(" | ") + " |";
    const whole = (row) => [...row, ...Array(width - row.length).fill("")];
    const rule = "| " + Array(width).fill("---").join(" | ") + " |";
    return [line(whole(rows[0])), rule, ...rows.slice(1).map((row) => line(whole(row)))].join("\n") + "\n";
  };
  // A cell that begins like a formula must not become one in a spreadsheet.
  const csv = (rows) => rows.map((row) => row.map((cell) => {
    const safe = /^[=+@\t\r-]/.test(cell) && !/^[+-]?[\d,.]+( %)?$/.test(cell) ? "'" + cell : cell;
    return /[",\n]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
  }).join(",")).join("\r\n") + "\r\n";

  const copy = async (button, text) => {
    const label = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // A page opened from a file may not use the clipboard directly.
      const area = element("textarea", { value: text });
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 1500);
  };

  for (const tools of document.querySelectorAll(".tools")) {
    const table = document.getElementById(tools.dataset.table);
    sortable(table);
    const search = element("input", { type: "search", placeholder: "Filter costs" });
    search.setAttribute("aria-label", "Show only costs whose names contain this");
    search.addEventListener("input", () => filter(table, search.value));
    const columns = element("fieldset", {}, element("legend", { textContent: "Show" }));
    [...table.tHead.rows[0].cells].slice(2).forEach((head, index) => {
      const box = element("input", { type: "checkbox", checked: true });
      box.addEventListener("change", () => {
        for (const row of table.rows) {
          const cell = row.cells[index + 2];
          if (cell && row.cells.length > 2) cell.hidden = !box.checked;
        }
      });
      columns.append(element("label", {}, box, " " + head.textContent));
    });
    const asMarkdown = element("button", { type: "button", textContent: "Copy as Markdown" });
    asMarkdown.addEventListener("click", () => copy(asMarkdown, markdown(shown(table))));
    const asCsv = element("button", { type: "button", textContent: "Copy as CSV" });
    asCsv.addEventListener("click", () => copy(asCsv, csv(shown(table))));
    tools.append(search, columns, asMarkdown, asCsv);
    tools.hidden = false;
  }

  // A finding shows its chart when it is opened.
  for (const place of document.querySelectorAll(".copy")) {
    place.closest("details").addEventListener("toggle", () => {
      const figure = document.getElementById(place.dataset.chart);
      if (figure && !place.firstChild) {
        place.append(figure.querySelector("h4").cloneNode(true), figure.querySelector("svg").cloneNode(true));
      }
    });
  }
  // Paper shows what is folded away on the screen.
  addEventListener("beforeprint", () => {
    for (const folded of document.querySelectorAll("details.finding")) folded.open = true;
  });
})();
