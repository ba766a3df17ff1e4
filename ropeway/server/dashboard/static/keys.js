// Keys: / search, ? help, g and a letter for a page, j and k for rows, r to look again.
const help = document.getElementById("help");
const button = document.getElementById("help-button");
let isGoing = false;

function rows() {
  return [...document.querySelectorAll("[data-rows] tbody tr")].filter((row) => row.querySelector("a[href]"));
}

function move(step) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((row) => row.classList.contains("chosen"));
  const next = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + step))];
  for (const row of all) row.classList.toggle("chosen", row === next);
  next.querySelector("a[href]").focus();
  next.scrollIntoView({ block: "nearest" });
}

function go(key) {
  const link = document.querySelector(`nav a[data-key="${CSS.escape(key)}"]`);
  if (link) link.click();
  return Boolean(link);
}

const KEYS = {
  "/": () => {
    const field = document.querySelector("[data-search]");
    if (field) field.focus();
    else go("j");
  },
  "?": () => help.showModal(),
  j: () => move(1),
  k: () => move(-1),
  r: () => document.dispatchEvent(new CustomEvent("ropeway:refresh")),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.matches("input, select, textarea") || document.querySelector("dialog[open]")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (isGoing) {
    isGoing = false;
    if (go(event.key)) event.preventDefault();
    return;
  }
  if (event.key === "g") {
    isGoing = true;
    setTimeout(() => (isGoing = false), 1500);
    return;
  }
  const act = KEYS[event.key];
  if (act) {
    event.preventDefault();
    act();
  }
});
button.hidden = false;
button.addEventListener("click", () => help.showModal());
// On a phone the navigation is wider than the screen.
const current = document.querySelector(".top nav a[aria-current]");
if (current) {
  const bar = current.parentElement;
  // Not by scrollIntoView, which would also be where the next Tab begins.
  bar.scrollLeft = current.offsetLeft - bar.offsetLeft - (bar.clientWidth - current.offsetWidth) / 2;
}
