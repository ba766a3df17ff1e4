// Forms that change something ask first; the answer is the browser's own dialog element.
function asked(text) {
  const dialog = document.createElement("dialog");
  const words = document.createElement("p");
  words.textContent = text;
  const form = document.createElement("form");
  form.method = "dialog";
  form.className = "actions";
  for (const [value, label, kind] of [["no", "Cancel", ""], ["yes", "Go on", "main"]]) {
    const button = document.createElement("button");
    button.value = value;
    button.textContent = label;
    button.className = kind;
    form.append(button);
  }
  dialog.append(words, form);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
  });
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  const question = event.submitter?.dataset.confirm ?? form.dataset.confirm;
  if (!question || form.dataset.confirmed) return;
  event.preventDefault();
  if (await asked(question)) {
    form.dataset.confirmed = "yes";
    form.requestSubmit(event.submitter ?? undefined);
    delete form.dataset.confirmed;
  }
});

// "Choose all", and buttons that copy.
document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-all]")) return;
  for (const each of event.target.form.querySelectorAll('input[name="job"]')) each.checked = event.target.checked;
});

for (const text of document.querySelectorAll("pre[data-copy]")) {
  const around = document.createElement("div");
  around.className = "copied";
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text.textContent);
    button.textContent = "Copied";
  });
  text.replaceWith(around);
  around.append(text, button);
}
