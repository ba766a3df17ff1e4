// A tail of rows: new ones come on top of those that are there, and the oldest go. It can be paused.
const MOST = 500;

function rows(part) {
  return [...part.querySelectorAll("tr[data-row]")];
}

function gap(columns) {
  const row = document.createElement("tr");
  row.className = "gap";
  const cell = document.createElement("td");
  cell.colSpan = columns;
  cell.textContent = "Events between these are not shown: they came faster than the page looks.";
  row.append(cell);
  return row;
}

// True if the rows of a fetched part were put on top; otherwise the part is to be replaced as it is.
export function merge(part, fresh) {
  const old = rows(part);
  if (!old.length) return false;
  const known = new Set(old.map((row) => row.dataset.row));
  const fetched = rows(fresh);
  const added = fetched.filter((row) => !known.has(row.dataset.row));
  if (!added.length) return true;
  const body = part.querySelector("tbody");
  const missed = added.length === fetched.length ? [gap(added[0].cells.length)] : [];
  body.prepend(...added.map((row) => document.importNode(row, true)), ...missed);
  while (body.rows.length > MOST) body.rows[body.rows.length - 1].remove();
  return true;
}

for (const button of document.querySelectorAll("button[data-pause]")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const part = document.getElementById(button.dataset.pause);
    const isPaused = part.toggleAttribute("data-held");
    button.textContent = isPaused ? "Go on" : "Pause";
    button.setAttribute("aria-pressed", String(isPaused));
    if (!isPaused) document.dispatchEvent(new CustomEvent("ropeway:refresh"));
  });
}
