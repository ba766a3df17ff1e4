// The page is live: when the server says that something changed, its parts are fetched and replaced.
// A hidden tab closes its connection, and looks again when it is seen.
import { merge } from "./tail.js";

const address = document.body.dataset.live;
const status = document.getElementById("status");
let source = null;
let tag = "";
let isFetching = false;
let isAsked = false;

function say(text, isCut = false) {
  if (status.textContent !== text) status.textContent = text;
  status.classList.toggle("cut", isCut);
}

function isHeld(part) {
  // What somebody is typing into, has marked, or is asked about stays as it is.
  const marked = document.getSelection();
  return (
    part.hasAttribute("data-held") ||
    (part.contains(document.activeElement) && document.activeElement.matches("input, select, textarea")) ||
    (marked && !marked.isCollapsed && part.contains(marked.anchorNode)) ||
    part.querySelector("dialog[open], details[open][data-hold], input:checked") !== null
  );
}

function numbers(part) {
  return new Map([...part.querySelectorAll("[data-number]")].map((each) => [each.dataset.number, each.textContent]));
}

// What can be scrolled stays where it is, and a log that was at its end stays there.
const SCROLLED = ".scroll, .graph, .log, pre";

function scrolls(part) {
  return [...part.querySelectorAll(SCROLLED)].map((each) => ({
    left: each.scrollLeft,
    top: each.scrollTop,
    isAtEnd: each.matches("[data-follow]") && each.scrollTop + each.clientHeight >= each.scrollHeight - 4,
  }));
}

function scroll(part, places) {
  part.querySelectorAll(SCROLLED).forEach((each, index) => {
    const place = places[index];
    if (place) each.scrollTo(place.left, place.isAtEnd ? each.scrollHeight : place.top);
    else if (each.matches("[data-follow]")) each.scrollTo(0, each.scrollHeight);
  });
}

// What has the focus keeps it: the same link, or else what stands at its place.
const FOCUSABLE = "a[href], button, summary, [tabindex]";

function focus(fresh, index, href) {
  const each = [...fresh.querySelectorAll(FOCUSABLE)];
  const same = each[index]?.getAttribute("href") === href ? each[index] : each.find((one) => href && one.getAttribute("href") === href);
  (same ?? each[Math.min(index, each.length - 1)])?.focus({ preventScroll: true });
}

function replace(part, fresh) {
  const before = numbers(part);
  const places = scrolls(part);
  const opened = new Set([...part.querySelectorAll("details[open][id]")].map((each) => each.id));
  const focused = [...part.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement);
  const href = document.activeElement?.getAttribute("href");
  const chosen = part.querySelector("tr.chosen a")?.getAttribute("href");
  part.replaceWith(fresh);
  scroll(fresh, places);
  for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
  if (focused >= 0) focus(fresh, focused, href);
  for (const link of fresh.querySelectorAll("a[href]")) {
    if (chosen && link.getAttribute("href") === chosen) link.closest("tr")?.classList.add("chosen");
  }
  for (const each of fresh.querySelectorAll("[data-number]")) {
    if (before.has(each.dataset.number) && before.get(each.dataset.number) !== each.textContent) {
      (each.closest(".card") ?? each).classList.add("moved");
    }
  }
}

// A part that is new goes where it is in the fetched page, beside one that is here too.
function insert(fresh) {
  const fellows = [...fresh.parentElement.children];
  const own = fellows.indexOf(fresh);
  const here = (each) => (each.id ? document.getElementById(each.id) : null);
  const above = fellows.slice(0, own).reverse().map(here).find(Boolean);
  const below = fellows.slice(own + 1).map(here).find(Boolean);
  if (above) above.after(document.importNode(fresh, true));
  else if (below) below.before(document.importNode(fresh, true));
  // Nothing of its surroundings is here, as when a first job comes.
  else location.reload();
}

// Brings the parts of this page to those of a fetched one; false if one of them is held.
function show(page) {
  let isWhole = true;
  for (const part of document.querySelectorAll("[data-part]")) {
    if (page.getElementById(part.id)) continue;
    if (isHeld(part)) isWhole = false;
    else part.remove();
  }
  for (const fresh of page.querySelectorAll("[data-part]")) {
    const part = document.getElementById(fresh.id);
    if (!part) insert(fresh);
    else if (isHeld(part)) isWhole = false;
    else if (!part.hasAttribute("data-tail") || !merge(part, fresh)) replace(part, document.importNode(fresh, true));
  }
  return isWhole;
}

export async function refresh() {
  if (isFetching) {
    isAsked = true;
    return;
  }
  isFetching = true;
  try {
    const answer = await fetch(location.href, { headers: { "x-ropeway-part": "1", "if-none-match": tag }, cache: "no-store" });
    if (answer.status === 401) {
      location.reload();
    } else if (answer.ok) {
      tag = answer.headers.get("etag") ?? "";
      if (source?.readyState === EventSource.OPEN) say("Live");
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      // What is held now is fetched again, though nothing may have changed by then.
      if (!show(page)) tag = "";
      document.dispatchEvent(new CustomEvent("ropeway:parts"));
    }
  } catch {
    say("The server does not answer", true);
  } finally {
    isFetching = false;
    if (isAsked) {
      isAsked = false;
      setTimeout(refresh, 250);
    }
  }
}

function open() {
  if (!address || source) return;
  source = new EventSource(address);
  source.addEventListener("open", () => {
    say("Live");
    document.body.dataset.connected = "yes";
  });
  source.addEventListener("change", refresh);
  source.addEventListener("error", () => {
    say("Connecting again…", true);
    // Browsers give up after an answer that is no stream, such as that of a server without its store.
    if (source?.readyState === EventSource.CLOSED) {
      close();
      setTimeout(() => !document.hidden && open(), 5000);
    }
  });
}

function close() {
  source?.close();
  source = null;
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    close();
  } else {
    refresh();
    open();
  }
});
document.addEventListener("ropeway:refresh", refresh);
// What writes no event of its own, such as the log of a running job, is looked at again and again.
setInterval(() => {
  if (!document.hidden && document.querySelector("[data-poll]")) refresh();
}, 2000);
addEventListener("pagehide", close);
for (const each of document.querySelectorAll("[data-follow]")) each.scrollTo(0, each.scrollHeight);
if (!document.hidden) open();
