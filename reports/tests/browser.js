"use strict";
// Drives the report in the frame and writes down what it saw.
const frame = document.querySelector("iframe");
const errors = [];
const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

const channel = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
const luminance = ([red, green, blue]) =>
  0.2126 * channel(red / 255) + 0.7152 * channel(green / 255) + 0.0722 * channel(blue / 255);
const colour = (text) => {
  const parts = (text.match(/[\d.]+/g) ?? []).map(Number);
  return { rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1 };
};

const drive = async () => {
  const page = frame.contentDocument;
  const view = frame.contentWindow;
  view.addEventListener("error", (event) => errors.push(String(event.message)));
  const said = { dark: view.matchMedia("(prefers-color-scheme: dark)").matches };
  await wait(1000);

  // Contrast of each text against the nearest ground that is not see-through.
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const found = colour(view.getComputedStyle(at).backgroundColor);
      if (found.alpha === 1 && found.rgb.length === 3) return found.rgb;
    }
    return said.dark ? [18, 18, 18] : [255, 255, 255];
  };
  said.pale = [];
  page.querySelectorAll("details").forEach((details) => { details.open = true; });
  await wait(500);
  for (const element of page.body.querySelectorAll("*")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || element.closest("script, style, noscript") || !element.getClientRects().length) continue;
    const style = view.getComputedStyle(element);
    const ink = colour(element.namespaceURI.includes("svg") ? style.fill : style.color).rgb;
    const [light, dark] = [luminance(ink), luminance(ground(element))].sort((a, b) => b - a);
    const ratio = (light + 0.05) / (dark + 0.05);
    if (!(ratio >= 4.5)) said.pale.push(`${element.tagName} ${element.textContent.trim().slice(0, 40)}: ${ratio.toFixed(2)}`);
  }

  said.unnamed = [...page.querySelectorAll("svg, select, input, button")]
    .filter((element) => !(element.getAttribute("aria-label") || element.labels?.length || element.textContent.trim()))
    .map((element) => element.outerHTML.slice(0, 80));
  said.broken_links = [...page.querySelectorAll("a[href^='#']")]
    .filter((link) => !page.getElementById(link.getAttribute("href").slice(1)))
    .map((link) => link.getAttribute("href"));
  said.finding_chart = Boolean(page.querySelector(".finding .copy svg"));

  const table = page.querySelector("table.cost");
  const body = [...table.tBodies].find((each) => each.rows[0].textContent.startsWith("Postgres"));
  const names = () => [...body.rows].map((row) => row.cells[0].textContent);
  const head = table.tHead.rows[0].cells[5].querySelector("button");
  said.unsorted = names();
  head.click();
  said.sorted = names();
  head.click();
  head.click();
  said.back = names();

  const tools = page.querySelector(".tools[data-table]");
  const search = tools.querySelector("input[type=search]");
  const type = (text) => {
    search.value = text;
    search.dispatchEvent(new view.Event("input"));
  };
  type("ping");
  said.filtered = [...table.rows]
    .filter((row) => !row.hidden && row.className.startsWith("in"))
    .map((row) => row.cells[0].textContent);
  type("");
  const box = tools.querySelectorAll("input[type=checkbox]")[3];
  box.click();
  said.hidden_columns = [...table.tHead.rows[0].cells].filter((cell) => cell.hidden).length;
  box.click();

  const copied = [];
  Object.defineProperty(view.navigator, "clipboard", {
    value: { writeText: async (text) => { copied.push(text); } },
  });
  for (const button of tools.querySelectorAll("button")) button.click();
  await wait(100);
  [said.markdown, said.csv] = copied;

  const flame = page.querySelector("figure.flame");
  flame.scrollIntoView();
  // A browser without a screen need not see anything; paper shows all.
  view.dispatchEvent(new view.Event("beforeprint"));
  const calls = () => [...flame.querySelectorAll(".calls button")];
  said.calls = calls().length;
  const inner = calls().find((call) => call.textContent.includes("query"));
  inner?.click();
  said.zoomed = calls().some((call) => call.textContent.includes("query") && call.style.width === "100%");
  const against = flame.querySelectorAll("select")[1];
  against.value = "1";
  against.dispatchEvent(new view.Event("change"));
  said.difference = flame.querySelector(".figures").textContent;

  said.requests = view.performance.getEntriesByType("resource").map((entry) => entry.name);
  said.errors = errors;
  const out = document.createElement("pre");
  out.id = "said";
  out.textContent = JSON.stringify(said);
  document.body.append(out);
};
frame.addEventListener("load", () => {
  drive().catch((error) => {
    const out = document.createElement("pre");
    out.id = "said";
    out.textContent = JSON.stringify({ errors: [String(error.stack)] });
    document.body.append(out);
  });
});
