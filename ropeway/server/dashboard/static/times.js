// Times in the viewer's zone; the exact instant is the tooltip.
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

function apart(seconds) {
  for (const [unit, size] of UNITS) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
  }
  return "";
}

function relative(at) {
  const seconds = (Date.now() - at) / 1000;
  const text = apart(Math.abs(seconds));
  if (!text) return "now";
  return seconds > 0 ? `${text} ago` : `in ${text}`;
}

export function show(root = document) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.textContent = time.dataset.show === "clock" ? clock.format(at) : relative(at);
    time.title = `${full.format(at)}\n${time.dateTime}`;
  }
}

show();
setInterval(() => document.hidden || show(), 5000);
document.addEventListener("ropeway:parts", () => show());
document.addEventListener("visibilitychange", () => document.hidden || show());
